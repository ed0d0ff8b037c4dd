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
from pyspark.sql.types import ArrayType, MapType, StructType

from pyspark_upsert_kafka.core.errors import EncodeError, SchemaError
from pyspark_upsert_kafka.formats.binary.byte_parts import ByteParts, grouped, joined, varints
from pyspark_upsert_kafka.formats.binary.numbers import varint
from pyspark_upsert_kafka.formats.exact_types import as_lists
from pyspark_upsert_kafka.formats.protobuf.descriptors import (
    LENGTH,
    is_packed,
    required_names,
    wire_type,
)
from pyspark_upsert_kafka.formats.protobuf.field_types import Column
from pyspark_upsert_kafka.formats.protobuf.leaf_values import (
    EncodeValues,
    bytes_of,
    filler,
    key_order,
    number_encoder,
    with_tag,
)

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
        return _array(column, _value_encoder(element, null_string), filler(element, null_string))
    if isinstance(column.type, MapType):
        encoders = [_value_encoder(part, null_string) for part in column.parts]
        return _entries(column, encoders, filler(column.parts[1], null_string))
    encode = _value_encoder(column, null_string, drops_default=not column.field.has_presence)
    tag = _tag_of(column.field, wire_type(column.field.type))
    return lambda array: encode(tag, array, ~_is_null(array))


def _value_encoder(
    column: Column, null_string: str, *, drops_default: bool = False
) -> EncodeValues:
    if wire_type(column.field.type) != LENGTH:
        return number_encoder(column, drops_default=drops_default)
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
    return lambda array, _: bytes_of(column, array)


def _array(column: Column, encode: EncodeValues, fill: _Fill) -> _Writer:
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


def _entries(column: Column, encoders: Sequence[EncodeValues], fill: _Fill) -> _Writer:
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
    return [*with_tag(tag, varints(_lengths_of(bodies)), present), bodies]


def _lengths_of(bodies: pa.LargeBinaryArray) -> np.ndarray:
    """How many bytes each one has."""
    lengths: np.ndarray = pc.binary_length(bodies).fill_null(0).to_numpy()
    return lengths
