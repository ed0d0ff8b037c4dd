"""What a statement may look like, and what is refused: with line and column, and never with a secret."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyspark_upsert_kafka import watermark_of
from pyspark_upsert_kafka.core.ddl.definition import create_tables, table_definition
from pyspark_upsert_kafka.core.ddl.tokens import Tokens, place_in
from pyspark_upsert_kafka.core.errors import OptionError

SECRET = "pl4nted"
UPSERT = "'connector' = 'upsert-kafka'"
APPEND = "'connector' = 'kafka'"


def table(columns: str = "id INT", options: str = APPEND) -> str:
    """A statement of one line with these columns and options."""
    return f"CREATE TABLE t ({columns}) WITH ({options})"


REFUSED = [  # statement with an arrow before the place, sentence
    ("→", "expected the text of a CREATE TABLE statement, but found the end."),
    ("→users.sql", "expected the text of a CREATE TABLE statement, but found 'users'."),
    ("→SELECT 1", "expected the text of a CREATE TABLE statement, but found 'SELECT'."),
    ("CREATE OR →TABLE t", "expected REPLACE"),
    ("CREATE →VIEW v AS SELECT 1", "expected TABLE, but found 'VIEW'."),
    ("CREATE TABLE→", "expected the table's name, but found the end."),
    ("CREATE TABLE t→", "expected '(' and the table's columns, but found the end."),
    ("CREATE TABLE t →AS SELECT 1", "CREATE TABLE ... AS SELECT is not supported"),
    ("CREATE TABLE t →LIKE u", "LIKE is not supported"),
    ("CREATE TABLE t WITH ('a' = 'b') →LIKE u", "LIKE is not supported"),
    ("CREATE TABLE t COMMENT 'c' WITH ('a' = 'b') →LIKE u (EXCLUDING ALL)", "LIKE is not supported"),
    ("CREATE TABLE t WITH ('a' = 'b') →AS SELECT 1", "CREATE TABLE ... AS SELECT is not supported"),
    ("CREATE TABLE t →WITH ('a' = 'b')", "expected '(' and the table's columns, but found 'WITH'."),
    ("CREATE TABLE t (\n  id INT\n)→", "expected WITH, but found the end."),
    (table() + ";\n→SELECT 1", "expected the text of a CREATE TABLE statement, but found 'SELECT'."),
    (table() + " →SELECT 1", "expected ';' or the end of the statement, but found 'SELECT'."),
    (f"{table()};\n→{table()}", "expected one statement and nothing after it."),
    (table() + " →LIKE u", "LIKE is not supported"),
    (table() + " →AS SELECT 1", "CREATE TABLE ... AS SELECT is not supported"),
    ("CREATE TABLE t (id INT) →PARTITIONED BY (id) WITH ('a' = 'b')", "no PARTITIONED BY"),
    ("CREATE TABLE t (id INT) →DISTRIBUTED BY (id) WITH ('a' = 'b')", "no DISTRIBUTED BY"),
    (table("id→"), "expected a type, but found ')'."),
    (table("id INT,→"), "expected a column's name, but found ')'."),
    (table("id INT →name STRING"), "expected ',' or ')', but found 'name'."),
    (table("id INT →DEFAULT 1"), "expected ',' or ')', but found 'DEFAULT'."),
    (table("id INT,\n  →ID INT"), "column 'ID' is there more than once"),
    (table("→id AS 1"), "column 'id' is computed, which is not supported"),
    ("→" + table("o BIGINT METADATA FROM 'offset'"), "table 't' has no column that is in its messages."),
    (table("id INT, o BIGINT METADATA FROM →offset"), "expected a metadata key in single quotes"),
    (table("id INT, →o BIGINT METADATA VIRTUAL"), "the metadata key 'o' is not known: expected one of"),
    (table("id INT, e STRING METADATA FROM →'error'"), "the metadata key 'error' of column 'e' is not"),
    (table("id INT METADATA FROM 'offset' VIRTUAL COMMENT →x"), "expected the comment in single quotes"),
    (table("id INT, →PRIMARY KEY (id)", UPSERT), "doesn't support ENFORCED mode for PRIMARY KEY"),
    (table("id INT, →PRIMARY KEY (id) ENFORCED", UPSERT), "doesn't support ENFORCED mode"),
    (table("id INT →PRIMARY KEY", UPSERT), "doesn't support ENFORCED mode for PRIMARY KEY"),
    (table("id INT, PRIMARY KEY (→it) NOT ENFORCED", UPSERT), "the primary key's 'it' is no column"),
    (table("id INT, PRIMARY KEY (→) NOT ENFORCED", UPSERT), "expected a column's name, but found ')'."),
    (table("id INT, PRIMARY KEY (id →NOT ENFORCED", UPSERT), "expected ',' or ')', but found 'NOT'."),
    (
        table("id INT PRIMARY KEY NOT ENFORCED, →PRIMARY KEY (id) NOT ENFORCED", UPSERT),
        "a table has one PRIMARY KEY only.",
    ),
    (table("`a,b` INT, PRIMARY KEY (→`a,b`) NOT ENFORCED", UPSERT), "the key column 'a,b' holds a comma"),
    (table("id INT, →UNIQUE (id)"), "UNIQUE is not supported"),
    (table("id INT, →CONSTRAINT c UNIQUE (id)"), "UNIQUE is not supported"),
    (table("id INT, PRIMARY KEY (→id) NOT ENFORCED"), "doesn't support defining PRIMARY KEY constraint"),
    (table("id INT, WATERMARK FOR →ts AS ts"), "the watermark's 'ts' is no column."),
    (table("id INT, WATERMARK FOR →id AS id"), "the watermark's column 'id' is INT; it must be a TIMESTAMP or"),
    ("→" + table(options="'topic' = 't'"), "table 't' has no 'connector' in WITH: expected 'upsert-kafka' or"),
    (table(options="→'connector' = 'filesystem'"), "connector 'filesystem' is not read or written here"),
    (table(options="→'connector' = 'mysql-cdc'"), "only 'upsert-kafka' and 'kafka'. A database's changes are read from the topic"),
    (table(options=f"{APPEND}, 'topic' = 'a', →'Topic' = 'b'"), "option 'Topic' is there more than once"),
    (table(options=f"{APPEND}, →'format' = 'csv', 'value.format' = 'csv'"), "mean the same: leave one out"),
    (
        table(options=f"{APPEND}, 'format' = 'csv', →'csv.null-literal' = '', 'value.csv.null-literal' = ''"),
        "'csv.null-literal' and 'value.csv.null-literal' mean the same: leave one out.",
    ),
    (table(options="→"), "expected an option's name in single quotes."),
    (table(options=f"{APPEND}, 'a' = →{SECRET}"), "expected the option's value in single quotes."),
    (table(options=f"{APPEND}, →a = '{SECRET}'"), "expected an option's name in single quotes."),
    (table(options=f"'connector' →'{SECRET}'"), "expected '=', but found a text in quotes."),
    (table(options=f"{APPEND}, →..."), "expected an option's name in single quotes."),
    (table(options=f"{APPEND},\n'sasl.password' = →'{SECRET}"), "the quote or comment that begins here does"),
    ("CREATE TABLE t (\n  →`id INT\n) WITH ('a' = 'b')", "the quote or comment that begins here does not end."),
    ("CREATE TABLE t (id INT →/* no end) WITH ('a' = 'b')", "the quote or comment that begins here does not end."),
]  # fmt: skip


@pytest.mark.parametrize(("marked", "sentence"), REFUSED)
def test_what_is_not_understood_is_refused(marked: str, sentence: str) -> None:
    """Each has line and column, says what is wrong, and shows nothing that may be secret."""
    place = place_in(marked, marked.index("→"))

    with pytest.raises(OptionError) as error:
        table_definition(marked.replace("→", ""))

    assert str(error.value).startswith(f"SQL, line {place.line}, column {place.column}: ")
    assert sentence in str(error.value)
    assert SECRET not in str(error.value)


WATERMARKS = [  # expression, delay; None = a sentence says what to do
    ("ts", "0 seconds"),
    ("ts - INTERVAL '5' SECOND", "5 seconds"),
    ("`ts` - INTERVAL '5' SECOND(3)", "5 seconds"),
    ("ts - INTERVAL '0.001' SECOND", "1 milliseconds"),
    ("ts - INTERVAL '1.5' MINUTES", "90000 milliseconds"),
    ("ts - interval '10' minute", "10 minutes"),
    ("ts - INTERVAL '0.5' HOUR", "1800000 milliseconds"),
    ("ts - INTERVAL '0.5' DAY", "43200000 milliseconds"),
    ("ts - INTERVAL '0.5' WEEKS", "302400000 milliseconds"),
    ("ts - INTERVAL '999999999' SECOND", "999999999 seconds"),
    ("ts - INTERVAL '1000000000' SECOND", None),
    ("ts - INTERVAL '2' HOUR", "2 hours"),
    ("ts - INTERVAL '1' DAY", "1 days"),
    ("ts - INTERVAL '1' WEEK", "1 weeks"),
    ("ts - INTERVAL '1' MONTH", None),
    ("ts - INTERVAL '1:30' MINUTE TO SECOND", None),
    ("ts - INTERVAL '-1' SECOND", None),
    ("ts - INTERVAL 5 SECOND", None),
    ("ts + INTERVAL '5' SECOND", None),
    ("ts - 5", None),
    ("other - INTERVAL '5' SECOND", None),
    ("SOURCE_WATERMARK()", None),
    ("CURRENT_WATERMARK(ts)", None),
    ("ts - INTERVAL '5' SECOND - INTERVAL '5' SECOND", None),
]


@pytest.mark.parametrize(("expression", "delay"), WATERMARKS)
def test_watermarks(expression: str, delay: str | None) -> None:
    """A column less an interval is what Spark can do; anything else is refused with its place."""
    sql = table(f"ts TIMESTAMP(3), other TIMESTAMP(3), WATERMARK FOR ts AS {expression}")
    if delay is None:
        with pytest.raises(OptionError, match=r"^SQL, line 1, column \d+: "):
            watermark_of(sql)
    else:
        assert watermark_of(sql) == ("ts", delay)


def test_an_interval_of_several_fields_is_refused_with_what_to_give() -> None:
    """Also where its number would be one of the first field."""
    with pytest.raises(
        OptionError, match="several fields is not supported: give it in MINUTE alone"
    ):
        watermark_of(
            table("ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '1' MINUTE TO SECOND")
        )


def test_the_case_of_a_watermark_makes_no_difference() -> None:
    """The column is named as it is declared, as columns are found in Spark."""
    assert watermark_of(table("`viewTime` TIMESTAMP(3), WATERMARK FOR VIEWTIME AS VIEWTIME")) == (
        "viewTime",
        "0 seconds",
    )


def test_no_watermark() -> None:
    """A table without one is told, with what to add."""
    with pytest.raises(OptionError, match=r"Table 't' has no WATERMARK .* add WATERMARK FOR"):
        watermark_of(table())


@pytest.mark.parametrize("column", ["a.b", "two"])
def test_one_watermark_of_a_whole_column(column: str) -> None:
    """Spark has no watermark of a field within a column, and a table has one only."""
    clause = f"WATERMARK FOR {column} AS {column}"
    sql = table(f"two TIMESTAMP(3), {clause}, {clause}")

    with pytest.raises(OptionError, match=r"whole columns only|one WATERMARK only"):
        table_definition(sql)


def test_which_columns_are_for_reading_only() -> None:
    """Those that say so; others with metadata are written, and columns of the row are no metadata at all."""
    columns = "id INT, a BIGINT METADATA FROM 'offset' VIRTUAL, ts TIMESTAMP_LTZ(3) METADATA FROM 'timestamp'"
    found = table_definition(table(columns))

    assert found.virtual == {"a"}
    assert {name for name in found.options if name.startswith("metadata.")} == {
        "metadata.a",
        "metadata.ts",
    }


@pytest.mark.parametrize("name", ["", "CONSTRAINT c ", "CONSTRAINT `primary` ", "constraint KEY "])
def test_where_a_primary_key_may_stand(name: str) -> None:
    """Behind its column or as an element of its own; it may have a name, which means nothing."""
    for columns in (
        f"id INT {name}PRIMARY KEY NOT ENFORCED COMMENT 'c'",
        f"id INT, {name}PRIMARY KEY (id) NOT ENFORCED",
    ):
        assert table_definition(table(columns, UPSERT)).options["primary-key"] == "id"


def test_words_are_no_clauses_where_they_are_names() -> None:
    """Columns may be called as clauses begin."""
    names = ["watermark", "primary", "constraint", "unique", "metadata", "like", "comment", "key"]

    found = table_definition(table(", ".join(f"{name} INT" for name in names)))

    assert found.columns.names == names


def test_a_script_of_several_statements() -> None:
    """Statements are read one after another, and an error has its place in the whole text."""
    tokens = Tokens(f"-- two\n{table()};\n\n{table()};\n")

    assert [statement.place.line for statement in create_tables(tokens)] == [2, 4]


TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))


@given(name=TEXTS.filter(bool), value=TEXTS)
def test_quoted_texts_are_taken_as_they_are(name: str, value: str) -> None:
    """Whatever stands in quotes is a name or a value; quotes within are doubled, and nothing else is special."""
    column = name.replace("`", "``")
    quoted = value.replace("'", "''")

    found = table_definition(table(f"`{column}` INT", f"{APPEND}, 'x' = '{quoted}'"))

    assert found.columns.names == [name]
    assert found.options["x"] == value


@given(TEXTS, st.integers(min_value=0))
def test_places(text: str, at: int) -> None:
    """Line and column lead to the character they were made of."""
    offset = at % (len(text) + 1)
    place = place_in(text, offset)

    before = text.split("\n")[: place.line - 1]
    assert sum(len(line) + 1 for line in before) + place.column - 1 == offset


def test_nothing_that_may_be_secret_is_in_a_repr() -> None:
    """Neither a definition nor a statement shows the values of its options."""
    sql = table(options=f"{APPEND}, 'properties.sasl.password' = '{SECRET}'")
    (statement,) = create_tables(Tokens(sql))

    assert SECRET not in repr(table_definition(sql))
    assert SECRET not in repr(statement)
    assert re.search("properties.sasl.password", repr(statement))


def test_no_parser_of_queries_is_loaded_to_read_a_statement() -> None:
    """A stream is planned for each micro-batch anew: to import sqlglot would take longer than all else."""
    code = """
import sys
from pyspark_upsert_kafka.cli import main
from pyspark_upsert_kafka.core.options.read import read_options
from pyspark_upsert_kafka.core.options.write import write_options
from pyspark_upsert_kafka.connector.planning import batch_reader
from pyspark_upsert_kafka.connector.planning import stream_reader
from pyspark_upsert_kafka.connector.writing import writer
from pyspark_upsert_kafka.core.ddl.definition import table_definition
table_definition("CREATE TABLE t (id INT) WITH ('connector' = 'kafka')")
print("sqlglot" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.split() == ["False"]


def test_a_watermark_of_a_column_of_any_name() -> None:
    """It is written as `withWatermark` takes it: Spark would look for a field behind a dot."""
    sql = table("`a.t` TIMESTAMP(3), WATERMARK FOR `a.t` AS `a.t`")

    assert watermark_of(sql) == ("`a.t`", "0 seconds")
