"""How values are read: those that have no parts, also as a column, the row path of them, and how much memory messages take.

The rules for values are those of Flink's ``JsonParserToRowDataConverters``; where Flink would make a wrong value
out of a bad one (a cut fraction, a NULL for a decimal that is too large, ``false`` for any text), it is an error
here. The schema is compiled into a tree of functions once. How each type is written: ``json_encoder.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    DateType,
    DayTimeIntervalType,
    DecimalType,
    DoubleType,
    FloatType,
    MapType,
    StringType,
    StructType,
    TimestampNTZType,
    TimestampType,
    VariantType,
)

from pyspark_upsert_kafka.formats.decoded_size import Items, Measure, item_bytes
from pyspark_upsert_kafka.formats.decoding import RowField, UnreadableError
from pyspark_upsert_kafka.formats.json import JsonSettings
from pyspark_upsert_kafka.formats.json.json_document import (
    HALF,
    Half,
    Number,
    compact,
    holds_half,
    parse_object,
    shown,
    variant,
)
from pyspark_upsert_kafka.formats.leaf_types import BITS
from pyspark_upsert_kafka.formats.parsed_columns import Conversion, finite
from pyspark_upsert_kafka.formats.text_values import (
    BLANK,
    binaries,
    binary,
    boolean,
    decimal,
    double,
    integer,
    integer_text,
    single,
)
from pyspark_upsert_kafka.formats.timestamp_text import (
    OtherStandardError,
    TimestampText,
    dates,
    days,
)

Reader = Callable[[Any], Any]
"""A parsed JSON value, which is not null, to what ``pyarrow.array`` takes; raises ValueError with what was expected."""

_TEXT = frozenset({str})


@dataclass(frozen=True)
class JsonLeaf:
    """How a type is read.

    Args:
        value: Reads one value.
        column: How ``pyarrow.json`` reads a column.
        from_orjson: The types of Python as which orjson gives a value without a loss; empty = it loses what is needed.
    """

    value: Reader
    column: Conversion
    from_orjson: frozenset[type] = frozenset()


def leaf(kind: DataType, settings: JsonSettings) -> JsonLeaf:
    """How a type without parts is read."""
    if isinstance(kind, DecimalType):
        return _decimal(kind)
    if type(kind) in BITS:
        return _integer(BITS[type(kind)])
    if isinstance(kind, TimestampType | TimestampNTZType):
        zoned = isinstance(kind, TimestampType)
        return _timestamp(TimestampText(settings.timestamp_standard, zoned), settings.prefix)
    return _LEAVES[type(kind)]


def _integer(bits: int) -> JsonLeaf:
    column = Conversion(getattr(pa, f"int{bits}")())
    return JsonLeaf(_integer_value(bits), column, frozenset({int}))


def _integer_value(bits: int) -> Reader:
    def read(value: Any) -> int:
        if type(value) is Number:
            return integer(value, bits)
        return integer_text(_text(value, "a whole number"), bits)

    return read


def _decimal(kind: DecimalType) -> JsonLeaf:
    """The parser is given room for 38 digits as they stand and 38 more that the scale adds.

    It counts the digits it is given, and then scales without a check: in 128 bits 11 would become a
    wrong DECIMAL(38,38). The cast back to 128 bits refuses what does not fit.
    """
    expected = f"a DECIMAL({kind.precision},{kind.scale})"
    exact, wide = pa.decimal128(kind.precision, kind.scale), pa.decimal256(38, kind.scale)

    def read(value: Any) -> Any:
        return decimal(_text(value, expected), kind.precision, kind.scale)

    return JsonLeaf(read, Conversion(wide, lambda array: array.cast(exact)))


def _timestamp(timestamp_format: TimestampText, prefix: str) -> JsonLeaf:
    expected = f"a text like '{timestamp_format.example}'"

    def read(value: Any) -> int:
        try:
            return timestamp_format.micros(_string(value, expected))
        except OtherStandardError as other:
            raise ValueError(
                f"expected {expected} ('{prefix}timestamp-format.standard' = '{other.standard}' reads "
                "what the message has)"
            ) from None

    return JsonLeaf(read, Conversion(pa.string(), timestamp_format.column), _TEXT)


def _boolean(value: Any) -> bool:
    if type(value) is bool:
        return value
    return boolean(value if type(value) is str else "")


_milliseconds = _integer_value(64)


def _interval(value: Any) -> int:
    """Whole milliseconds, as Flink has an INTERVAL DAY TO SECOND, to microseconds."""
    micros: int = _milliseconds(value) * 1_000
    if not -(1 << 63) <= micros < 1 << 63:
        raise ValueError("out of range of INTERVAL DAY TO SECOND")
    return micros


def _intervals(array: pa.Array) -> pa.Array:
    return pc.multiply_checked(array, 1_000).cast(pa.duration("us"))


def _as_text(value: Any) -> str:
    if type(value) is str:
        return value
    text = compact(value)
    if type(value) is Half or holds_half(text):
        raise ValueError(HALF)
    return text


def _text(value: Any, expected: str) -> str:
    """The digits of a number, or a string without blanks around it."""
    if not isinstance(value, str):
        raise ValueError(f"expected {expected}")  # noqa: TRY004 - the message is at fault
    return value.strip(BLANK)


def _string(value: Any, expected: str) -> str:
    if type(value) is not str:
        raise ValueError(f"expected {expected}")
    return value


_LEAVES: dict[type[DataType], JsonLeaf] = {
    BinaryType: JsonLeaf(
        lambda value: binary(_string(value, "BINARY as base64 text")),
        Conversion(pa.string(), binaries),
        _TEXT,
    ),
    BooleanType: JsonLeaf(_boolean, Conversion(pa.bool_()), frozenset({bool})),
    DateType: JsonLeaf(
        lambda value: days(_string(value, "a DATE like '2024-01-31'")),
        Conversion(pa.string(), dates),
        _TEXT,
    ),
    DayTimeIntervalType: JsonLeaf(_interval, Conversion(pa.int64(), _intervals)),
    DoubleType: JsonLeaf(
        lambda value: double(_text(value, "a number")),
        Conversion(pa.float64(), finite),
        frozenset({float, int}),
    ),
    FloatType: JsonLeaf(
        lambda value: single(_text(value, "a number")), Conversion(pa.float32(), finite)
    ),
    StringType: JsonLeaf(_as_text, Conversion(pa.string()), _TEXT),
    # As a column it is read by the row path alone.
    VariantType: JsonLeaf(variant, Conversion(pa.null())),
}


def row_reader(columns: StructType, settings: JsonSettings) -> Callable[[bytes], Sequence[Any]]:
    """Compiles the function from a message to its row; it raises UnreadableError."""
    read = object_reader(columns, settings)

    def row(message: bytes) -> Sequence[Any]:
        values: Sequence[Any] = read(parse_object(message))
        return values

    return row


def object_reader(columns: StructType, settings: JsonSettings, path: str = "") -> Reader:
    """Compiles the function from a parsed object to the values of its columns."""
    fields = {
        field.name: field_reader(
            field.dataType, settings, path + field.name, nullable=field.nullable
        )
        for field in columns.fields
    }

    def read(value: Any) -> tuple[Any, ...]:
        if type(value) is not dict:
            raise ValueError("expected an object")
        # A tuple takes a fifth of what a dict does: a message may hold very many objects.
        return tuple([field(value.get(name)) for name, field in fields.items()])

    def read_all(value: Any) -> tuple[Any, ...]:
        if type(value) is dict:
            for name in fields:
                if name not in value:
                    raise UnreadableError(f"field '{path}{name}' is missing")
        return read(value)

    return read_all if settings.fail_on_missing_field else read


def field_reader(kind: DataType, settings: JsonSettings, path: str, *, nullable: bool) -> Reader:
    """Compiles the function from a parsed value, or None for null and nothing, to that of a column."""
    field = RowField(path, nullable, settings.ignore_parse_errors)
    return field.reader(_reader(kind, settings, path), shown)


def _reader(kind: DataType, settings: JsonSettings, path: str) -> Reader:
    if isinstance(kind, StructType):
        return object_reader(kind, settings, f"{path}.")
    if isinstance(kind, ArrayType):
        return _array(
            field_reader(kind.elementType, settings, f"{path}[]", nullable=kind.containsNull)
        )
    if isinstance(kind, MapType):
        return _map(
            field_reader(kind.valueType, settings, f"{path}{{}}", nullable=kind.valueContainsNull)
        )
    return leaf(kind, settings).value


def _array(element: Reader) -> Reader:
    def read(value: Any) -> list[Any]:
        if type(value) is not list:
            raise ValueError("expected an array")
        return [element(item) for item in value]

    return read


def _map(entry: Reader) -> Reader:
    def read(value: Any) -> dict[str, Any]:
        if type(value) is not dict:
            raise ValueError("expected an object")
        if Half in map(type, value):
            raise ValueError(HALF)
        return {key: entry(item) for key, item in value.items()}

    return read


def measure_of(columns: StructType, target: pa.Schema, *, lenient: bool) -> Measure:
    """Compiles how much memory messages take: NULL and ``{}`` may become very wide structs.

    Args:
        columns: The columns.
        target: The same in Arrow.
        lenient: Whether whatever is no object is read as NULL where one is expected.
    """
    row = pa.struct(list(target))
    items = _items(row)
    if items is None:
        return Measure()
    widths = [(0.0, 0.0), *_widths(columns, row)]
    objects, values = (max(width) for width in zip(*widths, strict=True))
    if lenient:
        objects, values = 0, max(objects, values)
    marks = {b"{": objects + values, b"null": objects, b"[": values, b",": values}

    def exactly(message: bytes) -> float:
        try:
            return items(parse_object(message))
        except UnreadableError:
            return 0

    # The shortest items are "{}," and "1,".
    return Measure(Items(max(objects / 3, values / 2), marks), exactly=exactly)


def _widths(kind: DataType, arrow: pa.DataType) -> Iterator[tuple[float, float]]:
    """What an item of each array and map takes that is an object, or else what any other item takes."""
    if isinstance(kind, StructType):
        for field, part in zip(kind.fields, arrow, strict=True):
            yield from _widths(field.dataType, part.type)
    elif isinstance(kind, ArrayType | MapType):
        item, part = (
            (kind.elementType, arrow.value_type)
            if isinstance(kind, ArrayType)
            else (kind.valueType, arrow.item_type)
        )
        width = item_bytes(arrow)
        yield (width, 0) if isinstance(item, StructType) else (0, width)
        yield from _widths(item, part)


def _items(kind: pa.DataType) -> Callable[[Any], float] | None:
    """Compiles what the items in a parsed value take; None = it has none."""
    if pa.types.is_struct(kind):
        parts = {part.name: items for part in kind if (items := _items(part.type))}

        def of_parts(value: Any) -> float:
            if type(value) is not dict:
                return 0
            return sum(items(value.get(name)) for name, items in parts.items())

        return of_parts if parts else None
    if not kind.num_fields:
        return None
    width, is_map = item_bytes(kind), pa.types.is_map(kind)
    inner = _items(kind.item_type if is_map else kind.value_type)

    def of_items(items: Collection[Any]) -> float:
        return len(items) * width + (sum(map(inner, items)) if inner else 0)

    if is_map:
        return lambda value: of_items(value.values()) if type(value) is dict else 0
    return lambda value: of_items(value) if type(value) is list else 0
