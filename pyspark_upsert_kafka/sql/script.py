"""The statements of a script of Flink's SQL, each with its place, and how they are read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal, cast

from pyspark_upsert_kafka.core.ddl.definition import TableDefinition, definition_of
from pyspark_upsert_kafka.core.ddl.statement import Name, read_create_table
from pyspark_upsert_kafka.core.ddl.tokens import Place, Token, Tokens
from pyspark_upsert_kafka.core.pages import page
from pyspark_upsert_kafka.sql.flink_query import (
    Path,
    Query,
    read_query,
    refuse_hints,
    without_default,
)


@dataclass(frozen=True)
class CreateTable:
    """``CREATE TABLE``.

    Args:
        place: Where it begins.
        path: The table's name.
        text: The statement, as option ``ddl`` takes it; it may hold secrets.
        definition: What it means.
        unless_exists: Whether an existing table of that name is kept (IF NOT EXISTS).
    """

    place: Place
    path: Path
    text: str = field(repr=False)
    definition: TableDefinition
    unless_exists: bool = False


@dataclass(frozen=True)
class CreateView:
    """``CREATE VIEW``.

    Args:
        place: Where it begins.
        path: The view's name.
        columns: Names of its columns; none = those of the query.
        query: What it shows.
        unless_exists: Whether an existing view of that name is kept (IF NOT EXISTS).
    """

    place: Place
    path: Path
    columns: tuple[Name, ...]
    query: Query
    unless_exists: bool = False


@dataclass(frozen=True)
class OnConflict:
    """``ON CONFLICT``: what is done with rows of the query that have another key than the table.

    Args:
        place: Where it begins.
        strategy: What stands behind DO.
    """

    place: Place
    strategy: Literal["ERROR", "NOTHING", "DEDUPLICATE"]


@dataclass(frozen=True)
class Insert:
    """``INSERT INTO``.

    Args:
        place: Where the table's name stands.
        path: The table's name.
        columns: The columns that are filled, in the order of the query's columns; empty = all.
        query: The rows.
        on_conflict: Its last clause.
    """

    place: Place
    path: Path
    columns: tuple[Name, ...]
    query: Query
    on_conflict: OnConflict | None = None


@dataclass(frozen=True)
class Select:
    """A query whose rows are printed."""

    query: Query


@dataclass(frozen=True)
class Set:
    """``SET 'key' = 'value'``, or ``RESET``.

    Args:
        place: Where it begins.
        key: The setting; None = all of them.
        value: Its value; None = that with which the script begins.
    """

    place: Place
    key: Name | None
    value: str | None


@dataclass(frozen=True)
class ShowSettings:
    """``SET`` alone, which shows the settings."""

    place: Place


@dataclass(frozen=True)
class Drop:
    """``DROP TABLE`` or ``DROP VIEW``.

    Args:
        place: Where the name stands.
        kind: What is dropped.
        path: Its name.
        if_exists: Whether there may be none.
    """

    place: Place
    kind: Literal["TABLE", "VIEW"]
    path: Path
    if_exists: bool = False


Statement = CreateTable | CreateView | Insert | Select | Set | ShowSettings | Drop


_STRATEGIES = ("ERROR", "NOTHING", "DEDUPLICATE")

_UNKNOWN = (
    "expected CREATE TABLE, CREATE VIEW, INSERT INTO, SELECT, SET, RESET, DROP, BEGIN STATEMENT SET or EXECUTE "
    "STATEMENT SET; nothing else is run here."
)

_LEAVE_OUT = "it is not needed here: leave it out."
_BY_PYTHON = "it is not run here: what it would tell can be asked in Python, with printSchema() and explain()."
_CHANGES = f"a table changes by INSERT INTO only: a delete is a row with 'delete' in a column METADATA FROM 'change-type' ({page('sql.md')})."

_NOT_READ = {
    "USE": "there are no catalogs and databases here: name tables alone, and leave it out.",
    "ADD": "it is not needed here, since nothing is loaded into Flink: leave it out.",
    "REMOVE": _LEAVE_OUT,
    "LOAD": _LEAVE_OUT,
    "UNLOAD": _LEAVE_OUT,
    "ANALYZE": _LEAVE_OUT,
    "SHOW": _BY_PYTHON,
    "DESCRIBE": _BY_PYTHON,
    "DESC": _BY_PYTHON,
    "EXPLAIN": _BY_PYTHON,
    "ALTER": "a table of a script has one CREATE TABLE: change that, or DROP the table and create it anew.",
    "DELETE": _CHANGES,
    "UPDATE": _CHANGES,
    "TRUNCATE": "a topic cannot be emptied by SQL: delete its records with Kafka's own tools.",
    "MERGE": _CHANGES,
    "COMPILE": "Flink's plans are not known here: run the statement itself.",
    "STOP": "stop the query that run_sql returned, or the command with Ctrl-C.",
    "CALL": "procedures of catalogs are not known here.",
}
"""Statements of Flink that are not run, by their first word, and what to do instead."""


def read_script(text: str) -> tuple[Statement, ...]:
    """The statements of a script, in their order.

    Args:
        text: The script.

    Raises:
        OptionError: Something is not understood, or not supported; it names line and column.

    >>> [type(each).__name__ for each in read_script("SET 'a' = 'b'; SELECT 1; -- done")]
    ['Set', 'Select']
    """
    refuse_hints(text)
    return tuple(_Reader(text).statements())


class _Reader:
    """Reads one statement after another."""

    def __init__(self, script: str) -> None:
        self._tokens = Tokens(script)

    def statements(self) -> Iterator[Statement]:
        while self._tokens.peek().kind != "end":
            if self._tokens.accept_mark(";"):
                continue
            yield from self._statement()
            self._end()

    def _end(self) -> None:
        if self._tokens.peek().kind != "end" and not self._tokens.accept_mark(";"):
            self._tokens.refuse("expected ';' or the end of the script")

    def _statement(self) -> Iterator[Statement]:
        begin = self._tokens.peek()
        if self._tokens.accept("BEGIN", "STATEMENT", "SET"):
            self._tokens.expect_mark(";")
            yield from self._inserts(begin)
        elif self._tokens.accept("EXECUTE", "STATEMENT", "SET"):
            self._tokens.expect("BEGIN")
            yield from self._inserts(begin)
        elif begin.is_word("EXECUTE") and self._tokens.peek(1).is_word("INSERT", "SELECT"):
            self._tokens.next()
            yield self._single()
        else:
            yield self._single()

    def _inserts(self, begin: Token) -> Iterator[Insert]:
        """The statements of a set, up to its END."""
        count = 0
        while not self._tokens.accept("END"):
            if not self._tokens.peek().is_word("INSERT"):
                self._tokens.refuse("expected INSERT INTO, or END of the statement set")
            yield self._insert()
            self._tokens.expect_mark(";")
            count += 1
        if not count:
            raise begin.place.error("the statement set is empty: it holds INSERT INTO statements.")

    def _single(self) -> Statement:
        word = self._tokens.peek()
        if word.is_word("CREATE"):
            return self._create()
        if word.is_word("INSERT"):
            return self._insert()
        if word.is_word("SELECT", "WITH", "VALUES") or word.is_mark("("):
            return Select(read_query(self._tokens))
        if word.is_word("SET", "RESET"):
            return self._set()
        if word.is_word("DROP"):
            return self._drop()
        sentence = _NOT_READ.get(word.text.upper(), _UNKNOWN) if word.kind == "word" else _UNKNOWN
        raise word.place.error(f"{word.shown()}: {sentence}")

    def _create(self) -> Statement:
        begin, at = self._tokens.peek(), 1
        while self._tokens.peek(at).is_word("OR", "REPLACE", "TEMPORARY"):
            at += 1
        what = self._tokens.peek(at)
        if what.is_word("VIEW"):
            for _ in range(at + 1):
                self._tokens.next()
            return self._view(begin)
        if not what.is_word("TABLE"):
            raise what.place.error(
                f"CREATE {what.text.upper()} is not supported: only tables and views are created here."
            )
        if any(self._tokens.peek(each).is_word("REPLACE") for each in range(at)):
            raise begin.place.error(
                "CREATE OR REPLACE TABLE is not supported: write DROP TABLE IF EXISTS before it."
            )
        return self._table(begin, unless_exists=self._tokens.peek(at + 1).is_word("IF"))

    def _table(self, begin: Token, *, unless_exists: bool) -> CreateTable:
        statement = read_create_table(self._tokens)
        text = self._tokens.sql[begin.offset : self._tokens.peek().offset]
        definition = definition_of(statement)
        return CreateTable(
            begin.place, without_default(statement.name), text, definition, unless_exists
        )

    def _view(self, begin: Token) -> CreateView:
        unless_exists = self._tokens.accept("IF", "NOT", "EXISTS")
        path = self._path("the view's name")
        columns = self._columns() if self._tokens.peek().is_mark("(") else ()
        if self._tokens.accept("COMMENT"):
            self._tokens.text("the comment")
        self._tokens.expect("AS")
        return CreateView(begin.place, path, columns, read_query(self._tokens), unless_exists)

    def _insert(self) -> Insert:
        self._tokens.expect("INSERT")
        if self._tokens.peek().is_word("OVERWRITE"):
            raise self._tokens.peek().place.error(
                "INSERT OVERWRITE is not supported: a topic cannot be emptied by writing. Use INSERT INTO."
            )
        self._tokens.expect("INTO")
        place = self._tokens.peek().place
        path = self._path("the table's name")
        if self._tokens.peek().is_word("PARTITION"):
            raise self._tokens.peek().place.error(
                "a Kafka table has no PARTITION: the message key decides. Leave it out."
            )
        columns: tuple[Name, ...] = ()
        if self._tokens.peek().is_mark("(") and self._names_columns():
            columns = self._columns()
        query = read_query(self._tokens)
        return Insert(place, path, columns, query, self._on_conflict())

    def _on_conflict(self) -> OnConflict | None:
        begin = self._tokens.peek()
        if not self._tokens.accept("ON", "CONFLICT", "DO"):
            return None
        if not self._tokens.peek().is_word(*_STRATEGIES):
            self._tokens.refuse("expected ERROR, NOTHING or DEDUPLICATE")
        return OnConflict(begin.place, cast("Any", self._tokens.next().text.upper()))

    def _names_columns(self) -> bool:
        """Whether the brackets that begin here hold names, and no query."""
        first, second = self._tokens.peek(1), self._tokens.peek(2)
        return first.kind in ("word", "name") and (second.is_mark(",") or second.is_mark(")"))

    def _set(self) -> Set | ShowSettings:
        begin = self._tokens.next()
        is_reset = begin.is_word("RESET")
        if self._tokens.peek().kind == "end" or self._tokens.peek().is_mark(";"):
            return Set(begin.place, None, None) if is_reset else ShowSettings(begin.place)
        if self._tokens.peek().kind == "word":
            raise self._tokens.peek().place.error(
                "the name of a setting stands in single quotes: SET 'name' = 'value'."
            )
        token = self._tokens.text("the name of a setting")
        key = Name(token.text, token.place)
        if is_reset:
            return Set(begin.place, key, None)
        self._tokens.expect_mark("=")
        return Set(begin.place, key, self._tokens.text("the value of the setting").text)

    def _drop(self) -> Drop:
        self._tokens.next()
        self._tokens.accept("TEMPORARY")
        what = self._tokens.peek()
        if not what.is_word("TABLE", "VIEW"):
            raise what.place.error(
                f"DROP {what.text.upper()} is not supported: only tables and views of this script are dropped."
            )
        kind: Literal["TABLE", "VIEW"] = "TABLE" if what.is_word("TABLE") else "VIEW"
        self._tokens.next()
        if_exists = self._tokens.accept("IF", "EXISTS")
        place = self._tokens.peek().place
        return Drop(place, kind, self._path("its name"), if_exists)

    def _path(self, what: str) -> Path:
        parts = [self._tokens.name(what).text]
        while self._tokens.accept_mark("."):
            parts.append(self._tokens.name(what).text)
        return without_default(tuple(parts))

    def _columns(self) -> tuple[Name, ...]:
        tokens = [self._tokens.name("a column's name") for _ in self._tokens.separated()]
        return tuple(Name(token.text, token.place) for token in tokens)
