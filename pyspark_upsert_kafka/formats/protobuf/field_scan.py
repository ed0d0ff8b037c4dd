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

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from pyspark_upsert_kafka.formats.binary_values import TOO_LONG, MessageBuffer, offsets_of
from pyspark_upsert_kafka.formats.protobuf.descriptors import (
    FIXED32,
    FIXED64,
    LENGTH,
    VARINT,
    FieldKind,
    is_repeated,
    wire_type,
)

MORE = 0x80
"""The bit of a varint's byte that says that another byte follows."""

# Between which numbers a tag is, and how many bytes it takes at most.
_FIRST_TAG, _LAST_TAG, _TAG_BYTES = 8, 2**32 - 1, 5
_LAST_SHIFT = 63
_SIZES = {FIXED64: 8, FIXED32: 4}
_NONE = np.empty(0, np.int64)
_DONE = np.int64(2**62)
_LOW_32 = np.uint64(0xFFFFFFFF)
# After this number of steps, fewer messages than _FEW are cheaper to walk through one by one.
_STEPS = 64
_FEW = 32


@dataclass(frozen=True)
class _Layout:
    """The fields of a message.

    Args:
        fields: The fields' descriptors.
        by_tag: The place of a field by each tag it may have.
        once: Places of the fields for which a message falls back to the row path when they occur twice: of
            a message the second is merged into the first, of a string each must be UTF-8, and an entry of a
            map is unknown as a whole when any of its values is a number that its closed enum lacks.
        repeated: Places of the fields that have any number of values.
        oneofs: The places of each group of fields of which a message holds the last one only.
        closed: Whether an unknown field matters: it may be an extension that the runtime knows, and
            an entry of a map that holds one is as a whole unknown to the runtime.
    """

    fields: tuple[Any, ...]
    by_tag: dict[int, int]
    once: frozenset[int]
    repeated: frozenset[int]
    oneofs: tuple[tuple[int, ...], ...]
    closed: bool

    @classmethod
    def of(cls, descriptor: Any) -> _Layout:
        """The layout of a descriptor's messages."""
        fields = tuple(descriptor.fields)
        places = {field.name: place for place, field in enumerate(fields)}
        is_entry = descriptor.GetOptions().map_entry
        rivals = ([places[field.name] for field in oneof.fields] for oneof in descriptor.oneofs)
        return cls(
            fields=fields,
            by_tag={tag: place for place, field in enumerate(fields) for tag in _tags(field)},
            once=frozenset(
                place
                for place, field in enumerate(fields)
                if is_entry
                or (field.type in (FieldKind.MESSAGE, FieldKind.STRING) and not is_repeated(field))
            ),
            repeated=frozenset(place for place, field in enumerate(fields) if is_repeated(field)),
            oneofs=tuple(tuple(each) for each in rivals if len(each) > 1),
            closed=descriptor.is_extendable or is_entry,
        )

    def may_skip(self, tag: int) -> bool:
        """Whether what stands behind a tag that is no field's can be skipped.

        A field in another wire type than its own is an unknown one, too.
        """
        return not self.closed and tag & 7 in (VARINT, FIXED64, LENGTH, FIXED32)


def _tags(field: Any) -> tuple[int, ...]:
    """The tags by which a field may occur: a group by none, numbers that repeat also packed."""
    if field.type == FieldKind.GROUP:
        return ()
    number, wire = field.number << 3, wire_type(field.type)
    if is_repeated(field) and wire != LENGTH:
        return number | wire, number | LENGTH
    return (number | wire,)


@dataclass(frozen=True)
class _Chunk:
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
    chunks: list[_Chunk] = field(default_factory=list)

    def last(self, absent: np.ndarray) -> _Occurrences:
        """The last value of each message; where there is none, the one given."""
        count = len(self.present)
        values, lengths = absent, np.zeros(count, np.int64)
        for chunk in self.chunks:
            if len(chunk.rows) == count:
                values = chunk.values
                lengths = lengths if chunk.lengths is None else chunk.lengths
            else:
                values, lengths = values.copy(), lengths.copy()
                values[chunk.rows] = chunk.values
                lengths[chunk.rows] = 0 if chunk.lengths is None else chunk.lengths
        return _Occurrences(np.arange(count), values, lengths, _NONE)

    def every(self, buffer: MessageBuffer) -> _Occurrences:
        """All values, those of one message side by side and in their order."""
        numbers = wire_type(self.field.type)
        found = [
            _as_they_are(chunk)
            if chunk.lengths is None or numbers == LENGTH
            else _unpacked(buffer, numbers, chunk.rows, chunk.values, chunk.lengths)
            for chunk in self.chunks
        ]
        if len(found) == 1:
            return found[0]
        if not found:
            return _numbers(_NONE, _NONE if numbers == LENGTH else _NONE.astype(np.uint64), _NONE)
        rows = np.concatenate([each.rows for each in found])
        order = np.argsort(rows, kind="stable")
        return _Occurrences(
            rows[order],
            np.concatenate([each.values for each in found])[order],
            np.concatenate([each.lengths for each in found])[order],
            np.concatenate([each.fallback for each in found]),
        )


def scanner(descriptor: Any) -> Callable[[MessageBuffer, np.ndarray, np.ndarray], Scan]:
    """Compiles what finds the fields of a descriptor's messages, by where each begins and ends."""
    return partial(Scan, _Layout.of(descriptor))


