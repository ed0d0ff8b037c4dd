"""``update_preimage``: nothing when a later change of its key follows in the task, else a tombstone."""

from __future__ import annotations

from itertools import compress
from typing import Any

from pyspark_upsert_kafka.kafka.client import Messages
from pyspark_upsert_kafka.sink.messages import Changes


class Preimages:
    """Holds preimages back until it is known whether their key changes again.

    An update that keeps its key arrives as preimage and postimage: the preimage is dropped. One that
    changes the key leaves the old key with nothing after its preimage: that becomes a tombstone, sent
    at the end, which is late for nothing, since no change of the key came after it.
    """

    def __init__(self) -> None:
        self._pending: dict[tuple[str, bytes | None], tuple[int, Any]] = {}

    def settle(self, changes: Changes) -> Messages:
        """The messages to send now: all but the preimages, which wait."""
        messages = changes.messages
        if changes.preimages is None and not self._pending:
            return messages
        count = len(messages)
        one = messages.topics
        topics = [one] * count if isinstance(one, str) else one
        timestamps = messages.timestamps or [0] * count
        headers = messages.headers or [None] * count
        flags = [False] * count if changes.preimages is None else changes.preimages.tolist()
        for at, (topic, key, preimage) in enumerate(zip(topics, messages.keys, flags, strict=True)):
            if preimage:
                self._pending[topic, key] = (timestamps[at], headers[at])
            else:
                self._pending.pop((topic, key), None)
        return messages if changes.preimages is None else _without(messages, flags)

    def rest(self) -> Messages | None:
        """The tombstones of keys that nothing followed; None = there are none."""
        if not self._pending:
            return None
        topics, keys = zip(*self._pending, strict=True)
        timestamps, headers = zip(*self._pending.values(), strict=True)
        self._pending = {}
        return Messages(
            list(topics), list(keys), [None] * len(keys), list(timestamps), list(headers)
        )


def _without(messages: Messages, dropped: list[bool]) -> Messages:
    kept = [not flag for flag in dropped]
    topics = messages.topics
    return Messages(
        topics if isinstance(topics, str) else list(compress(topics, kept)),
        list(compress(messages.keys, kept)),
        list(compress(messages.values, kept)),
        None if messages.timestamps is None else list(compress(messages.timestamps, kept)),
        None if messages.headers is None else list(compress(messages.headers, kept)),
    )
