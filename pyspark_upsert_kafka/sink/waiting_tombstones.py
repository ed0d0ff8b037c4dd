"""The tombstones of preimages that wait for a later change of their key."""

from __future__ import annotations

from pyspark_upsert_kafka.kafka.messages import Headers, Messages

_Extras = tuple[int, "Headers | None"]
"""Timestamp and headers of a message that has any."""

_ENTRY_BYTES = 150
"""What a waiting tombstone holds besides its key: an entry of a dict, and an object."""


class WaitingTombstones:
    """At most one tombstone per topic and key: that of its last preimage."""

    def __init__(self) -> None:
        self._waiting: dict[str, dict[bytes | None, _Extras | None]] = {}
        self.size = 0
        """Bytes that they hold, about; 0 = there are none."""

    def add(self, topic: str, key: bytes | None, timestamp: int, headers: Headers | None) -> None:
        """Lets a tombstone wait."""
        waiting = self._waiting.setdefault(topic, {})
        if key not in waiting:
            self.size += _size(key)
        waiting[key] = (timestamp, headers) if timestamp or headers else None

    def discard(self, topic: str, key: bytes | None) -> None:
        """Drops the tombstone of a key that has changed again, if there is one."""
        waiting = self._waiting.get(topic)
        if waiting is not None and key in waiting:
            del waiting[key]
            self.size -= _size(key)

    def drain(self) -> Messages | None:
        """All of them, which then wait no more; None = there are none."""
        rows = [
            (topic, key, None, *(extras or (0, None)))
            for topic, waiting in self._waiting.items()
            for key, extras in waiting.items()
        ]
        self._waiting, self.size = {}, 0
        return Messages.from_rows(rows) if rows else None


def _size(key: bytes | None) -> int:
    return _ENTRY_BYTES + len(key or b"")
