"""Commits that nobody waits for: kafka-python's are sent by a thread."""

from __future__ import annotations

import threading
from collections.abc import Callable

from kafka.errors import KafkaError

from pyspark_upsert_kafka.core.errors import BrokerError
from pyspark_upsert_kafka.core.offsets import Positions, TopicPartition
from pyspark_upsert_kafka.kafka import timeouts
from pyspark_upsert_kafka.kafka.commit_warning import CommitWarning


class BackgroundCommits:
    """Commits in the background, one at a time and the last one last.

    Args:
        group: The consumer group, for the warning.
        commit: Commits positions and waits for the answer.
    """

    def __init__(self, group: str, commit: Callable[[Positions], None]) -> None:
        self._commit, self._warning = commit, CommitWarning(group)
        self._lock = threading.Lock()
        self._waiting: dict[TopicPartition, int] = {}
        self._thread: threading.Thread | None = None

    def add(self, positions: Positions) -> None:
        """Has positions committed."""
        with self._lock:
            self._waiting.update(positions)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, daemon=True)
                self._thread.start()

    def wait(self) -> None:
        """Waits a little for what is under way."""
        thread = self._thread
        if thread is not None:
            thread.join(timeouts.CLOSE_TIMEOUT_S)

    def _run(self) -> None:
        while True:
            with self._lock:
                positions, self._waiting = self._waiting, {}
                if not positions:
                    self._thread = None
                    return
            try:
                self._commit(positions)
            except (BrokerError, KafkaError) as error:
                self._warning.warn(error)
