"""FROM_CHANGELOG and TO_CHANGELOG: what they become in Spark, and what is said where their meaning cannot be kept."""

from __future__ import annotations

import pytest

from pyspark_upsert_kafka.core.errors import OptionError
from pyspark_upsert_kafka.sql.script_compiler import Job, compile_script
from tests.unit.sql.tables import CDC_TABLES, TABLES

CODES = "MAP['c, r', 'INSERT', 'u', 'UPDATE_AFTER', 'd', 'DELETE']"
SAYS_ALL = (
    "op_mapping => MAP['INSERT, UPDATE_AFTER', 'u', 'DELETE', 'd'], produces_full_deletes => FALSE"
)


def job(query: str) -> Job:
    """The last job of a script that ends in this query."""
    return compile_script(f"{TABLES}{CDC_TABLES}{query}").jobs[-1]


def sql(query: str) -> str:
    """That query as Spark's, without the quotes of names."""
    return job(query).query.sql.replace("`", "")


@pytest.mark.parametrize(
    ("call", "names", "key"),
    [
        ("FROM_CHANGELOG(input => TABLE events)", ["name", "id"], None),
        ("FROM_CHANGELOG(TABLE events)", ["name", "id"], None),
        ("TABLE(FROM_CHANGELOG(TABLE events))", ["name", "id"], None),
        ("FROM_CHANGELOG(input => TABLE events PARTITION BY id)", ["id", "name"], None),
        (f"FROM_CHANGELOG(input => TABLE events PARTITION BY id, op_mapping => {CODES})", ["id", "name"], [{0}]),
        (f"FROM_CHANGELOG(op_mapping => {CODES}, input => TABLE events PARTITION BY (name, id))", ["name", "id"], [{0}, {1}]),
        (f"FROM_CHANGELOG(TABLE events PARTITION BY id, DESCRIPTOR(op), {CODES}, 'SKIP')", ["id", "name"], [{0}]),
        ("from_changelog(op => DESCRIPTOR(name), input => TABLE default_catalog.default_database.events)", ["op", "id"], None),
        ("FROM_CHANGELOG(TABLE (SELECT op, UPPER(name) AS n FROM events WHERE (id) > 1))", ["n"], None),
        ("FROM_CHANGELOG((SELECT * FROM events), op_mapping => MAP['x', 'DELETE'], uid => 'u') AS f", ["name", "id"], None),
        ("FROM_CHANGELOG(TABLE (SELECT * FROM TO_CHANGELOG(TABLE people)))", ["id", "name", "age"], None),
        ("TO_CHANGELOG(input => TABLE people)", ["op", "id", "name", "age"], None),
        ("TO_CHANGELOG(input => TABLE people PARTITION BY name, op => DESCRIPTOR(`the code`))", ["name", "the code", "id", "age"], None),
        (f"TO_CHANGELOG(TABLE users PARTITION BY id, {SAYS_ALL})", ["id", "op", "name", "age"], None),
    ],
)  # fmt: skip
def test_the_columns_of_a_call(call: str, names: list[str], key: list[set[int]] | None) -> None:
    """They stand as in Flink: the columns of PARTITION BY first; the codes go, or come before the rest."""
    rows = job(f"SELECT * FROM {call}").query.rows

    assert rows is not None
    assert list(rows.names) == names
    assert (None if rows.key is None else [set(part) for part in rows.key]) == key


def test_codes_become_what_rows_do() -> None:
    """A code that is not mapped fails the query, and says which it is; SKIP leaves its row out."""
    call = f"FROM_CHANGELOG(input => TABLE events PARTITION BY id, op_mapping => {CODES}{{}})"
    fails, skips = (
        sql(f"SELECT * FROM {call.format('')}"),
        sql(f"SELECT * FROM {call.format(', error_handling => ' + repr('SKIP'))}"),
    )
    kinds = "CASE events.op WHEN 'c' THEN 'insert' WHEN 'r' THEN 'insert' WHEN 'u' THEN 'update_postimage' WHEN 'd' THEN 'delete'"

    assert f"{kinds} ELSE RAISE_ERROR(CONCAT('FROM_CHANGELOG: the operation code '" in fails
    assert "WHERE" not in fails
    assert f"{kinds} END AS _change_type" in skips
    assert "WHERE events.op IN ('c', 'r', 'u', 'd')" in skips


