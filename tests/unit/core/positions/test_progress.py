"""What Spark's progress of a query says about our sources."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from pyspark_upsert_kafka.connector.format_catalog import format_options
from pyspark_upsert_kafka.core.errors import CheckpointError
from pyspark_upsert_kafka.core.options.read import read_options
from pyspark_upsert_kafka.core.positions.cluster_view import Bounds, ClusterView
from pyspark_upsert_kafka.core.positions.offsets import StreamOffset, TopicPartition
from pyspark_upsert_kafka.core.positions.progress import (
    SourceBatch,
    Written,
    bad_messages,
    latest_offset,
    query_batch,
)
from tests.table_options import table_options

A, B = TopicPartition("t", 0), TopicPartition("t", 1)
END = StreamOffset({A: 7, B: 5}, topic_ids={"t": "id-1"})


def view_of(latest: StreamOffset, **hidden: int) -> ClusterView:
    """A view with these high watermarks, and how many offsets of partitions ``A`` and ``B`` are hidden."""
    of = {A: hidden.get("a", 0), B: hidden.get("b", 0)}
    bounds = {tp: Bounds(0, at - of.get(tp, 0), at) for tp, at in latest.positions.items()}
    return ClusterView(latest.topic_ids, bounds)


def source(
    end: StreamOffset = END, latest: StreamOffset | None = None, bad: str = "fail", **more: object
) -> dict[str, Any]:
    """A source in Spark's JSON; without ``latest`` as from Spark before 4.2."""
    return {
        "description": "org.apache.spark.sql.execution.datasources.v2.python.PythonMicroBatchStream@1",
        "startOffset": None,
        "endOffset": end.to_json(),
        "latestOffset": None if latest is None else latest_offset(view_of(latest), bad),
        "numInputRows": 12,
        "inputRowsPerSecond": 20.0,
        "processedRowsPerSecond": 10.0,
        **more,
    }


def progress(*sources: dict[str, Any], **more: object) -> dict[str, Any]:
    """A query's progress in Spark's JSON."""
    return {
        "id": "e1a8c4b0-0000-4000-8000-000000000001",
        "runId": "e1a8c4b0-0000-4000-8000-000000000002",
        "name": "copy",
        "batchId": 3,
        "batchDuration": 1234,
        "sources": list(sources),
        **more,
    }


def only(given: dict[str, Any]) -> SourceBatch:
    """The one source of ours."""
    (found,) = query_batch(given).sources
    return found


def test_a_batch_of_a_query():
    """Name, number and duration of the batch; rows, speed and positions of the source."""
    batch = query_batch(progress(source(latest=replace(END, positions={A: 9, B: 5}))))

    assert (batch.query_id, batch.name) == ("e1a8c4b0-0000-4000-8000-000000000001", "copy")
    assert (batch.number, batch.seconds) == (3, 1.234)
    (found,) = batch.sources
    assert found == SourceBatch({A: 7, B: 5}, {A: 2, B: 0}, 12, 10.0, 0, {A: 0, B: 0})
    assert batch.sources[0].total_lag == 2


PYTHON_SINK = {"description": "org.apache.spark.sql.execution.datasources.v2.python.PythonTable@1"}
OTHER_SINK = {"description": "ForeachBatchSink", "numOutputRows": -1}


@pytest.mark.parametrize(
    ("sink", "written", "said"),
    [
        (PYTHON_SINK, Written(2, 1, 30), "; wrote 2 rows, 1 tombstones, 30 bytes"),
        (PYTHON_SINK, Written(), "; wrote 0 rows, 0 tombstones, 0 bytes"),
        (PYTHON_SINK, None, "; wrote unknown"),
        (OTHER_SINK, Written(2, 0, 30), "; wrote 2 rows, 0 tombstones, 30 bytes"),
        (OTHER_SINK, None, ""),
    ],
)
def test_what_was_written(sink: dict[str, object], written: Written | None, said: str) -> None:
    """Not known is not 0; of a sink that cannot be ours nothing is said."""
    line = str(query_batch(progress(source(), sink=sink), written))

    assert line.endswith(f"bad unknown{said}")


@pytest.mark.parametrize("name", [{"name": None}, {}], ids=["null", "left out"])
def test_a_query_without_a_name_is_called_by_its_id(name):
    """Spark's JSON has null there; nothing is guessed when it is missing."""
    given = {**progress(), **name}
    if not name:
        del given["name"]

    assert query_batch(given).name == given["id"]


@pytest.mark.parametrize(
    ("end", "hidden", "waiting"),
    [
        ({A: 7, B: 5}, {}, {A: 0, B: 0}),
        # Read up to the open transaction, and not yet up to it.
        ({A: 7, B: 5}, {"a": 201}, {A: 201, B: 0}),
        ({A: 2, B: 5}, {"a": 201}, {A: 201, B: 0}),
        # A transaction that is older than what was read with ``read_uncommitted`` before.
        ({A: 100, B: 5}, {"a": 201}, {A: 108, B: 0}),
    ],
)
def test_the_lag_counts_what_waits_for_open_transactions(
    end: dict[TopicPartition, int], hidden: dict[str, int], waiting: dict[TopicPartition, int]
) -> None:
    """It goes up to the high watermark; one more number says how much of it cannot be read yet."""
    high = StreamOffset({A: 7 + hidden.get("a", 0), B: 5}, topic_ids={"t": "id-1"})
    given = source(StreamOffset(end), high)
    given["latestOffset"] = latest_offset(view_of(high, **hidden), "fail")

    found = only(progress(given))

    assert found.lag == {A: high.positions[A] - end[A], B: 0}
    assert (found.waiting, found.total_waiting) == (waiting, sum(waiting.values()))


