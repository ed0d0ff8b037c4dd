"""`run_sql`: scripts of Flink's SQL over real topics, as streams and in batch mode."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.streaming import DataStreamWriter, StreamingQuery

from pyspark_upsert_kafka import BrokerError, CheckpointError, OptionError, run_sql
from tests.conftest import Broker
from tests.spark.conftest import CONNECT

VIEWS = [
    (1, "Europe", "2024-01-01 00:00:01"), (2, "Europe", "2024-01-01 00:00:02"), (1, "Europe", "2024-01-01 00:11:00"),
    (3, "Asia", "2024-01-01 00:00:09.5"), (None, "Asia", "2024-01-01 00:12:00"),
]  # fmt: skip

TABLES = """
CREATE TABLE views (user_id BIGINT, viewtime TIMESTAMP(3), user_region STRING,
  WATERMARK FOR viewtime AS viewtime - INTERVAL '2' SECOND)
WITH ('connector' = 'kafka', 'topic' = '{views}', 'format' = 'json', 'scan.bounded.mode' = 'latest-offset');
CREATE TABLE users (id BIGINT, name STRING, age INT, PRIMARY KEY (id) NOT ENFORCED)
WITH ('connector' = 'upsert-kafka', 'topic' = '{users}', 'key.format' = 'json', 'value.format' = 'json',
  'scan.bounded.mode' = 'latest-offset');
CREATE TABLE per_window (begin_ TIMESTAMP(3), region STRING, n BIGINT, PRIMARY KEY (begin_, region) NOT ENFORCED)
WITH ('connector' = 'upsert-kafka', 'topic' = '{windows}', 'key.format' = 'json', 'value.format' = 'json');
CREATE TABLE copied (who STRING, number DOUBLE, id BIGINT, PRIMARY KEY (id) NOT ENFORCED)
WITH ('connector' = 'upsert-kafka', 'topic' = '{copied}', 'key.format' = 'json', 'value.format' = 'json');
"""

INSERT = "SET 'execution.runtime-mode' = 'batch'; INSERT INTO copied VALUES ('a', 1, 1);"


@pytest.fixture
def tables(broker: Broker) -> str:
    """A script's tables, over topics of their own; `views` has messages, and `users` two users."""
    topics = {name: broker.topic(2) for name in ("views", "users", "windows", "copied")}
    send_views(broker, topics["views"])
    broker.produce(
        topics["users"], *(user(number, f"{{a}} 'x' {number}", 40 + number) for number in (1, 2))
    )
    address = f"'properties.bootstrap.servers' = '{broker.servers}', 'format'"
    script = TABLES.format(**topics).replace("'format'", address)
    return script.replace("'key.format'", address.replace("'format'", "'key.format'"))


def send_views(broker: Broker, topic: str) -> None:
    """The page views, as JSON without a key."""
    names = ("user_id", "user_region", "viewtime")
    values = [json.dumps(dict(zip(names, view, strict=True))) for view in VIEWS]
    broker.produce(topic, *((None, value) for value in values))


def user(number: int, name: str, age: int) -> tuple[str, str]:
    """The message of a user."""
    return json.dumps({"id": number}), json.dumps({"id": number, "name": name, "age": age})


def table_in(broker: Broker, topic: str) -> dict[str, object]:
    """The newest value of each key in a topic of JSON; deleted keys are None."""
    return {
        (key or b"").decode(): None if value is None else json.loads(value)
        for key, value in broker.pairs(topic)
    }


def topic_of(script: str, table: str) -> str:
    """The topic of a table in a script."""
    return (
        script.split(f"CREATE TABLE {table} ")[1].split("'topic' = '")[1].split("'", maxsplit=1)[0]
    )


