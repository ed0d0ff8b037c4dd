"""Dates and timestamps as text: Flink's SQL and ISO-8601 spellings, by value and by column.

Sources: Flink's ``TimeFormats``; ``ISO_LOCAL_DATE`` and ``ISO_LOCAL_TIME`` of Java. Unlike Flink, a
day or hour that does not exist (31 February, 24:00) is an error and not moved to one that does, and
a zone may also be a numeric offset, which Spark's ``to_json`` writes.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Literal

import pyarrow as pa
import pyarrow.compute as pc

Standard = Literal["SQL", "ISO-8601"]

_TIMESTAMP = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2}([ T])[0-9]{2}:[0-9]{2}(:[0-9]{2}(?:\.([0-9]{1,9}))?)?)"
    r"(?:(Z)|([+-])([0-9]{2})(?::?([0-9]{2}))?)?"
)
_TO_SECONDS = len("yyyy-MM-dd HH:mm:ss")
# A text that is shorter has no more than six digits behind the point.
_WITH_NANOS = len("yyyy-MM-dd HH:mm:ss.1234567")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_EPOCH = datetime.fromisoformat("1970-01-01")
_MICROSECOND = timedelta(microseconds=1)
_DAY = timedelta(days=1) // _MICROSECOND
_FIRST_DAY = date.min.toordinal() - _EPOCH.toordinal()
_LAST_DAY = date.max.toordinal() - _EPOCH.toordinal()
_FIRST, _LAST = _FIRST_DAY * _DAY, (_LAST_DAY + 1) * _DAY - 1
_OUTSIDE = "expected a year from 0001 to 9999"


class OtherStandardError(ValueError):
    """A timestamp in the spelling of the other standard."""

    def __init__(self, standard: Standard) -> None:
        self.standard = standard
        super().__init__(f"this is the spelling of {standard}")


def days(text: str) -> int:
    """Days since 1970 of a ``yyyy-MM-dd``. Raises ValueError."""
    if not _DATE.fullmatch(text):
        raise ValueError("expected a DATE like '2024-01-31'")
    try:
        return date.fromisoformat(text).toordinal() - _EPOCH.toordinal()
    except ValueError:
        raise ValueError("expected a DATE that exists") from None


def dates(texts: pa.Array) -> pa.Array:
    """A column of texts as dates. Raises ValueError when one is not a date."""
    column = texts.cast(pa.date32())
    _check_range(column.cast(pa.int32()), _FIRST_DAY, _LAST_DAY)
    return column


def date_texts(column: pa.Array) -> pa.Array:
    """A column of dates as texts. Raises ValueError for a year that has not four digits."""
    _check_range(column.cast(pa.int32()), _FIRST_DAY, _LAST_DAY)
    return column.cast(pa.string())


@dataclass(frozen=True)
class TimestampText:
    """How timestamps are spelled.

    Args:
        standard: ``SQL`` has a space between date and time, ``ISO-8601`` a ``T``.
        zoned: Whether the text says its zone: Spark's TIMESTAMP does, TIMESTAMP_NTZ does not.
    """

    standard: Standard
    zoned: bool

    @property
    def suffix(self) -> str:
        """What follows the fraction: timestamps with a zone are written in UTC."""
        return "Z" if self.zoned else ""

    @property
    def separator(self) -> str:
        """What stands between date and time."""
        return " " if self.standard == "SQL" else "T"

    @property
    def example(self) -> str:
        """A timestamp in this spelling."""
        return f"2024-01-31{self.separator}12:30:00.123{self.suffix}"

    def micros(self, text: str) -> int:
        """Microseconds since 1970; a finer fraction is cut off.

        Raises:
            OtherStandardError: It is spelled as in the other standard.
            ValueError: It is no timestamp, or lacks a zone, or has one too many.
        """
        match = _TIMESTAMP.fullmatch(text)
        if not match:
            raise ValueError(self._expected())
        local, separator, seconds, fraction, utc, sign, *offset = match.groups()
        self._check_zone(bool(utc or sign))
        self._check_standard(separator, has_seconds=bool(seconds))
        micros = _micros_of(local[:_TO_SECONDS])
        if fraction:
            micros += int(fraction[:6].ljust(6, "0"))
        if sign:
            micros -= _offset(sign, *offset)
        if not _FIRST <= micros <= _LAST:
            raise ValueError(_OUTSIDE)
        return micros

    def column(self, texts: pa.Array) -> pa.Array:
        """A column of texts as timestamps.

        Arrow's own parser is strict about digits, zones and days that exist; what it leaves open
        is the separator and missing minutes or seconds, which three characters settle.

        Raises:
            OtherStandardError: All are timestamps, but not all are plain ones of this standard.
            ValueError: One is no plain timestamp of either.
        """
        wanted = pa.timestamp("us", "UTC") if self.zoned else pa.timestamp("us")
        try:
            column = texts.cast(wanted)
        except pa.ArrowInvalid:
            long = pc.fill_null(pc.greater_equal(pc.binary_length(texts), _WITH_NANOS), False)
            if not pc.any(long).as_py():
                raise
            column = _to_micros(texts, long).cast(wanted)
        marks = pc.binary_slice(texts.cast(pa.binary()), 10, 17, 3)
        if pc.all(pc.equal(marks, f"{self.separator}::".encode())).as_py() is False:
            raise OtherStandardError("ISO-8601" if self.standard == "SQL" else "SQL")
        _check_range(column.cast(pa.int64()), _FIRST, _LAST)
        return column

    def texts(self, column: pa.Array) -> pa.Array:
        """Timestamps as Flink writes them, without the suffix: no trailing zeros, no bare point.

        Raises ValueError for a year that has not four digits.
        """
        plain = column.cast(pa.timestamp("us"))
        _check_range(plain.cast(pa.int64()), _FIRST, _LAST)
        texts = pc.ascii_rtrim(pc.ascii_rtrim(plain.cast(pa.string()), "0"), ".")
        return texts if self.separator == " " else pc.binary_replace_slice(texts, 10, 11, "T")

    def _expected(self) -> str:
        kind = "TIMESTAMP" if self.zoned else "TIMESTAMP_NTZ"
        return f"expected a {kind} like '{self.example}'"

    def _check_zone(self, has_zone: bool) -> None:
        if has_zone and not self.zoned:
            raise ValueError(f"{self._expected()}, without a zone")
        if self.zoned and not has_zone:
            raise ValueError(f"{self._expected()}, with a zone (TIMESTAMP_NTZ has none)")

    def _check_standard(self, separator: str, *, has_seconds: bool) -> None:
        if separator != self.separator:
            raise OtherStandardError("SQL" if separator == " " else "ISO-8601")
        # Java's ISO_LOCAL_TIME may lack the seconds, as its LocalDateTime.toString() does.
        if not has_seconds and self.standard == "SQL":
            raise ValueError(self._expected())


def _to_micros(texts: pa.Array, long: pa.Array) -> pa.Array:
    """The texts, those under the mask without the digits of a fraction behind the sixth."""
    cut = pc.replace_substring_regex(texts.filter(long), r"(\.\d{6})\d{1,3}", r"\1")
    return pc.replace_with_mask(texts, long, cut)


def _micros_of(text: str) -> int:
    try:
        return (datetime.fromisoformat(text) - _EPOCH) // _MICROSECOND
    except ValueError:
        raise ValueError("expected a moment that exists") from None


def _offset(sign: str, hours: str, minutes: str | None) -> int:
    if int(hours) > 23 or int(minutes or 0) > 59:
        raise ValueError("expected a zone offset below 24:00")
    micros = (int(hours) * 60 + int(minutes or 0)) * 60_000_000
    return micros if sign == "+" else -micros


def _check_range(numbers: pa.Array, first: int, last: int) -> None:
    bounds = pc.min_max(numbers).as_py()
    if bounds["min"] is not None and not first <= bounds["min"] <= bounds["max"] <= last:
        raise ValueError(_OUTSIDE)
