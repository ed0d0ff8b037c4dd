"""Fetching one range: what is concluded from what a fetcher reports, whichever client is used."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyspark_upsert_kafka.core.bytes_column import BytesColumn
from pyspark_upsert_kafka.core.errors import (
    BrokerError,
    DataLossError,
    RetriableBrokerError,
    UnknownTopicError,
)
from pyspark_upsert_kafka.core.positions.cluster_view import Bounds, TopicInfo
from pyspark_upsert_kafka.core.positions.offsets import Range
from pyspark_upsert_kafka.core.query_end import why_it_ended
from pyspark_upsert_kafka.kafka import loss_checks
from pyspark_upsert_kafka.kafka.failures import ClientErrors
from pyspark_upsert_kafka.kafka.loss_checks import LossChecks, PlannedTopic
from pyspark_upsert_kafka.kafka.range_fetch import Fetched, RangeFetch
from pyspark_upsert_kafka.kafka.raw_batch import RawBatch
from pyspark_upsert_kafka.kafka.retrying import ReadWaits
from tests.unit.connector.fake_cluster import Clock

SAME, OTHER, NO_IDS = TopicInfo("id", 1), TopicInfo("other", 1), TopicInfo("", 1)
RANGE = Range("t", 0, 0, 4, topic_id="id")
NEVER = 1e9
"""So long after the begin that no test waits for it."""


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """A clock that moves only while somebody waits; nothing was ever asked."""
    monkeypatch.setattr(loss_checks, "_confirmed", {})
    monkeypatch.setattr(loss_checks, "_lost", {})
    return Clock()


@dataclass
class FakeFetcher:
    """Fetches message by message from a log in memory.

    Args:
        clock: Moves on by each poll.
        log: The offsets of its messages.
        topic_answers: What the broker says of the topic, check by check; the last answer for ever.
        bounds_answers: What it says of the log, likewise.
        silent_at: Polls at this offset bring nothing.
        silent_s: For so long.
        refused_at: The broker says that it does not have this offset.
        refusals: So many times.
        broken_at: A message that nobody can read.
        damaged_at: A message that comes damaged.
        damages: So many times.
    """

    clock: Clock
    log: Sequence[int] = range(4)
    topic_answers: Sequence[TopicInfo | BrokerError | None] = (SAME,)
    bounds_answers: Sequence[Bounds | None] = (Bounds(0, 4, 4),)
    silent_at: int = 2
    silent_s: float = 0.0
    refused_at: int | None = None
    refusals: int = 1
    broken_at: int | None = None
    damaged_at: int | None = None
    damages: int = 1
    errors: ClientErrors = field(default_factory=ClientErrors)
    topic_checks: int = 0
    bounds_checks: int = 0
    seeks: list[int] = field(default_factory=list)
    is_closed: bool = False

    def __post_init__(self) -> None:
        self._began_at = self.clock.now

    def seek(self, offset: int) -> None:
        """Takes note of it."""
        self.seeks.append(offset)

    def poll(self, position: int, end: int) -> Fetched:
        """The next message, after a moment."""
        self.clock.sleep(0.05)
        if position == self.refused_at and self.refusals:
            self.refusals -= 1
            return fetched([], position, is_out_of_range=True)
        if position == self.damaged_at and self.damages:
            self.damages -= 1
            return Fetched(fetched([], position).batch, position, damage="bad CRC")
        if position == self.broken_at:
            return fetched([], position, fatal_error="it is corrupt")
        if position == self.silent_at and self.clock.now < self._began_at + self.silent_s:
            return fetched([], position)
        found = next((offset for offset in self.log if position <= offset < end), None)
        return fetched([], end) if found is None else fetched([found], found + 1)

    def bounds(self) -> Bounds:
        """The next answer."""
        self.bounds_checks += 1
        found = self.bounds_answers[min(self.bounds_checks, len(self.bounds_answers)) - 1]
        if found is None:
            raise BrokerError("no leader")
        return found

    def topic(self) -> TopicInfo | None:
        """The next answer."""
        self.topic_checks += 1
        answer = self.topic_answers[min(self.topic_checks, len(self.topic_answers)) - 1]
        if isinstance(answer, BrokerError):
            raise answer
        return answer

    def close(self) -> None:
        """Takes note of it."""
        self.is_closed = True


@dataclass
class ErraticFetcher(FakeFetcher):
    """Passes as many offsets with each poll as the next step says, -1 = is out of range; at last all of them."""

    steps: Sequence[int] = ()

    def poll(self, position: int, end: int) -> Fetched:
        """The messages of the next step."""
        step, *self.steps = self.steps or [end]
        if step < 0:
            return fetched([], position, is_out_of_range=True)
        reached = min(position + step, end)
        return fetched([offset for offset in self.log if position <= offset < reached], reached)


def fetched(
    offsets: list[int],
    position: int,
    *,
    is_out_of_range: bool = False,
    fatal_error: str | None = None,
) -> Fetched:
    """What a poll brings: messages whose value has one byte."""
    count = len(offsets)
    batch = RawBatch(
        "t", 0, BytesColumn.of([b"k"] * count), BytesColumn.of([b"v"] * count), offsets
    )
    return Fetched(batch, position, count, is_out_of_range, fatal_error)


def fetch(
    fetcher: FakeFetcher,
    range_: Range = RANGE,
    *,
    fail: bool = True,
    renewed: Callable[[], FakeFetcher] | None = None,
) -> RangeFetch:
    """A fetch of the range that waits two minutes for a message."""
    checks = LossChecks(fetcher.clock)
    found = RangeFetch(
        fetcher,
        PlannedTopic(range_, "nowhere:9092", fetcher.topic, checks),
        fail_on_data_loss=fail,
        waits=ReadWaits(120.0),
        checks=checks,
    )
    found.renewed = renewed
    return found


def read(fetcher: FakeFetcher, range_: Range = RANGE, *, fail: bool = True) -> list[int]:
    """The offsets that fetching the range gives."""
    return [
        offset for batch in fetch(fetcher, range_, fail=fail).batches() for offset in batch.offsets
    ]


# Position


@pytest.mark.parametrize(
    ("log", "offsets"),
    [
        (range(10), [3, 4, 5, 6, 7]),
        ([3, 7], [3, 7]),
        ([5], [5]),
        ([0, 9], []),
        ([], []),
    ],
)
def test_a_range_ends_by_position(clock, log, offsets):
    """Compaction and transaction markers leave gaps at the begin, inside and at the end: no loss, and no wait."""
    fetcher = FakeFetcher(clock, log, bounds_answers=[None])

    assert read(fetcher, Range("t", 0, 3, 8)) == offsets
    assert (fetcher.seeks, fetcher.bounds_checks) == ([3], 0)
    assert clock.now < 1001


@given(
    log=st.sets(st.integers(0, 20)),
    ends=st.tuples(st.integers(0, 20), st.integers(0, 20)),
    steps=st.lists(st.sampled_from([-1, 0, 1, 2, 7]), max_size=30),
)
def test_each_message_of_the_range_comes_once_and_in_order(log, ends, steps):
    """Whatever each poll brings, as long as the log has the whole range."""
    begin, end = sorted(ends)
    fetcher = ErraticFetcher(Clock(), sorted(log), bounds_answers=[Bounds(0, 21, 21)], steps=steps)

    offsets = read(fetcher, Range("t", 0, begin, end))

    assert offsets == [offset for offset in sorted(log) if begin <= offset < end]


def test_fetching_ends_before_the_last_messages_are_processed(clock):
    """A fetch at the end of the log would be under way meanwhile, and hold up the next range."""
    fetcher = FakeFetcher(clock)
    closed = [fetcher.is_closed for _ in fetch(fetcher).batches()]

    assert closed == [False, False, False, True]


def test_an_empty_range_fetches_nothing(clock):
    """Its end is its begin."""
    assert read(FakeFetcher(clock), Range("t", 0, 3, 3)) == []


def test_the_bytes_of_all_batches_are_counted(clock):
    """The next fetch of the topic is sized by them."""
    fetching = fetch(FakeFetcher(clock))

    assert len(list(fetching.batches())) == fetching.size_bytes == 4


# The planned topic
def test_the_topic_is_compared_before_the_first_message_and_after_the_last(clock):
    """With one question each."""
    fetcher = FakeFetcher(clock)

    assert read(fetcher) == [0, 1, 2, 3]
    assert fetcher.topic_checks == 2


def test_ranges_read_in_one_moment_share_the_first_comparison(clock):
    """A thousand partitions of a topic ask little more than once each; a second later it is asked again."""
    fetcher = FakeFetcher(clock)
    for _ in range(3):
        assert read(fetcher) == [0, 1, 2, 3]
    assert fetcher.topic_checks == 4

    clock.now += 1
    read(fetcher)
    assert fetcher.topic_checks == 6
    read(fetcher, Range("t", 0, 0, 4, topic_id="id of a topic before"), fail=False)
    assert fetcher.topic_checks > 6, "another topic is not the one that was just seen"


@pytest.mark.parametrize("stale", [OTHER, None, TopicInfo("id", 0)])
@pytest.mark.parametrize("checks", [1, 5])
@pytest.mark.parametrize("before", [True, False])
def test_a_stale_answer_about_the_topic_is_no_loss(clock, stale, checks, before, caplog):
    """It is asked for again, and reading goes on."""
    answers = [*[stale] * checks, SAME] if before else [SAME, *[stale] * checks, SAME]

    assert read(FakeFetcher(clock, topic_answers=answers)) == [0, 1, 2, 3]
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
    batches = fetch(FakeFetcher(clock, topic_answers=[SAME, answer])).batches()
    offsets = [next(batches).offsets[0] for _ in range(4)]

    with pytest.raises(DataLossError, match=f"topic 't', partition 0, wanted offset 0.*{reason}"):
        next(batches)
    assert offsets == [0, 1, 2, 3]


def test_a_topic_created_again_before_the_first_message_is_not_read(clock, caplog):
    """Its offsets mean other messages: an error, or a warning and nothing of the range."""
    with pytest.raises(DataLossError, match="created again"):
        read(FakeFetcher(clock, topic_answers=[OTHER]))
    with caplog.at_level(logging.WARNING):
        assert read(FakeFetcher(clock, topic_answers=[OTHER]), fail=False) == []
    assert len(caplog.records) == 1


def test_all_partitions_of_a_lost_topic_take_ten_seconds_together(clock, caplog):
    """A hundred of them in one task; a warning is logged of each."""
    before = clock.now
    for partition in range(100):
        lost = FakeFetcher(clock, topic_answers=[None])
        assert read(lost, Range("t", partition, 0, 4, topic_id="id"), fail=False) == []

    assert clock.now - before < 11
    assert len(caplog.records) == 100


def test_without_ids_a_lost_topic_is_noticed_by_its_silence_once(clock):
    """The next partition is looked up before it is fetched."""
    silent = FakeFetcher(clock, topic_answers=[None], silent_s=NEVER)
    assert read(silent, Range("t", 0, 0, 4), fail=False) == [0, 1]
    lost_at = clock.now

    assert read(FakeFetcher(clock, topic_answers=[None]), Range("t", 1, 0, 4), fail=False) == []
    assert clock.now - lost_at < 1


@pytest.mark.parametrize("later_s", [0, 2])
def test_of_a_topic_that_was_lost_one_lookup_proves_nothing_once_it_is_found(clock, later_s):
    """It may be created again, and then a stale answer is no loss; neither is one long after."""
    assert read(FakeFetcher(clock, topic_answers=[None]), fail=False) == []
    if later_s:
        clock.sleep(later_s)
    else:
        assert read(FakeFetcher(clock)) == [0, 1, 2, 3]
        clock.sleep(1)  # its id was just seen

    assert read(FakeFetcher(clock, topic_answers=[None, SAME])) == [0, 1, 2, 3]


def test_without_fail_on_data_loss_a_topic_created_again_is_one_warning(clock, caplog):
    """What was read is read; the next batch begins with the new topic."""
    assert read(FakeFetcher(clock, topic_answers=[SAME, OTHER]), fail=False) == [0, 1, 2, 3]
    (told,) = caplog.records
    assert "created again while it was read" in told.getMessage()
    assert "set 'failOnDataLoss'" not in told.getMessage(), "it is set"


@pytest.mark.parametrize("known", ["", "id"])
def test_without_ids_nothing_is_concluded_from_them(clock, known):
    """A range that was planned without an id is not asked about; an answer without one proves nothing."""
    fetcher = FakeFetcher(clock, topic_answers=[NO_IDS])

    assert read(fetcher, Range("t", 0, 0, 4, topic_id=known)) == [0, 1, 2, 3]
    assert fetcher.topic_checks == (2 if known else 0)


def test_a_broker_that_does_not_answer_fails_the_task(clock):
    """Without an answer nobody knows whose messages they were."""
    with pytest.raises(BrokerError, match="away"):
        read(FakeFetcher(clock, topic_answers=[SAME, BrokerError("away")]))


def test_silence_is_checked_and_goes_by(clock, caplog):
    """Nothing comes for a minute; checks show stale answers, or none, for less than ten seconds each."""
    fetcher = FakeFetcher(
        clock,
        topic_answers=[SAME, None, None, OTHER, SAME, BrokerError("away"), SAME],
        bounds_answers=[*[Bounds(0, 3, 3)] * 5, None, Bounds(0, 4, 4)],
        silent_s=60,
    )

    assert read(fetcher) == [0, 1, 2, 3]
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []


@pytest.mark.parametrize(
    ("answers", "reason"),
    [
        ({"topic_answers": [SAME, None]}, "the topic was deleted while it was read"),
        ({"topic_answers": [SAME, OTHER]}, "created again while it was read"),
        ({"bounds_answers": [Bounds(0, 2, 2)]}, "ends at offset 2, before offset 4"),
    ],
)
def test_silence_with_unanimous_checks_is_a_loss(clock, answers, reason, caplog):
    """An error that names where; or a warning, and the range ends there."""
    with pytest.raises(DataLossError, match=f"wanted offset 2.*{reason}"):
        read(FakeFetcher(clock, silent_s=1000, **answers))
    with caplog.at_level(logging.WARNING):
        assert read(FakeFetcher(clock, silent_s=NEVER, **answers), fail=False) == [0, 1]
    assert len(caplog.records) == 1


@pytest.mark.parametrize("earliest", [0, 2])
def test_what_is_left_of_a_log_that_ends_too_soon_is_read(clock, earliest, caplog):
    """A slow broker is waited for up to the end that the log has now; that is one warning."""
    fetcher = FakeFetcher(clock, bounds_answers=[Bounds(earliest, 3, 3)], silent_s=30)

    with caplog.at_level(logging.WARNING):
        assert read(fetcher, fail=False) == [0, 1, 2]
    assert len(caplog.records) == 1
    assert fetcher.seeks == [0, 2]


def test_what_is_left_of_a_log_is_not_waited_for_for_ever(clock):
    """A broker that never sends it is an error, as everywhere."""
    fetcher = FakeFetcher(clock, bounds_answers=[Bounds(2, 3, 3)], silent_s=NEVER)

    with pytest.raises(RetriableBrokerError, match="nothing arrived for"):
        read(fetcher, fail=False)


# Offsets out of range


@pytest.mark.parametrize(
    ("bounds", "lost", "offsets", "seeks"),
    [
        ([Bounds(3, 9, 9)], "retention.*", [0, 1, 3], [0, 3]),
        ([Bounds(4, 9, 9)], "retention", [0, 1], [0]),
        ([Bounds(9, 9, 9)], "retention", [0, 1], [0]),
        ([Bounds(0, 1, 1)], "ends at offset 1, before offset 4", [0, 1], [0]),
        ([Bounds(0, 1, 1)] * 5 + [Bounds(3, 9, 9)], "retention", [0, 1, 3], [0, 3]),
    ],
)
def test_an_offset_out_of_range_is_a_loss(clock, bounds, lost, offsets, seeks, caplog):
    """An error; or a warning, and fetching continues at the earliest offset, or ends when that is not ahead."""
    with pytest.raises(
        DataLossError, match=f"wanted offset 2, earliest .*{bounds[-1].earliest}.*{lost}"
    ):
        read(FakeFetcher(clock, bounds_answers=bounds, refused_at=2))
    fetcher = FakeFetcher(clock, bounds_answers=bounds, refused_at=2)
    with caplog.at_level(logging.WARNING):
        assert read(fetcher, fail=False) == offsets
    assert fetcher.seeks == seeks
    assert len(caplog.records) == 1


@pytest.mark.parametrize(
    ("bounds", "waited_s"),
    [
        ([Bounds(0, 4, 4)], 0),
        ([Bounds(0, 2, 2)], 0),
        ([None], 0),
        ([Bounds(2, 4, 4)], 0),
        ([*[Bounds(0, 1, 1)] * 9, Bounds(0, 4, 4)], 9),
    ],
)
def test_an_offset_that_only_one_broker_misses_is_fetched_again(clock, bounds, waited_s, caplog):
    """A leader that lags, or one that does not answer, proves no loss."""
    fetcher = FakeFetcher(clock, bounds_answers=bounds, refused_at=2, refusals=2)

    assert read(fetcher) == [0, 1, 2, 3]
    assert fetcher.seeks == [0, 2, 2]
    assert clock.now < 1001 + waited_s
    assert caplog.records == []


# Time


@pytest.mark.parametrize(
    ("answers", "said", "passes"),
    [
        ([SAME, BrokerError("Could not look up t.")], " Could not look up t.", False),
        ([SAME, RetriableBrokerError("No answer.")], " No answer.", True),
        ([SAME, UnknownTopicError("No such t.")], " No such t.", True),
        ([SAME, BrokerError("Could not look up t."), SAME], "", True),
    ],
)
def test_silence_without_a_loss_is_an_error_in_the_end(clock, answers, said, passes):
    """It names the place, how long nothing came, and what was seen last; it passes, but for a lookup that a restart cannot help."""
    fetcher = FakeFetcher(clock, topic_answers=answers, silent_s=NEVER)
    fetcher.errors.add("connection refused")

    with pytest.raises(BrokerError) as error:
        read(fetcher)

    assert str(error.value).startswith(
        "Topic 't', partition 0, offset 2 (reading 0 to 4) at 'nowhere:9092': nothing arrived for 12"
    )
    assert str(error.value).endswith(f"seconds. Last seen: connection refused{said}")
    assert why_it_ended(error.value).restart is passes
    assert 1120 < clock.now < 1130
    assert fetcher.topic_checks <= 26, "once before the first message, then every five seconds"


def test_a_fatal_error_of_the_client_ends_the_waiting(clock):
    """A login that is refused for five seconds will be refused for ever: seen by the first check."""
    fetcher = FakeFetcher(clock, silent_s=NEVER)
    fetcher.errors = ClientErrors(clock=clock.monotonic)
    fetcher.errors.add("bad password", security=True)
    clock.now += 5
    fetcher.errors.add("bad password", security=True)
    begin = clock.now

    with pytest.raises(
        BrokerError, match=r"cannot be read: bad password\. Check 'properties\."
    ) as error:
        read(fetcher)
    assert not why_it_ended(error.value).restart
    assert clock.now < begin + 6


def test_a_gap_is_progress(clock):
    """A position that moves without messages is no silence: nothing is checked."""
    fetcher = FakeFetcher(clock, log=[], bounds_answers=[None])

    def poll(position: int, end: int) -> Fetched:
        clock.sleep(4)
        return fetched([], position + 1)

    fetcher.poll = poll
    assert read(fetcher, Range("t", 0, 0, 100)) == []
    assert fetcher.bounds_checks == 0


def test_the_time_spent_downstream_is_not_waited(clock):
    """An hour between two batches leaves the next its whole timeout."""
    fetcher = FakeFetcher(clock, silent_s=3600 + 60)
    offsets = []
    for batch in fetch(fetcher).batches():
        offsets += batch.offsets
        clock.now += 1800 if batch.offsets[0] < 2 else 0

    assert offsets == [0, 1, 2, 3]


# Errors


def test_a_message_that_cannot_be_read_is_an_error_after_those_before_it(clock):
    """It names the place and says the client's words."""
    batches = fetch(FakeFetcher(clock, broken_at=2)).batches()

    assert [next(batches).offsets, next(batches).offsets] == [[0], [1]]
    with pytest.raises(BrokerError) as error:
        next(batches)
    assert str(error.value) == (
        "Topic 't', partition 0, offset 2 (reading 0 to 4) at 'nowhere:9092' cannot be read: it is corrupt."
    )


