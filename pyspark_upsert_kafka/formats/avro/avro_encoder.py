"""Rows to Avro, column by column: each column becomes bytes, and the bytes are joined.

There is a vectorised path only, and no row path: every type has a vectorised writer, so equal rows give equal bytes
whatever stands beside them. The schema is compiled into a tree of functions once. Arrays and maps are written as one
block, as Java does: count, items, and a zero that ends it. How leaf types are written, which hold no others, stands at the end.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TypeGuard

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    ByteType,
    DataType,
    DateType,
    DayTimeIntervalType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    ShortType,
    StringType,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from pyspark_upsert_kafka.core.errors import EncodeError, SchemaError
from pyspark_upsert_kafka.formats.avro.avro_defaults import default_datum, long
from pyspark_upsert_kafka.formats.avro.avro_types import (
    NO_DEFAULT,
    NULL,
    Array,
    AvroType,
    Enum,
    Field,
    Fixed,
    LeafSchema,
    Logical,
    Map,
    Primitive,
    Record,
    Reference,
    Schema,
    Union,
    logical_of,
    plain_name,
    type_label,
)
from pyspark_upsert_kafka.formats.batches import as_lists
from pyspark_upsert_kafka.formats.binary_values import (
    ByteParts,
    Cells,
    Numbers,
    among,
    constant,
    fixed,
    grouped,
    joined,
    varints,
    zigzag,
)
from pyspark_upsert_kafka.formats.codec import Encoder

_WAY_OUT = "Cast the column, or give a schema that it fits."
_NEAREST = ("int", "long", "float", "double", "string", "bytes")

_Writer = Callable[[pa.Array], ByteParts]
"""Writes a column as bytes; raises EncodeError.

