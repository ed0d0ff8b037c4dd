"""What is said when offsets cannot be committed to a group."""

from __future__ import annotations

import logging

logger = logging.getLogger("pyspark_upsert_kafka")


class CommitWarning:
    """Warns of the first failed commit only: the query goes on without.

    Args:
        group: The consumer group.
    """

    def __init__(self, group: str) -> None:
        self._group = group
        self._warned = False

    def warn(self, error: object) -> None:
        """Logs the reason, unless there was a warning before."""
        if not self._warned:
            self._warned = True
            logger.warning(
                "Offsets are not committed to group %r, so Kafka's tools do not show how far the query "
                "is: %s. The query itself goes on; its checkpoint decides.",
                self._group, error,
            )  # fmt: skip
