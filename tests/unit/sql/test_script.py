"""A script is read statement by statement; what is none is refused with its place."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pyspark_upsert_kafka.cli.arguments import text_of
from pyspark_upsert_kafka.core.errors import OptionError
from pyspark_upsert_kafka.sql.flink_query import Flink
from pyspark_upsert_kafka.sql.script import (
    CreateTable,
    CreateView,
    Drop,
    Insert,
    Select,
    Set,
    ShowSettings,
    read_script,
)


@pytest.mark.parametrize(
    ("script", "kinds"),
    [
        ("", []),
        (" ; ;", []),
        ("-- nothing\n/* at all */ // here", []),
        ("SELECT 1", [Select]),
        ("SELECT 1;", [Select]),
        ("(SELECT 1)", [Select]),
        ("VALUES (1), (2); WITH x AS (SELECT 1) SELECT * FROM x", [Select, Select]),
        ("SET 'a' = 'b'; RESET 'a'; RESET; SET", [Set, Set, Set, ShowSettings]),
        ("DROP TABLE t; DROP TEMPORARY VIEW IF EXISTS v", [Drop, Drop]),
        ("CREATE TEMPORARY VIEW v AS SELECT 1", [CreateView]),
        ("CREATE VIEW IF NOT EXISTS v (a, b) COMMENT 'c' AS SELECT 1, 2", [CreateView]),
        ("CREATE TABLE t (a INT) WITH ('connector' = 'kafka')", [CreateTable]),
        ("INSERT INTO t SELECT 1", [Insert]),
        ("EXECUTE INSERT INTO t SELECT 1", [Insert]),
        ("INSERT INTO t (a, `b c`) VALUES (1, 2)", [Insert]),
        ("INSERT INTO t (SELECT a FROM u)", [Insert]),
        ("BEGIN STATEMENT SET; INSERT INTO t SELECT 1; INSERT INTO t SELECT 2; END;", [Insert] * 2),
        ("EXECUTE STATEMENT SET BEGIN INSERT INTO t SELECT 1; END", [Insert]),
        ("SELECT CASE WHEN a THEN 1 END FROM t; SELECT 'a; b' -- c; d", [Select, Select]),
    ],
)
def test_the_statements_of_a_script(script: str, kinds: list[type]) -> None:
    """Semicolons end statements, but not in quotes and comments; those of a set stand for themselves."""
    assert [type(statement) for statement in read_script(script)] == kinds


def test_names_are_without_the_default_catalog() -> None:
    """A script has Flink's default catalog and database without naming them."""
    first, second, third = read_script(
        "INSERT INTO default_catalog.default_database.t SELECT 1; INSERT INTO `d b`.t SELECT 1; DROP VIEW v"
    )

    assert (first.path, second.path, third.path) == (("t",), ("d b", "t"), ("v",))


def test_the_text_of_a_table_is_its_statement() -> None:
    """What is handed to Spark as option ddl is the statement, without what stands around it."""
    text = "CREATE TABLE t (a INT) WITH ('connector' = 'kafka', 'x' = 'a;b')"
    (table, _) = read_script(f"-- before\n{text} ; SELECT 1")

    assert table.text.strip() == text


