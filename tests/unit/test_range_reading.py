"""One pass over one range: what is concluded from what a broker says, whichever client reads."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import cast

import pytest

from pyspark_upsert_kafka.core.cluster_view import Bounds, TopicInfo
from pyspark_upsert_kafka.core.errors import BrokerError, DataLossError
from pyspark_upsert_kafka.core.offsets import Range
from pyspark_upsert_kafka.kafka import planned_topic, reading, rechecking
from pyspark_upsert_kafka.kafka.admin_requests import AdminRequests
from pyspark_upsert_kafka.kafka.interfaces import RawBatch
from pyspark_upsert_kafka.kafka.reading import RangeReading
from tests.unit.fake_cluster import Clock

SAME, OTHER, NO_IDS = TopicInfo("id", 1), TopicInfo("other", 1), TopicInfo("", 1)
RANGE = Range("t", 0, 0, 4, topic_id="id")


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """A clock that moves only while somebody waits; nothing was ever asked."""
    monkeypatch.setattr(planned_topic, "_confirmed", {})
    found = Clock()
    for module in (rechecking, planned_topic, reading):
        monkeypatch.setattr(module, "time", found)
    return found


@dataclass
class Broker:
    """What a broker says: of the topic, look by look (the last answer for ever), and of its log."""

    clock: Clock
    topic: Sequence[TopicInfo | BrokerError | None] = (SAME,)
    bounds: Sequence[Bounds | None] = (Bounds(0, 4, 4),)
    silent_s: float = 0.0
    asked: int = 0
    asked_bounds: int = 0
    positions: list[int] = field(default_factory=list)

    def existing(self, names: Sequence[str]) -> dict[str, TopicInfo]:
        """The next answer about the topic."""
        assert list(names) == ["t"]
        self.asked += 1
        answer = self.topic[min(self.asked, len(self.topic)) - 1]
        if isinstance(answer, BrokerError):
            raise answer
        return {} if answer is None else {"t": answer}

    def bounds_now(self) -> Bounds | None:
        """The next answer."""
        self.asked_bounds += 1
        return self.bounds[min(self.asked_bounds, len(self.bounds)) - 1]


class OneByOne(RangeReading):
    """Reads offset by offset, each at once; with ``silent_s`` nothing comes for so long after the second."""

    def __init__(self, range_: Range, broker: Broker) -> None:
        super().__init__(range_, "nowhere:9092", lambda: nullcontext(cast("AdminRequests", broker)))
        self._broker = broker
        self._begin = broker.clock.now

    def _next(self) -> RawBatch:
        self._broker.clock.sleep(0.05)
        at = self._position
        silent = at == 2 and self._broker.clock.now < self._begin + self._broker.silent_s
        offsets = [] if silent else [at]
        self._moved(at + len(offsets))
        return RawBatch("t", 0, [b"k"] * len(offsets), [b"v"] * len(offsets), offsets)

    def _go_to(self, position: int) -> None:
        self._broker.positions.append(position)

    def _bounds(self) -> Bounds | None:
        return self._broker.bounds_now()

    def _client_errors(self) -> tuple[bool, str]:
        return False, ""


def read(broker: Broker, range_: Range = RANGE, *, fail: bool = True) -> list[int]:
    """The offsets that reading the range gives."""
    batches = OneByOne(range_, broker).batches(fail_on_data_loss=fail, timeout_s=120.0)
    return [offset for batch in batches for offset in batch.offsets]


def test_the_topic_is_compared_before_the_first_message_and_after_the_last(clock):
    """With one question each."""
    broker = Broker(clock)

    assert read(broker) == [0, 1, 2, 3]
    assert broker.asked == 2


def test_ranges_read_in_one_moment_share_the_first_comparison(clock):
    """A thousand partitions of a topic ask little more than once each; a second later it is asked again."""
    broker = Broker(clock)
    for _ in range(3):
        assert read(broker) == [0, 1, 2, 3]
    assert broker.asked == 4

    clock.now += 1
    read(broker)
    assert broker.asked == 6
    read(broker, Range("t", 0, 0, 4, topic_id="id of a topic before"), fail=False)
    assert broker.asked > 6, "another topic is not the one that was just seen"


@pytest.mark.parametrize("stale", [OTHER, None, TopicInfo("id", 0)])
@pytest.mark.parametrize("looks", [1, 5])
@pytest.mark.parametrize("before", [True, False])
def test_a_stale_answer_about_the_topic_is_no_loss(clock, stale, looks, before, caplog):
    """It is asked for again, and reading goes on."""
    answers = [*[stale] * looks, SAME] if before else [SAME, *[stale] * looks, SAME]

    assert read(Broker(clock, answers)) == [0, 1, 2, 3]
    assert caplog.records == []


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (OTHER, "deleted and created again while it was read"),
        (None, "the topic was deleted while it was read"),
        (TopicInfo("id", 0), "the topic was deleted while it was read"),
    ],
)
def test_a_topic_created_again_in_the_middle_fails_the_task(clock, answer, reason):
    """After the last message of the range, so that the batch is not done: some rows may be of the other."""
    batches = OneByOne(RANGE, Broker(clock, [SAME, answer])).batches(
        fail_on_data_loss=True, timeout_s=120.0
    )
    offsets = [next(batches).offsets[0] for _ in range(4)]

    with pytest.raises(DataLossError, match=f"topic 't', partition 0, wanted offset 0.*{reason}"):
        next(batches)
    assert offsets == [0, 1, 2, 3]


def test_a_topic_created_again_before_the_first_message_is_not_read(clock, caplog):
    """Its offsets mean other messages: an error, or a warning and nothing of the range."""
    with pytest.raises(DataLossError, match="created again"):
        read(Broker(clock, [OTHER]))
    with caplog.at_level(logging.WARNING):
        assert read(Broker(clock, [OTHER]), fail=False) == []
    assert len(caplog.records) == 1


def test_without_fail_on_data_loss_a_topic_created_again_is_one_warning(clock, caplog):
    """What was read is read; the next batch begins with the new topic."""
    assert read(Broker(clock, [SAME, OTHER]), fail=False) == [0, 1, 2, 3]
    (told,) = caplog.records
    assert "created again while it was read" in told.getMessage()


@pytest.mark.parametrize("known", ["", "id"])
def test_without_ids_nothing_is_concluded_from_them(clock, known):
    """A range that was planned without an id is not asked about; an answer without one proves nothing."""
    broker = Broker(clock, [NO_IDS])

    assert read(broker, Range("t", 0, 0, 4, topic_id=known)) == [0, 1, 2, 3]
    assert broker.asked == (2 if known else 0)


def test_a_broker_that_does_not_answer_fails_the_task(clock):
    """Without an answer nobody knows whose messages they were."""
    with pytest.raises(BrokerError, match="away"):
        read(Broker(clock, [SAME, BrokerError("away")]))


def test_silence_is_looked_into_and_goes_by(clock, caplog):
    """Nothing comes for a minute; looks show stale things, or nothing, for less than ten seconds each."""
    broker = Broker(
        clock,
        topic=[SAME, None, None, OTHER, SAME, BrokerError("away"), SAME],
        bounds=[*[Bounds(0, 3, 3)] * 5, None, Bounds(0, 4, 4)],
        silent_s=60,
    )

    assert read(broker) == [0, 1, 2, 3]
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []


@pytest.mark.parametrize(
    ("broker", "reason"),
    [
        ({"topic": [SAME, None]}, "the topic was deleted while it was read"),
        ({"topic": [SAME, OTHER]}, "created again while it was read"),
        ({"bounds": [Bounds(0, 2, 2)]}, "ends at offset 2, before offset 4"),
    ],
)
def test_silence_with_unanimous_looks_is_a_loss(clock, broker, reason, caplog):
    """An error that names where; or a warning, and the range ends there."""
    with pytest.raises(DataLossError, match=f"wanted offset 2.*{reason}"):
        read(Broker(clock, silent_s=1000, **broker))
    with caplog.at_level(logging.WARNING):
        assert read(Broker(clock, silent_s=1e9, **broker), fail=False) == [0, 1]
    assert len(caplog.records) == 1
