"""Each row of the table in docs/operating.md: what ends a query for good, as the supervisor of that page sees it.

Lost data is in test_recovery_checkpoint.py, outages are in test_outage.py, lost logins and rights in test_lost_access.py, a
checkpoint that was set back is in test_exactly_once.py.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import confluent_kafka as ck
import psutil
import pytest
from pyspark.errors import PySparkException, PySparkRuntimeError, StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StreamingQuery

from pyspark_upsert_kafka import upsert_sink, why_it_ended
from tests.conftest import Broker, options
from tests.local_registry import Registry
from tests.spark.batches import save
from tests.spark.conftest import CONNECT, eventually, run_to_end
from tests.spark.streams import Batches, message, read, running
from tests.spark.supervised import supervised_end, supervisor
from tests.spark.test_sink_stream import put, stream
from tests.unit.registry.fake_registry import serving


def copied(frame: DataFrame, to: dict[str, str], checkpoint: Path) -> StreamingQuery:
    """Starts a query that writes these rows."""
    writer = frame.writeStream.format("upsert-kafka").options(**to)
    return writer.option("checkpointLocation", str(checkpoint)).start()


# Processes that die


def planners() -> set[psutil.Process]:
    """The processes of this session that plan the batches of sources in Python.

    Those of a server of Spark Connect are below the process that has started it and this client.
    """
    is_client = CONNECT is not None and not CONNECT.startswith("local")
    ours = psutil.Process().parent() if is_client else psutil.Process()
    found = set()
    for process in ours.children(recursive=True) if ours else ():
        with suppress(psutil.NoSuchProcess):
            if any("python_streaming_source_runner" in part for part in process.cmdline()):
                found.add(process)
    return found


@pytest.mark.connect
@pytest.mark.long("a query that is started again")
def test_a_planning_process_that_dies(spark: SparkSession, broker: Broker, tmp_path: Path) -> None:
    """Spark says nothing of it; the query is started again, and goes on."""
    topic, sink = broker.topic(), Batches(tmp_path)
    broker.produce(topic, message(1))

    def start() -> StreamingQuery:
        return sink.start(read(spark, broker, topic), processingTime="0 seconds")

    before = planners()
    query = start()
    eventually(sink.all, "the first message")
    (planner,) = planners() - before
    planner.kill()
    with pytest.raises(PySparkException) as raised:
        query.awaitTermination()
    reported = query.exception()
    assert reported is not None

    assert [why_it_ended(each).restart for each in (raised.value, reported)] == [True, True]
    broker.produce(topic, message(2))
    with running(start()):
        eventually(lambda: len(sink.all()) == 2, "the second message")


# What is read


@pytest.mark.connect
@pytest.mark.parametrize(
    ("message_", "stage"),
    [
        pytest.param(
            ("k", '{"id":1,"name":"x"}'), "key", marks=pytest.mark.long("the same with a bad key")
        ),
        (('{"id":1}', "no JSON"), "value"),
    ],
    ids=["another key format", "a bad message"],
)
def test_a_message_that_cannot_be_read(
    spark: SparkSession, broker: Broker, tmp_path: Path, message_: tuple[str, str], stage: str
) -> None:
    """It is there after each restart too; the text has its place."""
    topic, sink = broker.topic(), Batches(tmp_path)
    broker.produce(topic, message(1))

    def start() -> StreamingQuery:
        query = sink.start(read(spark, broker, topic), processingTime="0 seconds")
        eventually(sink.all, "the first message")
        broker.produce(topic, message_)
        return query

    end = supervised_end(start)

    assert end.error == "DecodeError"
    assert f"topic '{topic}', partition 0, offset 1 cannot be decoded (stage: {stage})" in end.text


def registered(broker: Broker, topic: str, registry: Registry) -> dict[str, str]:
    """Options of a table whose schemas are in the registry."""
    return options(
        broker,
        topic,
        **{f"{side}.format": "avro-confluent" for side in ("key", "value")},
        **{f"{side}.avro-confluent.url": registry.url for side in ("key", "value")},
        **{"value.fields-include": "EXCEPT_KEY"},
    )


@pytest.mark.long(
    "another query that ends; tests/unit/core/test_query_end.py has the table of them"
)
def test_a_writer_whose_schema_does_not_fit_the_columns(
    spark: SparkSession, broker: Broker, registry: Registry, tmp_path: Path
) -> None:
    """Somebody has registered another type for a column; the text names the column."""
    topic, sink = broker.topic(), Batches(tmp_path)
    it = registered(broker, topic, registry)
    save(spark.createDataFrame([(1, 7)], "id BIGINT NOT NULL, n BIGINT"), it)
    reader = spark.readStream.format("upsert-kafka").schema(
        "id BIGINT, n BIGINT, _change_type STRING"
    )

    def start() -> StreamingQuery:
        query = sink.start(reader.options(**it).load(), processingTime="0 seconds")
        eventually(sink.all, "the first message")
        registry.ask("PUT", f"/config/{topic}-value", compatibility="NONE")
        save(spark.createDataFrame([(2, "x")], "id BIGINT NOT NULL, n STRING"), it)
        return query

    end = supervised_end(start)

    assert end.error == "DecodeError"
    assert f"topic '{topic}', partition 0, offset 1" in end.text
    assert "'n'" in end.text


@pytest.mark.long(
    "another query that ends; tests/unit/core/test_query_end.py has the table of them"
)
def test_a_topic_that_is_not_there(spark: SparkSession, broker: Broker, tmp_path: Path) -> None:
    """The text names it."""
    end = supervised_end(lambda: Batches(tmp_path).start(read(spark, broker, "no-such-topic")))

    assert end.error == "BrokerError"
    assert "'no-such-topic'" in end.text


@pytest.mark.long(
    "another query that ends; tests/unit/core/test_query_end.py has the table of them"
)
def test_a_registry_that_is_away(spark: SparkSession, broker: Broker, tmp_path: Path) -> None:
    """A running query reads by schemas that it knows, then waits, and ends for a reason to start it again: no row is lost."""
    topic, sink = broker.topic(), Batches(tmp_path)
    fields = [{"name": "id", "type": "long"}, {"name": "name", "type": "string"}]
    schema = {"type": "record", "name": "r", "fields": fields}

    def row(id_: int, schema_id: int) -> tuple[str, bytes]:
        return f'{{"id":{id_}}}', b"\0\0\0\0" + bytes([schema_id, 2 * id_, 2]) + b"x"

    with serving() as registry:
        registry.schema(1, schema)
        away = {"value.format": "avro-confluent", "value.avro-confluent.url": registry.url}
        frame = read(spark, broker, topic, **away)
        broker.produce(topic, row(1, 1))
        query = sink.start(frame, processingTime="0 seconds")
        eventually(sink.all, "the first row")
        registry.answers["/schemas/ids/2"] = [(503, {"error_code": 50301, "message": "down"})]
        broker.produce(topic, row(2, 1), row(3, 2))

        with pytest.raises(StreamingQueryException) as raised:
            query.awaitTermination(600)
        end = why_it_ended(raised.value)
        assert (end.error, end.restart) == ("BrokerError", True)
        assert f"The schema registry at {registry.url} gives no answer" in end.text

        registry.schema(2, schema)
        run_to_end(sink.start(frame))
    assert sink.all() == [(1, "x", "upsert"), (2, "x", "upsert"), (3, "x", "upsert")]


def test_an_error_of_the_users_own_function(
    spark: SparkSession, broker: Broker, tmp_path: Path
) -> None:
    """It has no class of this package, and only its author knows whether it passes."""
    topic = broker.topic()
    broker.produce(topic, message(1))

    end = supervised_end(lambda: Batches(tmp_path, fails={0}).start(read(spark, broker, topic)))

    assert end.error is None
    assert end.text.startswith("[STREAM_FAILED]")


# What is written


@pytest.mark.long(
    "another query that ends; tests/unit/core/test_query_end.py has the table of them"
)
def test_a_schema_that_the_registry_refuses(
    spark: SparkSession, broker: Broker, registry: Registry, tmp_path: Path
) -> None:
    """The columns of the query are others than those that were registered."""
    source, target = broker.topic(), broker.topic()
    broker.produce(source, message(1))
    it = registered(broker, target, registry)
    save(spark.createDataFrame([(1, 7)], "id BIGINT NOT NULL, name BIGINT"), it)
    registry.ask("PUT", f"/config/{target}-value", compatibility="FULL")

    end = supervised_end(lambda: copied(read(spark, broker, source), it, tmp_path / "checkpoint"))

    assert end.error == "SchemaError"
    assert f"not compatible with those under the subject '{target}-value'" in end.text


@pytest.mark.long(
    "another query that ends; tests/unit/core/test_query_end.py has the table of them"
)
@pytest.mark.parametrize(
    ("columns", "error", "text"),
    [
        (["CAST(NULL AS BIGINT) AS id", "name"], "EncodeError", "'id'"),
        (["id", "repeat('x', 3000000) AS name"], "DeliveryError", "was not delivered"),
    ],
    ids=["a key that is NULL", "a row that is too large"],
)
def test_a_row_that_cannot_be_written(
    spark: SparkSession, broker: Broker, tmp_path: Path, columns: list[str], error: str, text: str
) -> None:
    """It is in the batch after each restart too."""
    source, target = broker.topic(), broker.topic()
    broker.produce(source, message(1))
    rows = read(spark, broker, source).selectExpr(*columns)

    end = supervised_end(lambda: copied(rows, options(broker, target), tmp_path / "checkpoint"))

    assert end.error == error
    assert text in end.text


@pytest.mark.long(
    "another query that ends; tests/unit/core/test_query_end.py has the table of them"
)
def test_an_option_of_the_sink(spark: SparkSession, broker: Broker, tmp_path: Path) -> None:
    """Spark shows it no earlier than in the first batch."""
    source = broker.topic()
    broker.produce(source, message(1))
    wrong = options(broker, broker.topic(), **{"sink.bufer-flush.max-rows": "5"})

    end = supervised_end(
        lambda: copied(read(spark, broker, source), wrong, tmp_path / "checkpoint")
    )

    assert end.error == "OptionError"
    assert "sink.bufer-flush.max-rows" in end.text


@pytest.mark.long(
    "another query that ends; tests/unit/core/test_query_end.py has the table of them"
)
def test_a_topic_of_the_sink_that_was_deleted(
    spark: SparkSession, broker: Broker, tmp_path: Path
) -> None:
    """The text names it."""
    source, target = broker.topic(), broker.topic()
    broker.produce(source, message(1))
    quickly = {
        "properties.request.timeout.ms": "3000",
        "properties.default.api.timeout.ms": "6000",
        "properties.delivery.timeout.ms": "20000",
    }

    def start() -> StreamingQuery:
        to = options(broker, target, **quickly)
        query = copied(read(spark, broker, source), to, tmp_path / "checkpoint")
        eventually(lambda: bool(broker.messages(target)), "the first row")
        broker.delete(target)
        broker.produce(source, message(2))
        return query

    end = supervised_end(start)

    assert end.error in ("BrokerError", "UnknownTopicError", "DeliveryError")
    assert f"'{target}'" in end.text


@pytest.mark.long(
    "another query that ends; tests/unit/core/test_query_end.py has the table of them"
)
@pytest.mark.classic("exactly once is refused over Spark Connect")
def test_a_writer_that_is_fenced_off(spark: SparkSession, broker: Broker, tmp_path: Path) -> None:
    """Another program writes under its transactional ids: started again, each would fence off the other."""
    target, files, over = broker.topic(), tmp_path / "in", threading.Event()
    for number in range(100):
        put(files, number, (number, "x", "+I"))
    sink = upsert_sink(
        options(broker, target),
        **{"sink.delivery-guarantee": "exactly-once", "sink.transactional-id-prefix": target},
        **{"sink.parallelism": 1},
    )

    def take_over(id_: str) -> None:
        while not over.wait(0.05):
            with suppress(ck.KafkaException):
                broker.producer(**{"transactional.id": id_}).init_transactions(10)

    others: list[threading.Thread] = []

    def start() -> StreamingQuery:
        writer = stream(spark, files).writeStream.foreachBatch(sink)
        query = writer.option("checkpointLocation", str(tmp_path / "checkpoint")).start()
        others.append(threading.Thread(target=take_over, args=(f"{target}-{query.id}-0-0",)))
        others[0].start()
        return query

    try:
        end = supervised_end(start)
    finally:
        over.set()
        for other in others:
            other.join(60)

    assert end.error in ("BrokerError", "DeliveryError")
    assert "It is fenced off, and writes nothing more" in end.text


@pytest.mark.connect
@pytest.mark.long("two queries, of which one is started twice")
def test_several_queries_are_supervised_in_one_thread(
    spark: SparkSession, broker: Broker, tmp_path: Path
) -> None:
    """With sinks of the format, which Spark does not find in a thread of one's own; one whose worker did not start begins again."""
    pairs = {name: (broker.topic(), broker.topic()) for name in ("users", "orders")}
    tries: list[str] = []

    def starter(name: str) -> Callable[[], StreamingQuery]:
        source, target = pairs[name]
        broker.produce(source, message(len(name)))

        def start() -> StreamingQuery:
            tries.append(name)
            if tries.count("orders") == 1 and name == "orders":
                raise PySparkRuntimeError("Python worker failed to connect back.")
            writer = read(spark, broker, source).writeStream.format("upsert-kafka")
            writer = writer.options(**options(broker, target)).trigger(availableNow=True)
            return writer.option("checkpointLocation", str(tmp_path / name)).start()

        return start

    supervisor()(*map(starter, pairs), pause_s=0.1)

    assert sorted(tries) == ["orders", "orders", "users"]
    assert [len(broker.messages(target)) for _, target in pairs.values()] == [1, 1]