That of a leaf type is given a column without nulls, and raises ValueError: it does not know the column's name.
"""


@dataclass(frozen=True)
class _Timestamps:
    """How timestamps are written: what `datum_encoder` is told."""

    legacy: bool = True
    remedy: str | None = None


@dataclass(frozen=True)
class _WrittenField:
    """A column, and the leaf type that it is written as.

    Args:
        column: Type of the column.
        written: What to write.
        timestamps: How timestamps are written.
    """

    column: DataType
    written: LeafSchema
    timestamps: _Timestamps = _Timestamps()


_Write = Callable[[_WrittenField], "_Writer | None"]
"""How a column is written; None = the type cannot hold it."""


def datum_encoder(
    schema: Schema,
    columns: StructType,
    *,
    prefix: bytes = b"",
    legacy_timestamps: bool = True,
    remedy: str | None = None,
) -> Encoder:
    """Compiles an encoder that writes each row as one datum of a schema.

    Args:
        schema: What to write: a record with a field for every column, or another type if there is a single column,
            which then is the whole datum.
        columns: The columns of the rows.
        prefix: What every message begins with.
        legacy_timestamps: Write a TIMESTAMP as a local timestamp too, and a TIMESTAMP_NTZ as one that is not local.
        remedy: What the error of a value that is finer than its type's milliseconds advises; None = it is rounded down.

    Raises:
        SchemaError: The columns do not fit the schema.
    """
    timestamps = _Timestamps(legacy_timestamps, remedy)
    return _DatumEncoder(_datum_writer(schema, columns, timestamps), prefix)


@dataclass(frozen=True)
class _DatumEncoder:
    write: _Writer
    prefix: bytes

    def encode(self, rows: pa.RecordBatch) -> pa.LargeBinaryArray:
        parts = self.write(rows.to_struct_array())
        prefix = constant(self.prefix, rows.num_rows)
        return joined([prefix, *parts], rows.num_rows)


def _datum_writer(schema: Schema, columns: StructType, timestamps: _Timestamps) -> _Writer:
    """The writer of rows, given as structs.

    Raises:
        SchemaError: The columns do not fit the schema.
    """
    compiler = _Compiler(schema, timestamps)
    datum = schema.type
    if any(isinstance(branch, Record) for branch in _branches(datum)):
        return compiler.value(datum, columns, "")
    if len(columns) != 1:
        raise SchemaError(
            f"The Avro schema is a single {type_label(datum)}, no record: only one column can be "
            f"written as it, not {len(columns)}."
        )
    only = columns.fields[0]
    write = compiler.value(datum, only.dataType, only.name)
    return lambda rows: write(rows.field(0))


@dataclass(frozen=True)
class _Compiler:
    schema: Schema
    timestamps: _Timestamps

    def value(self, avro: AvroType, column: DataType, path: str) -> _Writer:
        """The writer of a column, nulls included."""
        if not isinstance(avro, Union):
            return partial(_refuse_null, path, self._present(avro, column, path))
        number, write = self._branch(avro, column, path)
        if NULL in avro.branches:
            return partial(_write_branch_or_null, number, avro.branches.index(NULL), write)
        return partial(_refuse_null, path, partial(_write_branch, number, write))

    def _branch(self, union: Union, column: DataType, path: str) -> tuple[int, _Writer]:
        """The branch that a column is written as, by its number; of several that fit the one nearest to its type."""
        some = [branch for branch in union.branches if branch != NULL]
        if len(some) == 1:
            return union.branches.index(some[0]), self._present(some[0], column, path)
        for branch in sorted(some, key=_nearness):
            try:
                return union.branches.index(branch), self._present(branch, column, path)
            except SchemaError:
                continue
        raise SchemaError(
            f"Column {path!r} is {column.simpleString().upper()}, which can be written as none of "
            f"Avro's {', '.join(map(type_label, union.branches))}. {_WAY_OUT}"
        )

    def _present(self, avro: AvroType, column: DataType, path: str) -> _Writer:
        """The writer of a column without nulls."""
        if isinstance(avro, Reference):
            avro = self.schema.records[avro.name]
        if isinstance(avro, Record) and isinstance(column, StructType):
            return partial(_write_record, self._fields(avro, column, f"{path}." if path else ""))
        if isinstance(avro, Array) and isinstance(column, ArrayType):
            return partial(_write_items, self.value(avro.items, column.elementType, f"{path}[]"))
        if isinstance(avro, Map) and _has_text_keys(column):
            return partial(_write_entries, self.value(avro.values, column.valueType, f"{path}{{}}"))
        write = None
        if isinstance(avro, Primitive | Fixed | Enum):
            write = _write_leaf(_WrittenField(column, avro, self.timestamps))
        if write is None:
            raise SchemaError(
                f"Column {path!r} is {column.simpleString().upper()}, which cannot be written as "
                f"Avro's {type_label(avro)}. {_WAY_OUT}"
            )
        return partial(_naming_column, path, write)

    def _fields(
        self, record: Record, columns: StructType, prefix: str
    ) -> list[tuple[int, _Writer] | bytes]:
        positions = _fields_to_write(record, columns, prefix)
        fields: list[tuple[int, _Writer] | bytes] = []
        for field in record.fields:
            if field.name in positions:
                at = positions[field.name]
                column = columns.fields[at]
                write = self.value(field.type, column.dataType, prefix + column.name)
                fields.append((at, write))
            else:
                fields.append(_unwritten_field(self.schema, field, prefix + field.name))
        return fields


def _fields_to_write(record: Record, columns: StructType, path: str) -> dict[str, int]:
    """The position of the column that each field is written from, by the name of the field.

    A column is the field of exactly its name, else the only one that differs in case alone.

    Args:
        record: The record to be written.
        columns: The columns, all of which need a field.
        path: Where these columns stand, for errors: empty, or a name and a dot.

    Raises:
        SchemaError: A column has no field, or shares it with another.
    """
    names = [field.name for field in record.fields]
    found: dict[str, int] = {}
    for at, column in enumerate(columns.names):
        name = _field_to_write(column, names, path)
        if name in found:
            raise SchemaError(
                f"Columns {path + columns.names[found[name]]!r} and {path + column!r} both give the "
                f"field {name!r} of the Avro schema."
            )
        found[name] = at
    return found


def _field_to_write(column: str, names: list[str], path: str) -> str:
    alike = [column] if column in names else [n for n in names if n.lower() == column.lower()]
    if len(alike) == 1:
        return alike[0]
    if alike:
        raise SchemaError(
            f"Column {path + column!r} may be any of the fields {', '.join(alike)} of the Avro "
            "schema; write its name as one of them."
        )
    raise SchemaError(
        f"The Avro schema has no field for column {path + column!r}; its fields there: "
        f"{', '.join(names)}."
    )


def _unwritten_field(schema: Schema, field: Field, path: str) -> bytes:
    """What is written for a field that no column gives: its default.

    Raises:
        SchemaError: It has none, or a wrong one.
    """
    if field.default is NO_DEFAULT:
        raise SchemaError(
            f"No column gives the field {path!r} of the Avro schema, and it has no default."
        )
    try:
        return default_datum(schema, field.type, field.default)
    except ValueError as why:
        raise SchemaError(
            f"The default of the field {path!r} of the Avro schema is wrong: {why}."
        ) from None


def _has_text_keys(column: DataType) -> TypeGuard[MapType]:
    return isinstance(column, MapType) and isinstance(column.keyType, StringType)


def _branches(avro: AvroType) -> tuple[AvroType, ...]:
    return avro.branches if isinstance(avro, Union) else (avro,)


def _nearness(branch: AvroType) -> int:
    """The order in which branches are tried: a type before those that it is promoted to."""
    if isinstance(branch, Primitive) and branch.type in _NEAREST:
        return _NEAREST.index(branch.type)
    return len(_NEAREST)


def _naming_column(path: str, write: _Writer, array: pa.Array) -> ByteParts:
    """Writes a column; the error of a value names the column."""
    try:
        return write(array)
    except ValueError as why:
        raise EncodeError(path, str(why)) from None


def _refuse_null(path: str, write: _Writer, array: pa.Array) -> ByteParts:
    """Writes a column that has no union with null."""
    if array.null_count:
        raise EncodeError(path, "NULL, but the Avro schema has no union with null there")
    return write(array)


def _write_branch(number: int, write: _Writer, array: pa.Array) -> ByteParts:
    """Writes a column as one branch of a union."""
    return [constant(long(number), len(array)), *write(array)]


def _write_branch_or_null(number: int, null: int, write: _Writer, array: pa.Array) -> ByteParts:
    """Writes a column as one branch of a union, and NULL as another."""
    if not array.null_count:
        return _write_branch(number, write, array)
    present = array.is_valid().to_numpy(zero_copy_only=False)
    numbers = longs(np.where(present, number, null))
    return [numbers, *(among(part, present) for part in write(array.drop_null()))]


def _write_record(fields: list[tuple[int, _Writer] | bytes], array: pa.StructArray) -> ByteParts:
    """Writes each field in turn: the child at a position by its writer, or the same bytes in every row."""
    children = array.flatten()
    parts: ByteParts = []
    for field in fields:
        if isinstance(field, bytes):
            parts.append(constant(field, len(array)))
        else:
            at, write = field
            parts += write(children[at])
    return parts


def _write_items(write: _Writer, lists: pa.ListArray) -> ByteParts:
    """Writes arrays."""
    counts = pc.list_value_length(lists).to_numpy()
    values = lists.flatten()
    block = grouped(joined(write(values), len(values)), counts)
    count = among(longs(counts[counts > 0]), counts > 0)
    return [count, block, constant(b"\0", len(lists))]


def _write_entries(write: _Writer, maps: pa.MapArray) -> ByteParts:
    """Writes maps."""

    def entry(pairs: pa.StructArray) -> ByteParts:
        keys, values = pairs.flatten()
        return [*_byte_strings(keys), *write(values)]

    return _write_items(entry, as_lists(maps))


def _from_columns(writers: Mapping[type[DataType], _Writer]) -> _Write:
    """A way to write columns of some types, each by its writer."""
    return lambda field: writers.get(type(field.column))


def longs(values: Numbers) -> Cells:
    """Integers as Avro writes them."""
    return varints(zigzag(values))


def _write_integers(array: pa.Array) -> ByteParts:
    """``int`` and ``long``."""
    return [longs(array.to_numpy())]


def _booleans(array: pa.Array) -> ByteParts:
    return [fixed(array.to_numpy(zero_copy_only=False))]


def _floating(dtype: str, array: pa.Array) -> ByteParts:
    """Every NaN equals every other, and equal values must give equal bytes."""
    values = array.to_numpy().astype(dtype, copy=False)
    nans = np.isnan(values)
    return [fixed(np.where(nans, values.dtype.type("nan"), values) if nans.any() else values)]


_INTEGERS = (ByteType, ShortType, IntegerType)
_NO_DOUBLES = (*_INTEGERS, LongType, FloatType)
_write_boolean = _from_columns({BooleanType: _booleans})
_write_int = _from_columns(dict.fromkeys(_INTEGERS, _write_integers))
_write_long = _from_columns({LongType: _write_integers})
_write_float = _from_columns(dict.fromkeys(_NO_DOUBLES, partial(_floating, "<f4")))
_write_double = _from_columns(dict.fromkeys((*_NO_DOUBLES, DoubleType), partial(_floating, "<f8")))

_SHOWN_SYMBOLS = 20


def _write_symbol(field: _WrittenField) -> _Writer | None:
    """A STRING, which must be one of the symbols."""
    if not isinstance(field.column, StringType) or not isinstance(field.written, Enum):
        return None
    return partial(_symbols, field.written)


def _symbols(enum: Enum, array: pa.Array) -> ByteParts:
    positions = pc.index_in(array, value_set=pa.array(enum.symbols, array.type))
    if positions.null_count:
        seen = array.filter(positions.is_null())[0].as_py()
        known = ", ".join(enum.symbols[:_SHOWN_SYMBOLS])
        raise ValueError(f"{seen!r} is no symbol of the enum {enum.name!r}: {known}")
    return _write_integers(positions)


_LAST_NANOS = ((1 << 63) - 1) // 1000


def _write_timestamp(field: _WrittenField) -> _Writer | None:
    """A TIMESTAMP, and a TIMESTAMP_NTZ as a local timestamp; see `_Timestamps`."""
    if not isinstance(field.column, TimestampType | TimestampNTZType):
        return None
    logical = logical_of(field.written)
    if logical is None:
        return _milliseconds(field)
    zone, _, unit = logical.name.rpartition("-")
    zoned = isinstance(field.column, TimestampType)
    if not field.timestamps.legacy and zoned != (zone == "timestamp"):
        return None
    return {"millis": _milliseconds(field), "micros": _microseconds, "nanos": _nanoseconds}[unit]


def _milliseconds(field: _WrittenField) -> _Writer:
    remedy = field.timestamps.remedy
    return _rounded_down if remedy is None else partial(_whole_milliseconds, remedy)


def _rounded_down(array: pa.Array) -> ByteParts:
    """To milliseconds, as Spark and Flink do."""
    return [longs(array.cast(pa.int64()).to_numpy() // 1000)]


def _whole_milliseconds(remedy: str, array: pa.Array) -> ByteParts:
    """Milliseconds that lose nothing; a finer value is refused with what to do about it."""
    finer = array.cast(pa.int64()).to_numpy() % 1000 != 0
    if finer.any():
        first = array.slice(int(finer.argmax()), 1).cast(pa.int64())
        # By numpy: Python's own datetime ends with the year 9999.
        shown = str(first.to_numpy().astype("datetime64[us]")[0]).replace("T", " ")
        raise ValueError(f"{shown} is finer than milliseconds; {remedy}")
    return _rounded_down(array)


def _microseconds(array: pa.Array) -> ByteParts:
    return _write_integers(array.cast(pa.int64()))


def _nanoseconds(array: pa.Array) -> ByteParts:
    micros = array.cast(pa.int64()).to_numpy()
    if len(micros) and not -_LAST_NANOS <= micros.min() <= micros.max() <= _LAST_NANOS:
        raise ValueError("nanoseconds in 64 bits reach from the year 1677 to 2262 only")
    return [longs(micros * 1000)]


def _days(array: pa.Array) -> ByteParts:
    return _write_integers(array.cast(pa.int32()))


_write_date = _from_columns({DateType: _days})
_write_interval = _from_columns({DayTimeIntervalType: _microseconds})


_UUID = "^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$"


def _lengths(data: pa.Array) -> Numbers:
    return np.asarray(pc.binary_length(data))


def _byte_strings(array: pa.Array) -> ByteParts:
    """``string`` and ``bytes``."""
    data = array.cast(pa.large_binary())
    return [longs(_lengths(data)), data]


def _fixed_bytes(size: int, array: pa.Array) -> ByteParts:
    for seen in np.unique(_lengths(array)):
        if seen != size:
            raise ValueError(
                f"a value of {seen} bytes; the type in the Avro schema is fixed({size})"
            )
    return [array.cast(pa.large_binary())]


def _uuids(array: pa.Array) -> ByteParts:
    import polars as pl

    texts = pl.Series(array)
    wrong = texts.filter(~texts.str.contains(_UUID))
    if len(wrong):
        raise ValueError(f"{wrong[0]!r} is no UUID")
    data = texts.str.replace_all("-", "", literal=True).str.decode("hex")
    return [data.to_arrow().cast(pa.large_binary())]


_write_bytes = _from_columns({BinaryType: _byte_strings})
_write_text = _from_columns({StringType: _byte_strings})


def _write_fixed(field: _WrittenField) -> _Writer | None:
    """A BINARY of exactly this length."""
    if not isinstance(field.written, Fixed) or not isinstance(field.column, BinaryType):
        return None
    return partial(_fixed_bytes, field.written.size)


def _write_uuid(field: _WrittenField) -> _Writer | None:
    """A STRING: in a fixed as its sixteen bytes, in a string as it is."""
    if not isinstance(field.column, StringType):
        return None
    return _uuids if isinstance(field.written, Fixed) else _byte_strings


def _write_decimal(field: _WrittenField) -> _Writer | None:
    """A DECIMAL of the same scale."""
    column, logical = field.column, logical_of(field.written)
    if not isinstance(column, DecimalType) or logical is None or logical.scale != column.scale:
        return None
    if isinstance(field.written, Fixed):
        return partial(_in_fixed, logical, field.written.size)
    return partial(_in_bytes, logical)


def _in_bytes(logical: Logical, array: pa.Array) -> ByteParts:
    """The fewest bytes that hold the number, as Java's ``BigInteger.toByteArray`` gives them."""
    data = _big_endian(array, logical)
    inverted = data ^ _sign(data)
    kept = np.ones(data.shape, np.bool_)
    needed = np.zeros(len(data), np.bool_)
    for at in range(data.shape[1] - 1):
        # Needed is a byte that differs from the sign, all behind it, and one to hold the sign's bit.
        needed |= inverted[:, at] != 0
        kept[:, at] = needed | (inverted[:, at + 1] > 0x7F)
    return [longs(np.einsum("ij->i", kept.view(np.uint8))), Cells(data, kept)]


