"""``WATERMARK FOR column AS column - INTERVAL '5' SECOND``, as far as Spark's ``withWatermark`` can say it."""

from __future__ import annotations

import re
from decimal import Decimal

from pyspark_upsert_kafka.core.ddl.cursor import Tokens
from pyspark_upsert_kafka.core.ddl.statement import Name, Watermark
from pyspark_upsert_kafka.core.ddl.tokens import Token

_UNITS = {"SECOND": 1, "MINUTE": 60, "HOUR": 3600, "DAY": 86_400, "WEEK": 604_800}
_MILLISECONDS = 1000


def read_watermark(tokens: Tokens) -> Watermark:
    """The rest of the clause, after ``WATERMARK FOR``.

    Raises:
        OptionError: Spark has no watermark like that.
    """
    column = tokens.name("the watermark's column")
    if tokens.peek().is_mark("."):
        raise column.place.error(
            "Spark has watermarks of whole columns only, not of a field within one."
        )
    tokens.expect("AS")
    begin = tokens.peek()
    if begin.kind not in ("word", "name") or begin.text != column.text:
        raise _not_simple(begin, column)
    tokens.next()
    if tokens.peek().is_mark(",") or tokens.peek().is_mark(")"):
        return Watermark(Name(column.text, column.place), "0 seconds")
    if not (tokens.accept_mark("-") and tokens.accept("INTERVAL")):
        raise _not_simple(begin, column)
    return Watermark(Name(column.text, column.place), _delay(tokens))


def _not_simple(begin: Token, column: Token) -> Exception:
    return begin.place.error(
        "Spark's watermark is a column's greatest time less a delay: expected "
        f"'{column.text}' or '{column.text} - INTERVAL '...' SECOND'. Leave the WATERMARK out, and use "
        "withWatermark with a delay that covers it."
    )


def _delay(tokens: Tokens) -> str:
    number = tokens.text("a number")
    unit = tokens.peek()
    name = unit.text.upper().removesuffix("S") if unit.kind == "word" else ""
    if name not in _UNITS:
        tokens.refuse(f"expected {', '.join(_UNITS)}")
    tokens.next()
    if tokens.peek().is_mark("("):
        tokens.next()
        tokens.number("a precision")
        tokens.expect_mark(")")
    if tokens.peek().is_word("TO"):
        raise unit.place.error(
            f"an interval of several fields is not supported: give it in {name} alone."
        )
    if not re.fullmatch(r"[0-9]{1,9}(\.[0-9]{1,9})?", number.text):
        raise number.place.error("expected a number such as '5' or '0.5', which is not negative.")
    return _duration(Decimal(number.text), name)


def _duration(number: Decimal, unit: str) -> str:
    """The delay as Spark writes it, in milliseconds where the number is not whole."""
    if number == number.to_integral_value():
        return f"{int(number)} {unit.lower()}s"
    return f"{int(number * _UNITS[unit] * _MILLISECONDS)} milliseconds"
