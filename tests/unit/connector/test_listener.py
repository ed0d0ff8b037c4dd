"""The listener: what it remembers, prints and gives to Prometheus."""

from __future__ import annotations

import io
import json
import os
import re
import sys
import tempfile
import time
import uuid
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyte
import pytest
from prometheus_client import CollectorRegistry, generate_latest

from pyspark_upsert_kafka import OptionError, ProgressListener
from pyspark_upsert_kafka.connector.reported_writes import report
from pyspark_upsert_kafka.core.positions.offsets import StreamOffset, TopicPartition
from pyspark_upsert_kafka.core.positions.progress import Written
from tests.unit.core.positions.test_progress import END, A, B, progress, source

ID = "e1a8c4b0-0000-4000-8000-000000000001"
RUN = "e1a8c4b0-0000-4000-8000-000000000002"
REPORTED = f'upsert_kafka_last_report_timestamp_seconds{{query="copy",query_id="{ID}"}}'
FAILURES = f'upsert_kafka_query_failures_total{{query="copy",query_id="{ID}"}}'


def done(*sources: dict[str, Any], **more: object) -> Any:
    """Spark's event of a micro-batch that is done."""
    given = progress(*sources, **more)
    return SimpleNamespace(progress=SimpleNamespace(json=json.dumps(given)))


def idle(query: str = ID) -> Any:
    """Spark's event of a query that finds nothing to do."""
    return SimpleNamespace(id=uuid.UUID(query))


def ended(query: str = ID, exception: str | None = None) -> Any:
    """Spark's event of a query that has ended."""
    return SimpleNamespace(id=uuid.UUID(query), runId=uuid.UUID(RUN), exception=exception)


def _registry(listener: ProgressListener) -> CollectorRegistry:
    registry = CollectorRegistry(auto_describe=True)
    registry.register(listener.metrics)
    return registry