def test_what_waits_is_not_known() -> None:
    """An earlier version on a Connect server does not tell it: then it is not 0."""
    given = source(END, END)
    del given["latestOffset"]["stable"]

    assert only(progress(given)).waiting == {A: None, B: None}


@pytest.mark.parametrize(
    ("end", "latest", "lag", "total"),
    [
        ({A: 7}, {A: 7}, {A: 0}, 0),
        ({A: 7, B: 5}, {A: 10, B: 6}, {A: 3, B: 1}, 4),
        # The view was older than the position, as after a broker's restart.
        ({A: 7}, {A: 6}, {A: 0}, 0),
        # A partition that the query has not begun, and one that is gone.
        ({A: 7}, {A: 7, B: 9}, {A: 0, B: None}, None),
        ({A: 7, B: 5}, {A: 7}, {A: 0, B: None}, None),
        # Spark before 4.2 reports no latest offset.
        ({A: 7}, None, {A: None}, None),
        # A pattern that no topic matches yet.
        ({}, {}, {}, 0),
    ],
)
def test_the_lag(end, latest, lag, total):
    """What is beyond the batch in each partition; None where that is not known, and then in total too."""
    given = source(StreamOffset(end), None if latest is None else StreamOffset(latest))
    found = only(progress(given))

    assert found.lag == lag
    assert found.total_lag == total


def test_a_bounded_stream_lags_behind_its_end():
    """What comes after its end, or in partitions that are no part of it, is not read and no lag."""
    end = StreamOffset({A: 7}, stop={A: 8})

    assert only(progress(source(end, StreamOffset({A: 90, B: 4})))).lag == {A: 1}


@pytest.mark.parametrize(
    ("says", "metrics", "known"),
    [
        ("fail", {}, 0),
        ("fail", {"m": {"bad_messages": 4}}, 0),
        ("column", {"m": {"bad_messages": 4}}, 4),
        ("column", {"m": {"bad_messages": 4}, "n": {"rows": 9, "bad_messages": 1}}, 5),
        ("column", {"m": {"bad_messages": None}}, None),
        ("column", {"m": {"bad_messages": 4}, "n": {"bad_messages": "x"}}, None),
        ("column", {"m": None}, None),
        ("column", {"m": {"rows": 9}}, None),
        ("column", {}, None),
        ("skip", {}, None),
    ],
)
def test_bad_messages(says, metrics, known):
    """A batch that is done has none where they fail the query; else as many as the query observes, if it does."""
    given = progress(source(latest=END, bad=says), observedMetrics=metrics)

    assert only(given).bad_messages == known


def test_one_count_is_that_of_one_source():
    """Of two sources that show bad messages as rows it is not known which one a count belongs to."""
    shows, fails = source(latest=END, bad="column"), source(latest=END)
    metrics = {"m": {"bad_messages": 4}}

    def counts(*sources):
        batch = query_batch(progress(*sources, observedMetrics=metrics))
        return [source.bad_messages for source in batch.sources]

    assert counts(fails, shows) == [0, 4]
    assert counts(shows, shows) == [None, None]


def test_a_count_before_spark_4_2():
    """The source cannot say what becomes of bad messages there, but a query can observe them."""
    assert only(progress(source(), observedMetrics={"m": {"bad_messages": 4}})).bad_messages == 4
    assert only(progress(source())).bad_messages is None


@pytest.mark.parametrize(
    "offset",
    [
        None,
        7,
        "7",
        {"t": {"0": 5}},
        {"version": 1},
        {"version": 1, "topics": ["t"]},
        {"version": 1, "topics": {"t": {"0": 5}}},
    ],
    ids=str,
)
def test_sources_of_others_are_left_out(offset):
    """A source is ours by the whole form of its offset: its description is any Python source's."""
    theirs = source(endOffset=offset, latestOffset=offset)

    assert query_batch(progress(theirs)).sources == ()
    assert len(query_batch(progress(theirs, source())).sources) == 1


def test_offsets_of_a_later_version():
    """A client of Spark Connect that is older than the server says so, and guesses nothing."""
    later = source(endOffset={**END.to_json(), "version": 99})

    with pytest.raises(CheckpointError, match="version 99"):
        query_batch(progress(later))


def test_a_rate_that_spark_does_not_know():
    """Spark leaves out a number that is none (a batch of no duration)."""
    given = source()
    del given["processedRowsPerSecond"]

    assert only(progress(given)).rows_per_second is None


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({}, "fail"),
        ({"error-handling.mode": "column"}, "column"),
        ({"error-handling.mode": "ignore"}, "skip"),
        ({"error-handling.mode": "log", "error-handling.log.target": "bad"}, "skip"),
        ({"value.json.ignore-parse-errors": "true"}, "skip"),
        ({"key.json.ignore-parse-errors": "true", "error-handling.mode": "column"}, "skip"),
        ({"value.json.ignore-parse-errors": "false"}, "fail"),
        ({"read.mode": "append", "key.format": None, "primary-key": None}, "fail"),
    ],
    ids=str,
)
def test_what_becomes_of_bad_messages(options, says):
    """As the error mode says, unless a format leaves them out before."""
    given = read_options(table_options(**options), format_options, stream=True)

    assert bad_messages(given) == says
