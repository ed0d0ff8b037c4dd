"""All leaf types of Avro by their names: those of plain types, and those of logical types.

Who adds a logical type says here what it may be declared of, which column a schema means by it, and the ways in which
a module of this folder reads and writes it.
"""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql.types import (
    BinaryType,
    BooleanType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    StringType,
    TimestampNTZType,
    TimestampType,
)

from pyspark_upsert_kafka.formats.avro.errors import mismatch
from pyspark_upsert_kafka.formats.avro.leaf_types import (
    Leaf,
    LeafType,
    ReadField,
    Writer,
    WrittenField,
)
from pyspark_upsert_kafka.formats.avro.leaf_types.decimals import read_decimal, write_decimal
from pyspark_upsert_kafka.formats.avro.leaf_types.enums import Symbol, read_symbol, write_symbol
from pyspark_upsert_kafka.formats.avro.leaf_types.numbers import (
    Boolean,
    Floating,
    Integer,
    read_boolean,
    read_floating,
    read_integer,
    write_boolean,
    write_double,
    write_float,
    write_int,
    write_long,
)
from pyspark_upsert_kafka.formats.avro.leaf_types.texts import (
    Bytes,
    read_bytes,
    read_text,
    read_uuid,
    size_of,
    write_bytes,
    write_fixed,
    write_text,
    write_uuid,
)
from pyspark_upsert_kafka.formats.avro.leaf_types.times import (
    read_date,
    read_interval,
    read_timestamp,
    write_date,
    write_interval,
    write_timestamp,
)
from pyspark_upsert_kafka.formats.avro.model import Enum, LeafSchema, logical_of, plain_name

_NUMBER = (read_integer, read_floating)
_DATE = ((*_NUMBER, read_date), (write_int, write_date))
_TIMESTAMP = ((*_NUMBER, read_timestamp), (write_long, write_timestamp))
_INT, _LONG = {"int": IntegerType()}, {"long": LongType()}
_ZONED, _LOCAL = {"long": TimestampType()}, {"long": TimestampNTZType()}
_TEXT_OR_BYTES = {"string": StringType(), "fixed": BinaryType()}
_DECIMAL = {"bytes": DecimalType(), "fixed": DecimalType()}

PLAIN_TYPES: Mapping[str, LeafType] = {
    "boolean": LeafType({"boolean": BooleanType()}, (read_boolean,), (write_boolean,)),
    "int": LeafType(_INT, *_DATE),
    "long": LeafType(
        _LONG,
        (*_NUMBER, read_timestamp, read_interval),
        (write_int, write_long, write_timestamp, write_interval),
    ),
    "float": LeafType({"float": FloatType()}, (read_floating,), (write_float,)),
    "double": LeafType({"double": DoubleType()}, (read_floating,), (write_double,)),
    "bytes": LeafType({"bytes": BinaryType()}, (read_bytes, read_text), (write_bytes, write_text)),
    "string": LeafType({"string": StringType()}, (read_text, read_bytes), (write_text,)),
    "fixed": LeafType({"fixed": BinaryType()}, (read_bytes,), (write_fixed,)),
    "enum": LeafType({"enum": StringType()}, (read_symbol,), (write_symbol,)),
}

# For Spark's own reader nanoseconds and times are numbers, and a uuid is what it stands on.
LOGICAL_TYPES: Mapping[str, LeafType] = {
    "date": LeafType({"int": DateType()}, *_DATE),
    "time-millis": LeafType(_INT, _NUMBER, (write_int,)),
    "time-micros": LeafType(_LONG, _NUMBER, (write_long,)),
    "timestamp-millis": LeafType(_ZONED, *_TIMESTAMP),
    "timestamp-micros": LeafType(_ZONED, *_TIMESTAMP),
    "timestamp-nanos": LeafType(_LONG, *_TIMESTAMP),
    "local-timestamp-millis": LeafType(_LOCAL, *_TIMESTAMP),
    "local-timestamp-micros": LeafType(_LOCAL, *_TIMESTAMP),
    "local-timestamp-nanos": LeafType(_LONG, *_TIMESTAMP),
    "uuid": LeafType(_TEXT_OR_BYTES, (read_text, read_uuid, read_bytes), (write_uuid, write_fixed)),
    "decimal": LeafType(_DECIMAL, (read_decimal, read_bytes), (write_decimal,)),
}


def is_known(logical: str, plain: str) -> bool:
    """Whether a logical type means something here when it is declared of a plain type; ``duration`` does not."""
    return logical in LOGICAL_TYPES and plain in LOGICAL_TYPES[logical].columns


def column_of(leaf: LeafSchema) -> DataType:
    """The column that a schema means by a leaf."""
    logical, plain = logical_of(leaf), plain_name(leaf)
    column = (LOGICAL_TYPES[logical.name] if logical else PLAIN_TYPES[plain]).columns[plain]
    if logical and isinstance(column, DecimalType):
        return DecimalType(logical.precision, logical.scale)
    return column


def read_leaf(field: ReadField) -> Leaf:
    """How a field is read into its column.

    Raises:
        SchemaError: The column cannot hold what is written.
    """
    logical = field.logical
    type_ = LOGICAL_TYPES[logical.name] if logical else PLAIN_TYPES[plain_name(field.read_as)]
    for read in type_.read:
        leaf = read(field)
        if leaf is not None:
            return leaf
    raise mismatch(field.path, field.column, field.read_as)


def skip_leaf(leaf: LeafSchema, path: str) -> Leaf:
    """How a field that no column wants is skipped."""
    name = plain_name(leaf)
    if name == "boolean":
        return Boolean(path)
    if name in ("int", "long"):
        return Integer(path, name)
    if name in ("float", "double"):
        return Floating(path, name)
    return Symbol(path, leaf.symbols) if isinstance(leaf, Enum) else Bytes(path, size_of(leaf))


def write_leaf(field: WrittenField) -> Writer | None:
    """How a column without nulls is written; None = it does not fit."""
    logical = logical_of(field.written)
    type_ = LOGICAL_TYPES[logical.name] if logical else PLAIN_TYPES[plain_name(field.written)]
    writers = (write(field) for write in type_.write)
    return next((writer for writer in writers if writer is not None), None)