@pytest.mark.connect
def test_streams_of_a_script(
    spark: SparkSession, broker: Broker, tables: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Windows, a copy with its deletes and a printed query; a bounded stream ends by itself."""
    broker.produce(topic_of(tables, "users"), ('{"id": 2}', None))
    tables_before = spark.catalog.listTables()
    queries = run_sql(
        spark,
        tables
        + """
        CREATE TEMPORARY VIEW older AS SELECT id AS i, UPPER(name) AS n, age / 2 AS half FROM users;
        EXECUTE STATEMENT SET BEGIN
          INSERT INTO per_window (region, begin_, n)
            SELECT user_region, window_start, COUNT(DISTINCT user_id)
            FROM TABLE(TUMBLE(TABLE views, DESCRIPTOR(viewtime), INTERVAL '10' MINUTES))
            GROUP BY window_start, window_end, user_region;
          INSERT INTO copied SELECT n || '!', half, i FROM older;
        END;
        SELECT user_id, '{x} \\' AS it FROM views WHERE user_region = 'Asia' AND user_id IS NOT NULL;
        """,
        timeout=600,
    )

    assert [query.isActive for query in queries] == [False] * 3
    assert table_in(broker, topic_of(tables, "per_window")) == {
        f'{{"begin_":"2024-01-01 00:{begin}:00","region":"{region}"}}': {
            "begin_": f"2024-01-01 00:{begin}:00", "region": region, "n": n,
        }
        for begin, region, n in (("00", "Europe", 2), ("10", "Europe", 1), ("00", "Asia", 1), ("10", "Asia", 0))
    }  # fmt: skip
    assert table_in(broker, topic_of(tables, "copied")) == {
        '{"id":1}': {"who": "{A} 'X' 1!", "number": 20.0, "id": 1},
        '{"id":2}': None,
    }
    if CONNECT is None:  # there, the server prints the rows of streams
        assert "|3      |{x} \\|" in capsys.readouterr().out
    assert spark.catalog.listTables() == tables_before


@pytest.mark.long("a script of streams, as others that make test runs")
@pytest.mark.classic("it looks at the writer of a classic session")
def test_the_first_query_has_its_source_before_the_next_starts(
    spark: SparkSession, tables: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two that start their sources at once in a new session can break it, by a race in Spark."""
    seen: list[list[str]] = []
    start = DataStreamWriter.start

    def watched(writer: DataStreamWriter) -> StreamingQuery:
        seen.append([query.status["message"] for query in spark.streams.active])
        return start(writer)

    monkeypatch.setattr(DataStreamWriter, "start", watched)
    run_sql(
        spark,
        tables
        + """
        EXECUTE STATEMENT SET BEGIN
          INSERT INTO copied SELECT name, age, id FROM users;
          INSERT INTO copied SELECT name || '!', age, id FROM users;
        END;
        """,
        timeout=600,
    )

    assert len(seen) == 2
    assert not [each for messages in seen for each in messages if each.startswith("Initializing")]


def test_a_batch_reads_what_the_one_before_wrote(
    spark: SparkSession, broker: Broker, tables: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """In batch mode each statement is done when the next begins, and any SELECT is run over tables as of now."""
    done = run_sql(
        spark,
        tables
        + """
        SET 'execution.runtime-mode' = 'batch';
        INSERT INTO copied VALUES ('one', 1, 1), ('two', 2.5, 3);
        INSERT INTO copied (id, who) SELECT c.id + 10, u.name FROM copied AS c JOIN users AS u ON c.id = u.id
          WHERE u.age > (SELECT MIN(age) FROM users) - 1;
        SELECT COUNT(*) AS n, SUM(id) / 2 AS half, AVG(id) AS mean FROM copied;
        """,
    )

    assert done == []
    assert table_in(broker, topic_of(tables, "copied")) == {
        '{"id":1}': {"who": "one", "number": 1.0, "id": 1},
        '{"id":3}': {"who": "two", "number": 2.5, "id": 3},
        '{"id":11}': {"who": "{a} 'x' 1", "number": None, "id": 11},
    }
    assert "|3  |7   |5   |" in capsys.readouterr().out


@pytest.mark.long("a script of streams, as others that make test runs")
def test_a_stream_writes_deletes(spark: SparkSession, broker: Broker, tables: str) -> None:
    """A column METADATA FROM 'change-type' says of each row whether it deletes its key."""
    copied = tables[tables.index("CREATE TABLE copied") :]
    kinds = copied.replace("copied (", "kinds (kind STRING METADATA FROM 'change-type', ", 1)
    (query,) = run_sql(
        spark,
        f"""{tables}{kinds}
        INSERT INTO kinds (id, who, kind)
          SELECT user_id, user_region, CASE user_region WHEN 'Asia' THEN 'delete' ELSE 'upsert' END
          FROM views WHERE user_id IS NOT NULL""",
        timeout=600,
    )

    assert not query.isActive
    assert table_in(broker, topic_of(tables, "copied")) == {
        '{"id":1}': {"who": "Europe", "number": None, "id": 1},
        '{"id":2}': {"who": "Europe", "number": None, "id": 2},
        '{"id":3}': None,
    }


def test_nothing_has_happened_after_an_error(
    spark: SparkSession, broker: Broker, tables: str
) -> None:
    """What only Spark can tell is looked at before the first statement runs, too."""
    window = "SELECT COUNT(*) FROM views GROUP BY TUMBLE(viewtime, INTERVAL '1' DAY)"
    line = tables.count("\n") + 1

    with pytest.raises(OptionError, match=rf"line {line}, .* gives STRING to column `n` of 'per_"):
        run_sql(
            spark, f"{tables}{INSERT} INSERT INTO per_window SELECT viewtime, 'a', 'b' FROM views"
        )
    with pytest.raises(OptionError, match=rf"line {line}, column \d+: Spark rejects this"):
        run_sql(
            spark,
            f"{tables}{INSERT} SELECT user_id + ARRAY_ FROM (SELECT viewtime AS ARRAY_, user_id FROM views)",
        )
    with pytest.raises(
        OptionError, match=r"it is Europe/Berlin: SET 'table.local-time-zone' = 'UTC'"
    ):
        run_sql(spark, f"{tables}SET 'table.local-time-zone' = 'Europe/Berlin'; {INSERT} {window}")
    with pytest.raises(OptionError, match="'mode' is 'continuous': expected one of"):
        run_sql(spark, tables, mode="continuous")  # type: ignore[arg-type]
    assert broker.pairs(topic_of(tables, "copied")) == []
    assert spark.conf.get("spark.sql.session.timeZone") == "UTC"


@pytest.mark.long("waits whether the topic appears")
@pytest.mark.classic("a client of Spark Connect may see no broker, and asks none")
def test_nothing_has_happened_without_a_topic(
    spark: SparkSession, broker: Broker, tables: str
) -> None:
    """The brokers are asked for every topic before the first statement runs."""
    missing = tables.replace(topic_of(tables, "per_window"), "no-such-topic")

    with pytest.raises(BrokerError, match="Topic 'no-such-topic' does not exist"):
        run_sql(spark, f"{missing}{INSERT} SELECT * FROM per_window")
    assert broker.pairs(topic_of(tables, "copied")) == []


def test_a_script_goes_on_from_its_checkpoint(
    spark: SparkSession, broker: Broker, tables: str, tmp_path: Path
) -> None:
    """Run again, it reads what is new; another script, or one that runs still, is refused before anything is done."""
    folder = f"SET 'execution.checkpointing.dir' = '{tmp_path}';"
    endless = tables.replace("'scan.bounded.mode' = 'latest-offset'", "'scan.parallelism' = '4'")
    script = f"{endless}{folder} INSERT INTO copied SELECT name, age, id FROM users"
    copied = topic_of(tables, "copied")

    (first,) = run_sql(spark, script)
    first.processAllAvailable()
    with pytest.raises(CheckpointError, match="belongs to a query that is running: stop that one"):
        run_sql(spark, script)
    first.stop()
    broker.produce(topic_of(tables, "users"), user(3, "c", 3))
    (second,) = run_sql(spark, script)
    second.processAllAvailable()
    second.stop()

    keys = sorted(key or b"" for key, _ in broker.pairs(copied))
    assert keys == [f'{{"id":{number}}}'.encode() for number in (1, 2, 3)]
    with pytest.raises(CheckpointError, match=r"the checkpoint '.*/copied' belongs to another"):
        run_sql(spark, script.replace("name, age", "name, age + 1"))
