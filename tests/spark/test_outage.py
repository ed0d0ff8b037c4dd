"""Brokers that are all away under a running query, for longer than any answer is waited for."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession
from pyspark.sql.streaming import StreamingQuery

from pyspark_upsert_kafka import LocalKafka, why_it_ended
from pyspark_upsert_kafka.core.query_end import QueryEnd
from tests.conftest import Broker, broker_at, options
from tests.spark.conftest import eventually
from tests.spark.streams import Batches, message, read, running
from tests.spark.supervised import supervisor
from tests.spark.test_sink_stream import put, stream

pytestmark = pytest.mark.long("waits until brokers are given up")

SHORT = {"properties.request.timeout.ms": "2000", "properties.default.api.timeout.ms": "4000"}
LARGE = "x" * 1_000


@pytest.fixture
def kafka(own_kafka: Callable[..., LocalKafka]) -> LocalKafka:
    """A broker of the test's own, which runs."""
    return own_kafka()


@pytest.fixture
def broker(kafka: LocalKafka) -> Broker:
    """What tests do with it."""
    return broker_at(kafka.bootstrap_servers)


def test_an_idle_query_survives_an_outage(
    spark: SparkSession, kafka: LocalKafka, broker: Broker, tmp_path: Path
) -> None:
    """It goes on by itself when the broker is back, and can be stopped meanwhile."""
    topic, sink = broker.topic(2), Batches(tmp_path / "one")
    broker.produce(topic, message(1))
    frame = read(spark, broker, topic, **SHORT)
    stopped = Batches(tmp_path / "two").start(frame, processingTime="0 seconds")
    with running(sink.start(frame, processingTime="0 seconds")) as query:
        eventually(lambda: sink.all() and stopped.lastProgress, "the first message")
        kafka.stop()
        time.sleep(15)
        assert query.isActive, query.exception()
        stopped.stop()  # it waits for no broker: there is none before it has stopped

        kafka.start()
        broker.produce(topic, message(2))
        eventually(lambda: len(sink.all()) == 2 or not query.isActive, "a message after it")
        assert query.isActive, query.exception()


def test_a_query_survives_an_outage_in_the_middle_of_reading(
    spark: SparkSession, kafka: LocalKafka, broker: Broker, tmp_path: Path
) -> None:
    """Its task waits, and reads on from where it was: nothing twice, and nothing left out."""
    topic, sink, count = broker.topic(1), Batches(tmp_path), 100_000
    broker.produce(topic, *[message(n, LARGE) for n in range(count)])
    # One broker connection carries little at a time, so that the reading lasts.
    slow = {**SHORT, "properties.max.partition.fetch.bytes": "100000"}
    frame = read(spark, broker, topic, **slow).selectExpr("id")
    stop = threading.Timer(0.0, kafka.stop)
    with running(sink.start(frame, processingTime="0 seconds")) as query:
        planned = tmp_path / "offsets" / "0"
        eventually(lambda: planned.exists() or not query.isActive, "a planned batch")
        stop.start()
        stop.join()
        time.sleep(15)
        assert query.isActive, query.exception()
        kafka.start()
        eventually(lambda: sink.all() or not query.isActive, "the batch")
        assert query.isActive, query.exception()

    assert sorted(row[0] for row in sink.all()) == list(range(count))


def test_an_outage_that_lasts_too_long_ends_the_query(
    spark: SparkSession, kafka: LocalKafka, broker: Broker, tmp_path: Path
) -> None:
    """The error says what was waited for; a run that begins in an outage does not wait so long."""
    topic, sink = broker.topic(), Batches(tmp_path)
    broker.produce(topic, message(1))
    frame = read(spark, broker, topic, **{**SHORT, "scan.outage.timeout": "8 s"})
    with running(sink.start(frame, processingTime="0 seconds")) as query:
        eventually(sink.all, "the first message")
        kafka.stop()
        eventually(lambda: not query.isActive, "its end")
        end = why(query)
    told = end.text
    assert (end.error, end.restart) == ("BrokerError", True)
    assert f"no Kafka broker at '{broker.servers}' has answered for 8 seconds" in told
    assert "'scan.outage.timeout'" in told

    with running(sink.start(frame, processingTime="0 seconds")) as query:
        eventually(lambda: not query.isActive, "its end")
        end = why(query)
    assert (end.error, end.restart) == ("BrokerError", True)
    assert "answered within 4 seconds" in end.text


