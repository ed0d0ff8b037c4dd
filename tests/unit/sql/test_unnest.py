"""``UNNEST``: rows of the elements of an array, the fields of its rows, or the entries of a map."""

from __future__ import annotations

import pytest

from pyspark_upsert_kafka.core.errors import OptionError
from pyspark_upsert_kafka.sql.script_compiler import compile_script
from tests.unit.sql.tables import TABLES, WIDTH

NESTED = TABLES.replace(
    "small TINYINT,", "small TINYINT, steps ARRAY<ROW<a INT, b STRING>>, m MAP<STRING, INT>,"
)
AT = WIDTH + len(NESTED) - len(TABLES) + 1


@pytest.mark.parametrize(
    ("flink", "spark"),
    [
        ("SELECT page, x FROM views CROSS JOIN UNNEST(items) AS u (x)",
         "SELECT views.page AS page, CAST(u.x AS INT) AS x FROM {table_0} AS views LATERAL VIEW EXPLODE(views.items) u AS x"),
        ("SELECT x / 2 AS h FROM views AS v, UNNEST(v.items) AS u (x) WHERE x > 1",
         ("SELECT CAST(CAST(u.x AS INT) DIV (2) AS INT) AS h FROM {table_0} AS v LATERAL VIEW EXPLODE(v.items) u AS x "
          "WHERE CAST(u.x AS INT) > 1")),
        ("SELECT a, b FROM views LEFT JOIN UNNEST(steps) AS s (a, b) ON TRUE",
         ("SELECT CAST(s.a AS INT) AS a, CAST(s.b AS STRING) AS b FROM {table_0} AS views "
          "LATERAL VIEW OUTER INLINE(views.steps) s AS a, b")),
        ("SELECT k, COUNT(*) AS n FROM views CROSS JOIN UNNEST(m) AS e (k, v) GROUP BY k",
         ("SELECT CAST(e.k AS STRING) AS k, COUNT(*) AS n FROM {table_0} AS views LATERAL VIEW EXPLODE(views.m) e AS k, v "
          "GROUP BY CAST(e.k AS STRING)")),
        ("SELECT x FROM views CROSS JOIN UNNEST(ARRAY[1, 2]) AS u (x)",
         "SELECT u.x AS x FROM {table_0} AS views LATERAL VIEW EXPLODE(ARRAY(1, 2)) u AS x"),
    ],
)  # fmt: skip
def test_rows_of_elements(flink: str, spark: str) -> None:
    """Spark has a view for it, in streams too, and types are known as before."""
    job = compile_script(f"{NESTED}{flink}").jobs[-1]

    assert job.query.sql.replace("`", "") == spark
    assert job.is_stream


@pytest.mark.parametrize(
    ("query", "at", "sentence"),
    [
        ("SELECT page FROM views CROSS JOIN UNNEST(items) AS u", 41, "UNNEST needs names for its rows"),
        ("SELECT x FROM UNNEST(ARRAY[1]) AS u (x)", 27, "UNNEST stands behind the table"),
        ("SELECT page FROM views CROSS JOIN UNNEST(items) AS u (x, y)", 41, "UNNEST names 2 columns, and gives 1."),
        ("SELECT page FROM views CROSS JOIN UNNEST(region) AS u (x)", 41, "UNNEST takes an array or a map, and '`views`.`region`'"),
        ("SELECT page FROM views CROSS JOIN UNNEST(items) WITH ORDINALITY AS u (x, i)", 41, "WITH ORDINALITY is not supported"),
        ("SELECT page FROM views JOIN UNNEST(items) AS u (x) ON page = x", 35, "UNNEST is joined by CROSS JOIN"),
        ("SELECT page FROM views CROSS JOIN UNNEST(items) AS u (x) JOIN users AS w ON w.id = x", 41, "a JOIN behind UNNEST"),
        ("SELECT id FROM users CROSS JOIN UNNEST(ARRAY[1]) AS u (x)", 45, "UNNEST over a table that changes is not done"),
    ],
)  # fmt: skip
def test_what_is_refused(query: str, at: int, sentence: str) -> None:
    """What is no array, has no names, or is joined in another way is refused where it stands."""
    with pytest.raises(OptionError) as error:
        compile_script(NESTED + query)

    assert f": {sentence}" in str(error.value)
    assert f"column {AT + at}: " in str(error.value)