def test_rows_before_updates_are_put_in_order() -> None:
    """By the offset of their messages, which is read beside the table's columns, through queries in between too."""
    query = job(
        "INSERT INTO users (id) SELECT id FROM FROM_CHANGELOG(TABLE (SELECT op, id FROM events))"
    ).query
    (table,) = query.tables.values()

    assert query.rows is not None
    assert query.rows.hidden == ("_change_type", "_offset")
    assert "events._offset AS _offset" in query.sql.replace("`", "")
    columns = table.columns_in_order()
    assert columns is not None
    assert columns.names == ["name", "op", "id", "_offset"]


def test_changes_become_codes() -> None:
    """Of rows before and after each change all kinds are known; one that is not mapped is left out."""
    found = sql(
        "SELECT * FROM TO_CHANGELOG(input => TABLE people PARTITION BY id, op_mapping => MAP['INSERT, UPDATE_AFTER', 'u', 'DELETE', "
        "'d'], produces_full_deletes => FALSE)"
    )

    assert (
        "CASE people._change_type WHEN 'insert' THEN 'u' WHEN 'update_postimage' THEN 'u' WHEN 'delete' THEN 'd' END AS op"
        in found
    )
    assert found.endswith(
        "WHERE people._change_type IN ('insert', 'update_postimage', 'delete')) AS to_changelog"
    )
    assert (
        "CASE WHEN people._change_type = 'delete' THEN NULL ELSE people.name END AS name" in found
    )
    assert "people.id AS id" in found


@pytest.mark.parametrize(
    ("mapping", "where"),
    [
        ("MAP['INSERT, UPDATE_AFTER', 'u', 'DELETE', 'd']", "AS users) AS"),
        ("MAP['INSERT', 'u', 'UPDATE_AFTER', 'u']", "WHERE NOT users._change_type IN ('delete')) AS"),
        ("MAP['DELETE', 'd']", "WHERE users._change_type IN ('delete')) AS"),
    ],
)  # fmt: skip
def test_what_an_upsert_table_says(mapping: str, where: str) -> None:
    """An upsert table says which rows are there and which are not: so much can be mapped."""
    found = sql(
        f"SELECT * FROM TO_CHANGELOG(TABLE users PARTITION BY id, op_mapping => {mapping}, produces_full_deletes => FALSE)"
    )

    assert where in found


def test_rows_that_are_only_added_are_inserts() -> None:
    """They can be counted, as all rows of TO_CHANGELOG can."""
    found = sql("SELECT op, COUNT(*) FROM TO_CHANGELOG(TABLE views) GROUP BY op")

    assert "(SELECT 'INSERT' AS op, views.user_id AS user_id" in found
    assert found.endswith("AS to_changelog GROUP BY to_changelog.op")