def test_damaged_messages_are_fetched_again(clock, caplog):
    """What was damaged on its way is read then; what lies so at the broker is an error that names the place."""
    fetcher = FakeFetcher(clock, damaged_at=2, damages=2)

    assert [offset for batch in fetch(fetcher).batches() for offset in batch.offsets] == [
        0,
        1,
        2,
        3,
    ]
    assert fetcher.seeks == [0, 2, 2]
    assert caplog.text.count("partition 0, offset 2 (reading 0 to 4)") == 2

    batches = fetch(FakeFetcher(clock, damaged_at=2, damages=3)).batches()
    with pytest.raises(
        BrokerError, match=r"'t', partition 0, offset 2 .* came so 3 times \(bad CRC\)\."
    ) as error:
        list(batches)
    assert not why_it_ended(error.value).restart


def test_a_client_to_which_nothing_comes_is_replaced(clock):
    """It may wait for a broker that has hung, or for another range's fetch; ever less often, as the network may be slow."""
    stuck, later, last = (FakeFetcher(clock, silent_at=0, silent_s=NEVER) for _ in range(3))
    fresh = FakeFetcher(clock)
    others, renewed_at = iter([later, last, fresh]), []
    began = clock.now

    def renewed() -> FakeFetcher:
        renewed_at.append(round(clock.now - began))
        return next(others)

    batches = fetch(stuck, renewed=renewed).batches()
    assert [offset for batch in batches for offset in batch.offsets] == [0, 1, 2, 3]
    assert renewed_at == [5, 10, 20]
    assert (later.seeks, last.seeks, fresh.seeks) == ([0], [0], [0])


