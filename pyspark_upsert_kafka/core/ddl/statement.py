"""A ``CREATE TABLE`` statement of Flink's SQL: what it says, each part with its place, and how it is read.

What is not understood is refused with its place.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from decimal import Decimal
from typing import NoReturn

from pyspark.sql.types import DataType

from pyspark_upsert_kafka.core.ddl.tokens import Place, Token, Tokens
from pyspark_upsert_kafka.core.ddl.types import read_type


@dataclass(frozen=True)
class Name:
    """A name, as it is written."""

    text: str
    place: Place


@dataclass(frozen=True)
class Column:
    """A column of the messages, or one that shows their metadata.

    Args:
        name: Its name.
        type: Its type in Spark.
        nullable: Whether it may be NULL.
        metadata: The metadata key of a ``METADATA`` column; None = the column is in the messages.
        virtual: Whether it is for reading only.
    """

    name: Name
    type: DataType
    nullable: bool
    metadata: Name | None
    virtual: bool


@dataclass(frozen=True)
class Watermark:
    """``WATERMARK FOR column AS column - delay``.

    Args:
        column: The column of event time.
        delay: How late rows may be, as ``withWatermark`` takes it.
    """

    column: Name
    delay: str


@dataclass(frozen=True)
class WithOption:
    """An option of the ``WITH`` clause; its value may be secret."""

    name: Name
    value: str

    def __repr__(self) -> str:
        return f"WithOption({self.name.text!r})"


@dataclass(frozen=True)
class CreateTable:
    """A ``CREATE TABLE`` statement.

    Args:
        name: The table's name, its catalog and database first where they are given.
        place: Where it begins.
        columns: Its columns.
        primary_key: Columns of the primary key, in its order.
        watermark: Its watermark.
        options: The options in ``WITH``.
    """

    name: tuple[str, ...]
    place: Place
    columns: tuple[Column, ...]
    primary_key: tuple[Name, ...] = ()
    watermark: Watermark | None = None
    options: tuple[WithOption, ...] = ()


_ENFORCED = (
    "Flink doesn't support ENFORCED mode for PRIMARY KEY constraint, and neither does this connector: "
    "write PRIMARY KEY (...) NOT ENFORCED."
)
_CLAUSES = {
    "PARTITIONED": "a Kafka table has no PARTITIONED BY: the message key decides on the partition. Leave it out.",
    "DISTRIBUTED": "a Kafka table has no DISTRIBUTED BY: the message key decides on the partition. Leave it out.",
    "LIKE": (
        "LIKE is not supported: write out the columns, the PRIMARY KEY and the options that this table takes from the other "
        "one."
    ),
    "AS": (
        "CREATE TABLE ... AS SELECT is not supported: create the table with its columns, and write the rows by INSERT INTO in a "
        "script, or by .write in Python."
    ),
}


_UNITS = {"SECOND": 1, "MINUTE": 60, "HOUR": 3600, "DAY": 86_400, "WEEK": 604_800}

_MILLISECONDS = 1000


def read_create_table(tokens: Tokens) -> CreateTable:
    """Reads a statement, up to its end and without a semicolon.

    Raises:
        OptionError: Something is not understood, or not supported; it names line and column.
    """
    begin = tokens.peek()
    if not begin.is_word("CREATE"):
        tokens.refuse("expected the text of a CREATE TABLE statement")
    tokens.next()
    if tokens.accept("OR"):
        tokens.expect("REPLACE")
    tokens.accept("TEMPORARY")
    tokens.expect("TABLE")
    tokens.accept("IF", "NOT", "EXISTS")
    name = _table_name(tokens)
    parts = _Parts()
    if not tokens.peek().is_mark("("):
        _refuse_without_columns(tokens)
    for _ in tokens.separated():
        _element(tokens, parts)
    _comment(tokens)
    _refuse_clause(tokens)
    tokens.expect("WITH")
    options = tuple(_option(tokens) for _ in tokens.separated())
    _refuse_clause(tokens)
    return CreateTable(
        name, begin.place, tuple(parts.columns), tuple(parts.primary_key), parts.watermark, options
    )


@dataclass
class _Parts:
    """What has been read so far of the brackets after the table's name."""

    columns: list[Column] = field(default_factory=list)
    primary_key: list[Name] = field(default_factory=list)
    watermark: Watermark | None = None


def _table_name(tokens: Tokens) -> tuple[str, ...]:
    parts = [tokens.name("the table's name").text]
    while tokens.accept_mark("."):
        parts.append(tokens.name("the table's name").text)
    return tuple(parts)


