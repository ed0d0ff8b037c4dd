"""A past whose messages are gone: when it is said of tables and of changes, and that nothing is asked for all other reads."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from pyspark_upsert_kafka.connector.format_catalog import format_options
from pyspark_upsert_kafka.connector.planning import batch_reader, unseen_messages
from pyspark_upsert_kafka.connector.planning.query_start import start_offset
from pyspark_upsert_kafka.connector.planning.unseen_messages import (
    Lack,
    RemovedPast,
    lack_of,
    removed_past,
)
from pyspark_upsert_kafka.core.bytes_column import BytesColumn
from pyspark_upsert_kafka.core.errors import BrokerError
from pyspark_upsert_kafka.core.options.frozen_options import ReadOptions
from pyspark_upsert_kafka.core.options.read import read_options
from pyspark_upsert_kafka.core.positions.cluster_view import Bounds, ClusterView
from pyspark_upsert_kafka.core.positions.offsets import Range, TopicPartition
from pyspark_upsert_kafka.kafka.raw_batch import RawBatch
from tests.table_options import table_options
from tests.unit.connector.fake_cluster import Clock, FakeCluster, stream_options

FIRST_MS = 1_700_000_000_000


class EarliestMessages:
    """Plays the client: partition 1 has messages without times, and 2 cannot be read."""

    def __init__(self) -> None:
        self.asked: list[Range] = []

    def reader(self, settings: object) -> EarliestMessages:
        """Reads anything."""
        return self

    def read(self, range_: Range) -> Iterator[RawBatch]:
        """Compaction has taken the first offset, and a batch may be empty."""
        self.asked.append(range_)
        if range_.partition == 2:
            raise BrokerError("no")
        none, kind = BytesColumn.of([None]), 0 if range_.partition == 1 else 1
        at, time = [range_.begin + 1], [FIRST_MS + range_.partition * 1000]
        yield RawBatch("t", range_.partition, BytesColumn.of([]), BytesColumn.of([]), [])
        yield RawBatch("t", range_.partition, none, none, at, [kind], time)


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> EarliestMessages:
    """The client that is asked for earliest messages."""
    found = EarliestMessages()
    monkeypatch.setattr(unseen_messages, "load_client", lambda _: found)
    return found


def batch(at_ms: int | None = 1_000, **more: str) -> ReadOptions:
    """Options of a batch read of the table as of a time, or of offsets."""
    end = {"scan.bounded.mode": "timestamp", "scan.bounded.timestamp-millis": str(at_ms)}
    offsets = {
        "scan.bounded.mode": "specific-offsets",
        "scan.bounded.specific-offsets": "partition:0,offset:1",
    }
    given = table_options(**{**(offsets if at_ms is None else end), **more})
    return read_options(given, format_options, stream=False)


def changes(mode: str = "changelog", **more: str) -> ReadOptions:
    """Options of a batch that reads changes, or messages."""
    given = table_options(**{"read.mode": mode, **more})
    if mode == "append":
        given = {name: given[name] for name in given if name not in ("primary-key", "key.format")}
    return read_options(given, format_options, stream=False)


SINCE = {"scan.startup.mode": "timestamp", "scan.startup.timestamp-millis": "1000"}
UP_TO = {"scan.bounded.mode": "timestamp", "scan.bounded.timestamp-millis": "2000"}


def found(
    bounds: dict[int, Bounds],
    stop: dict[int, int],
    options: ReadOptions | None = None,
    start: dict[int, int] | None = None,
) -> RemovedPast | None:
    """What is said of partitions with these bounds, beginnings (the earliest offset) and ends."""
    view = ClusterView({"t": "id"}, {TopicPartition("t", n): each for n, each in bounds.items()})
    begins = {tp: each.earliest for tp, each in view.bounds.items()}
    begins.update({TopicPartition("t", n): at for n, at in (start or {}).items()})
    ends = {TopicPartition("t", n): at for n, at in stop.items()}
    return removed_past(begins, ends, view, options or batch())


@pytest.mark.parametrize(
    ("bounds", "stop", "is_whole"),
    [
        (Bounds(0, 30, 30), 0, None),  # the table was empty then
        (Bounds(0, 30, 30), 9, None),
        (Bounds(20, 30, 30), 20, True),
        (Bounds(20, 30, 30), 3, True),  # an offset that is named, or committed
        (Bounds(20, 20, 20), 20, True),  # no message is left
        (Bounds(20, 30, 30), 21, False),
        (Bounds(20, 30, 30), 30, None),  # it has not changed since: the table as of now
        (Bounds(20, 30, 30), 99, None),
    ],
)
def test_what_is_gone(
    client: EarliestMessages, bounds: Bounds, stop: int, is_whole: bool | None
) -> None:
    """All of a partition as it was then, or some keys; nothing is asked for a partition that has its first message still."""
    said = found({0: bounds}, {0: stop})

    assert (None if said is None else said.is_whole) == is_whole
    assert len(client.asked) == (said is not None and bounds.latest > bounds.earliest)


@pytest.mark.parametrize(
    "options",
    [
        batch(9_999_999_999_999),
        changes(),
        changes("append"),
        changes(**{**UP_TO, "scan.bounded.timestamp-millis": "9999999999999"}),
        changes(**{**SINCE, "scan.startup.timestamp-millis": "9999999999999"}),
        changes(**{**UP_TO, "scan.startup.mode": "latest-offset"}),
        stream_options(),
        read_options(table_options(), format_options, stream=False),
        stream_options(**{"scan.startup.mode": "full"}),
    ],
)
def test_what_is_no_past(client: EarliestMessages, options: ReadOptions) -> None:
    """A table as of now, and changes from the earliest offset on or from a named one: nothing is said, and nothing asked."""
    assert found({0: Bounds(20, 30, 30)}, {0: 20}, options) is None
    assert client.asked == []


@pytest.mark.parametrize(
    ("kind", "bounds", "begin", "end", "lack"),
    [
        ("changes-up-to", Bounds(0, 30, 30), 0, 0, None),
        ("changes-up-to", Bounds(20, 30, 30), 20, 20, "all"),
        ("changes-up-to", Bounds(20, 20, 20), 20, 20, "all"),
        ("changes-up-to", Bounds(20, 30, 30), 20, 25, "some"),
        ("changes-up-to", Bounds(20, 30, 30), 20, 30, None),  # all changes that the topic has
        (
            "changes-since",
            Bounds(0, 30, 30),
            0,
            None,
            None,
        ),  # compaction may have taken the first one
        ("changes-since", Bounds(20, 30, 30), 21, None, None),  # an older message is left
        ("changes-since", Bounds(20, 30, 30), 20, None, "some"),
        ("changes-since", Bounds(20, 30, 30), 20, 20, "some"),
        ("changes-since", Bounds(20, 20, 20), 20, None, "some"),  # no message is left
    ],
)
def test_what_changes_lack(
    kind: Any, bounds: Bounds, begin: int, end: int | None, lack: Lack | None
) -> None:
    """Those up to a past time as its table does; those since a time, if no message before that time is left."""
    assert lack_of(kind, bounds, begin, end, needs_first=True) == lack


def test_a_log_begins_anywhere() -> None:
    """Messages without keys up to a past time: only if none is left is it told."""
    gone = Bounds(20, 30, 30)

    assert lack_of("changes-up-to", gone, 20, 25, needs_first=False) is None
    assert lack_of("changes-up-to", gone, 20, 20, needs_first=False) == "all"


@pytest.mark.parametrize(
    ("options", "begin", "end", "text"),
    [
        (
            changes(**UP_TO),
            {},
            {0: 20},
            "The changes up to 1970-01-01T00:00:02Z ('scan.bounded.mode' = 'timestamp') have nothing of topic 't', partition 0 (",
        ),
        (
            stream_options(**UP_TO),
            {},
            {0: 25},
            (
                "The changes up to 1970-01-01T00:00:02Z ('scan.bounded.mode' = 'timestamp') lack the first ones of topic 't', "
                "partition 0 ("
            ),
        ),
        (
            changes(**SINCE),
            {},
            {0: 30},
            (
                "The changes since 1970-01-01T00:00:01Z ('scan.startup.mode' = 'timestamp') may lack the first ones of topic 't', "
                "partition 0 ("
            ),
        ),
        (
            changes("append", **SINCE),
            {},
            {0: 30},
            "The messages since 1970-01-01T00:00:01Z ('scan.startup.mode' = 'timestamp') may lack the first ones of ",
        ),
        (stream_options(**SINCE), {0: 21}, {0: 30}, None),
    ],
)
def test_how_it_is_said_of_changes(
    client: EarliestMessages,
    options: ReadOptions,
    begin: dict[int, int],
    end: dict[int, int],
    text: str | None,
) -> None:
    """What is read, by which option, what it lacks, and the time of the earliest message that is left."""
    said = found({0: Bounds(20, 30, 30)}, end, options, begin)

    if text is None:
        assert said is None
        return
    assert said is not None
    assert said.text.startswith(text)
    assert "the earliest one left is of 2023-11-14T22:13:20Z" in said.text
    assert "To read earlier " + text.split()[1] in said.advice


def test_partitions_that_lack_all_and_some(client: EarliestMessages) -> None:
    """A partition of which a part is gone is named beside one of which nothing is left."""
    gone = Bounds(20, 30, 30)
    said = found({0: gone, 1: gone, 2: gone}, {0: 20, 1: 25, 2: 30})

    assert said is not None
    whole, some = said.text.split(". It may lack rows of ")
    assert "has no row of topic 't', partition 0 (" in whole
    assert some.startswith("topic 't', partition 1 (")
    assert "partition 2" not in said.text


def test_how_it_is_said(client: EarliestMessages) -> None:
    """The partitions of which nothing is left, and the newest of their times; a time that is not known stops nothing."""
    gone = Bounds(1_020, 1_030, 1_030)
    said = found(dict.fromkeys(range(5), gone), dict.fromkeys(range(4), 1_020) | {4: 1_025})

    assert said == RemovedPast(
        "The table as of 1970-01-01T00:00:01Z ('scan.bounded.mode' = 'timestamp') has no row of topic 't', partition 0 (its "
        "messages before offset 1,020 are gone, the earliest one left is of 2023-11-14T22:13:20Z), topic 't', partition 1 (its "
        "messages before offset 1,020 are gone), topic 't', partition 2 (its messages before offset 1,020 are gone) and of 1 "
        "more: what was there at that time is not known any more, and compared with a later table every key looks new. "
        "It may lack rows of topic 't', partition 4 (its messages before offset 1,020 are gone, the earliest one left is of "
        "2023-11-14T22:13:24Z): a key is missing whose last change before that time is one of those that are gone",
        "No time up to 2023-11-14T22:13:20Z can be had. To read earlier tables in future, raise retention.ms of the topic",
        is_whole=True,
    )
    assert [each.partition for each in client.asked] == [0, 1, 2, 4]


def test_keys_that_may_be_missing(client: EarliestMessages) -> None:
    """The end is later than the first message that is left: an offset has no time that could be told."""
    said = found({0: Bounds(20, 30, 30)}, {0: 21}, batch(None))

    assert said is not None
    assert said.text.startswith(
        "The table as of an earlier time ('scan.bounded.mode' = 'specific-offsets') may lack rows of topic 't', partition 0 "
    )
    assert said.advice.startswith("To read")


def test_a_stream_since_a_time_warns(
    client: EarliestMessages, caplog: pytest.LogCaptureFixture
) -> None:
    """One without an end too, when it starts; one from the earliest offset on does not."""
    cluster = FakeCluster()
    cluster.create("t", 1)
    cluster.set("t", 0, 30, 30)

    start_offset(cluster, stream_options(), Clock())  # type: ignore[arg-type]
    assert caplog.records == []
    start_offset(cluster, stream_options(**SINCE), Clock())  # type: ignore[arg-type]
    (record,) = caplog.records
    assert "The changes since 1970-01-01T00:00:01Z" in record.getMessage()


def test_a_batch_warns_once(client: EarliestMessages, caplog: pytest.LogCaptureFixture) -> None:
    """Of all partitions together; the read itself goes on, and has no row of them."""
    cluster = FakeCluster()
    cluster.create("t", 2)
    cluster.set("t", 0, 20, 30)
    cluster.topic_settings = {"cleanup.policy": "delete", "min.compaction.lag.ms": "0"}

    assert batch_reader.ranges_of_batch(cluster, batch(None), clock=Clock()) == []  # type: ignore[arg-type]
    (record,) = caplog.records
    assert (
        "has no row of topic 't', partition 0 (its messages before offset 20" in record.getMessage()
    )
