"""The Spark columns that an Avro schema means: Spark's own ``SchemaConverters.toSqlType``."""

from __future__ import annotations

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from pyspark_upsert_kafka.core.errors import SchemaError
from pyspark_upsert_kafka.formats.avro.model import (
    Array,
    AvroType,
    Enum,
    Fixed,
    Map,
    Primitive,
    Record,
    Reference,
    Schema,
    Union,
)

_NULL = Primitive("null")
_MOST_DIGITS = 38

MOST_COLUMNS = 100_000
"""So many fields a schema may have in all: records within records multiply with each level."""

_PLAIN: dict[str, type[DataType]] = {
    "boolean": BooleanType,
    "bytes": BinaryType,
    "double": DoubleType,
    "float": FloatType,
    "int": IntegerType,
    "long": LongType,
    "string": StringType,
}
# Nanoseconds are no timestamps of Spark's, and its own reader gives the number.
_LOGICAL: dict[str, type[DataType]] = {
    "date": DateType,
    "local-timestamp-micros": TimestampNTZType,
    "local-timestamp-millis": TimestampNTZType,
    "timestamp-micros": TimestampType,
    "timestamp-millis": TimestampType,
}
_WIDER = {frozenset({"int", "long"}): LongType(), frozenset({"float", "double"}): DoubleType()}


def columns_of(schema: Schema, only: str | None = None) -> StructType:
    """The columns of a record schema: in its order, nullable where it has a union with null.

    Args:
        schema: The schema.
        only: Name of the only column, where the schema is not that of a record.

    Raises:
        SchemaError: It is not the schema of a record, or Spark has no type for a field.
    """
    top = schema.type
    if _count(top, {}) > MOST_COLUMNS:
        raise SchemaError(
            f"The Avro schema has more than {MOST_COLUMNS} fields in all, those of records within "
            "records counted each time. Give the columns by .schema(...)."
        )
    if isinstance(top, Record):
        return _columns(top, "")
    if only is None:
        raise SchemaError(
            "An Avro schema that gives the columns must be a record; this one is not. Give the "
            "columns by .schema(...)."
        )
    return StructType([_column(only, top, only)])


def _count(avro: AvroType, known: dict[str, int]) -> int:
    """How many types there are within a type; each record is counted once and kept."""
    if isinstance(avro, Record):
        if avro.name not in known:
            known[avro.name] = 1 + sum(_count(field.type, known) for field in avro.fields)
        return known[avro.name]
    if isinstance(avro, Union):
        return sum(_count(branch, known) for branch in avro.branches)
    if isinstance(avro, Array | Map):
        return 1 + _count(avro.items if isinstance(avro, Array) else avro.values, known)
    return 1


def _columns(record: Record, path: str) -> StructType:
    return StructType([_column(f.name, f.type, path + f.name) for f in record.fields])


def _column(name: str, avro: AvroType, path: str) -> StructField:
    kind, nullable = _type(avro, path)
    return StructField(name, kind, nullable)


def _type(avro: AvroType, path: str) -> tuple[DataType, bool]:
    """The type, and whether it may be NULL."""
    if isinstance(avro, Union):
        some = tuple(branch for branch in avro.branches if branch != _NULL)
        return _of_branches(some, path), _NULL in avro.branches
    if isinstance(avro, Array):
        return ArrayType(*_type(avro.items, f"{path}[]")), False
    if isinstance(avro, Map):
        return MapType(StringType(), *_type(avro.values, f"{path}{{}}")), False
    if isinstance(avro, Record):
        return _columns(avro, f"{path}."), False
    if isinstance(avro, Enum):
        return StringType(), False
    if isinstance(avro, Reference):
        raise _refused(path, f"the record {avro.name!r} within itself")
    return _simple(avro, path), False


def _of_branches(branches: tuple[AvroType, ...], path: str) -> DataType:
    if len(branches) == 1:
        return _type(branches[0], path)[0]
    kinds = frozenset(branch.kind for branch in branches if isinstance(branch, Primitive))
    if len(kinds) != len(branches) or kinds not in _WIDER:
        raise _refused(path, "a union of several types")
    return _WIDER[kinds]


def _simple(avro: Primitive | Fixed, path: str) -> DataType:
    logical = avro.logical
    if logical and logical.name == "decimal":
        if logical.precision > _MOST_DIGITS:
            raise _refused(path, f"a decimal of {logical.precision} digits")
        return DecimalType(logical.precision, logical.scale)
    if isinstance(avro, Fixed):
        return BinaryType()
    if avro == _NULL:
        raise _refused(path, "nothing but null")
    kind = _LOGICAL.get(logical.name) if logical else None
    return (kind or _PLAIN[avro.kind])()


def _refused(path: str, what: str) -> SchemaError:
    return SchemaError(
        f"Field {path!r} of the Avro schema is {what}, for which Spark has no type. Give the columns "
        "by .schema(...)."
    )


def refuse_not_null(columns: StructType, required: frozenset[str], side: str) -> None:
    """Refuses NOT NULL where a message cannot tell whether its writer had it too.

    A column that may be NULL has a byte more in the message; nothing else says which it is. This
    connector writes every column so but the primary key, since whether Spark knows a column to hold no
    nulls is an accident of the query that made it.

    Args:
        columns: The columns to read by a derived schema.
        required: Those that no writer leaves NULL.
        side: ``key`` or ``value``, for the error.

    Raises:
        SchemaError: A column, or what is within one, is NOT NULL.
    """
    if side == "key":
        return
    for field in columns.fields:
        sure = field.nullable or field.name in required
        path = _first_not_null(field.dataType, field.name) if sure else field.name
        if path is not None:
            raise SchemaError(
                f"Column {path!r} is NOT NULL, and a message of format 'avro' does not tell whether its "
                "writer knew that: it could be read wrong. Make it nullable, as this connector and "
                f"Flink write it by default, or say what the messages are with '{side}.avro.schema'."
            )


def _first_not_null(kind: DataType, path: str) -> str | None:
    """The path of the first thing within a type that is NOT NULL; None = there is none."""
    if isinstance(kind, StructType):
        within = [(field.nullable, field.dataType, f"{path}.{field.name}") for field in kind.fields]
    elif isinstance(kind, ArrayType):
        within = [(kind.containsNull, kind.elementType, f"{path}[]")]
    elif isinstance(kind, MapType):
        within = [(kind.valueContainsNull, kind.valueType, f"{path}{{}}")]
    else:
        return None
    for nullable, inner, name in within:
        found = _first_not_null(inner, name) if nullable else name
        if found is not None:
            return found
    return None
