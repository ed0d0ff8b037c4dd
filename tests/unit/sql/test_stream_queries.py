"""Which queries are right over streams, and what is said of the others."""

from __future__ import annotations

import pytest

from pyspark_upsert_kafka.core.errors import OptionError
from pyspark_upsert_kafka.sql.script_compiler import Job, compile_script
from tests.unit.sql.tables import TABLES


def stream(query: str) -> Job:
    """The last job of a script that ends in this query."""
    return compile_script(f"{TABLES}{query}").jobs[-1]


@pytest.mark.parametrize(
    ("query", "key", "has_changes"),
    [
        ("SELECT page, region FROM views WHERE page > 1", None, False),
        ("SELECT page FROM views UNION ALL SELECT age FROM (SELECT page AS age FROM views)", None, False),
        ("SELECT region, COUNT(*) FROM views GROUP BY region", [{0}], False),
        ("SELECT COUNT(*), page, region FROM views GROUP BY region, page", [{2}, {1}], False),
        ("SELECT region, region, COUNT(*) FROM views GROUP BY region", [{0, 1}], False),
        ("SELECT UPPER(region), COUNT(*) FROM views GROUP BY UPPER(region)", [{0}], False),
        ("SELECT UPPER(region), COUNT(*) FROM views GROUP BY region", [set()], False),
        ("SELECT COUNT(*) FROM views", [], False),
        ("SELECT * FROM users", [{0}], True),
        ("SELECT name, id, id FROM users", [{1, 2}], True),
        ("SELECT UPPER(name) FROM users", [set()], True),
        ("WITH u AS (SELECT id AS i FROM users) SELECT 1, i FROM u", [{1}], True),
        ("CREATE VIEW u (x, y) AS SELECT age, id FROM users; SELECT y FROM u", [{0}], True),
        ("SELECT n + 1, r FROM (SELECT region AS r, COUNT(*) AS n FROM views GROUP BY region)", [{1}], False),
        ("SELECT TUMBLE_START(at, INTERVAL '1' DAY), COUNT(*) FROM views GROUP BY TUMBLE(at, INTERVAL '1' DAY)",
         [{0}], False),
        (("SELECT window_end, page, window_start FROM TABLE(HOP(TABLE views, DESCRIPTOR(at), INTERVAL '1' MINUTE, "
         "INTERVAL '2' MINUTES)) GROUP BY window_start, window_end, page"), [{0, 2}, {1}], False),
        ("SELECT DATE_FORMAT(TUMBLE_START(at, INTERVAL '1' DAY), 'HH') FROM views GROUP BY TUMBLE(at, INTERVAL '1' DAY)",
         [set()], False),
    ],
)  # fmt: skip
def test_what_the_rows_of_a_stream_are(
    query: str, key: list[set[int]] | None, has_changes: bool
) -> None:
    """Rows are only added, or they change rows that a key tells apart: which columns hold that key is known."""
    rows = stream(query).query.rows

    assert rows is not None
    assert (None if rows.key is None else [set(part) for part in rows.key]) == key
    assert rows.has_changes == has_changes