@pytest.mark.parametrize(
    ("script", "sentence"),
    [
        ("hello world", "SQL, line 1, column 1: 'hello': expected CREATE TABLE,"),
        ("SELECT 1;\n 5", "SQL, line 2, column 2: '5': expected CREATE TABLE,"),
        ("SHOW TABLES", "SQL, line 1, column 1: 'SHOW': it is not run here"),
        ("USE CATALOG c", "SQL, line 1, column 1: 'USE': there are no catalogs"),
        ("ADD JAR 'x.jar'", "SQL, line 1, column 1: 'ADD': it is not needed here"),
        ("UPDATE t SET a = 1", "SQL, line 1, column 1: 'UPDATE': a table changes by INSERT INTO"),
        ("SELECT a b c FROM t", "SQL, line 1, column 12: 'c' is not expected here"),
        ("SELECT 1 SELECT 2", "SQL, line 1, column 10: 'SELECT' is not expected here"),
        ("\n  INSERT INTO t\n SELECT (1 FROM x", "SQL, line 3, column 12: 'FROM' is not expected"),
        ("SELECT 'x", "SQL, line 1, column 8: the quote or comment that begins here does not end."),
        ('SELECT "a" FROM t', "SQL, line 1, column 8: double quotes are not Flink's"),
        ("SELECT /*+ X */ 1", "SQL, line 1, column 8: hints such as"),
        ("SELECT * FROM t /*+ OPTIONS('a'='b') */", "SQL, line 1, column 17: hints such as"),
        ("INSERT OVERWRITE t SELECT 1", "SQL, line 1, column 8: INSERT OVERWRITE is not supported"),
        ("INSERT INTO t PARTITION (a = 1) SELECT 1", "SQL, line 1, column 15: a Kafka table has no"),
        ("INSERT INTO t", "SQL, line 1, column 14: expected SELECT, VALUES or WITH, but found the end"),
        ("SET a = b", "SQL, line 1, column 5: the name of a setting stands in single quotes"),
        ("SET 'a'", "SQL, line 1, column 8: expected '='"),
        ("CREATE FUNCTION f AS 'x'", "SQL, line 1, column 8: CREATE FUNCTION is not supported"),
        ("CREATE OR REPLACE TABLE t (a INT) WITH ('connector' = 'kafka')", "SQL, line 1, column 1: CREATE OR"),
        ("DROP DATABASE d", "SQL, line 1, column 6: DROP DATABASE is not supported"),
        ("BEGIN STATEMENT SET; END", "SQL, line 1, column 1: the statement set is empty"),
        ("BEGIN STATEMENT SET; SELECT 1; END", "SQL, line 1, column 22: expected INSERT INTO, or END"),
        ("CREATE TABLE t (a INT) WITH ('connector' = 'jdbc')", "SQL, line 1, column 30: connector 'jdbc'"),
        ("SELECT * FROM TABLE(SESSION(TABLE t PARTITION BY a))", "SQL, line 1, column 21: SESSION is not"),
    ],
)  # fmt: skip
def test_what_is_no_statement_is_refused(script: str, sentence: str) -> None:
    """The error has line, column, what stands there, and what to do instead."""
    with pytest.raises(OptionError) as error:
        read_script(script)

    assert str(error.value).startswith(sentence)


def test_quoted_hints_are_texts() -> None:
    """What looks like a hint in quotes or in a comment is none."""
    assert len(read_script("SELECT '/*+ a */' -- /*+ b */\n, `/*+ c`")) == 1


def test_the_word_table_in_a_text_stays() -> None:
    """Only the word before a table's name is read over, not a text that holds it."""
    (statement,) = read_script("SELECT 'the TABLE of', `TABLE x`")

    assert statement.query.tree.sql("spark") == "SELECT 'the TABLE of', `TABLE x`"


def test_a_file_may_begin_with_a_byte_order_mark(tmp_path: Path) -> None:
    """As editors on Windows write it."""
    file = tmp_path / "script.sql"
    file.write_text("SELECT 1", encoding="utf-8-sig")

    assert text_of(str(file)) == "SELECT 1"


class _Script(str):
    """A script that counts how many of its characters are looked at, a copy of a part of it among them."""

    __slots__ = ("looked_at",)

    def __init__(self, _: str) -> None:
        self.looked_at = 0

    def __getitem__(self, part: Any) -> str:
        found = super().__getitem__(part)
        self.looked_at += len(found)
        return found

    def split(self, *arguments: Any, **more: Any) -> list[str]:
        self.looked_at += len(self)
        return super().split(*arguments, **more)

    def count(self, *arguments: Any) -> int:
        self.looked_at += len(self)
        return super().count(*arguments)

    def rfind(self, *arguments: Any) -> int:
        self.looked_at += len(self)
        return super().rfind(*arguments)


def test_a_script_is_read_once_however_many_statements_it_has(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """No statement is looked for from the begin of the script, and a query is parsed without what stands before it."""
    table = "CREATE TABLE t{0} (a INT) WITH ('connector' = 'kafka');"
    statements = [
        line.format(at)
        for at in range(50)
        for line in (table, "CREATE VIEW v{0} AS\nSELECT a FROM t{0};", "SELECT a, b FROM v{0};")
    ]
    script, parsed = _Script("\n".join(statements)), []
    parse = Flink.parse
    monkeypatch.setattr(Flink, "parse", lambda self, text: parsed.append(text) or parse(self, text))
    found = read_script(script)

    assert len(found) == len(statements)
    assert script.looked_at <= 2 * len(script)
    assert sum(map(len, parsed)) <= len(script)
    assert parsed[-1] == "SELECT a, b FROM v49"
    with pytest.raises(OptionError, match=r"^SQL, line 201, column 12: 'FRM' is not expected"):
        read_script(f"{script}\nSELECT a b FRM v;")
    with pytest.raises(OptionError, match=r"^SQL, line 202, column 3: 'FRM' is not expected"):
        read_script(f"{script}\nSELECT a b\n  FRM v;")
