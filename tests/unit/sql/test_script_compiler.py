"""A script is planned as a whole: names, settings, columns and keys."""

from __future__ import annotations

import re

import pytest

from pyspark_upsert_kafka.core.errors import OptionError, SchemaError
from pyspark_upsert_kafka.sql.script_compiler import Mode, compile_script
from pyspark_upsert_kafka.sql.script_settings import ScriptSettings
from tests.unit.sql.tables import TABLES

COUNT = "SELECT region, COUNT(*) FROM views GROUP BY region"


@pytest.mark.parametrize(
    ("script", "columns"),
    [
        (f"INSERT INTO counts {COUNT}", ["region", "n"]),
        ("INSERT INTO counts (n, region) SELECT COUNT(*), region FROM views GROUP BY region", ["n", "region"]),
        ("INSERT INTO counts (region) SELECT region FROM views", ["region"]),
        ("INSERT INTO counts SELECT 'all', COUNT(*) FROM views", ["region", "n"]),
        ("INSERT INTO users SELECT id, UPPER(name), age FROM users2", ["id", "name", "age"]),
        ("INSERT INTO windows SELECT at, region, 1, moment FROM views", ["begin_", "region", "n", "changed"]),
        (("INSERT INTO windows (n, begin_, region) SELECT COUNT(*), TUMBLE_END(at, INTERVAL '1' DAY), region FROM views "
         "GROUP BY region, TUMBLE(at, INTERVAL '1' DAY)"), ["n", "begin_", "region"]),
    ],
)  # fmt: skip
def test_which_columns_are_filled(script: str, columns: list[str]) -> None:
    """By position, as in Flink; VIRTUAL columns get nothing."""
    second = "CREATE VIEW users2 AS SELECT * FROM others;"
    others = TABLES.split(";")[1].replace("TABLE users", "TABLE others")
    (job,) = compile_script(f"{TABLES}{others};{second}{script}").jobs

    assert [column.name for column in job.columns] == columns


