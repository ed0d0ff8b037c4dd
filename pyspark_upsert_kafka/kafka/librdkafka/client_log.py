"""librdkafka's log, without what means nothing and without repetitions."""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Mapping
from typing import Any

from pyspark_upsert_kafka.core.secrets.outside_text import OutsideText

client_log = logging.getLogger("pyspark_upsert_kafka.librdkafka")

_IRRELEVANT = (
    # A consumer's tuning is no mistake though a producer is opened with it too, and the other way round.
    "will be ignored by this",
    # The first idempotent producer of a new broker waits a moment for its turn.
    "Coordinator load in progress: retrying",
)

_AGAIN_AFTER_S = 30.0
_MANY = 1000

_CHANGING = re.compile(
    r"#(?:producer|consumer)-\d+|after \d+ms|\d+ identical error|Partition \S+\(\S+\)\[\d+\](?=: new leader)"
)
"""What differs from one report of the same error to the next. A broker that has just come back names no leaders yet, which is
reported of each partition."""


class WithoutSecrets:
    """A client's own log, without its secrets: what it logs may quote an answer that repeats its login.

    Args:
        config: The client's configuration.
    """

    def __init__(self, config: Mapping[str, Any]) -> None:
        self._shown = OutsideText(config).shown

    def log(self, level: int, text: str, *arguments: str) -> None:
        """Logs what may be shown of it; confluent-kafka asks for no other method."""
        client_log.log(level, text, *map(self._shown, arguments))


class _RateLimit(logging.Filter):
    """Passes each text once in a while: a lost broker is reported 20 times a second during a request."""

    def __init__(self) -> None:
        super().__init__()
        self._passed_at: dict[str, float] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether the record is relevant, and was not passed on a moment ago."""
        text = record.getMessage()
        if any(part in text for part in _IRRELEVANT):
            return False
        text, now = _CHANGING.sub("", text), time.monotonic()
        if now - self._passed_at.get(text, float("-inf")) < _AGAIN_AFTER_S:
            return False
        if len(self._passed_at) >= _MANY:
            self._passed_at.clear()
        self._passed_at[text] = now
        return True


client_log.addFilter(_RateLimit())
