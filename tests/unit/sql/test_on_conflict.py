"""ON CONFLICT of INSERT INTO: where it means the same, and what is said where it does not."""

from __future__ import annotations

import pytest

from pyspark_upsert_kafka.core.errors import OptionError
from pyspark_upsert_kafka.sql.script import read_script
from pyspark_upsert_kafka.sql.script_compiler import compile_script
from tests.unit.sql.tables import CDC_TABLES, TABLES

SAME_KEY = "INSERT INTO counts SELECT region, COUNT(*) FROM views GROUP BY region"
COPY = "INSERT INTO users SELECT * FROM keyed"
ONLY_ADDED = "INSERT INTO counts SELECT region, user_id FROM views"
NO_KEY = "INSERT INTO users SELECT * FROM people"


@pytest.mark.parametrize("strategy", ["ERROR", "NOTHING", "DEDUPLICATE", "deduplicate"])
def test_the_clause_is_read(strategy: str) -> None:
    """It is the last one of INSERT INTO, in a statement set too."""
    (one,) = read_script(f"INSERT INTO t SELECT a FROM b ON CONFLICT DO {strategy}")
    (two,) = read_script(
        f"EXECUTE STATEMENT SET BEGIN INSERT INTO t VALUES (1) on conflict do {strategy}; END"
    )

    assert one.on_conflict.strategy == two.on_conflict.strategy == strategy.upper()
    assert one.query.tree.sql() == "SELECT a FROM b"


def test_a_column_may_be_called_conflict() -> None:
    """Only the three words together are the clause."""
    (statement,) = read_script("INSERT INTO t SELECT a FROM b JOIN c ON conflict = d")

    assert statement.on_conflict is None


@pytest.mark.parametrize(
    ("statement", "strategy"),
    [
        *((insert, strategy) for insert in (SAME_KEY, COPY) for strategy in ("ERROR", "NOTHING", "DEDUPLICATE")),
        (ONLY_ADDED, "DEDUPLICATE"),
        ("INSERT INTO counts VALUES ('a', 1)", "DEDUPLICATE"),
    ],
)  # fmt: skip
def test_where_it_means_the_same(statement: str, strategy: str) -> None:
    """Rows with the table's key are in no conflict; of rows that are only added the last of each key stays, as in Flink."""
    script = f"{TABLES}{CDC_TABLES}{statement}"
    with_clause = compile_script(f"{script} ON CONFLICT DO {strategy};").jobs[-1]

    assert with_clause.query.sql == compile_script(script).jobs[-1].query.sql


@pytest.mark.parametrize(
    ("statement", "sentence"),
    [
        (f"{ONLY_ADDED} ON CONFLICT DO ERROR",
         ("ON CONFLICT DO ERROR is not done here, since all rows would have to be kept to fail where a second row has the key of "
         "another. Write DO DEDUPLICATE, or leave the clause out: the last row of each key is the table's.")),
        (f"{ONLY_ADDED} ON CONFLICT DO NOTHING", "ON CONFLICT DO NOTHING is not done here, since all rows would have to be kept to leave out the second row of a key. Write"),
        ("INSERT INTO counts VALUES ('a', 1) ON CONFLICT DO NOTHING", "ON CONFLICT DO NOTHING is not done here"),
        (f"{NO_KEY} ON CONFLICT DO DEDUPLICATE",
         ("ON CONFLICT DO DEDUPLICATE is not done here, since all rows would have to be kept to go back to the row before, where one "
         "of two rows with one key is deleted: the key of the changes is not known. If the primary key of 'users' is that of the "
         "table they come from, there are no conflicts: leave the clause out, or declare that key where the changes are read.")),
        (f"{NO_KEY} ON CONFLICT DO ERROR", "ON CONFLICT DO ERROR is not done here"),
        (f"{NO_KEY} ON CONFLICT DO NOTHING", "ON CONFLICT DO NOTHING is not done here"),
        ("INSERT INTO counts SELECT name, id FROM keyed ON CONFLICT DO DEDUPLICATE",
         ("or declare another PRIMARY KEY. ON CONFLICT DO DEDUPLICATE is not done here, since all rows would have to be kept to go "
         "back to the row before, where one of two rows with one key is deleted.")),
        (f"{ONLY_ADDED} ON CONFLICT DO UPDATE", "expected ERROR, NOTHING or DEDUPLICATE, but found 'UPDATE'."),
        ("SELECT * FROM users ON CONFLICT DO NOTHING", "expected ';' or the end of the script, but found 'ON'."),
    ],
)  # fmt: skip
def test_what_cannot_be_kept_is_refused(statement: str, sentence: str) -> None:
    """The sentence names the clause, says why, and what to do instead."""
    with pytest.raises(OptionError) as error:
        compile_script(f"{TABLES}{CDC_TABLES}{statement}")

    assert str(error.value).startswith("SQL, line 1, column ")
    assert sentence in str(error.value)
