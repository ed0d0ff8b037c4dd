"""How each type that has no parts is read: the text of one field, and a column of them.

The rules are those of Flink's ``CsvToRowDataConverters``. How each type is written: ``csv_encoder.py``.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import (
    BinaryType,
    BooleanType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    StringType,
    TimestampNTZType,
    TimestampType,
)

from pyspark_upsert_kafka.formats.csv import Dialect
from pyspark_upsert_kafka.formats.leaf_types import BITS
from pyspark_upsert_kafka.formats.parsed_columns import Conversion, Convert, finite, unchanged
from pyspark_upsert_kafka.formats.text_values import (
    BLANK,
    binaries,
    binary,
    boolean,
    decimal,
    double,
    integer_text,
    single,
)
from pyspark_upsert_kafka.formats.timestamp_text import (
    OtherStandardError,
    TimestampText,
    dates,
    days,
)

TRUE, FALSE = ["true", "True", "TRUE"], ["false", "False", "FALSE"]
"""The spellings of booleans that are read as a batch."""

# java.sql.Date.valueOf lets a month and a day have one digit.
_SHORT_DATE = re.compile(r"([0-9]{4})-([0-9]{1,2})-([0-9]{1,2})")

Reader = Callable[[str], Any]
"""A text to a value; raises ValueError."""


@dataclass(frozen=True)
class CsvLeaf:
    """How a type is read.

    Args:
        value: Reads the text of one field.
        from_texts: Reads a column of texts.
        from_parser: What ``pyarrow.csv`` reads by itself; None = it reads texts.
        has_empty_text: Whether the empty text is a value of the type, and so no NULL unless the null literal says so.
    """

    value: Reader
    from_texts: Convert
    from_parser: Conversion | None = None
    has_empty_text: bool = False

    @property
    def column(self) -> Conversion:
        """How ``pyarrow.csv`` reads a column."""
        return self.from_parser or Conversion(pa.string(), self.from_texts)


def leaf(kind: DataType, dialect: Dialect) -> CsvLeaf:
    """How a type without parts is read."""
    plain = _leaf(kind)
    if plain.has_empty_text or dialect.null_literal is not None:
        return plain
    return replace(plain, from_texts=_empty_is_null(plain.from_texts))


def _leaf(kind: DataType) -> CsvLeaf:
    if isinstance(kind, DecimalType):
        return _decimal(kind)
    return _integer(BITS[type(kind)]) if type(kind) in BITS else _LEAVES[type(kind)]


def _empty_is_null(convert: Convert) -> Convert:
    """Reads the empty text as NULL, as it is without a null literal; the parser does so only in columns that are not text."""

    def with_nulls(texts: pa.Array) -> pa.Array:
        empty = pc.equal(texts, "")
        if pc.any(empty).as_py():
            texts = pc.if_else(empty, pa.scalar(None, pa.string()), texts)
        return convert(texts)

    return with_nulls


def _integer(bits: int) -> CsvLeaf:
    kind = getattr(pa, f"int{bits}")()
    return CsvLeaf(
        lambda text: integer_text(text.strip(BLANK), bits), _numbers(kind), Conversion(kind)
    )


def _floating(kind: pa.DataType, number: Reader) -> CsvLeaf:
    return CsvLeaf(lambda text: number(text.strip(BLANK)), _numbers(kind), Conversion(kind, finite))


def _numbers(kind: pa.DataType) -> Convert:
    def convert(texts: pa.Array) -> pa.Array:
        _check_no_hexadecimals(texts)
        return finite(pc.ascii_trim(texts, " \t").cast(kind))

    return convert


def _check_no_hexadecimals(texts: pa.Array | pa.ChunkedArray) -> None:
    """Raises ValueError for what Arrow takes for a number and nobody else does: 0x10 for 16."""
    # Two looks for a letter take a fraction of one that ignores its case.
    if any(pc.any(pc.match_substring(texts, x)).as_py() for x in "xX"):
        raise ValueError("a hexadecimal number")


def _booleans(texts: pa.Array) -> pa.Array:
    true = pc.is_in(texts, pa.array(TRUE))
    if not pc.all(pc.or_(true, pc.is_in(texts, pa.array([*FALSE, None])))).as_py():
        raise ValueError("a text is neither true nor false")
    return pc.if_else(texts.is_valid(), true, pa.scalar(None, pa.bool_()))


def _decimal(kind: DecimalType) -> CsvLeaf:
    """As a column: plain digits that fit as they stand; what must be rounded or scaled takes the row path."""
    whole, places = kind.precision - kind.scale, kind.scale
    fraction = rf"(\.[0-9]{{1,{places}}})?" if places else ""
    plain = rf"^-?[0-9]{{1,{whole}}}{fraction}$" if whole else rf"^-?0{fraction}$"

    def convert(texts: pa.Array) -> pa.Array:
        if pc.all(pc.match_substring_regex(texts, plain)).as_py() is False:
            raise ValueError("a decimal is not plain")
        return texts.cast(pa.decimal128(kind.precision, places))

    return CsvLeaf(lambda text: decimal(text.strip(BLANK), kind.precision, places), convert)


def _date(text: str) -> int:
    match = _SHORT_DATE.fullmatch(text)
    return days("{}-{:0>2}-{:0>2}".format(*match.groups()) if match else text)


def _timestamp(*, zoned: bool) -> CsvLeaf:
    """Flink's spelling, or the ISO-8601 that Spark's ``to_csv`` writes."""
    sql, iso = TimestampText("SQL", zoned), TimestampText("ISO-8601", zoned)

    def read(text: str) -> int:
        try:
            return sql.micros(text.strip(BLANK))
        except OtherStandardError:
            return iso.micros(text.strip(BLANK))

    def convert(texts: pa.Array) -> pa.Array:
        try:
            return sql.column(texts)
        except OtherStandardError:
            return iso.column(texts)

    return CsvLeaf(read, convert)


_LEAVES: dict[type[DataType], CsvLeaf] = {
    BinaryType: CsvLeaf(binary, binaries, has_empty_text=True),
    BooleanType: CsvLeaf(boolean, _booleans, Conversion(pa.bool_())),
    DateType: CsvLeaf(_date, dates),
    DoubleType: _floating(pa.float64(), double),
    FloatType: _floating(pa.float32(), single),
    StringType: CsvLeaf(str, unchanged, Conversion(pa.string()), has_empty_text=True),
    TimestampNTZType: _timestamp(zoned=False),
    TimestampType: _timestamp(zoned=True),
}
