"""A source that is added to, or taken out of, a query that goes on from its checkpoint: with names, and without."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.errors import AnalysisException, StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.streaming.readwriter import DataStreamReader

from pyspark_upsert_kafka import upsert_sink, why_it_ended
from tests.conftest import Broker, options
from tests.spark.conftest import run_to_end
from tests.spark.streams import SCHEMA, Batches, message

SETTING = "spark.sql.streaming.queryEvolution.enableSourceEvolution"
LAYOUT = "spark.sql.streaming.offsetLog.formatVersion"
"""Which layout the offsets of a new checkpoint have: 2 = by name. PySpark 4.2 does not choose it because of `SETTING`."""

needs_names = pytest.mark.skipif(
    not hasattr(DataStreamReader, "name"), reason="names of sources need PySpark 4.2"
)


@pytest.fixture
def names(spark: SparkSession) -> Iterator[None]:
    """Sources have names."""
    spark.conf.set(SETTING, "true")
    spark.conf.set(LAYOUT, "2")
    yield
    spark.conf.unset(SETTING)
    spark.conf.unset(LAYOUT)


class Topics:
    """Topics ``a``, ``b`` and ``c``, of which each has a message more whenever `add` is called."""

    def __init__(self, spark: SparkSession, broker: Broker) -> None:
        self.spark, self.broker = spark, broker
        self.by_letter = {letter: broker.topic() for letter in "abc"}
        self.count = 0

    def add(self) -> None:
        """One more message in each, with the same number."""
        self.count += 1
        for topic in self.by_letter.values():
            self.broker.produce(topic, message(self.count))

    def union(self, *letters: str, **names: str) -> DataFrame:
        """A stream of topics without names, or of topics by their names: ``union("a")``, ``union(name_of_a="a")``."""
        sources = [self._source(letter, None) for letter in letters]
        sources += [self._source(letter, name) for name, letter in names.items()]
        whole = sources[0]
        for source in sources[1:]:
            whole = whole.unionAll(source)
        return whole

    def _source(self, letter: str, name: str | None) -> DataFrame:
        reader = self.spark.readStream.format("upsert-kafka").schema(SCHEMA)
        reader = reader.options(**options(self.broker, self.by_letter[letter]))
        named = reader if name is None else reader.name(name)
        return named.load().select(f.lit(letter).alias("letter"), "id")


@pytest.fixture
def topics(spark: SparkSession, broker: Broker) -> Topics:
    """Topics with a message each."""
    found = Topics(spark, broker)
    found.add()
    return found


def read_by(sink: Batches, frame: DataFrame) -> list[tuple[str, int]]:
    """What the next batch of a query reads."""
    before = len(sink.rows)
    run_to_end(sink.start(frame))
    rows = sink.rows
    assert len(rows) == before + 1
    return sorted((letter, id_) for letter, id_, _ in rows[max(rows)])


@pytest.mark.long("several runs of a query with several sources")
@needs_names
@pytest.mark.connect
@pytest.mark.usefixtures("names")
def test_named_sources_come_and_go(topics: Topics, tmp_path: Path) -> None:
    """Each goes on from where its name stands in the checkpoint, whatever its place; a new name starts at its start.

    A name that was left out for a while goes on from where it was.
    """
    sink = Batches(tmp_path)

    assert read_by(sink, topics.union(one="a", two="b")) == [("a", 1), ("b", 1)]
    topics.add()
    added = read_by(sink, topics.union(three="c", two="b", one="a"))
    assert added == [("a", 2), ("b", 2), ("c", 1), ("c", 2)]
    topics.add()
    assert read_by(sink, topics.union(two="b", three="c")) == [("b", 3), ("c", 3)]
    topics.add()
    again = read_by(sink, topics.union(two="b", three="c", one="a"))
    assert again == [("a", 3), ("a", 4), ("b", 4), ("c", 4)]
    topics.add()
    renamed = read_by(sink, topics.union(two="b", three="c", new_name="a"))
    assert renamed == [*(("a", n) for n in range(1, 6)), ("b", 5), ("c", 5)]


@pytest.mark.long("several runs of a query with several sources")
@needs_names
@pytest.mark.usefixtures("names")
def test_a_name_that_is_left_out_for_too_long(
    spark: SparkSession, topics: Topics, tmp_path: Path
) -> None:
    """It starts anew when Spark has removed the batches of the checkpoint that knew where it was."""
    sink = Batches(tmp_path)
    spark.conf.set("spark.sql.streaming.minBatchesToRetain", "1")
    try:
        read_by(sink, topics.union(one="a", two="b"))
        for _ in range(3):
            topics.add()
            read_by(sink, topics.union(two="b"))
        again = read_by(sink, topics.union(one="a", two="b"))
    finally:
        spark.conf.unset("spark.sql.streaming.minBatchesToRetain")

    assert again == [("a", n) for n in range(1, 5)]


@pytest.mark.long("several runs of a query with several sources")
@needs_names
@pytest.mark.usefixtures("names")
def test_a_source_that_is_taken_out_of_a_batch_that_has_failed(
    topics: Topics, tmp_path: Path
) -> None:
    """Spark records what the batch was planned to read of it as read: the page says to let the batch finish first."""
    sink = Batches(tmp_path, fails={1})
    read_by(sink, topics.union(one="a", two="b"))
    topics.add()
    with pytest.raises(StreamingQueryException, match="as it was told to"):
        run_to_end(sink.start(topics.union(one="a", two="b")))
    assert read_by(sink, topics.union(two="b")) == [("b", 2)]
    topics.add()

    assert read_by(sink, topics.union(one="a", two="b")) == [("a", 3), ("b", 3)]


@pytest.mark.long("several runs of a query with several sources")
@needs_names
@pytest.mark.usefixtures("names")
def test_a_name_of_another_topic(topics: Topics, tmp_path: Path) -> None:
    """Its offsets are those of the topic that had the name: nothing is read from the wrong place."""
    sink = Batches(tmp_path)
    read_by(sink, topics.union(one="a", two="b"))

    with pytest.raises(StreamingQueryException) as raised:
        run_to_end(sink.start(topics.union(one="c", two="b")))
    end = why_it_ended(raised.value)
    assert (end.error, end.restart) == ("DataLossError", False)
    assert "a checkpoint of another query, perhaps" in end.text


@pytest.mark.long("several runs of a query with several sources")
@needs_names
def test_what_spark_refuses(spark: SparkSession, topics: Topics, tmp_path: Path) -> None:
    """A name without the setting; a source without a name under it; names for a checkpoint that was begun without."""
    sink = Batches(tmp_path)
    with pytest.raises(AnalysisException, match="SOURCE_NAMING_NOT_SUPPORTED"):
        sink.start(topics.union(one="a"))  # a classic session looks at the names before it starts
    read_by(sink, topics.union("a"))
    spark.conf.set(SETTING, "true")
    try:
        with pytest.raises(AnalysisException, match="UNNAMED_STREAMING_SOURCES"):
            sink.start(topics.union("a"))
        with pytest.raises(StreamingQueryException, match="CANNOT_ENABLE_ON_EXISTING") as raised:
            run_to_end(sink.start(topics.union(one="a")))
    finally:
        spark.conf.unset(SETTING)
    assert why_it_ended(raised.value).error is None


@pytest.mark.long("several runs of a query with several sources")
@pytest.mark.parametrize("letters", ["a", "abc"], ids=["taken out", "added"])
def test_another_number_of_sources_without_names(
    topics: Topics, tmp_path: Path, letters: str
) -> None:
    """Spark ends the query before it reads anything; no supervisor starts it again."""
    sink = Batches(tmp_path)
    read_by(sink, topics.union("a", "b"))
    topics.add()

    with pytest.raises(StreamingQueryException, match=r"There are \[2\] sources in the") as raised:
        run_to_end(sink.start(topics.union(*letters)))
    assert not why_it_ended(raised.value).restart
    assert len(sink.rows) == 1


@pytest.mark.long("several runs of a query with several sources")
def test_sources_without_names_that_change_places(topics: Topics, tmp_path: Path) -> None:
    """Spark gives each the offsets of the other: their topics do not fit, and nothing is read."""
    sink = Batches(tmp_path)
    read_by(sink, topics.union("a", "b"))
    topics.add()

    with pytest.raises(StreamingQueryException) as raised:
        run_to_end(sink.start(topics.union("b", "a")))
    end = why_it_ended(raised.value)
    assert (end.error, end.restart) == ("DataLossError", False)
    assert "the options no longer name it" in end.text
    assert len(sink.rows) == 1


@pytest.mark.long("several runs of a query with several sources")
@needs_names
@pytest.mark.classic("exactly once is refused over Spark Connect")
@pytest.mark.usefixtures("names")
def test_exactly_once_with_named_sources(topics: Topics, broker: Broker, tmp_path: Path) -> None:
    """A batch that runs again is known by the new layout of the checkpoint too, and writes nothing twice."""
    target, checkpoint = broker.topic(), tmp_path / "checkpoint"
    sink = upsert_sink(
        options(broker, target),
        **{"sink.delivery-guarantee": "exactly-once", "sink.transactional-id-prefix": target},
        **{"sink.parallelism": 1},
    )

    def run() -> None:
        rows = topics.union(one="a", two="b").withColumnRenamed("letter", "name")
        writer = rows.writeStream.option("checkpointLocation", str(checkpoint))
        run_to_end(writer.trigger(availableNow=True).foreachBatch(sink).start())

    run()
    topics.add()
    run()
    written = broker.pairs(target)
    for file in (checkpoint / "commits").glob(
        "*1*"
    ):  # as if the driver had died before it could say so
        file.unlink()
    run()

    assert len(written) == 4
    assert broker.pairs(target) == written