def _element(tokens: Tokens, parts: _Parts) -> None:
    """Reads a column, a constraint or the watermark."""
    begin = tokens.peek()
    if tokens.accept("WATERMARK", "FOR"):
        if parts.watermark is not None:
            raise begin.place.error("a table has one WATERMARK only.")
        parts.watermark = read_watermark(tokens)
    elif _is_constraint(tokens):
        if tokens.accept("CONSTRAINT"):
            tokens.name("the constraint's name")
        if tokens.accept("UNIQUE"):
            raise begin.place.error(
                "UNIQUE is not supported: a table in Kafka is unique by its PRIMARY KEY only."
            )
        place = tokens.peek()
        tokens.expect("PRIMARY", "KEY")
        _set_key(parts, place, [_name(tokens, "a column's name") for _ in tokens.separated()])
        _not_enforced(tokens, place)
    else:
        _column(tokens, parts)


def _is_constraint(tokens: Tokens) -> bool:
    first, second = tokens.peek(), tokens.peek(1)
    if first.is_word("CONSTRAINT"):
        return tokens.peek(2).is_word("PRIMARY", "UNIQUE")
    return (first.is_word("PRIMARY") and second.is_word("KEY")) or (
        first.is_word("UNIQUE") and second.is_mark("(")
    )


def _set_key(parts: _Parts, begin: Token, columns: list[Name]) -> None:
    if parts.primary_key:
        raise begin.place.error("a table has one PRIMARY KEY only.")
    parts.primary_key = columns


def _not_enforced(tokens: Tokens, begin: Token) -> None:
    if not tokens.accept("NOT", "ENFORCED"):
        raise begin.place.error(_ENFORCED)


def _column(tokens: Tokens, parts: _Parts) -> None:
    name = _name(tokens, "a column's name")
    if tokens.peek().is_word("AS"):
        raise name.place.error(
            f"column '{name.text}' is computed, which is not supported: leave it out here, and write its "
            "expression where the table is read: in SELECT, or in withColumn."
        )
    type_, nullable = read_type(tokens)
    metadata, virtual = None, False
    if tokens.accept("METADATA"):
        metadata = _name_of_text(tokens.text("a metadata key")) if tokens.accept("FROM") else name
        virtual = tokens.accept("VIRTUAL")
    begin = tokens.peek()
    if begin.is_word("CONSTRAINT") or (begin.is_word("PRIMARY") and tokens.peek(1).is_word("KEY")):
        if tokens.accept("CONSTRAINT"):
            tokens.name("the constraint's name")
        tokens.expect("PRIMARY", "KEY")
        _set_key(parts, begin, [name])
        _not_enforced(tokens, begin)
    _comment(tokens)
    parts.columns.append(Column(name, type_, nullable, metadata, virtual))


def _option(tokens: Tokens) -> WithOption:
    name = _name_of_text(_quoted(tokens, "an option's name"))
    tokens.expect_mark("=")
    return WithOption(name, _quoted(tokens, "the option's value").text)


def _quoted(tokens: Tokens, what: str) -> Token:
    """Reads a text; an error shows nothing of the clause, since a secret may stand there without its quotes."""
    if tokens.peek().kind != "text":
        raise tokens.peek().place.error(f"expected {what} in single quotes.")
    return tokens.next()


def _comment(tokens: Tokens) -> None:
    if tokens.accept("COMMENT"):
        tokens.text("the comment")


def _refuse_without_columns(tokens: Tokens) -> NoReturn:
    """Refuses a table without columns: in Flink, such a table takes them from another table or from a query."""
    begin = tokens.peek()
    _comment(tokens)
    if tokens.accept("WITH"):
        for _ in tokens.separated():
            _option(tokens)
    _refuse_clause(tokens)
    raise begin.place.error(f"expected '(' and the table's columns, but found {begin.shown()}.")


def _refuse_clause(tokens: Tokens) -> None:
    """Refuses a clause that Flink has and that means nothing for a table in Kafka."""
    token = tokens.peek()
    for word, sentence in _CLAUSES.items():
        if token.is_word(word):
            raise token.place.error(sentence)


def _name(tokens: Tokens, what: str) -> Name:
    return _name_of_text(tokens.name(what))


def _name_of_text(token: Token) -> Name:
    return Name(token.text, token.place)


def read_watermark(tokens: Tokens) -> Watermark:
    """Reads the rest of the clause, after ``WATERMARK FOR``.

    Raises:
        OptionError: It is not understood, or Spark has no such watermark.
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
    """The delay as Spark writes it; a number that is not whole becomes milliseconds."""
    if number == number.to_integral_value():
        return f"{int(number)} {unit.lower()}s"
    return f"{int(number * _UNITS[unit] * _MILLISECONDS)} milliseconds"
