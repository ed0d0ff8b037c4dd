"""The vectorised path to read: the columns of a whole batch at once, but for those that fall back.

Of what was found of a field a value, an array or a map is made for each message. What makes a column also says which of its
values are bad: those that the row path must look at.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import (
    ArrayType,
    DecimalType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructType,
)

from pyspark_upsert_kafka.formats.binary_values import MOST, MessageBuffer, offsets_of, unzigzag
from pyspark_upsert_kafka.formats.leaf_types import BITS
from pyspark_upsert_kafka.formats.protobuf.descriptors import (
    INTEGERS,
    LENGTH,
    MEANING,
    ZIGZAG,
    FieldKind,
    bounds,
    enum_names,
    is_repeated,
    is_required,
    required_names,
    wire_type,
)
from pyspark_upsert_kafka.formats.protobuf.field_scan import Scan, Slot, scanner
from pyspark_upsert_kafka.formats.protobuf.field_types import (
    Column,
    columns_of,
    key_order,
    moments_of,
)

_Built = tuple[pa.Array, np.ndarray]
"""A column, and which of its values are bad."""

_Value = Callable[[MessageBuffer, np.ndarray, np.ndarray], _Built]
"""Numbers, or where slices start and their lengths, to a column of as many values."""

_Read = Callable[[MessageBuffer, np.ndarray, np.ndarray], "tuple[list[pa.Array], np.ndarray]"]
"""Messages, by where each starts and ends, to their columns, and which of them fall back to the row path."""

_Build = Callable[[MessageBuffer, Slot, np.ndarray], _Built]
"""From what was found of a field to its column; bad are the messages that fall back to the row path because of it."""

_Check = Callable[[MessageBuffer, Slot], np.ndarray]
"""From what was found of a field to the messages that fall back to the row path because of it."""

_NONE = np.empty(0, np.int64)
_SECONDS_AND_NANOS = StructType().add("seconds", LongType()).add("nanos", IntegerType())
# The runtime reads messages no deeper than 100.
_DEEPEST = 90


def compile_vectorised_path(
    descriptor: Any, columns: Sequence[Column], kinds: Sequence[pa.DataType], skip: int = 0
) -> Callable[[Sequence[bytes]], tuple[list[pa.Array], np.ndarray] | None]:
    """Compiles the vectorised path to read messages: their columns, and which of them fall back to the row path.

    What a column has for such a message has no meaning. The function returns None when there is too much to read at
    once.

    Args:
        descriptor: The message's descriptor.
        columns: The columns.
        kinds: Their types.
        skip: How many bytes stand before each message.
    """
    read = _message(descriptor, columns, kinds, ())

    def read_all(messages: Sequence[bytes]) -> tuple[list[pa.Array], np.ndarray] | None:
        buffer = MessageBuffer.of(messages)
        if buffer.data.size > MOST:
            return None
        return read(buffer, buffer.bounds[:-1] + skip, buffer.bounds[1:])

    return read_all


@dataclass(frozen=True)
class _MessageReader:
    scan: Callable[[MessageBuffer, np.ndarray, np.ndarray], Scan]
    required: frozenset[str]
    builders: Mapping[str, _Build]
    checks: Mapping[str, _Check]

    def read(
        self, buffer: MessageBuffer, starts: np.ndarray, ends: np.ndarray
    ) -> tuple[list[pa.Array], np.ndarray]:
        scan = self.scan(buffer, starts, ends)
        fallback, arrays = scan.fallback, {}
        for slot in scan.slots:
            name = slot.field.name
            if name in self.required:
                fallback |= ~slot.present
            if name in self.builders:
                arrays[name], bad = self.builders[name](buffer, slot, starts)
                fallback |= bad
            elif slot.chunks:
                fallback[self.checks[name](buffer, slot)] = True
        return [arrays[name] for name in self.builders], fallback


def _message(
    descriptor: Any, columns: Sequence[Column], kinds: Sequence[pa.DataType], above: tuple[Any, ...]
) -> _Read:
    within = (*above, descriptor)
    builders = {
        column.name: _field(column, kind, within)
        for column, kind in zip(columns, kinds, strict=True)
    }
    checks = {
        field.name: _check(field, within)
        for field in descriptor.fields
        if field.name not in builders
    }
    reader = _MessageReader(scanner(descriptor), required_names(descriptor), builders, checks)
    return reader.read


def _field(column: Column, kind: pa.DataType, above: tuple[Any, ...]) -> _Build:
    if isinstance(column.type, ArrayType):
        return _array(column, kind, _value(column.parts[0], kind.value_type, above))
    if isinstance(column.type, MapType):
        kinds = (kind.key_type, kind.item_type)
        return _entries(
            column, kind, _message(column.field.message_type, column.parts, kinds, above)
        )
    return _one(column, kind, _value(column, kind, above))


def _value(column: Column, kind: pa.DataType, above: tuple[Any, ...]) -> _Value:
    """Compiles the conversion from slices, or from numbers, to values that are there."""
    if column.field.type != FieldKind.MESSAGE:
        return _leaf(column)
    if not isinstance(column.type, StructType):
        return _moments(column, kind, above)
    parts = [each.type for each in kind]
    read = _message(column.field.message_type, column.parts, parts, above)

    def structs(buffer: MessageBuffer, starts: np.ndarray, lengths: np.ndarray) -> _Built:
        children, fallback = read(buffer, starts, starts + lengths)
        return _struct(kind, children, np.ones(len(fallback), np.bool_)), fallback

    return structs


def _leaf(column: Column) -> _Value:
    """Compiles the conversion from what stands on the wire to a column, but for timestamps: see `_moments`."""
    kind = column.field.type
    if kind == FieldKind.STRING:
        return lambda buffer, starts, lengths: buffer.texts(starts, starts + lengths)
    if kind == FieldKind.BYTES:
        return lambda buffer, starts, lengths: _all_good(buffer.slices(starts, starts + lengths))
    if kind == FieldKind.ENUM:
        enums = _enums(column)
        return lambda _, raw, __: enums(raw)
    if isinstance(column.type, DecimalType):
        return lambda _, raw, __: _all_good(pa.array(raw).cast(pa.decimal128(20, 0)))
    if kind in INTEGERS:
        return lambda _, raw, __: _integers(column, _meaning(kind, raw))
    return lambda _, raw, __: _all_good(pa.array(_meaning(kind, raw)))


def _all_good(array: pa.Array) -> _Built:
    return array, np.zeros(len(array), np.bool_)


def _meaning(kind: int, raw: np.ndarray) -> np.ndarray:
    """What the numbers on the wire stand for; more bits than the kind has are cut off."""
    if kind == FieldKind.BOOL:
        return np.asarray(raw != 0)
    meaning = MEANING[FieldKind(kind)]
    bits = raw.astype(f"u{meaning[1]}", copy=False)
    return unzigzag(bits) if kind in ZIGZAG else bits.view(meaning)


def _integers(column: Column, values: np.ndarray) -> _Built:
    """Whole numbers as a column; bad are those for which it has no room."""
    bits = BITS[type(column.type)]
    smallest, largest = bounds(column.field.type)
    bad = np.zeros(len(values), np.bool_)
    if largest >= 1 << (bits - 1):
        bad |= values >= values.dtype.type(1 << (bits - 1))
    if smallest < -(1 << (bits - 1)):
        bad |= values < -(1 << (bits - 1))
    return pa.array(values.astype(f"i{bits // 8}")), bad


def _enums(column: Column) -> Callable[[np.ndarray], _Built]:
    find, as_text = _names_finder(column.field.enum_type), isinstance(column.type, StringType)

    def build(raw: np.ndarray) -> _Built:
        names, unknown = find(raw)
        if as_text:
            return names, unknown
        array, bad = _integers(column, _meaning(FieldKind.ENUM, raw))
        return array, bad | unknown

    return build


def _names_finder(enum: Any) -> Callable[[np.ndarray], _Built]:
    """Compiles the conversion from the numbers of an enum on the wire to names, and which of them have none."""
    by_number = dict(sorted(enum_names(enum).items()))
    known = np.array(list(by_number), np.int32)
    names = pa.array(by_number.values(), pa.string())

    def find(raw: np.ndarray) -> _Built:
        numbers = _meaning(FieldKind.ENUM, raw)
        places = np.minimum(np.searchsorted(known, numbers), len(known) - 1)
        return names.take(pa.array(places)), known[places] != numbers

    return find


def _moments(column: Column, kind: pa.DataType, above: tuple[Any, ...]) -> _Value:
    """Compiles the conversion from messages of seconds and nanoseconds, which are read as BIGINT and INT, to a column."""
    message, within = column.field.message_type, moments_of(column)
    fields = columns_of(message, _SECONDS_AND_NANOS, f"{column.path}.", defaults=True)
    read = _message(message, fields, (pa.int64(), pa.int32()), above)

    def value(buffer: MessageBuffer, starts: np.ndarray, lengths: np.ndarray) -> _Built:
        (seconds, nanos), fallback = read(buffer, starts, starts + lengths)
        micros, good = within.micros(seconds.to_numpy(), nanos.to_numpy().astype(np.int64))
        return pa.array(micros).view(kind), fallback | ~good

    return value


def _one(column: Column, kind: pa.DataType, value: _Value) -> _Build:
    """Compiles what makes a column of single values."""
    has_slices = wire_type(column.field.type) == LENGTH
    default = column.default if column.field.has_presence and column.fills else None

    def build(buffer: MessageBuffer, slot: Slot, starts: np.ndarray) -> _Built:
        present = slot.present
        absent = starts if has_slices else np.zeros(len(present), np.uint64)
        found = slot.last(absent)
        values, bad = value(buffer, found.values, found.lengths)
        if not column.fills:
            bad &= present
            if not column.nullable:
                bad |= ~present
            return _with_nulls(values, present), bad
        if default is None or present.all():
            return values, bad
        if not _has_room(column, default):
            return values, bad | ~present
        return _with_nulls(values, present).fill_null(pa.scalar(default, kind)), bad & present

    return build


def _array(column: Column, kind: pa.DataType, element: _Value) -> _Build:
    """Compiles what makes a column of arrays."""

    def build(buffer: MessageBuffer, slot: Slot, _: np.ndarray) -> _Built:
        found = slot.every(buffer)
        values, bad = element(buffer, found.values, found.lengths)
        fallback = np.zeros(len(slot.present), np.bool_)
        fallback[found.rows[bad]] = True
        fallback[found.fallback] = True
        return _grouped(column, kind, found.rows, values, fallback), fallback

    return build


def _entries(column: Column, kind: pa.DataType, read: _Read) -> _Build:
    """Compiles what makes a column of maps, given the one to read their entries."""

    def build(buffer: MessageBuffer, slot: Slot, _: np.ndarray) -> _Built:
        found = slot.every(buffer)
        (keys, values), bad = read(buffer, found.values, found.values + found.lengths)
        order = key_order(found.rows, keys)
        keys, rows = keys.take(order), found.rows[order]
        again = (rows[1:] == rows[:-1]) & pc.equal(keys[1:], keys[:-1]).to_numpy(False)
        fallback = np.zeros(len(slot.present), np.bool_)
        fallback[found.rows[bad]] = True
        fallback[rows[1:][again]] = True
        both = [keys, values.take(order)]
        pairs = _struct(kind.field(0).type, both, np.ones(len(rows), np.bool_))
        return _grouped(column, kind, rows, pairs, fallback), fallback

    return build


def _grouped(
    column: Column, kind: pa.DataType, rows: np.ndarray, values: pa.Array, fallback: np.ndarray
) -> pa.Array:
    """Values that stand side by side as one list for each message."""
    counts = np.bincount(rows, minlength=len(fallback))
    offsets = pa.py_buffer(offsets_of(counts).astype(np.int32))
    bits = None if column.fills else _validity(counts > 0)
    return pa.Array.from_buffers(kind, len(fallback), [bits, offsets], children=[values])


def _with_nulls(array: pa.Array, present: np.ndarray) -> pa.Array:
    """The column with NULL where its value is not present."""
    if present.all():
        return array
    if pa.types.is_struct(array.type):
        return _struct(array.type, [array.field(i) for i in range(array.type.num_fields)], present)
    buffers = [_validity(present), *array.buffers()[1:]]
    return pa.Array.from_buffers(array.type, len(array), buffers)


def _struct(kind: pa.DataType, children: list[pa.Array], present: np.ndarray) -> pa.Array:
    """A column of structs, NULL where not present; Arrow does not compare it with its fields' nullability."""
    bits = None if present.all() else _validity(present)
    return pa.Array.from_buffers(kind, len(present), [bits], children=children)


