"""All messages of a batch at once: where the values of each field stand.

The messages are read together, step by step. For each message it is known how far it has been read, and which tag
comes next. A step takes the lowest of these tags, and reads its value in all messages where it comes next. Messages
of one writer have their fields in one order, so there are as many steps as there are fields. When few messages are
left that have many values, the values are searched message by message, and then read together.

A message that does anything out of the ordinary falls back to the row path: an end in the middle of something,
a group, a message or a string that occurs twice where one is expected (messages would be merged), two fields
of one oneof.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pyspark_upsert_kafka.formats.binary.message_buffer import TOO_LONG, MessageBuffer
from pyspark_upsert_kafka.formats.protobuf.layout import Layout
from pyspark_upsert_kafka.formats.protobuf.wire import (
    FIRST_TAG,
    FIXED32,
    FIXED64,
    LAST_TAG,
    MORE,
    TAG_BYTES,
    VARINT,
    behind,
    read_varint,
)

_DONE = np.int64(2**62)
_LOW_32 = np.uint64(0xFFFFFFFF)
# After this number of steps, fewer messages than _FEW are cheaper to walk through one by one.
_STEPS = 64
_FEW = 32


@dataclass(frozen=True)
class Chunk:
    """Occurrences of a field, those of one message in their order.

    Args:
        rows: The messages.
        values: The numbers as they stand on the wire; of what has a length, where it starts.
        lengths: The lengths of what has one: of packed numbers too.
    """

    rows: np.ndarray
    values: np.ndarray
    lengths: np.ndarray | None = None


@dataclass
class Slot:
    """A field and where it was found.

    Args:
        field: The field's descriptor.
        present: Per message, whether the field occurs.
        chunks: Its occurrences, those of one message in their order.
    """

    field: Any
    present: np.ndarray
    chunks: list[Chunk] = field(default_factory=list)


class Scan:
    """The fields of many messages.

    Args:
        layout: What they may hold.
        buffer: What they stand in.
        starts: Where each begins.
        ends: Where each ends.
    """

    def __init__(
        self, layout: Layout, buffer: MessageBuffer, starts: np.ndarray, ends: np.ndarray
    ) -> None:
        self.fallback = np.zeros(len(starts), np.bool_)
        self.slots = [Slot(each, np.zeros(len(starts), np.bool_)) for each in layout.fields]
        self._layout, self._buffer, self._ends = layout, buffer, ends
        self._at = starts.copy()
        self._tags = np.full(len(starts), _DONE)
        self._read()
        for rivals in layout.oneofs:
            self.fallback |= np.sum([self.slots[place].present for place in rivals], axis=0) > 1

    def _read(self) -> None:
        self._next_tag(np.arange(len(self._at)))
        steps = 0
        while len(self._tags) and (tag := int(self._tags.min())) != _DONE:
            rows = np.flatnonzero(self._tags == tag)
            while len(rows):
                steps += 1
                if steps > _STEPS + len(self._layout.fields) and len(rows) < _FEW:
                    self._walk(rows)
                    break
                self._step(tag, rows)
                rows = rows[self._tags[rows] == tag]

    def _step(self, tag: int, rows: np.ndarray) -> None:
        """Reads the value behind the tag, for messages that are at it, and the tag behind that."""
        if tag not in self._layout.by_tag and not self._layout.may_skip(tag):
            self._give_up(rows)
            return
        rows, behind = self._take(tag, rows, self._at[rows])
        self._at[rows] = behind
        self._next_tag(rows)

    def _walk(self, rows: np.ndarray) -> None:
        """Reads what is left of messages, the places of values one by one and the values of a field together."""
        found: dict[int, tuple[list[int], list[int]]] = {}
        for row in rows.tolist():
            begin, end = int(self._at[row]), int(self._ends[row])
            data = self._buffer.data[begin:end].tobytes()
            places = _values_in(data, int(self._tags[row]), self._layout)
            if places is None:
                self._give_up(np.array([row]))
                continue
            for tag, at in places.items():
                of_rows, values = found.setdefault(tag, ([], []))
                of_rows += [row] * len(at)
                values += [begin + each for each in at]
        for tag, (of_rows, values) in found.items():
            self._take(tag, np.array(of_rows), np.array(values))
        self._tags[rows] = _DONE

    def _take(self, tag: int, rows: np.ndarray, at: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Reads the values at some places: the messages in which there are such, and the places behind the values."""
        values, lengths, behind = self._value(tag & 7, at)
        good = behind <= self._ends[rows]
        if not good.all():
            self._give_up(rows[~good])
            rows, values, behind = rows[good], values[good], behind[good]
            lengths = None if lengths is None else lengths[good]
        place = self._layout.by_tag.get(tag)
        if place is not None:
            self._keep(place, Chunk(rows, values, lengths))
        return rows, behind

    def _value(self, wire: int, at: np.ndarray) -> tuple[np.ndarray, np.ndarray | None, np.ndarray]:
        """The value at each place, its length if it has one, and what stands behind it."""
        if wire == FIXED64:
            return self._buffer.words[at], None, at + 8
        if wire == FIXED32:
            return self._buffer.words[at] & _LOW_32, None, at + 4
        values, bytes_taken = self._buffer.varints(at)
        if wire == VARINT:
            return values, None, at + bytes_taken
        good = (bytes_taken <= TAG_BYTES) & (values < TOO_LONG)
        lengths = np.where(good, values, TOO_LONG).astype(np.int64)
        start = at + np.where(good, bytes_taken, 0)
        return start, lengths, start + lengths

    def _keep(self, place: int, chunk: Chunk) -> None:
        slot = self.slots[place]
        if slot.chunks and place in self._layout.once:
            self.fallback[chunk.rows[slot.present[chunk.rows]]] = True
        slot.present[chunk.rows] = True
        slot.chunks.append(chunk)

    def _next_tag(self, rows: np.ndarray) -> None:
        at = self._at[rows]
        inside = at < self._ends[rows]
        tags, lengths = self._buffer.varints(at)
        valid = (tags >= FIRST_TAG) & (tags <= LAST_TAG) & (lengths <= TAG_BYTES)
        self._at[rows] = at + lengths
        self._tags[rows] = np.where(inside, tags.astype(np.int64), _DONE)
        if not (valid | ~inside).all():
            self._give_up(rows[inside & ~valid])

    def _give_up(self, rows: np.ndarray) -> None:
        self.fallback[rows] = True
        self._tags[rows] = _DONE


def _values_in(data: bytes, tag: int, layout: Layout) -> dict[int, list[int]] | None:
    """By the tags of fields, where their values begin; None = it is a message for the row path.

    Values of unknown fields are found too, by their wire types, for their lengths to be checked.

    Args:
        data: What stands behind a tag, to the end of the message.
        tag: The tag.
        layout: What the message may hold.
    """
    found: dict[int, list[int]] = {}
    known, at, end = layout.by_tag, 0, len(data)
    try:
        while True:
            place = known.get(tag)
            if place is None and not layout.may_skip(tag):
                return None
            places = found.setdefault(tag & 7 if place is None else tag, [])
            if places and place is not None and place not in layout.repeated:
                return None
            places.append(at)
            at = behind(data, at, tag & 7)
            if at >= end:
                break
            begin, tag = at, data[at]
            at += 1
            if tag >= MORE:
                tag, at = read_varint(data, begin)
            if not FIRST_TAG <= tag <= LAST_TAG or at - begin > TAG_BYTES:
                return None
    except IndexError:
        return None
    # Numbers that stand side by side and others of the same field: their order would be lost.
    of_fields = [known[each] for each in found if each in known]
    return None if at > end or len({*of_fields}) < len(of_fields) else found