def samples(listener: ProgressListener) -> dict[str, float]:
    """What Prometheus reads, by name and labels."""
    lines = generate_latest(_registry(listener)).decode().splitlines()
    pairs = (line.rsplit(" ", 1) for line in lines if not line.startswith("#"))
    return {name: float(value) for name, value in pairs}


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """For what sinks report."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))


def test_one_line_for_each_batch():
    """It is written when the batch is done, for queries that read a source of ours."""
    printed = io.StringIO()
    listener = ProgressListener(print_to=printed)
    listener.onQueryProgress(done(source(latest=END)))
    listener.onQueryProgress(done(source(endOffset={"t": {"0": 1}})))
    listener.onQueryProgress(done(source(latest=END), batchId=4))

    assert re.findall(r"(\w+), batch (\d)", printed.getvalue()) == [("copy", "3"), ("copy", "4")]


def test_it_knows_the_newest_batch_of_each_running_query():
    """A query that has ended lags behind nothing."""
    other = str(uuid.uuid4())
    listener = ProgressListener()
    listener.onQueryProgress(done(source()))
    listener.onQueryProgress(done(source(), id=other))
    listener.onQueryProgress(done(source(), batchId=4))

    assert {query: batch.number for query, batch in listener.batches.items()} == {ID: 4, other: 3}
    listener.onQueryTerminated(ended())
    listener.onQueryTerminated(ended(str(uuid.uuid4())))
    assert listener.batches.keys() == {other}


def test_metrics():
    """Gauges are those of the newest batch, counters those of all batches since the listener was added."""
    before = time.time()
    listener = ProgressListener()
    listener.onQueryProgress(done(source(latest=END)))
    latest = StreamOffset({A: 9, B: 5})
    listener.onQueryProgress(done(source(latest=latest), batchDuration=2500, batchId=4))
    found = samples(listener)
    reported_at = found.pop(REPORTED)

    assert before <= reported_at <= time.time()
    assert found == {
        FAILURES: 0,
        f'upsert_kafka_batch_seconds{{query="copy",query_id="{ID}"}}': 2.5,
        f'upsert_kafka_rows_total{{query="copy",query_id="{ID}",source="0"}}': 24,
        f'upsert_kafka_bad_messages_total{{query="copy",query_id="{ID}",source="0"}}': 0,
        f'upsert_kafka_position{{partition="0",query="copy",query_id="{ID}",source="0",topic="t"}}': 7,
        f'upsert_kafka_position{{partition="1",query="copy",query_id="{ID}",source="0",topic="t"}}': 5,
        f'upsert_kafka_lag{{partition="0",query="copy",query_id="{ID}",source="0",topic="t"}}': 2,
        f'upsert_kafka_lag{{partition="1",query="copy",query_id="{ID}",source="0",topic="t"}}': 0,
        f'upsert_kafka_lag_in_open_transactions{{partition="0",query="copy",query_id="{ID}",source="0",topic="t"}}': 0,
        f'upsert_kafka_lag_in_open_transactions{{partition="1",query="copy",query_id="{ID}",source="0",topic="t"}}': 0,
    }


def test_a_query_that_has_nothing_to_do_reports_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """A query that waits for a broker does neither: the time of its last report stands still."""
    listener = ProgressListener()
    listener.onQueryIdle(idle())
    monkeypatch.setattr(time, "time", lambda: 100.0)
    listener.onQueryProgress(done(source(latest=END)))
    first = samples(listener)[REPORTED]
    monkeypatch.setattr(time, "time", lambda: 110.0)
    listener.onQueryIdle(idle())

    assert (first, samples(listener)[REPORTED]) == (100.0, 110.0)


def test_failures_are_counted_also_while_the_query_does_not_run():
    """Prometheus sees a failure even if a supervisor starts the query again at once. A query that was stopped leaves nothing."""
    listener, found = ProgressListener(), []
    for exception in ("BrokerError", "DataLossError", None):
        listener.onQueryProgress(done(source(latest=END)))
        running = samples(listener)[FAILURES]
        listener.onQueryTerminated(ended(exception=exception))
        found.append((running, samples(listener)))
    stopped = ProgressListener()
    stopped.onQueryProgress(done(source(latest=END)))
    stopped.onQueryTerminated(ended())

    assert found == [(0, {FAILURES: 1}), (1, {FAILURES: 2}), (2, {FAILURES: 2})]
    assert samples(stopped) == {}


def test_what_is_not_known_has_no_sample():
    """Prometheus takes 0 for a fact."""
    listener = ProgressListener()
    new = TopicPartition("t", 2)
    given = source(latest=StreamOffset({A: 9, new: 1}), bad="column")
    listener.onQueryProgress(done(given))
    names = samples(listener)

    assert [name for name in names if "bad" in name] == []
    assert [re.findall(r'partition="(\d)', name) for name in names if "_lag{" in name] == [["0"]]
    assert [re.findall(r'partition="(\d)', name) for name in names if "_position" in name] == [
        ["0"],
        ["1"],
    ]


def test_bad_messages_are_counted_where_they_are_known():
    """After a kill Spark reports no latest offset of the batch that runs again: the counter is that of all others."""
    listener = ProgressListener()
    bad = f'upsert_kafka_bad_messages_total{{query="copy",query_id="{ID}",source="0"}}'
    rows = bad.replace("bad_messages", "rows")
    counted = {"observedMetrics": {"m": {"bad_messages": 4}}}
    found = []
    for batch in (
        done(source(latest=None)),
        done(source(latest=END)),
        done(source(latest=END, bad="column"), **counted),
        done(source(latest=END, bad="column")),
    ):
        listener.onQueryProgress(batch)
        found.append((samples(listener)[rows], samples(listener).get(bad)))

    assert found == [(12, None), (24, 0), (36, 4), (48, 4)]


def test_queries_of_one_name():
    """Two sessions may each have one; Prometheus refuses a page that has a sample twice."""
    listener = ProgressListener()
    listener.onQueryProgress(done(source(latest=END)))
    listener.onQueryProgress(done(source(latest=END), id="other"))
    given = generate_latest(_registry(listener)).decode().splitlines()
    found = [line.rsplit(" ", 1)[0] for line in given if not line.startswith("#")]

    assert sorted(found) == sorted(set(found))
    assert len([each for each in found if 'query="copy",query_id="other"' in each]) == 11


def test_a_query_that_is_started_again_with_more_sources():
    """It keeps its id; sums of other sources would be wrong, so they begin anew."""
    listener = ProgressListener()
    listener.onQueryProgress(done(source(latest=END)))
    listener.onQueryProgress(done(source(latest=END), source(latest=END)))
    found = samples(listener)

    assert [found[name] for name in found if "rows_total" in name] == [12, 12]


def test_a_file_that_takes_no_lines(caplog: pytest.LogCaptureFixture) -> None:
    """A listener must not fail; it says once that it prints no more, and goes on counting."""
    closed = io.StringIO()
    closed.close()
    listener = ProgressListener(print_to=closed)
    listener.onQueryProgress(done(source()))
    listener.onQueryProgress(done(source(), batchId=4))

    assert listener.batches[ID].number == 4
    (told,) = caplog.messages
    assert told.startswith("ProgressListener prints no more lines: I/O operation on closed file")


def test_a_line_on_a_terminal_stands_alone():
    """Spark's progress bar, which has no end of line, is gone where it stands."""
    bar = "\r[Stage 3:=====================>                     (1 + 1) / 2]"
    master, terminal = os.openpty()
    with os.fdopen(master, "rb"), os.fdopen(terminal, "w") as file:
        file.write(bar)
        ProgressListener(print_to=file).onQueryProgress(done(source(latest=END)))
        file.write(bar)
        file.flush()
        seen = b""
        while seen.count(bar.encode()) < 2:  # a terminal passes on what is written piece by piece
            seen += os.read(master, 4096)
    shown = pyte.Screen(80, 3)
    pyte.ByteStream(shown).feed(seen)

    line, below, _ = (row.rstrip() for row in shown.display)
    assert line == "copy, batch 3 (1.2 s): t 12 rows, 10/s, lag 0, bad 0"
    assert below == bar.strip()