class Scan:
    """The fields of many messages.

    Args:
        layout: What they may hold.
        buffer: What they stand in.
        starts: Where each begins.
        ends: Where each ends.
    """

    def __init__(
        self, layout: _Layout, buffer: MessageBuffer, starts: np.ndarray, ends: np.ndarray
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
            self._keep(place, _Chunk(rows, values, lengths))
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
        good = (bytes_taken <= _TAG_BYTES) & (values < TOO_LONG)
        lengths = np.where(good, values, TOO_LONG).astype(np.int64)
        start = at + np.where(good, bytes_taken, 0)
        return start, lengths, start + lengths

    def _keep(self, place: int, chunk: _Chunk) -> None:
        slot = self.slots[place]
        if slot.chunks and place in self._layout.once:
            self.fallback[chunk.rows[slot.present[chunk.rows]]] = True
        slot.present[chunk.rows] = True
        slot.chunks.append(chunk)

    def _next_tag(self, rows: np.ndarray) -> None:
        at = self._at[rows]
        inside = at < self._ends[rows]
        tags, lengths = self._buffer.varints(at)
        valid = (tags >= _FIRST_TAG) & (tags <= _LAST_TAG) & (lengths <= _TAG_BYTES)
        self._at[rows] = at + lengths
        self._tags[rows] = np.where(inside, tags.astype(np.int64), _DONE)
        if not (valid | ~inside).all():
            self._give_up(rows[inside & ~valid])

    def _give_up(self, rows: np.ndarray) -> None:
        self.fallback[rows] = True
        self._tags[rows] = _DONE


def _values_in(data: bytes, tag: int, layout: _Layout) -> dict[int, list[int]] | None:
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
            at = _behind(data, at, tag & 7)
            if at >= end:
                break
            begin, tag = at, data[at]
            at += 1
            if tag >= MORE:
                tag, at = read_varint(data, begin)
            if not _FIRST_TAG <= tag <= _LAST_TAG or at - begin > _TAG_BYTES:
                return None
    except IndexError:
        return None
    # Numbers that stand side by side and others of the same field: their order would be lost.
    of_fields = [known[each] for each in found if each in known]
    return None if at > end or len({*of_fields}) < len(of_fields) else found


def read_varint(data: bytes, at: int) -> tuple[int, int]:
    """A number, and the place behind it. Raises IndexError."""
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & ~MORE) << shift
        if byte < MORE:
            return value, at
        shift += 7
        if shift > _LAST_SHIFT:
            raise IndexError


def read_length(data: bytes, at: int, wire: int) -> tuple[int, int]:
    """How long a value is, and where it begins. Raises IndexError."""
    if wire == LENGTH:
        return read_varint(data, at)
    if wire == VARINT:
        return read_varint(data, at)[1] - at, at
    return _SIZES.get(wire, 0), at


def _behind(data: bytes, at: int, wire: int) -> int:
    """The place behind a value. Raises IndexError."""
    if wire in _SIZES:
        return at + _SIZES[wire]
    number, at = (data[at], at + 1) if data[at] < MORE else read_varint(data, at)
    return at + number if wire == LENGTH else at


@dataclass(frozen=True)
class _Occurrences:
    """Values of a field.

    Args:
        rows: The message of each.
        values: The numbers, or where the slices start.
        lengths: The lengths of the slices; for numbers they have no meaning.
        fallback: Messages of which some could not be read.
    """

    rows: np.ndarray
    values: np.ndarray
    lengths: np.ndarray
    fallback: np.ndarray


def _as_they_are(chunk: _Chunk) -> _Occurrences:
    lengths = np.zeros(len(chunk.rows), np.int64) if chunk.lengths is None else chunk.lengths
    return _Occurrences(chunk.rows, chunk.values, lengths, _NONE)


def _unpacked(
    buffer: MessageBuffer, numbers: int, rows: np.ndarray, starts: np.ndarray, lengths: np.ndarray
) -> _Occurrences:
    """The numbers that stand side by side in some slices."""
    if numbers == VARINT:
        return _varints(buffer, rows, starts, lengths)
    size = 4 if numbers == FIXED32 else 8
    whole = lengths % size == 0
    fallback, counts = rows[~whole], lengths[whole] // size
    values = buffer.words[_places(starts[whole], counts, size)] & np.uint64((1 << 8 * size) - 1)
    return _numbers(np.repeat(rows[whole], counts), values, fallback)


def _varints(
    buffer: MessageBuffer, rows: np.ndarray, starts: np.ndarray, lengths: np.ndarray
) -> _Occurrences:
    # A slice that ends within a number would run into the next one.
    whole = (lengths == 0) | (buffer.data[starts + lengths - 1] < 0x80)
    fallback = rows[~whole]
    rows, starts, lengths = rows[whole], starts[whole], lengths[whole]
    at = _places(starts, lengths, 1)
    ends = np.flatnonzero(buffer.data[at] < 0x80) + 1
    begins = np.concatenate([np.zeros(1, np.int64), ends[:-1]])[: len(ends)]
    values, taken = buffer.varints(at[begins])
    per_slice = np.diff(np.searchsorted(ends, offsets_of(lengths), side="right"))
    of_row = np.repeat(rows, per_slice)
    return _numbers(of_row, values, np.concatenate([fallback, of_row[taken == TOO_LONG]]))


def _places(starts: np.ndarray, counts: np.ndarray, size: int) -> np.ndarray:
    """Where each part of some slices stands: a number of parts from each start on, all of one size."""
    offsets = offsets_of(counts)
    first = np.repeat(starts - offsets[:-1] * size, counts)
    return np.asarray(first + np.arange(len(first)) * size)


def _numbers(rows: np.ndarray, values: np.ndarray, fallback: np.ndarray) -> _Occurrences:
    return _Occurrences(rows, values, np.zeros(len(rows), np.int64), fallback)