def test_an_outage_that_a_sink_does_not_survive(
    spark: SparkSession, kafka: LocalKafka, broker: Broker, tmp_path: Path
) -> None:
    """Its messages are not confirmed in time, or no broker answers; started again later, the query writes them."""
    target, files = broker.topic(), tmp_path / "in"
    to = options(broker, target, **SHORT, **{"properties.delivery.timeout.ms": "6000"})
    put(files, 0, (1, "a", "+I"))
    writer = stream(spark, files).writeStream.format("upsert-kafka").options(**to)
    writer = writer.option("checkpointLocation", str(tmp_path / "checkpoint"))
    with running(writer.start()) as query:
        eventually(lambda: bool(broker.messages(target)), "the first row")
        kafka.stop()
        put(files, 1, (2, "b", "+I"))
        eventually(lambda: not query.isActive, "its end")
        end = why(query)
    assert end.error in ("DeliveryError", "BrokerError")  # it was about to write, or to connect
    assert end.restart

    kafka.start()
    with running(writer.start()):
        eventually(lambda: len(broker.messages(target)) >= 2, "the second row")


def why(query: StreamingQuery) -> QueryEnd:
    """Why a query has ended."""
    exception = query.exception()
    assert exception is not None
    return why_it_ended(exception)


def test_the_supervisor_of_the_docs(
    spark: SparkSession, kafka: LocalKafka, broker: Broker, tmp_path: Path
) -> None:
    """It starts a query again that an outage has ended, and raises what a restart cannot mend."""
    topic, sink = broker.topic(), Batches(tmp_path)
    broker.produce(topic, message(1))
    frame = read(spark, broker, topic, **{**SHORT, "scan.outage.timeout": "1 s"})
    started: list[StreamingQuery] = []
    failed: list[BaseException] = []

    def start() -> StreamingQuery:
        started.append(sink.start(frame, processingTime="0 seconds"))
        return started[-1]

    def supervise() -> None:
        try:
            supervisor()(start, pause_s=0.1, longest_pause_s=1)
        except StreamingQueryException as error:
            failed.append(error)

    supervised = threading.Thread(target=supervise)
    supervised.start()
    try:
        eventually(sink.all, "the first message")
        kafka.stop()
        eventually(lambda: len(started) > 2, "it is started again and again")
        kafka.start()
        broker.produce(topic, message(2))
        eventually(lambda: len(sink.all()) == 2 or failed, "a message after the outage")
        assert not failed
        broker.produce(topic, ("no key", "no value"))
        eventually(lambda: failed, "the bad message")
        assert "cannot be decoded" in str(failed[0])
    finally:
        for query in started:
            query.stop()
        supervised.join(120)


def test_the_supervisor_gives_up_on_a_query_that_has_never_run(
    spark: SparkSession, broker: Broker, tmp_path: Path
) -> None:
    """An address that is mistyped looks like an outage, and no restart helps."""
    elsewhere = {**SHORT, "properties.bootstrap.servers": "no-such-host.invalid:9092"}
    frame = read(spark, broker, "users", **elsewhere)
    started: list[StreamingQuery] = []

    def start() -> StreamingQuery:
        started.append(Batches(tmp_path).start(frame))
        return started[-1]

    with pytest.raises(StreamingQueryException) as raised:
        supervisor()(start, pause_s=0.1, first_tries=2)
    assert len(started) == 2
    assert why_it_ended(raised.value).restart
    assert "no-such-host.invalid" in why_it_ended(raised.value).text
