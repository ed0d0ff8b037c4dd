"""``update_preimage``: such a row becomes a tombstone, unless a later change of its key follows in the task.

An update that keeps its key arrives as preimage and postimage: the preimage is dropped. One that changes the
key leaves the old key with nothing after its preimage: that becomes a tombstone.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
import pyarrow.compute as pc

from pyspark_upsert_kafka.core.errors import OptionError
from pyspark_upsert_kafka.core.memory import MAX_HELD_BYTES
from pyspark_upsert_kafka.core.options import PreimageOrder
from pyspark_upsert_kafka.kafka.sending.messages import Headers, Messages
from pyspark_upsert_kafka.sink.encoding import Changes

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


class Preimages(Protocol):
    """Turns changes into the messages to send."""

    def settle(self, changes: Changes) -> Messages:
        """The messages to send now.

        Raises:
            OptionError: Preimages cannot be settled, since the order of changes is not known.
        """

    def rest(self) -> Messages | None:
        """What is left to send when all changes are there; None = nothing."""


def preimages_in(order: PreimageOrder) -> Preimages:
    """How preimages are settled when the changes of a task come in this order."""
    if order == "by-key":
        return SortedPreimages()
    return RefusedPreimages() if order == "unknown" else HeldPreimages()


class RefusedPreimages:
    """The changes of a key may be in other tasks too, where a tombstone could come last: preimages are rejected."""

    def settle(self, changes: Changes) -> Messages:
        """The messages as they are.

        Raises:
            OptionError: One is a preimage.
        """
        if changes.preimages is not None:
            raise OptionError(
                "The batch has update_preimage (-U) rows, and the changes of a key may be in several tasks, "
                "whose order is not known: the tombstone of a preimage could come last and delete a live "
                "row. Give 'sequence-by', a column or an expression that orders the changes of a key, or "
                "write rows of one partition without 'sink.parallelism'. Nothing of these rows was written."
            )
        return changes.messages

    def rest(self) -> None:
        """Nothing is held back."""


class SortedPreimages:
    """All changes of a key follow one another: what comes next decides, so one preimage waits at most."""

    def __init__(self) -> None:
        self._last: Messages | None = None

    def settle(self, changes: Changes) -> Messages:
        """The messages to send now: a preimage before a change of the same key is dropped."""
        if self._last is None and changes.preimages is None:
            return changes.messages
        messages, flags = changes.messages, _flags(changes)
        if self._last is not None:
            messages = Messages.joined([self._last, messages])
            flags = np.concatenate([[True], flags])
        waits = bool(len(flags) and flags[-1])
        kept = ~(flags & _followed(messages))
        kept[-1:] &= not waits
        self._last = messages.filter(np.arange(len(flags)) == len(flags) - 1) if waits else None
        return messages if kept.all() else messages.filter(kept)

    def rest(self) -> Messages | None:
        """The tombstone of the last preimage, when nothing followed it."""
        last, self._last = self._last, None
        return last


class HeldPreimages:
    """Changes come in their order, keys in any: a preimage waits until its key changes again.

    The tombstones of those that no change has followed are sent at the end, which is soon enough: no change of their
    keys came after them.
    """

    def __init__(self) -> None:
        self._tombstones = WaitingTombstones()

    def settle(self, changes: Changes) -> Messages:
        """The messages to send now: all but the preimages, which wait.

        Raises:
            OptionError: Too many wait.
        """
        messages = changes.messages
        if changes.preimages is None and not self._tombstones.size:
            return messages
        flags = _flags(changes)
        waiting = flags & ~_followed(messages)
        if self._tombstones.size or waiting.any():
            self._settle_each(messages, flags.tolist(), waiting.tolist())
        if self._tombstones.size > MAX_HELD_BYTES:
            raise OptionError(
                f"More than {MAX_HELD_BYTES // 2**20} MiB of update_preimage (-U) rows of one task wait for a "
                "later change of their keys. Write by upsert_sink with 'sequence-by', which sorts the "
                "changes so that none has to wait, or write smaller batches."
            )
        return messages if changes.preimages is None else messages.filter(~flags)

    def rest(self) -> Messages | None:
        """The tombstones of keys that nothing followed; None = there are none."""
        return self._tombstones.drain()

    def _settle_each(self, messages: Messages, preimages: list[bool], waiting: list[bool]) -> None:
        """Holds what waits, and drops what need not wait any more."""
        for row, preimage, waits in zip(messages.rows(), preimages, waiting, strict=True):
            topic, key, _, timestamp, headers = row
            if waits:
                self._tombstones.add(topic, key, timestamp, headers)
            elif not preimage and self._tombstones.size:
                self._tombstones.discard(topic, key)


def _flags(changes: Changes) -> np.ndarray:
    """For each message whether it is a preimage."""
    if changes.preimages is None:
        return np.zeros(len(changes.messages), dtype=bool)
    return changes.preimages


def _followed(messages: Messages) -> np.ndarray:
    """For each message whether the next one is of the same key and topic."""
    followed = np.zeros(len(messages), dtype=bool)
    keys, topics = messages.keys, messages.topics
    followed[:-1] = pc.equal(keys[:-1], keys[1:]).to_numpy(zero_copy_only=False)
    if not isinstance(topics, str):
        names = np.array(topics, dtype=object)
        followed[:-1] &= names[:-1] == names[1:]
    return followed
