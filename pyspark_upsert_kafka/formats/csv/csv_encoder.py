"""Rows to CSV, column by column: each column becomes texts, and the texts are joined.

There is no row path, so equal rows give equal bytes, whatever other rows are in their batch. The rules are those of
Flink's ``RowDataToCsvConverters`` and ``CsvRowDataSerializationSchema``: no line break ends a message. What
Flink writes so that nobody can read it back is an error: an array with its own delimiter inside an
element, a delimiter where quotes are disabled. How each type is read: ``csv_leaf_readers.py``.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import polars as pl
import pyarrow as pa
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from pyspark_upsert_kafka.core.errors import EncodeError
from pyspark_upsert_kafka.formats.csv import Dialect
from pyspark_upsert_kafka.formats.leaf_types import BITS
from pyspark_upsert_kafka.formats.text_columns import (
    TextParts,
    as_binary,
    base64_texts,
    float_texts,
    java_texts,
    joined,
    naming_column,
    per_list,
)
from pyspark_upsert_kafka.formats.text_values import BYTE_ORDER_MARK
from pyspark_upsert_kafka.formats.timestamp_text import TimestampText, date_texts

_ToText = Callable[[pa.Array], pl.Series]
"""A column to its texts, null where it is null; raises ValueError."""

_Writer = Callable[[pa.Array], TextParts]
"""A column to its fields; raises ValueError."""

_Quote = Callable[[pl.Series], TextParts]
"""Texts to fields; null stays null. Raises ValueError for what cannot be written without quotes."""

_BARE = BooleanType | DecimalType | DoubleType | FloatType
_IN_TIMESTAMPS = frozenset("0123456789-: .Z")
_IN_NUMBERS = frozenset("0123456789+-.eENaNInfinitytruefalse")
_BLANK = r"^[\x00-\x20]*$"
_LONG = 24
_MARK = BYTE_ORDER_MARK.decode()
_TWO_UNITS = r"[\x{10000}-\x{10FFFF}]"


class CsvEncoder:
    """Rows to CSV records.

    Args:
        columns: The columns of the rows.
        dialect: How they are written.
    """

    def __init__(self, columns: StructType, dialect: Dialect) -> None:
        quotes = [_quoter(dialect, begins=True), *[_quoter(dialect)] * len(columns.fields[1:])]
        self._names, self._dialect = columns.names, dialect
        self._writers = [
            naming_column(field.name, _field(field.dataType, dialect, quote))
            for field, quote in zip(columns.fields, quotes, strict=True)
        ]

    def encode(self, rows: pa.RecordBatch) -> pa.LargeBinaryArray:
        """One record for each row. Raises EncodeError."""
        parts: TextParts = []
        for write, column in zip(self._writers, rows.columns, strict=True):
            parts += [self._dialect.delimiter, *write(column)]
        texts = joined(parts[1:], rows.num_rows)
        if len(self._names) == 1:
            texts = _never_empty(texts, self._names[0], self._dialect)
        return as_binary(texts)


def _never_empty(texts: pl.Series, column: str, dialect: Dialect) -> pl.Series:
    """An empty message holds no record; a quoted empty field is one, and reads as the same."""
    empty = texts == ""
    if not empty.any():
        return texts
    if dialect.quote is None:
        raise EncodeError(column, "its message would be empty, which nobody can read")
    return pl.select(pl.when(empty).then(pl.lit(dialect.quote * 2)).otherwise(texts)).to_series()


def _field(kind: DataType, dialect: Dialect, quote: _Quote) -> _Writer:
    """The writer of a column, nulls and quotes included."""
    column_text = _column_text(kind, dialect)
    if dialect.is_key and dialect.null_literal is not None:
        column_text = partial(_no_null_literal, column_text, dialect.null_literal)
    null, bare = _null_field(dialect, quote), _is_bare(kind, dialect)
    mark = dialect.quote if _is_quoted(kind, dialect) else None

    def write(array: pa.Array) -> TextParts:
        texts = column_text(array)
        if mark is not None and not array.null_count:
            return [mark, texts, mark]
        fields: TextParts = [texts] if bare else quote(texts)
        return [joined(fields, len(array)).fill_null(null)] if array.null_count else fields

    return write


def _null_field(dialect: Dialect, quote: _Quote) -> str:
    """The null literal; Jackson never quotes it, which is right as long as it has nothing special."""
    literal = dialect.null_literal or ""
    plain = all(character not in (*dialect.special, _MARK) for character in literal)
    return literal if plain else str(joined(quote(pl.Series([literal])), 1)[0])


def _no_null_literal(to_text: _ToText, literal: str, array: pa.Array) -> pl.Series:
    texts = to_text(array)
    if (texts == literal).any():
        raise ValueError(
            f"{literal!r} is the 'null-literal'; a reader would see a key that is NULL"
        )
    return texts


def _column_text(kind: DataType, dialect: Dialect) -> _ToText:
    if isinstance(kind, ArrayType):
        return partial(_array, _element(kind.elementType, dialect), dialect)
    if isinstance(kind, StructType):
        fields = [_element(field.dataType, dialect) for field in kind.fields]
        return partial(_struct, fields, dialect)
    return _leaf_writer(kind, dialect)


def _element(kind: DataType, dialect: Dialect) -> _ToText:
    """The writer of an element of an array or a field of a struct."""
    element_text, null = _leaf_writer(kind, dialect), dialect.null_literal or ""

    def write(array: pa.Array) -> pl.Series:
        texts = element_text(array).fill_null(null)
        if texts.str.contains(dialect.array_delimiter, literal=True).any():
            raise ValueError(
                f"an element holds {dialect.array_delimiter!r}, the 'array-element-delimiter'"
            )
        return texts

    return write


def _array(element: _ToText, dialect: Dialect, array: pa.Array) -> pl.Series:
    lists = per_list(array, element(array.flatten()))
    texts = lists.list.join(dialect.array_delimiter)
    _check_not_blank(texts.filter(lists.list.len() > 0), dialect)
    return _null_where(array, texts)


def _struct(fields: list[_ToText], dialect: Dialect, array: pa.Array) -> pl.Series:
    parts = [write(child) for write, child in zip(fields, array.flatten(), strict=True)]
    texts = pl.select(pl.concat_str(parts, separator=dialect.array_delimiter)).to_series()
    _check_not_blank(texts.filter(pl.Series(array.is_valid())), dialect)
    return _null_where(array, texts)


def _check_not_blank(texts: pl.Series, dialect: Dialect) -> None:
    """Elements whose text together is blank would be read as no elements, by Jackson too."""
    if texts.str.contains(_BLANK).any() or (texts == (dialect.null_literal or "")).any():
        raise ValueError(
            "a lone element that is blank or NULL, or elements whose text together is; CSV cannot tell "
            "that from no element"
        )


def _null_where(array: pa.Array, texts: pl.Series) -> pl.Series:
    if not array.null_count:
        return texts
    return pl.select(pl.when(pl.Series(array.is_valid())).then(texts)).to_series()


def _quoter(dialect: Dialect, *, begins: bool = False) -> _Quote:
    """Compiles the function from texts to fields.

    Args:
        dialect: How they are written.
        begins: Whether they begin messages, where a reader takes a byte order mark away.
    """
    special = "".join(map(_class_of, dialect.special))
    mark = f"|^{_class_of(_MARK)}" if begins else ""
    if dialect.quote is None:
        return _refusing(f"[{special}]{mark}")
    highest = _class_of(max(dialect.delimiter, dialect.quote))
    backslash = _class_of("\\") if dialect.escape is None else ""
    return _quoting(rf"[\x00-{highest}{special}{backslash}]{mark}", dialect.quote, dialect.escape)


def _class_of(character: str) -> str:
    """A character as it stands in a class of a regular expression."""
    return rf"\x{{{ord(character):x}}}"


def _refusing(special: str) -> _Quote:
    def fields(texts: pl.Series) -> TextParts:
        if texts.str.contains(special).any():
            raise ValueError(
                "it holds a character that needs quotes, and 'disable-quote-character' is set"
            )
        return [texts]

    return fields


def _quoting(special: str, quote: str, escape: str | None) -> _Quote:
    doubled = [quote] if escape in (None, quote) else [quote, str(escape)]

    def fields(texts: pl.Series) -> TextParts:
        needed = _needed(texts, special)
        if not needed.any():
            return [texts]
        inner = texts
        for character in doubled:
            inner = inner.str.replace_all(character, character * 2, literal=True)
        if needed.all():
            return [quote, inner, quote]
        enclosed = pl.concat_str(pl.lit(quote), inner, pl.lit(quote))
        return [pl.select(pl.when(needed).then(enclosed).otherwise(texts)).to_series()]

    return fields


def _needed(texts: pl.Series, special: str) -> pl.Series:
    found = texts.str.contains(special)
    units = texts.str.len_bytes()
    if not (units > _LONG).any():
        return found
    characters = texts.str.len_chars()
    if not (units == characters).all():
        characters = characters + texts.str.count_matches(_TWO_UNITS)
    return found | (characters > _LONG)


def _leaf_writer(kind: DataType, dialect: Dialect) -> _ToText:
    """The writer of a type without parts."""
    if isinstance(kind, TimestampType | TimestampNTZType):
        return partial(_timestamps, TimestampText("SQL", isinstance(kind, TimestampType)))
    if isinstance(kind, DecimalType) and dialect.scientific_decimals:
        return java_texts
    if isinstance(kind, DoubleType | FloatType):
        return float_texts
    return _TO_TEXT.get(type(kind), _plain)


def _is_bare(kind: DataType, dialect: Dialect) -> bool:
    """Whether values of the type need no look for special characters, and Jackson has none.

    Flink takes none even where the delimiter is a character that numbers have.
    """
    bare = type(kind) in BITS or isinstance(kind, _BARE)
    return bare and _IN_NUMBERS.isdisjoint(dialect.special)


def _is_quoted(kind: DataType, dialect: Dialect) -> bool:
    """Whether each value of the type is quoted as it stands: a timestamp, for the blank in it."""
    if dialect.quote is None or not isinstance(kind, TimestampType | TimestampNTZType):
        return False
    has_nothing_to_double = _IN_TIMESTAMPS.isdisjoint({dialect.quote, dialect.escape})
    return has_nothing_to_double and max(dialect.delimiter, dialect.quote) >= " "


def _plain(array: pa.Array) -> pl.Series:
    """Texts, whole numbers, booleans, and decimals with every digit of their scale."""
    return pl.Series(array).cast(pl.String)


def _dates(array: pa.Array) -> pl.Series:
    return pl.Series(date_texts(array))


def _timestamps(timestamp_format: TimestampText, array: pa.Array) -> pl.Series:
    texts = pl.Series(timestamp_format.texts(array))
    return texts + timestamp_format.suffix if timestamp_format.suffix else texts


_TO_TEXT: dict[type[DataType], _ToText] = {BinaryType: base64_texts, DateType: _dates}