@pytest.mark.parametrize(
    ("query", "sentence"),
    [
        ("FROM_CHANGELOG(op => DESCRIPTOR(op))", "FROM_CHANGELOG needs input => TABLE name."),
        ("FROM_CHANGELOG(TABLE events, op => DESCRIPTOR(kind))", "FROM_CHANGELOG: its input has no column 'kind'; there are: name, op, id."),
        ("FROM_CHANGELOG(TABLE events, on_time => DESCRIPTOR(id))", "FROM_CHANGELOG has no argument 'on_time': expected input, op, op_mapping, error_handling, uid."),
        ("FROM_CHANGELOG(TABLE events, input => TABLE events)", "argument 'input' of FROM_CHANGELOG is there more than once."),
        ("FROM_CHANGELOG(TABLE events, op => DESCRIPTOR(op, id))", "expected one column and ')', but found ','."),
        ("FROM_CHANGELOG(TABLE events, op_mapping => MAP['c', 'INSERT', 'r', 'INSERT'])", "INSERT is mapped more than once: several codes"),
        ("FROM_CHANGELOG(TABLE events, op_mapping => MAP['c', 'INSERT', 'c', 'DELETE'])", "a code of 'c' is mapped more than once."),
        ("FROM_CHANGELOG(TABLE events, op_mapping => MAP['c', 'insert'])", "'insert' is no kind of change: expected INSERT, UPDATE_BEFORE,"),
        ("FROM_CHANGELOG(TABLE events, op_mapping => MAP['u', 'UPDATE_AFTER'])", "an op_mapping with UPDATE_AFTER and without UPDATE_BEFORE needs a key"),
        ("FROM_CHANGELOG(TABLE events, op_mapping => m)", "expected MAP, but found 'm'."),
        ("FROM_CHANGELOG(TABLE events, error_handling => 'LOG')", "'error_handling' is 'LOG': expected 'FAIL' or 'SKIP'."),
        ("FROM_CHANGELOG(TABLE events PARTITION BY id ORDER BY name)", "ORDER BY is not supported here"),
        ("FROM_CHANGELOG(TABLE views)", "FROM_CHANGELOG: its input has no column 'op'"),
        ("FROM_CHANGELOG(TABLE events, op => DESCRIPTOR(id))", "FROM_CHANGELOG: the column 'id' of operation codes is BIGINT: expected STRING."),
        ("FROM_CHANGELOG(TABLE users, op => DESCRIPTOR(name))", "FROM_CHANGELOG takes rows that are only added"),
        ("FROM_CHANGELOG(TABLE (SELECT op, id FROM events UNION ALL SELECT op, id FROM events))", "FROM_CHANGELOG with UPDATE_BEFORE takes"),
        ("FROM_CHANGELOG(TABLE events", "expected ',' or ')', but found the end."),
        ("FROM_CHANGELOG(TABLE nope)", "there is no table or view 'nope'"),
        ("TO_CHANGELOG(TABLE users)", "the input of TO_CHANGELOG is an upsert table, which is read without the rows before: it does not say"),
        ("TO_CHANGELOG(TABLE users PARTITION BY name, op_mapping => MAP['DELETE', 'd'], produces_full_deletes => FALSE)",
         "the input of TO_CHANGELOG is an upsert table"),
        ("TO_CHANGELOG(TABLE keyed PARTITION BY id, op_mapping => MAP['INSERT, UPDATE_AFTER', 'u', 'DELETE', 'd'])",
         "input => TABLE name PARTITION BY id, op_mapping => MAP['INSERT, UPDATE_AFTER', 'u', 'DELETE', 'd'], produces_full_deletes => FALSE."),
        (f"TO_CHANGELOG(TABLE (SELECT * FROM users WHERE age > 1) PARTITION BY id, {SAYS_ALL})", "filtering a table that changes is not done"),
        ("TO_CHANGELOG(TABLE (SELECT region, COUNT(*) AS n FROM views GROUP BY region))", "TO_CHANGELOG of groups is not done"),
        ("TO_CHANGELOG(TABLE events)", "TO_CHANGELOG: its input has a column 'op' already."),
        ("TO_CHANGELOG(TABLE views, op_mapping => MAP['DELETE', 'd'])", "TO_CHANGELOG: the rows of its input are only added"),
        ("TO_CHANGELOG(TABLE people, produces_full_deletes => FALSE)", "TO_CHANGELOG: produces_full_deletes => FALSE leaves the key"),
        ("TO_CHANGELOG(TABLE people, produces_full_deletes => 1)", "expected TRUE or FALSE, but found '1'."),
        ("TO_CHANGELOG(TABLE people, op_mapping => MAP['INSERT, INSERT', 'x'])", "INSERT is mapped more than once"),
        ("OTHER(TABLE people)", "the table function OTHER is not supported: there are TUMBLE, HOP, FROM_CHANGELOG and TO_CHANGELOG."),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused(query: str, sentence: str) -> None:
    """The sentence names the function, says why, and what to do."""
    with pytest.raises(OptionError) as error:
        job(f"SELECT * FROM {query}")

    assert str(error.value).startswith("SQL, line 1, column ")
    assert f": {sentence}" in str(error.value) or sentence in str(error.value)


@pytest.mark.parametrize("call", ["FROM_CHANGELOG(TABLE events)", "TO_CHANGELOG(TABLE people)"])
def test_a_batch_has_no_changes(call: str) -> None:
    """In a view a call is well, whose use decides."""
    view = f"{TABLES}{CDC_TABLES}CREATE VIEW v AS SELECT * FROM {call}; "

    assert compile_script(f"{view}SELECT * FROM v").jobs[0].is_stream
    with pytest.raises(OptionError, match="_CHANGELOG is for streams, as in Flink"):
        compile_script(f"{view}SELECT * FROM v", mode="batch")


def test_rows_before_and_after_have_no_key() -> None:
    """The key of the table that they are written to distinguishes them, which is warned of; a declared key is not."""
    images = compile_script(f"{TABLES}{CDC_TABLES}INSERT INTO users SELECT * FROM people")
    keyed = compile_script(f"{TABLES}{CDC_TABLES}INSERT INTO users SELECT * FROM keyed")

    (warning,) = images.warnings
    assert (
        "changes without a key are written to 'users', whose primary key (id) must tell" in warning
    )
    assert images.jobs[0].query.rows is not None
    assert images.jobs[0].query.rows.hidden == ("_change_type", "_offset")
    assert keyed.warnings == ()


@pytest.mark.parametrize(
    ("column", "more", "is_refused"),
    [
        ("_offset BIGINT", "", False),
        ("_Offset BIGINT", "", False),
        ("_offset BIGINT METADATA FROM 'offset' VIRTUAL", "", False),
        ("_offset BIGINT METADATA FROM 'partition' VIRTUAL", "", True),
        ("_offset BIGINT", ", 'metadata._offset' = 'none'", True),
        ("_Offset BIGINT", ", 'metadata._Offset' = 'none'", True),
    ],
)
def test_only_the_offset_of_a_message_puts_changes_in_order(
    column: str, more: str, *, is_refused: bool
) -> None:
    """A column of its name that is a field of the messages, or other metadata, would put them into another order."""
    table = (
        f"CREATE TABLE changed (id BIGINT, name STRING, age INT, {column}) WITH ('connector' = 'kafka', 'topic' = 'p', "
        f"'properties.bootstrap.servers' = 'x:1', 'format' = 'debezium-json'{more});"
    )
    script = f"{TABLES}{table}INSERT INTO users SELECT id, name, age FROM changed"

    if is_refused:
        with pytest.raises(OptionError, match="'changed': the rows before and after a change are"):
            compile_script(script)
        return
    (read,) = compile_script(script).jobs[0].query.tables.values()
    columns = read.columns_in_order()
    assert columns is not None
    assert [name.lower() for name in columns.names].count("_offset") == 1


@pytest.mark.parametrize("query", ["SELECT name, COUNT(*) FROM people GROUP BY name", "SELECT COUNT(*) FROM FROM_CHANGELOG(TABLE events)"])  # fmt: skip
def test_changes_are_not_counted(query: str) -> None:
    """A changelog without a key is a table that changes, too."""
    with pytest.raises(OptionError, match="aggregating a table that changes is not done"):
        job(query)


@pytest.mark.parametrize(
    ("query", "to_do"),
    [
        ("SELECT id FROM users WHERE id > 1", "table is read. Or run it in batch mode"),
        ("SELECT id FROM keyed WHERE age > 1", "table is read. Or leave the PRIMARY KEY out where the changes are read: then rows before and after each change are filtered. Or run it"),
        ("SELECT i FROM (SELECT id AS i, age FROM keyed) WHERE age > 1", "Or leave the PRIMARY KEY out"),
        (f"SELECT id FROM FROM_CHANGELOG(input => TABLE events PARTITION BY id, op_mapping => {CODES}) WHERE name = 'a'", "table is read. Or filter the input of FROM_CHANGELOG by columns that no update changes"),
        (f"SELECT i FROM (SELECT id AS i, name FROM FROM_CHANGELOG(input => TABLE events PARTITION BY id, op_mapping => {CODES})) WHERE name = 'a'", "Or map UPDATE_BEFORE too"),
        (f"SELECT * FROM (SELECT op, COUNT(*) AS n FROM TO_CHANGELOG(TABLE keyed PARTITION BY id, {SAYS_ALL}) GROUP BY op) WHERE n > 1", "table is read. Or run it"),
    ],
)  # fmt: skip
def test_changes_without_the_rows_before_are_not_filtered(query: str, to_do: str) -> None:
    """Whether the row before did fit is not known; the sentence says where it would be."""
    with pytest.raises(OptionError, match="filtering a table that changes is not done") as error:
        job(query)

    assert to_do in str(error.value)


@pytest.mark.parametrize("source", ["people", "FROM_CHANGELOG(TABLE events)"])
def test_rows_before_and_after_are_filtered_by_themselves(source: str) -> None:
    """The row before an update that fits, without one after it, is the delete."""
    query = job(f"SELECT id FROM {source} WHERE name = 'a'").query

    assert query.sql.endswith("`name` = 'a'")
    assert query.rows is not None
    assert query.rows.hidden == ("_change_type", "_offset")


def test_a_table_of_changes_is_none_in_a_batch() -> None:
    """Without a key it is not known which rows are there now."""
    with pytest.raises(
        OptionError,
        match=r"table 'people': in batch mode a table of the format 'debezium-json' needs a PRIMARY",
    ):
        compile_script(f"{TABLES}{CDC_TABLES}SELECT * FROM people", mode="batch")
