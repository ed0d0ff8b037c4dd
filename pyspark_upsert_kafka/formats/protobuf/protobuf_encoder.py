"""Rows to messages, column by column: each column becomes bytes, and the bytes are joined.

There is no row path. Fields stand in the order of their numbers, as
the runtime writes them, and entries of maps in the order of their keys, so equal rows give equal bytes.
NULL leaves a field out; what stands for NULL in arrays and maps, and which field of a oneof stays,
follows Flink's ``PbCodegenRowSerializer`` and ``PbCodegenUtils``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import ArrayType, DecimalType, MapType, StringType, StructType

from pyspark_upsert_kafka.core.errors import EncodeError, SchemaError
from pyspark_upsert_kafka.formats.batches import as_lists
from pyspark_upsert_kafka.formats.binary_values import (
    ByteParts,
    Cells,
    constant,
    fixed,
    grouped,
    joined,
    only,
    varint,
    varints,
    zigzag,
)
from pyspark_upsert_kafka.formats.protobuf.descriptors import (
    INTEGERS,
    LENGTH,
    MEANING,
    VARINT,
    ZIGZAG,
    FieldKind,
    bounds,
    is_packed,
    required_names,
    wire_type,
)
from pyspark_upsert_kafka.formats.protobuf.field_types import Column, key_order, moments_of

_EncodeValues = Callable[[bytes, pa.Array, np.ndarray], ByteParts]
"""Values with the tag before each, but nothing where not present."""

_NumbersOf = Callable[[pa.Array], np.ndarray]
"""A column to numbers that fit its field; NULL becomes any of them. Raises EncodeError."""

_SECONDS_TAG, _NANOS_TAG = b"\x08", b"\x10"

_Fill = Callable[[pa.Array], pa.Array]
"""A column to one where something stands for each NULL."""

_Writer = Callable[[pa.Array], ByteParts]
"""A column to its field in each message."""


_Body = Callable[[pa.Array, np.ndarray], pa.LargeBinaryArray]
"""Values that have a length, to their bytes without tag and length; nothing where NULL."""


class ProtobufEncoder:
    """Rows to protobuf messages.

    Args:
        descriptor: The message's descriptor.
        columns: The columns of the rows, and their fields.
        null_string: What a NULL string in an array or a map is written as.
    """

    def __init__(self, descriptor: Any, columns: Sequence[Column], null_string: str) -> None:
        self._write = _message(descriptor, columns, null_string, "")

    def encode(self, rows: pa.RecordBatch) -> pa.LargeBinaryArray:
        """One message for each row. Raises EncodeError."""
        return self._write(rows.to_struct_array(), np.ones(rows.num_rows, np.bool_))


def _message(descriptor: Any, columns: Sequence[Column], null_string: str, path: str) -> _Body:
    required = required_names(descriptor)
    for name in sorted(required - {column.name for column in columns}):
        raise SchemaError(
            f"Field '{path}{name}' of protobuf message '{descriptor.full_name}' is required, but there "
            "is no such column to write it from."
        )
    places = {column.name: at for at, column in enumerate(columns)}
    rivals = {column.name: _rivals(column, places) for column in columns}
    in_order = sorted(columns, key=lambda column: int(column.field.number))
    fields = [(column, _field(column, null_string)) for column in in_order]

    def body(array: pa.Array, present: np.ndarray) -> pa.Array:
        children = array.flatten()
        parts: ByteParts = []
        for column, write in fields:
            child = children[places[column.name]]
            if column.name in required and (_is_null(child) & present).any():
                raise EncodeError(column.path, "the field is required, but the value is NULL")
            for rival in rivals[column.name]:
                child = pc.if_else(children[rival].is_null(), child, pa.scalar(None, child.type))
            parts += write(child)
        return joined(parts, len(array))

    return body


def _rivals(column: Column, places: dict[str, int]) -> list[int]:
    """Places of later columns of the same oneof: the last one that is not NULL stays."""
    oneof = column.field.containing_oneof
    members = [each.name for each in oneof.fields] if oneof else []
    return [places[name] for name in members if places.get(name, -1) > places[column.name]]


def _is_null(array: pa.Array) -> np.ndarray:
    nulls: np.ndarray = array.is_null().to_numpy(zero_copy_only=False)
    return nulls


def _field(column: Column, null_string: str) -> _Writer:
    if isinstance(column.type, ArrayType):
        element = column.parts[0]
        return _array(column, _value_encoder(element, null_string), _filler(element, null_string))
    if isinstance(column.type, MapType):
        encoders = [_value_encoder(part, null_string) for part in column.parts]
        return _entries(column, encoders, _filler(column.parts[1], null_string))
    encode = _value_encoder(column, null_string, drops_default=not column.field.has_presence)
    tag = _tag_of(column.field, wire_type(column.field.type))
    return lambda array: encode(tag, array, ~_is_null(array))


def _value_encoder(
    column: Column, null_string: str, *, drops_default: bool = False
) -> _EncodeValues:
    if wire_type(column.field.type) != LENGTH:
        return _number_encoder(column, drops_default=drops_default)
    body = _body(column, null_string)

    def encode(tag: bytes, array: pa.Array, present: np.ndarray) -> ByteParts:
        bodies = body(array, present)
        return _with_length(
            tag, bodies, present & (_lengths_of(bodies) > 0) if drops_default else present
        )

    return encode


def _body(column: Column, null_string: str) -> _Body:
    if isinstance(column.type, StructType):
        descriptor, path = column.field.message_type, f"{column.path}."
        return _message(descriptor, column.parts, null_string, path)
    return lambda array, _: _bytes_of(column, array)


def _array(column: Column, encode: _EncodeValues, fill: _Fill) -> _Writer:
    """Compiles the writer of a repeated field, given how to encode and to fill its elements."""
    tag = _tag_of(column.field, wire_type(column.field.type))
    tag_of_all = _tag_of(column.field, LENGTH) if is_packed(column.field) else None

    def write(arrays: pa.Array) -> ByteParts:
        values = fill(arrays.flatten())
        each = b"" if tag_of_all else tag
        parts = encode(each, values, np.ones(len(values), np.bool_))
        lists = grouped(joined(parts, len(values)), _counts(arrays))
        if tag_of_all is None:
            return [lists]
        return _with_length(tag_of_all, lists, _lengths_of(lists) > 0)

    return write


def _entries(column: Column, encoders: Sequence[_EncodeValues], fill: _Fill) -> _Writer:
    """Compiles the writer of a map, given how to encode keys and values, and to fill values."""
    tags = [_tag_of(part.field, wire_type(part.field.type)) for part in column.parts]
    tag = _tag_of(column.field, LENGTH)

    def write(maps: pa.Array) -> ByteParts:
        lists = as_lists(maps)
        keys, values = lists.flatten().flatten()
        order = key_order(pc.list_parent_indices(lists), keys)
        sides = keys.take(order), fill(values.take(order))
        every = np.ones(len(keys), np.bool_)
        parts = [
            part
            for encode, tag_of_side, side in zip(encoders, tags, sides, strict=True)
            for part in encode(tag_of_side, side, every)
        ]
        pairs = _with_length(tag, joined(parts, len(keys)), every)
        return [grouped(joined(pairs, len(keys)), _counts(lists))]

    return write


def _counts(lists: pa.Array) -> np.ndarray:
    """How many elements each list has."""
    counts: np.ndarray = pc.list_value_length(lists).fill_null(0).to_numpy()
    return counts


def _tag_of(field: Any, wire: int) -> bytes:
    """The tag of a field in a wire type."""
    return varint(field.number << 3 | wire)


def _with_length(tag: bytes, bodies: pa.LargeBinaryArray, present: np.ndarray) -> ByteParts:
    """Bytes with tag and length before them, and nothing where not present."""
    return [*_with_tag(tag, varints(_lengths_of(bodies)), present), bodies]


def _lengths_of(bodies: pa.LargeBinaryArray) -> np.ndarray:
    """How many bytes each one has."""
    lengths: np.ndarray = pc.binary_length(bodies).fill_null(0).to_numpy()
    return lengths


def _number_encoder(column: Column, *, drops_default: bool) -> _EncodeValues:
    """Compiles the conversion from numbers, or an enum's names, to bytes, each behind a tag.

    Args:
        column: The column.
        drops_default: Whether a zero is not written.
    """
    kind = column.field.type
    numbers_of = _enum_numbers(column) if kind == FieldKind.ENUM else _numbers(column)
    cells = varints if wire_type(kind) == VARINT else fixed

    def encode(tag: bytes, array: pa.Array, present: np.ndarray) -> ByteParts:
        numbers = _on_the_wire(kind, numbers_of(array))
        if drops_default:
            # Bits are compared, for -0.0 is no default.
            present = present & (numbers.view(f"u{numbers.dtype.itemsize}") != 0)
        return _with_tag(tag, cells(numbers), present)

    return encode


def _with_tag(tag: bytes, values: Cells, present: np.ndarray) -> ByteParts:
    """Values with a tag before them, and nothing where not present."""
    return [only(cells, present) for cells in (constant(tag, len(present)), values)]


def _on_the_wire(kind: int, values: np.ndarray) -> np.ndarray:
    if wire_type(kind) != VARINT:
        return values.astype(MEANING[kind], copy=False)
    return zigzag(values) if kind in ZIGZAG else values


def _numbers(column: Column) -> _NumbersOf:
    if isinstance(column.type, DecimalType):
        return lambda array: _unsigned(column, array)
    if column.field.type in INTEGERS:
        return lambda array: _inbounds(column, _to_numpy(array))
    return _to_numpy


def _to_numpy(array: pa.Array) -> np.ndarray:
    """The numbers of a column; NULL is 0."""
    zero = pa.scalar(0).cast(array.type)
    values: np.ndarray = array.fill_null(zero).to_numpy(zero_copy_only=False)
    return values


def _inbounds(column: Column, values: np.ndarray) -> np.ndarray:
    """The numbers, once it is sure that the field has room for them. Raises EncodeError."""
    smallest, largest = bounds(column.field.type)
    for value in (int(values.min(initial=0)), int(values.max(initial=0))):
        if not smallest <= value <= largest:
            raise EncodeError(column.path, _too_large(column, value))
    return values


def _unsigned(column: Column, array: pa.Array) -> np.ndarray:
    try:
        return _to_numpy(array.cast(pa.uint64()))
    except pa.ArrowInvalid:
        _, largest = bounds(column.field.type)
        out = (value for value in array.drop_null().to_pylist() if not 0 <= value <= largest)
        raise EncodeError(column.path, _too_large(column, next(out))) from None


def _too_large(column: Column, value: Any) -> str:
    return f"{value} does not fit into {FieldKind(column.field.type).name.lower()}"


def _enum_numbers(column: Column) -> _NumbersOf:
    enum = column.field.enum_type
    by_name = {value.name: value.number for value in enum.values}
    known, fill = set(by_name.values()), _filler(column, "")

    def number(value: Any) -> int:
        found = by_name.get(value, _digits(value)) if type(value) is str else value
        if found is None or (found not in known and enum.is_closed):
            shown = ", ".join(by_name)
            raise EncodeError(
                column.path, f"{value!r} is no value of enum '{enum.full_name}': {shown}"
            )
        return int(found)

    def numbers(array: pa.Array) -> np.ndarray:
        encoded = fill(array).dictionary_encode()
        values = [number(value) for value in encoded.dictionary.to_pylist()]
        places = encoded.indices.to_numpy(zero_copy_only=False)
        return _inbounds(column, np.array(values, np.int64)[places])

    return numbers


def _digits(text: str) -> int | None:
    return int(text) if text.isascii() and text.removeprefix("-").isdecimal() else None


def _bytes_of(column: Column, array: pa.Array) -> pa.LargeBinaryArray:
    """Texts, binaries, timestamps or durations as bytes, without tag and length. Raises EncodeError."""
    if column.field.type == FieldKind.MESSAGE:
        return joined(_message_parts(column, array), len(array))
    return array.cast(pa.large_binary())


def _filler(column: Column, null_string: str) -> Callable[[pa.Array], pa.Array]:
    """Compiles the conversion from NULL in an array or a map to what is written for it.

    Flink's ``PbCodegenUtils.pbDefaultValueCode``: the default of the type, the first value of an enum,
    and for strings what an option says.
    """
    if column.field.type == FieldKind.STRING:
        return lambda array: array.fill_null(null_string)
    if column.field.type != FieldKind.ENUM:
        return lambda array: array
    first = column.field.enum_type.values[0]
    if isinstance(column.type, StringType):
        return lambda array: array.fill_null(first.name)
    # A TINYINT may have no room for it.
    return lambda array: array.cast(pa.int64()).fill_null(first.number)


def _message_parts(column: Column, array: pa.Array) -> ByteParts:
    """Timestamps or durations as the fields of their message. Raises EncodeError."""
    within = moments_of(column)
    seconds, nanos, good = within.split(_to_numpy(array.cast(pa.int64())))
    if not good.all():
        raise EncodeError(column.path, f"{array[int(np.argmin(good))]}: expected {within.expected}")
    return [
        part
        for tag, numbers in ((_SECONDS_TAG, seconds), (_NANOS_TAG, nanos))
        for part in _with_tag(tag, varints(numbers), numbers != 0)
    ]
