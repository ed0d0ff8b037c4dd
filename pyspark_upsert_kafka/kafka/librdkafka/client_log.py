"""What librdkafka writes to its log, passed on as far as it tells anything."""

from __future__ import annotations

import logging
import re
import time

client_log = logging.getLogger("pyspark_upsert_kafka.librdkafka")

_OF_NO_USE = (
    # A consumer's tuning is no mistake though a producer is opened with it too, and the other way round.
    "will be ignored by this",
    # The first idempotent producer of a new broker waits a moment for its turn.
    "Coordinator load in progress: retrying",
)

_AGAIN_AFTER_S = 30.0
_MANY = 1000

_CHANGING = re.compile(r"#(?:producer|consumer)-\d+|after \d+ms|\d+ identical error")
"""What differs from one report of the same trouble to the next."""


class _Rarely(logging.Filter):
    """Passes each text once in a while: a lost broker is reported 20 times a second while it is asked for."""

    def __init__(self) -> None:
        super().__init__()
        self._told: dict[str, float] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether the record tells anything new."""
        text = record.getMessage()
        if any(part in text for part in _OF_NO_USE):
            return False
        text, now = _CHANGING.sub("", text), time.monotonic()
        if now - self._told.get(text, float("-inf")) < _AGAIN_AFTER_S:
            return False
        if len(self._told) >= _MANY:
            self._told.clear()
        self._told[text] = now
        return True


client_log.addFilter(_Rarely())
