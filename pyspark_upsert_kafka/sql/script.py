"""Reads a script of Flink's SQL: which statements it holds, and where each of their parts stands."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from pyspark_upsert_kafka.core.ddl import Tokens, definition_of
from pyspark_upsert_kafka.core.ddl.parsing import read_create_table
from pyspark_upsert_kafka.core.ddl.statement import Name
from pyspark_upsert_kafka.core.ddl.tokens import Token
from pyspark_upsert_kafka.sql.conflicts import read_on_conflict
from pyspark_upsert_kafka.sql.copied_text import offset_of
from pyspark_upsert_kafka.sql.query_text import (
    NOT_READ,
    UNKNOWN,
    read_query,
    refuse_hints,
)
from pyspark_upsert_kafka.sql.statements import (
    CreateTable,
    CreateView,
    Drop,
    Insert,
    Path,
    Select,
    Set,
    ShowSettings,
    Statement,
    without_default,
)


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
        self._script = script
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
            return Select(read_query(self._tokens, self._script))
        if word.is_word("SET", "RESET"):
            return self._set()
        if word.is_word("DROP"):
            return self._drop()
        sentence = NOT_READ.get(word.text.upper(), UNKNOWN) if word.kind == "word" else UNKNOWN
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
        text = self._script[
            offset_of(begin.place, self._script) : offset_of(
                self._tokens.peek().place, self._script
            )
        ]
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
        return CreateView(
            begin.place, path, columns, read_query(self._tokens, self._script), unless_exists
        )

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
        query = read_query(self._tokens, self._script)
        return Insert(place, path, columns, query, read_on_conflict(self._tokens))

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