@pytest.mark.parametrize(
    ("query", "sentence"),
    [
        ("SELECT name FROM users WHERE age > 1", "filtering a table that changes"),
        ("SELECT * FROM (SELECT region, COUNT(*) AS n FROM views GROUP BY region) WHERE n > 1", "filtering"),
        ("SELECT name, COUNT(*) FROM users GROUP BY name", "aggregating a table that changes"),
        ("SELECT COUNT(*) FROM users", "aggregating a table that changes"),
        ("SELECT * FROM users AS u JOIN views AS v ON u.id = v.user_id", "joining is not done in a stream: Spark joins streams of rows that are only added, with watermarks, in Python; a table that changes is joined in foreachBatch (https://github.com/pyspark-upsert-kafka/pyspark-upsert-kafka/tree/main/docs/joining.md)."),
        ("SELECT v.page FROM views AS v, views AS w WHERE v.page = w.page", "joining is not done"),
        ("SELECT region, COUNT(*) FROM views GROUP BY region HAVING COUNT(*) > 1", "HAVING is not done"),
        ("SELECT DISTINCT page FROM views", "SELECT DISTINCT is not done"),
        ("SELECT page FROM views ORDER BY page", "ORDER BY is not done"),
        ("SELECT page FROM views LIMIT 3", "LIMIT is not done"),
        ("SELECT page FROM views UNION SELECT age FROM users", "UNION ALL of append tables"),
        ("SELECT name FROM users UNION ALL SELECT name FROM users", "UNION ALL of append tables"),
        ("SELECT page FROM views UNION ALL SELECT 1", "rows that are no stream are not united"),
        ("SELECT page FROM views WHERE page IN (SELECT age FROM users)", "a query within an expression"),
        ("SELECT SUM(page) OVER (ORDER BY at) FROM views", "OVER is not done"),
        ("SELECT ROW_NUMBER() OVER (ORDER BY page) FROM views", "ranking is not done in a stream"),
        (("SELECT * FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY region ORDER BY page DESC) AS rn FROM views) WHERE rn <= 3"),
         ("ranking is not done in a stream: a row that falls behind would have to be deleted. Write all rows, and rank them where "
          "the table is read.")),
        (("CREATE VIEW r AS SELECT *, RANK() OVER (PARTITION BY name ORDER BY age DESC) AS rn FROM users; "
         "SELECT * FROM r WHERE rn <= 3"), "ranking is not done in a stream"),
        ("SELECT region, SUM(DISTINCT page) FROM views GROUP BY region", "'SUM(DISTINCT `views`.`page`)' is not done"),
        ("SELECT region, page, COUNT(*) FROM views GROUP BY CUBE (region, page)", "GROUPING SETS, CUBE"),
        ("SELECT COUNT(*) FROM views GROUP BY TUMBLE(moment, INTERVAL '1' DAY)", "the column of a window must have"),
    ],
)  # fmt: skip
def test_what_is_not_right_in_a_stream_is_refused(query: str, sentence: str) -> None:
    """The sentence says what to do instead; in batch mode the same query is run."""
    with pytest.raises(OptionError) as error:
        stream(query)

    assert f": {sentence}" in str(error.value)
    assert not compile_script(f"{TABLES}{query}", mode="batch").jobs[-1].is_stream


def test_distinct_values_are_counted_by_their_set() -> None:
    """Spark has no distinct aggregates in streams; the size of the set is exact."""
    job = stream(
        "SELECT region, COUNT(DISTINCT page) FILTER (WHERE flag) FROM views GROUP BY region"
    )

    assert (
        "CAST(SIZE(COLLECT_SET(`views`.`page`) FILTER(WHERE `views`.`flag`)) AS BIGINT)"
        in job.query.sql
    )


def test_windows_are_grouped_by_themselves() -> None:
    """Grouped by Spark's window, its state is dropped when the watermark has passed; rows are in each window once."""
    job = stream(
        "SELECT window_start, COUNT(*) AS n FROM TABLE(HOP(TABLE views, DESCRIPTOR(at), INTERVAL '1' MINUTE, "
        "INTERVAL '2' MINUTES)) AS h GROUP BY window_start, window_end"
    )

    assert job.query.sql.endswith("AS `h` GROUP BY WINDOW(`h`.`at`, '2 minutes', '1 minutes')")
    assert job.query.sql.count("WINDOW(") == 2
    assert job.query.only_in_utc is not None
    assert job.query.only_in_utc.why.startswith("windows of time begin elsewhere")


def test_rows_without_tables_are_a_batch() -> None:
    """VALUES end, in either mode."""
    assert not stream("INSERT INTO counts VALUES ('a', 1)").is_stream