def _validity(present: np.ndarray) -> pa.Buffer:
    """The bits by which Arrow knows what is not NULL."""
    return pa.array(present).buffers()[1]


def _has_room(column: Column, default: Any) -> bool:
    """Whether a default has room in its column."""
    bits = BITS.get(type(column.type), 64)
    return not isinstance(default, int) or -(1 << (bits - 1)) <= default < 1 << (bits - 1)


def _check(field: Any, above: tuple[Any, ...]) -> _Check:
    """Compiles the check of a field that is no column: the runtime reads it too, and a message with a bad one is bad."""
    if field.type == FieldKind.STRING:
        return _strings
    if field.type == FieldKind.ENUM and field.enum_type.is_closed and is_required(field):
        return _known_numbers(field.enum_type)
    if field.type != FieldKind.MESSAGE:
        return lambda buffer, slot: slot.every(buffer).fallback if is_repeated(field) else _NONE
    part = field.message_type
    if part in above or len(above) > _DEEPEST:
        return lambda _, slot: np.flatnonzero(slot.present)
    compiled = cache(lambda: _message(part, (), (), above))

    def check(buffer: MessageBuffer, slot: Slot) -> np.ndarray:
        found = slot.every(buffer)
        _, fallback = compiled()(buffer, found.values, found.values + found.lengths)
        return found.rows[fallback]

    return check


def _known_numbers(enum: Any) -> _Check:
    """A number that the enum does not have is an unknown field to the runtime, and so the field is missing."""
    find = _names_finder(enum)

    def check(buffer: MessageBuffer, slot: Slot) -> np.ndarray:
        found = slot.every(buffer)
        _, unknown = find(found.values)
        rows: np.ndarray = found.rows[unknown]
        return rows

    return check


def _strings(buffer: MessageBuffer, slot: Slot) -> np.ndarray:
    found = slot.every(buffer)
    _, bad = buffer.texts(found.values, found.values + found.lengths)
    return found.rows[bad]