@pytest.mark.parametrize(
    ("script", "sentence"),
    [
        ("INSERT INTO counts SELECT region FROM views", "the query has 1 columns, and 'counts' 2: region, n."),
        ("INSERT INTO counts (n) SELECT page FROM views", "column 'region' of the primary key of 'counts' gets no value"),
        ("INSERT INTO counts (region, m) SELECT region, page FROM views", "'counts' has no column 'm'"),
        (("CREATE TABLE u (id INT, must STRING NOT NULL, PRIMARY KEY (id) NOT ENFORCED) WITH ('connector' = 'upsert-kafka'); "
         "INSERT INTO u (id) VALUES (1)"), "column 'must' of 'u' is NOT NULL and gets no value"),
        ("INSERT INTO windows (seen) SELECT 1", "'windows' has no column 'seen' that can be written"),
        ("INSERT INTO counts (n, n) SELECT 1, 2", "column 'n' is there more than once."),
        ("INSERT INTO counts SELECT UPPER(region), COUNT(*) FROM views GROUP BY region", "the rows of the query are distinguished"),
        ("INSERT INTO counts SELECT region, COUNT(*) FROM views GROUP BY region, page", "the rows of the query are distinguished"),
        ("INSERT INTO counts SELECT name, id FROM users", "the rows of the query are distinguished by (n), and those of"),
        (("CREATE TABLE kinds (id BIGINT, kind STRING METADATA FROM 'change-type', PRIMARY KEY (id) NOT ENFORCED) WITH ('connector' = "
          "'upsert-kafka', 'topic' = 'k', 'properties.bootstrap.servers' = 'x:1', 'key.format' = 'json', 'value.format' = 'json'); "
          "INSERT INTO kinds SELECT id, 'upsert' FROM users"),
         "the rows of the query are changes, so that column 'kind' of 'kinds' cannot say what they do: leave it out."),
        ("INSERT INTO users SELECT * FROM users", "'users' is read and written by one stream"),
        ("INSERT INTO views SELECT * FROM views", "'views' has 'connector' = 'kafka', which is read here"),
        ("INSERT INTO cuonts SELECT 1, 2", "there is no table 'cuonts' at this place of the script; did you mean 'counts'?"),
        ("CREATE VIEW v AS SELECT 1; INSERT INTO v SELECT 1", "'v' is a view: rows are written to tables."),
        ("SELECT * FROM later; CREATE TABLE later (a INT) WITH ('connector' = 'kafka')", "there is no table or view 'later'"),
        ("DROP TABLE users; SELECT * FROM users", "there is no table or view 'users'"),
        ("WITH a AS (SELECT 1), a AS (SELECT 2) SELECT * FROM a", "WITH names 'a' more than once."),
        ("SELECT * FROM TABLE(TUMBLE(DATA => TABLE views, TIMECOL => DESCRIPTOR(at), SIZE => INTERVAL '1' DAY, X => 1))",
         "TUMBLE takes DATA, TIMECOL, SIZE: expected TABLE("),
        ("DROP VIEW users", "there is no view 'users' to drop."),
        ("CREATE VIEW users AS SELECT 1", "there is a table or view 'users' already"),
        ("CREATE VIEW v (a, b) AS SELECT 1", "the view names 2 columns, and its query has 1."),
        ("CREATE VIEW v AS SELECT nope FROM users", "column 'nope' is in none"),
        ("INSERT INTO counts VALUES ('a', 1), ('b')", "the rows of VALUES have different numbers of columns."),
        ("SET 'execution.runtime-mode' = 'automatic'", "'execution.runtime-mode' = 'automatic': expected one of"),
        ("SET 'table.exec.state.ttl' = '1 d'", "'table.exec.state.ttl' is not supported: in Spark a watermark alone lets state go"),
        ("RESET 'table.exec.state.ttl'", "'table.exec.state.ttl' is not supported: "),
        ("CREATE TABLE b WITH ('topic' = 'b') LIKE users", "LIKE is not supported: write out the columns, the PRIMARY KEY and"),
        ("CREATE TABLE b LIKE users", "LIKE is not supported: write out the columns, the PRIMARY KEY and the options"),
        ("CREATE TABLE b AS SELECT * FROM users", "CREATE TABLE ... AS SELECT is not supported: create the table with its"),
        ("SET 'what' = 'ever'", "'what' is not known here: known are execution.checkpointing.dir"),
        ("SET 'table.local-time-zone' = 'Nowhere'", "'table.local-time-zone' = 'Nowhere': expected a time zone"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused(script: str, sentence: str) -> None:
    """The first statement that cannot be done refuses the whole script, with its place."""
    with pytest.raises(OptionError) as error:
        compile_script(TABLES + script)

    assert str(error.value).startswith("SQL, line 1, column ")
    assert f": {sentence}" in str(error.value)
    assert re.search(r"[^.?][.?]$", str(error.value)), "a sentence has one mark at its end"


@pytest.mark.parametrize("then", ["SELECT * FROM t", "", "SELECT 1", "DROP TABLE t", "CREATE VIEW v AS SELECT a FROM t"])  # fmt: skip
def test_options_of_tables_are_checked(then: str) -> None:
    """A misspelt option, or a column that a format cannot carry, names the table's place; used or not."""
    table = (
        "\nCREATE TABLE t (a INT, b MAP<INT, INT>) WITH ('connector' = 'kafka', 'topic' = 't', "
        "'properties.bootstrap.servers' = 'x:1', 'format' = 'csv'{});"
    )

    with pytest.raises(OptionError, match=r"SQL, line 2, column 1: table 't': Unsupported options"):
        compile_script(table.format(", 'topik' = 'x'") + then)
    with pytest.raises(SchemaError, match=r"SQL, line 2, column 1: table 't': "):
        compile_script(table.format("") + then)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("'topic' = 'users'", "'topic-pattern' = 'users.*'"),  # to read
        ("name STRING", "name STRING, kind STRING METADATA FROM 'change-type'"),  # to write
        ("'topic' = 'users'", "'topic' = 'users', 'scan.startup.mode' = 'latest-offset'"),  # as a stream
        ("'topic' = 'users'", "'topic' = 'users', 'scan.bounded.mode' = 'latest-offset'"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("mode", ["streaming", "batch"])
def test_a_table_that_nothing_uses_may_be_for_any_use(old: str, new: str, mode: Mode) -> None:
    """It is refused only where nothing could be done with it."""
    assert compile_script(TABLES.replace(old, new), mode=mode).jobs == ()


def test_options_for_all_tables_win() -> None:
    """What is given for each table stands in the place of its own option."""
    given = {"properties.bootstrap.servers": "elsewhere:1"}
    (job,) = compile_script(f"{TABLES}INSERT INTO counts {COUNT}", options=given).jobs
    (table,) = job.query.tables.values()

    assert job.table is not None
    for options in (table.options(batch=False), job.table.options(batch=True)):
        assert options["properties.bootstrap.servers"] == "elsewhere:1"


def test_settings_hold_for_what_follows() -> None:
    """SET holds until RESET or another SET; what has no effect is told."""
    planned = compile_script(
        TABLES
        + f"SET 'pipeline.name' = 'one'; SET 'execution.checkpointing.interval' = '3 s'; {COUNT};"
        + "RESET 'pipeline.name'; SET 'execution.runtime-mode' = 'BATCH'; SET 'parallelism.default' = '4';"
        + f"SET 'execution.checkpointing.dir' = '/c'; {COUNT}"
    )
    first, second = planned.jobs

    assert first.settings == ScriptSettings(name="one", interval_s=3.0)
    assert second.settings == ScriptSettings(batch=True, interval_s=3.0, checkpoints="/c")
    assert (first.is_stream, second.is_stream) == (True, False)
    assert len(planned.warnings) == 1
    assert "'parallelism.default' has no effect" in planned.warnings[0]


@pytest.mark.parametrize(
    "name", ["table.exec.source.cdc-events-duplicate", "table.exec.sink.upsert-materialize", "table.exec.sink.require-on-conflict"]
)  # fmt: skip
def test_settings_for_changes_have_no_effect(name: str) -> None:
    """What they are for is so here without them."""
    (warning,) = compile_script(f"{TABLES}SET '{name}' = 'true'; {COUNT}").warnings

    assert f"'{name}' has no effect in Spark, and changes no result." in warning


def test_settings_are_reset_and_told() -> None:
    """RESET goes back to those with which the script begins, one or all of them; SET alone tells them."""
    begin = ScriptSettings(checkpoints="/c")
    sets = "SET 'pipeline.name' = 'one'; SET 'execution.checkpointing.interval' = '3 s'; SET 'state.checkpoints.dir' = '/d';"
    one = compile_script(
        f"{TABLES}{sets} RESET 'execution.checkpointing.dir'; SET; {COUNT}", settings=begin
    )
    both = compile_script(f"{TABLES}{sets} RESET; {COUNT}", settings=begin)

    assert one.jobs[0].settings == ScriptSettings(checkpoints="/c", name="one", interval_s=3.0)
    assert one.warnings[0].endswith(
        "the settings here are 'execution.runtime-mode' = 'streaming', 'execution.checkpointing.interval' = '3 s', "
        "'execution.checkpointing.dir' = '/c', 'pipeline.name' = 'one'."
    )
    assert both.jobs[0].settings == begin


def test_a_script_has_one_time_zone() -> None:
    """Spark's session has one: that of the statements holds, and another after them changes nothing."""
    zone = "SET 'table.local-time-zone' = "
    one = compile_script(f"{TABLES}{zone}'Asia/Tokyo'; {COUNT}; {COUNT}; {zone}'UTC'")

    assert one.time_zone == "Asia/Tokyo"
    for second in (f"{zone}'UTC'", "RESET 'table.local-time-zone'"):
        with pytest.raises(
            OptionError, match=r"have one time zone here, not Asia/Tokyo and (UTC|default): SET"
        ):
            compile_script(f"{TABLES}{zone}'Asia/Tokyo'; {COUNT}; {second}; {COUNT}")


def test_the_mode_that_is_given_wins() -> None:
    """SET 'execution.runtime-mode' changes nothing then."""
    script = f"{TABLES}SET 'execution.runtime-mode' = 'batch'; {COUNT}"

    assert compile_script(script, mode="streaming").jobs[0].is_stream


def test_upsert_tables_are_snapshots_in_batches() -> None:
    """In batch mode a table is read as of now, and shows no change types."""
    (job,) = compile_script(f"{TABLES}SELECT * FROM users WHERE age > 1", mode="batch").jobs
    (table,) = job.query.tables.values()

    assert table.options(batch=True)["read.mode"] == "snapshot"
    assert "_change_type" not in job.query.sql


def test_braces_are_doubled_only_where_pyspark_formats() -> None:
    """PySpark formats a query that is given tables, and takes another as it stands."""
    script = """INSERT INTO counts VALUES ('{"a": 1}', 1); SELECT '{x}' FROM users"""
    without, with_table = compile_script(TABLES + script, mode="batch").jobs

    assert """'{"a": 1}'""" in without.query.sql
    assert "'{{x}}'" in with_table.query.sql


def test_a_bounded_stream_is_known() -> None:
    """It ends where its tables end, as in Flink."""
    bounded = TABLES.replace("'format'", "'scan.bounded.mode' = 'latest-offset', 'format'")

    assert compile_script(bounded + COUNT).jobs[0].is_bounded
    assert not compile_script(TABLES + COUNT).jobs[0].is_bounded


def test_if_not_exists_leaves_what_is_there() -> None:
    """The first table of a name stands."""
    script = f"{TABLES}CREATE TABLE IF NOT EXISTS users (other INT) WITH ('connector' = 'kafka'); SELECT id FROM users"

    assert len(compile_script(script).jobs) == 1


def test_secrets_are_in_no_repr() -> None:
    """Statements and tables show neither their text nor options."""
    script = TABLES.replace("'format'", "'properties.sasl.password' = 'n0t-sh0wn', 'format'")
    planned = compile_script(script + COUNT)

    assert "n0t-sh0wn" not in repr(planned)


def test_a_batch_is_not_written_exactly_once() -> None:
    """Only a stream's batch is known by its number, so that it can be told from the one before."""
    eo = "'sink.delivery-guarantee' = 'exactly-once', 'sink.transactional-id-prefix' = 'p', 'sink.parallelism' = '2', "
    tables = TABLES.replace("'topic' = 'counts',", f"'topic' = 'counts', {eo}")

    assert compile_script(f"{tables}INSERT INTO counts {COUNT}").jobs[0].is_stream
    with pytest.raises(OptionError, match="'counts' is written exactly once by streams only"):
        compile_script(f"{tables}INSERT INTO counts VALUES ('a', 1)")


def test_a_full_name_is_a_table() -> None:
    """WITH hides a table's short name only."""
    query = "WITH users AS (SELECT 1 AS id) SELECT * FROM {}users"
    short, full = compile_script(
        f"{TABLES}{query.format('')}; {query.format('default_database.')}", mode="batch"
    ).jobs

    assert not short.query.tables
    assert [table.name for table in full.query.tables.values()] == ["users"]


@pytest.mark.parametrize(
    "query",
    [
        f"SELECT {'(' * 200}1{')' * 200}",
        f"SELECT * FROM {'(SELECT * FROM ' * 200}users{')' * 200}",
        f"SELECT {'NOT ' * 300}TRUE",
    ],
    ids=["brackets", "queries", "operators"],
)
def test_a_query_nested_too_deeply_is_refused(query: str) -> None:
    """Python's own limit is told in a sentence, with the place of the query."""
    with pytest.raises(OptionError, match="line 2, column 1: this query is nested too deeply"):
        compile_script(f"{TABLES}\n{query}", mode="batch")