def test_a_client_is_kept_while_nobody_answers(clock):
    """Another one would not get an answer either."""
    fetcher = FakeFetcher(
        clock,
        topic_answers=[SAME, *[BrokerError("no answer")] * 3, SAME],
        silent_at=0,
        silent_s=20.0,
    )

    def renewed() -> FakeFetcher:
        raise AssertionError("nobody answers")

    batches = fetch(fetcher, renewed=renewed).batches()
    assert [offset for batch in batches for offset in batch.offsets] == [0, 1, 2, 3]


def test_a_client_is_kept_where_no_other_can_be_opened(clock):
    """Brokers that are away are waited for as long as before."""
    fetcher = FakeFetcher(clock, silent_at=0, silent_s=30.0)

    def renewed() -> FakeFetcher:
        raise BrokerError("nobody answers")

    batches = fetch(fetcher, renewed=renewed).batches()
    assert [offset for batch in batches for offset in batch.offsets] == [0, 1, 2, 3]


def test_the_id_is_asked_after_a_range_that_is_checked_after_it(clock):
    """Of ranges that follow one another that is the last; before the first message it is asked in any case."""
    fetcher = FakeFetcher(clock)

    list(fetch(fetcher, replace(RANGE, is_checked_after=False)).batches())
    asked = fetcher.topic_checks
    list(fetch(fetcher).batches())

    assert (asked, fetcher.topic_checks) == (1, 2)


@pytest.mark.parametrize(
    ("asked_s", "since_s", "lookup_error", "was_away"),
    [
        (1.0, 0.0, "", True),
        (0.9, 0.0, "", False),
        (1.0, 119.0, "", True),
        (1.0, 120.0, "", False),
        (30.0, 30.0, " nobody answers", False),
    ],
)
def test_brokers_were_away_if_an_answer_has_taken_long(
    clock, asked_s, since_s, lookup_error, was_away
):
    """Then messages are waited for anew, but not for ever: within twice the outage that is waited for since the last one."""
    found = fetch(FakeFetcher(clock))
    found._waits = replace(found._waits, outage_s=60.0)
    found._arrived_at, found._lookup_error = clock.now - since_s, lookup_error

    assert found._was_away(asked_s) is was_away