@pytest.mark.parametrize("file", [io.StringIO(), SimpleNamespace()])
def test_a_line_elsewhere_is_a_line_alone(file: Any) -> None:
    """A file, a pipe or what only knows how to write gets no control characters."""
    if isinstance(file, SimpleNamespace):
        told: list[str] = []
        file.write, file.flush, file.getvalue = told.append, lambda: None, lambda: "".join(told)
    ProgressListener(print_to=file).onQueryProgress(done(source(latest=END)))

    assert file.getvalue().startswith("copy, batch 3")


def test_a_file_that_cannot_write_every_character():
    """A query's name may hold what it has no bytes for."""
    given = io.BytesIO()
    listener = ProgressListener(print_to=io.TextIOWrapper(given, "ascii"))
    listener.onQueryProgress(done(source(), name="Zürich"))

    assert given.getvalue().startswith(rb"Z\xfcrich, batch 3 ")


def test_without_the_package_for_prometheus(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only metrics need it, and say how it is installed."""
    monkeypatch.delitem(
        sys.modules, "pyspark_upsert_kafka.connector.listener_metrics", raising=False
    )
    monkeypatch.setitem(sys.modules, "prometheus_client.core", None)
    listener = ProgressListener()
    listener.onQueryProgress(done(source()))

    with pytest.raises(OptionError, match=r"pip install 'pyspark-upsert-kafka\[metrics\]'"):
        _ = listener.metrics


def test_metrics_before_and_after_a_query():
    """They can be registered at any time, and those of a query end with it."""
    listener = ProgressListener()
    registry = CollectorRegistry(auto_describe=True)
    registry.register(listener.metrics)
    assert (
        registry.get_sample_value("upsert_kafka_batch_seconds", {"query": "copy", "query_id": ID})
        is None
    )
    listener.onQueryProgress(done(source()))
    assert (
        registry.get_sample_value("upsert_kafka_batch_seconds", {"query": "copy", "query_id": ID})
        == 1.234
    )
    listener.onQueryTerminated(ended())

    assert (
        registry.get_sample_value("upsert_kafka_batch_seconds", {"query": "copy", "query_id": ID})
        is None
    )
    with pytest.raises(ValueError, match="Duplicated timeseries"):
        registry.register(ProgressListener().metrics)


def test_the_same_topic_read_twice():
    """Two sources of a query are distinguished by their number, whatever they read."""
    listener = ProgressListener()
    listener.onQueryProgress(done(source(latest=END), source(latest=END)))

    names = samples(listener)

    for metric in ("upsert_kafka_rows_total", "upsert_kafka_lag", "upsert_kafka_position"):
        found = [re.findall(r'source="(\d)"', name)[0] for name in names if metric in name]
        assert {*found} == {"0", "1"}, metric


def test_what_sinks_have_written_where_that_is_known():
    """In the line, in the batch, and as counters of all batches since the listener was added; else nothing is said of it."""
    printed = io.StringIO()
    listener = ProgressListener(print_to=printed)
    listener.onQueryStarted(SimpleNamespace(id=uuid.UUID(ID), runId=uuid.UUID(RUN)))
    found = []
    for batch, written in ((3, Written(12, 3, 400)), (4, None), (5, Written(0, 1, 2))):
        if written is not None:
            report(RUN, batch, written)
        listener.onQueryProgress(done(source(latest=END), batchId=batch))
        counted = [value for name, value in samples(listener).items() if "written" in name]
        found.append((listener.batches[ID].written, counted))

    assert found == [
        (Written(12, 3, 400), [12, 3, 400]),
        (None, [12, 3, 400]),
        (Written(0, 1, 2), [12, 4, 402]),
    ]
    lines = printed.getvalue().splitlines()
    assert lines[0].endswith(", bad 0; wrote 12 rows, 3 tombstones, 400 bytes")
    assert lines[1].endswith(", bad 0")


def test_a_query_that_only_writes_to_us():
    """It is reported as soon as it is known that it does."""
    printed = io.StringIO()
    listener = ProgressListener(print_to=printed)
    listener.onQueryProgress(done(batchId=2))
    assert (listener.batches, printed.getvalue()) == ({}, "")
    report(RUN, 3, Written(1, 0, 9))
    listener.onQueryProgress(done(batchId=3))

    assert printed.getvalue() == "copy, batch 3 (1.2 s): wrote 1 rows, 0 tombstones, 9 bytes\n"

    listener.onQueryProgress(done(batchId=4))
    assert (listener.batches[ID].number, listener.batches[ID].written) == (4, None)
    assert printed.getvalue().endswith("copy, batch 4 (1.2 s): wrote unknown\n")


def test_a_query_that_has_ended_leaves_no_file(tmp_path: Path) -> None:
    """Not even the folder of its run."""
    listener = ProgressListener()
    listener.onQueryProgress(done(source()))
    report(RUN, 4, Written(1, 0, 9))
    assert list(tmp_path.rglob("4.*"))
    listener.onQueryTerminated(ended())

    assert not list(tmp_path.rglob(RUN))
