"""What open transactions hide, and when it is said."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

from pyspark_upsert_kafka.connector.planning import unseen_messages
from pyspark_upsert_kafka.connector.planning.topic_observer import Observer
from pyspark_upsert_kafka.connector.planning.unseen_messages import (
    Hidden,
    hidden_messages,
    warn_of_hidden,
)
from pyspark_upsert_kafka.core.bytes_column import BytesColumn
from pyspark_upsert_kafka.core.errors import BrokerError
from pyspark_upsert_kafka.core.positions.cluster_view import Bounds, ClusterView
from pyspark_upsert_kafka.core.positions.offsets import Range, StreamOffset, TopicPartition
from pyspark_upsert_kafka.kafka.raw_batch import RawBatch
from tests.unit.connector.fake_cluster import World, stream_options, world

PLACE = TopicPartition("t", 0)
HERE = StreamOffset({PLACE: 0})


@pytest.fixture
def there(monkeypatch: pytest.MonkeyPatch) -> World:
    """A broker in memory with topic ``t``, and a clock that stands still."""
    found = world(monkeypatch)
    found.cluster.create("t")
    return found


def test_how_it_is_said() -> None:
    """Where, how many, since when, and from which offset on."""
    assert str(Hidden(PLACE, 1000, 201, since_ms=1_700_000_000_123)) == (
        "In topic 't', partition 0, an open transaction hides 201 newer offsets since 2023-11-14T22:13:20Z: nothing from "
        "offset 1,000 on is read until it ends"
    )
    assert "hides 1 newer offset: nothing" in str(Hidden(PLACE, 1000, 1))


@pytest.mark.parametrize(("age_ms", "warnings"), [(9_999, 0), (10_000, 1)])
def test_a_batch_warns_of_one_that_is_open_for_long(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, age_ms: int, warnings: int
) -> None:
    """Others that write exactly once hold one open nearly always, which is no reason for a warning with each read."""
    monkeypatch.setattr(unseen_messages, "now_ms", lambda: 1_000_000)

    warn_of_hidden([Hidden(PLACE, 10, 5, since_ms=1_000_000 - age_ms), Hidden(PLACE, 10, 5)])

    assert len(caplog.records) == warnings


def test_a_stream_that_stands_still_warns_once(
    there: World, caplog: pytest.LogCaptureFixture
) -> None:
    """After a minute before the same transaction; a writer that commits all the time is no reason."""
    observer = Observer(stream_options(), there.clock)

    def minutes(count: int) -> list[str]:
        caplog.clear()
        for _ in range(count * 2):
            there.clock.now += 30.0
            observer.view(HERE)
        return [record.getMessage() for record in caplog.records]

    with caplog.at_level(logging.WARNING):
        there.cluster.set("t", 0, 0, 10)
        assert minutes(5) == []
        for stable in range(10, 20):
            there.cluster.set("t", 0, 0, 30, latest=stable)
            observer.view(HERE)
            there.clock.now += 30.0
        assert [record.getMessage() for record in caplog.records] == []
        there.cluster.set("t", 0, 0, 230, latest=29)
        (warning,) = minutes(5)
        assert warning.startswith(
            "In topic 't', partition 0, an open transaction hides 201 newer offsets: nothing from offset 29"
        )
        assert minutes(5) == []


@pytest.mark.parametrize("since_ms", [2**63 - 1, -(2**63)])
def test_a_time_that_no_calendar_has(since_ms: int) -> None:
    """A writer may give its messages any time: the warning has the number, and the query goes on."""
    assert f"newer offset since the timestamp {since_ms}: " in str(Hidden(PLACE, 7, 1, since_ms))


class FirstMessages:
    """Plays the client: the first message that a transaction hides in each partition."""

    def __init__(self) -> None:
        self.asked: list[Range] = []

    def reader(self, settings: object) -> FirstMessages:
        """Reads what is not committed, too."""
        assert settings.read_committed is False  # type: ignore[attr-defined]
        return self

    def read(self, range_: Range) -> Iterator[RawBatch]:
        """Partition 1 has no times; partition 2 cannot be read."""
        self.asked.append(range_)
        if range_.partition == 2:
            raise BrokerError("no")
        nothing, kind = BytesColumn.of([None]), 0 if range_.partition == 1 else 1
        yield RawBatch("t", range_.partition, nothing, nothing, [range_.begin], [kind], [77])


def test_since_when_is_looked_up_for_the_first_three(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each costs a request for one offset; partitions that hide nothing are none of them. Where it is not known, all else is told."""
    client = FirstMessages()
    monkeypatch.setattr(unseen_messages, "load_client", lambda _: client)
    bounds = {TopicPartition("t", n): Bounds(0, 5 + n, 20) for n in (4, 0, 1, 2)}
    view = ClusterView({"t": "id"}, {TopicPartition("t", 3): Bounds(0, 9, 9), **bounds})

    found = hidden_messages(view, stream_options())

    assert found == [
        Hidden(TopicPartition("t", 0), 5, 15, 77),
        Hidden(TopicPartition("t", 1), 6, 14),
        Hidden(TopicPartition("t", 2), 7, 13),
        Hidden(TopicPartition("t", 4), 9, 11),
    ]
    assert client.asked == [Range("t", n, 5 + n, 6 + n, "id") for n in range(3)]