def _in_fixed(logical: Logical, size: int, array: pa.Array) -> ByteParts:
    """Filled up with the sign."""
    data = _big_endian(array, logical)
    lacking = size - data.shape[1]
    if lacking > 0:
        data = np.hstack([np.repeat(_sign(data), lacking, axis=1), data])
    return [fixed(data[:, -size:])]


def _sign(data: Numbers) -> Numbers:
    return np.where(data[:, :1] > 0x7F, np.uint8(0xFF), np.uint8(0))


def _big_endian(array: pa.Array, logical: Logical) -> Numbers:
    """Unscaled values as rows of bytes, of which there are eight when that is enough for all."""
    if array.type.precision > logical.precision:
        array = array.cast(pa.decimal128(logical.precision, logical.scale))
    values = np.frombuffer(array.buffers()[1], np.uint8)[16 * array.offset :][: 16 * len(array)]
    width = 8 if logical.precision <= 18 or array.type.precision <= 18 else 16
    return np.ascontiguousarray(values.reshape(-1, 16)[:, width - 1 :: -1])


_DATE = (_write_int, _write_date)
_TIMESTAMP = (_write_long, _write_timestamp)

_WRITE: Mapping[str, tuple[_Write, ...]] = {
    "boolean": (_write_boolean,),
    "int": _DATE,
    "long": (_write_int, _write_long, _write_timestamp, _write_interval),
    "float": (_write_float,),
    "double": (_write_double,),
    "bytes": (_write_bytes, _write_text),
    "string": (_write_text,),
    "fixed": (_write_fixed,),
    "enum": (_write_symbol,),
    "date": _DATE,
    "time-millis": (_write_int,),
    "time-micros": (_write_long,),
    "timestamp-millis": _TIMESTAMP,
    "timestamp-micros": _TIMESTAMP,
    "timestamp-nanos": _TIMESTAMP,
    "local-timestamp-millis": _TIMESTAMP,
    "local-timestamp-micros": _TIMESTAMP,
    "local-timestamp-nanos": _TIMESTAMP,
    "uuid": (_write_uuid, _write_fixed),
    "decimal": (_write_decimal,),
}
"""The ways to write each leaf type, by the name of its logical type or else its plain one; the first that fits the column is taken."""


def _write_leaf(field: _WrittenField) -> _Writer | None:
    """How a column without nulls is written; None = it does not fit."""
    logical = logical_of(field.written)
    ways = _WRITE[logical.name if logical else plain_name(field.written)]
    writers = (write(field) for write in ways)
    return next((writer for writer in writers if writer is not None), None)
