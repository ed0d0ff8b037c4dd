"""The same scripts run by Flink and by Spark; not part of ``make test`` but run by ``make test-flink``.

Both read the same topics; each writes topics of its own, which must hold the same tables in the end. So it is Flink
that says what each function gives.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from pyspark_upsert_kafka import run_sql
from tests.conftest import Broker
from tests.spark.conftest import spark  # noqa: F401 - a fixture
from tools.flink.flink import run

SCRIPTS = Path(__file__).parents[1] / "unit" / "sql" / "scripts"

VALUES = {
    "s": "STRING", "i": "INT", "b": "BIGINT", "d": "DOUBLE", "f": "FLOAT", "p": "DECIMAL(10, 2)", "t": "TINYINT",
    "ok": "BOOLEAN", "day_": "DATE", "ts": "TIMESTAMP(3)", "ltz": "TIMESTAMP_LTZ(3)", "xs": "ARRAY<INT>",
    "m": "MAP<STRING, INT>", "r": "ROW<x INT, y STRING>",
}  # fmt: skip
# No time before 1970: of these Flink 2.2 takes the wrong day, and minutes below zero.
ROWS = [
    {"id": 1, "s": "Hello, World", "i": 7, "b": 40, "d": 2.5, "f": 1.5, "p": 12.34, "t": 5, "ok": True, "day_": "2024-02-29",
     "ts": "2024-02-29 23:59:58.123", "ltz": "2024-02-29 23:59:58.123Z", "xs": [1, 2, 3], "m": {"k": 1},
     "r": {"x": 1, "y": "z"}},
    {"id": 2, "s": " éß😀a ", "i": -7, "b": -41, "d": -2.5, "f": -1.5, "p": -0.05, "t": -5, "ok": False, "day_": "1969-12-31",
     "ts": "1970-01-02 03:04:05.001", "ltz": "1970-01-02 03:04:05.001Z", "xs": [], "m": {}, "r": {"x": None, "y": ""}},
    {"id": 3},
    {"id": 4, "s": "", "i": 1, "b": 3, "d": 0.1, "f": 0.1, "p": 1, "t": 2, "ok": True, "day_": "0001-01-01",
     "ts": "2099-12-31 23:59:59.999", "ltz": "2000-01-01 00:00:00Z", "xs": [None], "m": {"k": None}, "r": {"x": 5, "y": "q"}},
]  # fmt: skip
EXPRESSIONS = {
    "STRING": [
        "UPPER(s)", "LOWER(s)", "TRIM(s)", "s || '!'", "CONCAT(s, 'a', s)", "CONCAT_WS('-', s, 'x', CAST(i AS STRING))",
        "SUBSTRING(s, 2)", "SUBSTRING(s, 1, 3)", "SUBSTR(s, 3, 2)", "REPLACE(s, 'l', 'LL')", "REVERSE(s)", "REPEAT(s, 2)",
        "LEFT(s, 2)", "RIGHT(s, 2)", "MD5(s)", "SHA1(s)", "REGEXP_REPLACE(s, '[lo]+', '_')", "COALESCE(s, 'none')",
        "IFNULL(s, 'none')", "NULLIF(s, '')", "CASE WHEN i > 0 THEN 'plus' ELSE 'minus' END", "IF(ok, 'yes', 'no')",
        "CAST(ok AS STRING)", "CAST(i AS STRING)", "CAST(b AS STRING)", "CAST(p AS STRING)", "CAST(day_ AS STRING)",
        "DATE_FORMAT(ts, 'yyyy-MM-dd HH:mm:ss.SSS')", "r.y", "SUBSTRING(s FROM 2 FOR 3)", "ARRAY['a', 'bb'][1] || '!'",
        "MAP['a', s, 'bb', 'c']['a']", "'it''s \\ {a}'",
    ],
    "INT": [
        "i / 2", "i / -2", "i % 3", "MOD(i, 2)", "-i", "ABS(i)", "CHAR_LENGTH(s)", "POSITION('l' IN s)", "INSTR(s, 'o')",
        "LOCATE('o', s)", "CARDINALITY(xs)", "xs[1]", "xs[1] / 2", "xs[4]", "m['k']", "m['no']", "r.x", "r.x / 2",
        "ARRAY[i, 2, t][1]", "CARDINALITY(ARRAY[i, NULL])", "MAP['a', i, 'b', 2]['b']", "CAST(ROW(i, s) AS ROW<x INT, y STRING>).x",
        "CAST(xs AS ARRAY<TINYINT>)[2] + i", "CAST(d AS INT)", "CAST(p AS INT)",
        "TRY_CAST(t AS INT)", "CAST(ok AS INT)", "FLOOR(i)", "CEIL(i)", "i + t", "i * t - 1", "NULLIF(i, 7)",
    ],
    "BIGINT": [
        "b / i", "b + i", "b * 2", "YEAR(day_)", "MONTH(day_)", "DAYOFMONTH(day_)", "HOUR(ts)", "MINUTE(ts)", "SECOND(ts)",
        "QUARTER(day_)", "EXTRACT(YEAR FROM ts)", "EXTRACT(SECOND FROM ts)", "CAST(i AS BIGINT)", "ABS(b)",
    ],
    "DOUBLE": [
        "d / 2", "d / i", "d * p", "d + i", "FLOOR(d)", "CEIL(d)", "POWER(d, 2)", "EXP(d)", "SQRT(ABS(d))", "CAST(i AS DOUBLE)",
        "CAST(p AS DOUBLE)", "i / d", "ABS(d)",
    ],
    "FLOAT": ["f / f", "f * 2", "CAST(i AS FLOAT)"],
    "DECIMAL(38, 10)": ["p / 3", "p * p", "p + i", "p - 0.5", "p / i", "FLOOR(p)", "CEIL(p)", "CAST(i AS DECIMAL(5, 1))", "CAST(p AS DECIMAL(5, 1))"],
    "BOOLEAN": [
        "i > 0 AND ok", "s LIKE '%o%'", "s IN ('', 'x')", "i BETWEEN 1 AND 7", "s IS NULL", "ok IS NOT TRUE", "NOT ok",
        "i IS DISTINCT FROM 7", "d <> 2.5", "CAST(i AS BOOLEAN)",
    ],
    "DATE": ["CAST(ts AS DATE)", "day_", "DATE '2024-01-31'"],
    "TIMESTAMP(3)": [
        "CAST(day_ AS TIMESTAMP(3))", "ts + INTERVAL '1' DAY", "ts - INTERVAL '90' SECOND", "FLOOR(ts TO HOUR)", "FLOOR(ts TO MONTH)",
        "CAST(ltz AS TIMESTAMP(3))", "TIMESTAMP '2024-01-31 01:02:03'", "CAST(ts AS TIMESTAMP(0))",
    ],
    "TIMESTAMP_LTZ(3)": ["TO_TIMESTAMP_LTZ(b, 0)", "TO_TIMESTAMP_LTZ(b, 3)", "CAST(ts AS TIMESTAMP_LTZ(3))"],
}  # fmt: skip
"""What is computed of each row, by the type that Flink gives it."""

AGGREGATES = {
    "sum_i": ("INT", "SUM(i)"), "avg_i": ("INT", "AVG(i)"), "avg_b": ("BIGINT", "AVG(b)"), "avg_d": ("DOUBLE", "AVG(d)"),
    "sum_p": ("DECIMAL(38, 2)", "SUM(p)"), "sum_n": ("DECIMAL(38, 2)", "SUM(-p)"),
    "sum_ok": ("DECIMAL(38, 2)", "SUM(CASE WHEN ok THEN p ELSE 0 END)"), "sum_pi": ("DECIMAL(38, 2)", "SUM(p * i)"),
    "sum_q": ("DECIMAL(38, 13)", "SUM(p / i)"), "sum_t": ("TINYINT", "SUM(t)"), "n": ("BIGINT", "COUNT(*)"),
    "n_s": ("BIGINT", "COUNT(s)"), "n_ok": ("BIGINT", "COUNT(DISTINCT ok)"), "smallest": ("STRING", "MIN(s)"),
    "newest": ("TIMESTAMP(3)", "MAX(ts)"), "positive": ("BIGINT", "COUNT(*) FILTER (WHERE i > 0)"),
}  # fmt: skip


def clause(broker: Broker, topic: str, *, is_append: bool = False) -> str:
    """The WITH of a table of JSON; what is read ends where it ended when it began."""
    connector, formats = ("kafka", "'format' = 'json'") if is_append else (
        "upsert-kafka", "'key.format' = 'json', 'value.format' = 'json'",
    )  # fmt: skip
    return (
        f"WITH ('connector' = '{connector}', 'topic' = '{topic}', 'properties.bootstrap.servers' = '{broker.servers}', "
        f"'scan.bounded.mode' = 'latest-offset', {formats}"
        + (", 'scan.startup.mode' = 'earliest-offset')" if is_append else ")")
    )


def both(spark: SparkSession, broker: Broker, script: str) -> tuple[dict[str, object], ...]:  # noqa: F811
    """The table that each leaves in the topic for which ``{target}`` stands."""
    flinks, sparks = broker.topic(2), broker.topic(2)
    statements = script.replace("{target}", flinks).split(";\n")
    run(statement.strip().rstrip(";") for statement in statements if statement.strip())
    run_sql(spark, script.replace("{target}", sparks), timeout=600)
    return table_in(broker, flinks), table_in(broker, sparks)


def table_in(broker: Broker, topic: str) -> dict[str, object]:
    """The newest value of each key, and nothing of deleted ones."""
    newest = dict(broker.pairs(topic))
    return {
        (key or b"").decode(): json.loads(value)
        for key, value in newest.items()
        if value is not None
    }


@pytest.fixture(scope="module")
def values(broker: Broker) -> str:
    """The table of values, as an append table."""
    topic = broker.topic()
    broker.produce(topic, *((None, json.dumps(row)) for row in ROWS))
    columns = ", ".join(f"{name} {kind}" for name, kind in {"id": "INT", **VALUES}.items())
    return f"CREATE TABLE vals ({columns}) {clause(broker, topic, is_append=True)};\n"


@pytest.mark.parametrize("kind", EXPRESSIONS)
def test_values_are_the_same(spark: SparkSession, broker: Broker, values: str, kind: str) -> None:  # noqa: F811
    """Each function, operator and cast gives in Spark what it gives in Flink, NULL and odd values included."""
    wanted = EXPRESSIONS[kind]
    columns = ", ".join(f"e{at} {kind}" for at in range(len(wanted)))
    script = (
        f"{values}CREATE TABLE results (id INT, {columns}, PRIMARY KEY (id) NOT ENFORCED) "
        f"{clause(broker, '{target}')};\nINSERT INTO results SELECT id, {', '.join(wanted)} FROM vals;\n"
    )

    flinks, sparks = both(spark, broker, script)

    assert len(flinks) == len(ROWS)
    differing = {
        (key, wanted[at]): (row[f"e{at}"], sparks[key][f"e{at}"])
        for key, row in flinks.items()
        for at in range(len(wanted))
        if row[f"e{at}"] != sparks[key][f"e{at}"]
    }
    assert differing == {}


def test_aggregates_are_the_same(spark: SparkSession, broker: Broker, values: str) -> None:  # noqa: F811
    """Sums and averages have Flink's types, and groups Flink's values."""
    columns = ", ".join(f"{name} {kind}" for name, (kind, _) in AGGREGATES.items())
    made = ", ".join(call for _, call in AGGREGATES.values())
    script = (
        f"{values}CREATE TABLE results (g BOOLEAN, {columns}, PRIMARY KEY (g) NOT ENFORCED) "
        f"{clause(broker, '{target}')};\nINSERT INTO results SELECT i > 0, {made} FROM vals WHERE ok IS NOT NULL "
        "GROUP BY i > 0;\n"
    )

    flinks, sparks = both(spark, broker, script)

    assert len(flinks) == 2
    assert sparks == flinks


@pytest.mark.parametrize(
    "windows",
    [
        "TUMBLE(TABLE vals, DESCRIPTOR(seen_at), INTERVAL '10' MINUTES)",
        "HOP(TABLE vals, DESCRIPTOR(seen_at), INTERVAL '5' MINUTES, INTERVAL '10' MINUTES)",
    ],
)
def test_windows_are_the_same(spark: SparkSession, broker: Broker, windows: str) -> None:  # noqa: F811
    """When all is read, each window has the same rows in both."""
    topic = broker.topic()
    times = [
        f"2024-03-01 10:{minute:02}:{second:02}"
        for minute in (0, 4, 9, 10, 25)
        for second in (0, 59)
    ]
    messages = [
        json.dumps({"seen_at": time, "k": str(number % 2)}) for number, time in enumerate(times)
    ]
    broker.produce(topic, *((None, message) for message in messages))
    script = (
        "CREATE TABLE vals (seen_at TIMESTAMP(3), k STRING, WATERMARK FOR seen_at AS seen_at - INTERVAL '1' SECOND) "
        f"{clause(broker, topic, is_append=True)};\nCREATE TABLE results (b TIMESTAMP(3), e TIMESTAMP(3), k STRING, "
        f"n BIGINT, PRIMARY KEY (b, k) NOT ENFORCED) {clause(broker, '{target}')};\nINSERT INTO results SELECT "
        f"window_start, window_end, k, COUNT(*) FROM TABLE({windows}) GROUP BY window_start, window_end, k;\n"
    )

    flinks, sparks = both(spark, broker, script)

    assert len(flinks) > 4
    assert sparks == flinks


@pytest.mark.parametrize(
    ("join", "key"),
    [
        ("CROSS JOIN UNNEST(xs) AS u (a)", "COALESCE(CAST(a AS STRING), '-')"),
        ("LEFT JOIN UNNEST(xs) AS u (a) ON TRUE", "COALESCE(CAST(a AS STRING), '-')"),
        ("CROSS JOIN UNNEST(rs) AS u (a, b)", "COALESCE(b, '-')"),
        ("CROSS JOIN UNNEST(m) AS u (b, a)", "b"),
    ],
)
def test_elements_are_the_same(spark: SparkSession, broker: Broker, join: str, key: str) -> None:  # noqa: F811
    """UNNEST gives the same rows in both, of what is empty or NULL too."""
    topic = broker.topic()
    given = [
        {"id": 1, "xs": [1, 2, 2], "rs": [{"x": 1, "y": "p"}, {"x": None, "y": "q"}], "m": {"k": 1, "l": None}},
        {"id": 2, "xs": [None], "rs": [], "m": {}}, {"id": 3},
    ]  # fmt: skip
    broker.produce(topic, *((None, json.dumps(row)) for row in given))
    script = (
        "CREATE TABLE vals (id INT, xs ARRAY<INT>, rs ARRAY<ROW<x INT, y STRING>>, m MAP<STRING, INT>) "
        f"{clause(broker, topic, is_append=True)};\nCREATE TABLE results (id INT, k STRING, n BIGINT, s INT, PRIMARY KEY (id, k) "
        f"NOT ENFORCED) {clause(broker, '{target}')};\nINSERT INTO results SELECT id, {key}, COUNT(*), SUM(a) FROM vals {join} "
        f"GROUP BY id, {key};\n"
    )

    flinks, sparks = both(spark, broker, script)

    assert flinks
    assert sparks == flinks


def test_a_copy_has_the_same_deletes(spark: SparkSession, broker: Broker) -> None:  # noqa: F811
    """An upsert table is copied with its deletes."""
    topic = broker.topic()
    users = [(number, json.dumps({"id": number, "name": f"n{number}"})) for number in range(4)]
    broker.produce(topic, *((json.dumps({"id": number}), value) for number, value in users))
    broker.produce(topic, ('{"id": 2}', None), ('{"id": 1}', '{"id": 1, "name": "new"}'))
    script = (
        f"CREATE TABLE users (id INT, name STRING, PRIMARY KEY (id) NOT ENFORCED) {clause(broker, topic)};\n"
        "CREATE TABLE results (name STRING, i INT, PRIMARY KEY (i) NOT ENFORCED) "
        f"{clause(broker, '{target}')};\nINSERT INTO results SELECT UPPER(name), id FROM users;\n"
    )

    flinks, sparks = both(spark, broker, script)

    assert len(flinks) == 3
    assert sparks == flinks


def test_the_page_views_script(spark: SparkSession, broker: Broker) -> None:  # noqa: F811
    """The script of Flink's documentation leaves the same messages' rows, in its own formats."""
    topic = broker.topic()
    views = [
        {
            "user_id": n % 5,
            "page_id": n,
            "viewtime": f"2024-03-01 10:00:{n:02}",
            "user_region": f"r{n % 3}",
        }
        for n in range(30)
    ]
    broker.produce(topic, *((None, json.dumps(view)) for view in views))
    script = (SCRIPTS / "pageviews.sql").read_text(encoding="utf-8")
    script = script.replace("'...'", f"'{broker.servers}'").replace("'pageviews'", f"'{topic}'")
    # Flink has no watermark of more than three digits, whatever its documentation says.
    script = script.replace("viewtime TIMESTAMP,", "viewtime TIMESTAMP(3),")
    bounds = (
        "'scan.startup.mode' = 'earliest-offset', 'scan.bounded.mode' = 'latest-offset', 'format'"
    )
    script = script.replace("'format'", bounds).replace("'pageviews_per_region'", "'{target}'")
    flinks, sparks = broker.topic(), broker.topic()

    run(part.strip() for part in script.replace("{target}", flinks).split(";\n") if part.strip())
    run_sql(spark, script.replace("{target}", sparks), timeout=600)

    assert len(dict(broker.pairs(flinks))) == 3
    assert dict(broker.pairs(sparks)) == dict(broker.pairs(flinks))


def envelope(
    op: str, before: tuple[int, str, int] | None, after: tuple[int, str, int] | None
) -> str:
    """A message of Debezium."""
    rows = [row and dict(zip(("id", "name", "age"), row, strict=True)) for row in (before, after)]
    return json.dumps({"before": rows[0], "after": rows[1], "op": op})


CHANGES = [
    envelope("r", None, (1, "a", 36)), envelope("c", None, (2, "b", 41)), envelope("c", None, (3, "c", 10)),
    envelope("u", (3, "c", 10), (3, "c", 18)), envelope("u", (1, "a", 36), (1, "a", 5)), envelope("c", None, (4, "d", 3)),
    envelope("u", (2, "b", 41), (7, "b", 41)), envelope("d", (3, "c", 18), None), envelope("u", (1, "a", 5), (1, "e", 37)),
    envelope("c", None, (5, "f", 50)), envelope("u", (5, "f", 50), (5, "f", 7)), envelope("c", None, (6, "g", 18)),
]  # fmt: skip


@pytest.mark.parametrize(
    ("key", "where", "kept", "stale"),
    [
        ("", "WHERE age >= 18", {1, 6, 7}, set()),
        (", PRIMARY KEY (id) NOT ENFORCED", "", {1, 4, 5, 6, 7}, {2}),
    ],
    ids=["filtered", "with a key"],
)
def test_copied_changes_are_the_same(
    spark: SparkSession,  # noqa: F811
    broker: Broker,
    key: str,
    where: str,
    kept: set[int],
    stale: set[int],
) -> None:
    """Deletes and keys that change leave the same table, with a key in the source or without; so do rows that leave a filter.

    Flink alone keeps the old key of an update of the key, if a key is declared and nothing filters.
    """
    topic = broker.topic(1)
    broker.produce(topic, *((None, message) for message in CHANGES))
    source = clause(broker, topic, is_append=True).replace("'json'", "'debezium-json'")
    script = (
        f"CREATE TABLE people (id BIGINT, name STRING, age INT{key}) {source};\n"
        f"CREATE TABLE adults (id BIGINT, name STRING, PRIMARY KEY (id) NOT ENFORCED) {clause(broker, '{target}')};\n"
        f"INSERT INTO adults SELECT id, UPPER(name) FROM people {where};\n"
    )

    flinks, sparks = both(spark, broker, script)

    assert {json.loads(each)["id"] for each in flinks} == kept | stale
    assert sparks == {each: row for each, row in flinks.items() if json.loads(each)["id"] in kept}
