"""Dead letters are read, compared with what came after them, and written back: on topics in memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import pytest

from pyspark_upsert_kafka.connector import dead_letter_replay as module
from pyspark_upsert_kafka.connector.dead_letter_replay import Original, replay, what_to_replay
from pyspark_upsert_kafka.connector.format_catalog import format_options
from pyspark_upsert_kafka.core.bytes_column import BytesColumn
from pyspark_upsert_kafka.core.delivery_guarantee import DeliveryGuarantee
from pyspark_upsert_kafka.core.options.frozen_options import Position, ReadOptions, Topics
from pyspark_upsert_kafka.core.options.read import read_options
from pyspark_upsert_kafka.core.positions.cluster_view import Bounds, ClusterView, TopicInfo
from pyspark_upsert_kafka.core.positions.offsets import Range, TopicPartition
from pyspark_upsert_kafka.kafka.clients import ReadSettings
from pyspark_upsert_kafka.kafka.outgoing_messages import Messages
from pyspark_upsert_kafka.kafka.raw_batch import RawBatch
from tests.table_options import table_options

Message = tuple["bytes | None", "bytes | None", int, list[tuple[str, bytes]]]
"""Key, value, timestamp and headers."""

T0, T1, U0 = TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("u", 0)
SENT = 5_000


@dataclass
class Kafka:
    """Topics in memory; plays the client, its connections, its reader and its sender."""

    logs: dict[TopicPartition, list[Message]]
    begins: dict[TopicPartition, int] = field(default_factory=dict)
    read_ranges: list[tuple[TopicPartition, int]] = field(default_factory=list)
    settings: list[ReadSettings] = field(default_factory=list)
    log: list[object] = field(default_factory=list)

    def cluster(self, _: object, role: str) -> Kafka:
        """A connection."""
        assert role == "driver"
        return self

    def topics(self, wanted: Topics) -> dict[str, TopicInfo]:
        """All that are wanted are there."""
        return self.existing(wanted.names)

    def existing(self, names: Sequence[str]) -> dict[str, TopicInfo]:
        """Those that are there."""
        return {tp.topic: TopicInfo("id", 2) for tp in self.logs if tp.topic in names}

    def view(self, topics: Mapping[str, TopicInfo], *, read_committed: bool) -> ClusterView:
        """All of their partitions."""
        assert read_committed
        bounds = {
            tp: Bounds(self.begins.get(tp, 0), len(log), len(log))
            for tp, log in self.logs.items()
            if tp.topic in topics
        }
        return ClusterView(dict.fromkeys(topics, "id"), bounds)

    def positions(self, position: Position, view: ClusterView) -> dict[TopicPartition, int]:
        """The first message of a time or later."""
        assert position.timestamp_ms is not None
        assert position.timestamp_ms >= 0
        found = {}
        for tp in view.bounds:
            times = [time for _, _, time, _ in self.logs[tp]]
            later = (at for at, time in enumerate(times) if time >= position.timestamp_ms)
            found[tp] = next(later, len(times))
        return found

    def reader(self, settings: ReadSettings) -> Kafka:
        """Reads."""
        self.settings.append(settings)
        return self

    def read(self, range_: Range) -> Iterator[RawBatch]:
        """The messages of a range."""
        tp = TopicPartition(range_.topic, range_.partition)
        self.read_ranges.append((tp, range_.begin))
        keys, values, times, headers = map(list, zip(*self.logs[tp][range_.begin :], strict=True))
        offsets = [*range(range_.begin, range_.end)]
        yield RawBatch(
            *tp, BytesColumn.of(keys), BytesColumn.of(values), offsets,
            timestamps=times, headers=headers,
        )  # fmt: skip

    def sender(self, _: object, topics: Sequence[str], guarantee: DeliveryGuarantee) -> Kafka:
        """Sends."""
        self.log.append((topics, guarantee))
        return self

    def send(self, messages: Messages) -> None:
        """Takes note."""
        self.log += [messages.partition, *messages.rows()]

    def flush(self) -> None:
        """Takes note."""
        self.log.append("flush")

    def close(self) -> None:
        """Takes note."""
        self.log.append("close")


def letter(
    place: TopicPartition, offset: int, time: int, key: bytes | None = b"k", sent: int = SENT
) -> Message:
    """A dead letter of a message from there."""
    added = {
        "topic": place.topic, "partition": place.partition, "offset": offset,
        "timestamp": time, "stage": "value", "message": "no JSON",
    }  # fmt: skip
    headers = [(f"__error.{name}", str(value).encode()) for name, value in added.items()]
    return key, b"?", sent, headers


@pytest.fixture
def kafka(monkeypatch: pytest.MonkeyPatch) -> Kafka:
    """Without any topic."""
    found = Kafka({})
    monkeypatch.setattr(module, "load_client", lambda _: found)
    monkeypatch.setattr(module, "load_sending_client", lambda *_: found)
    return found


def options() -> ReadOptions:
    """Of the dead-letter topic."""
    given = table_options(topic="dead", **{"read.mode": "changelog"})
    return read_options(given, format_options, stream=False)


def original(place: TopicPartition, offset: int, time: int, key: bytes | None = b"k") -> Original:
    """The message that a letter was."""
    return Original(place, offset, time, key, b"?", [], SENT)


def test_each_letter_is_written_back_to_a_topic_that_is_there_and_may_be_written(
    kafka: Kafka,
) -> None:
    """Once, though it became a letter twice; what is no letter is skipped."""
    gone, secret = TopicPartition("gone", 0), TopicPartition("secret", 0)
    kafka.logs = {
        TopicPartition("dead", 0): [
            letter(T0, 1, 100),
            letter(T0, 0, 100),
            letter(T0, 1, 100),
            (b"k", b"?", 0, []),
            letter(gone, 3, 100),
            letter(secret, 3, 100),
            letter(U0, 3, 100, None),
        ],
        T0: [],
        U0: [],
        secret: [],
    }

    found = what_to_replay(options(), lambda topic: topic != "secret", tables=False)

    assert found.replayed == (
        original(T0, 0, 100),
        original(T0, 1, 100),
        original(U0, 3, 100, None),
    )
    assert found.without_topic == (original(gone, 3, 100),)
    assert found.not_named == (original(secret, 3, 100),)
    assert kafka.read_ranges == [(TopicPartition("dead", 0), 0)]
    assert not kafka.settings[0].fail_on_data_loss
    assert kafka.log == ["close"]


def test_a_letter_of_a_table_is_left_out_where_its_key_has_a_newer_message(kafka: Kafka) -> None:
    """The table's topic is read from the earliest time or offset at which such a one may be."""
    own = (b"k", b"?", 100, [])
    newer, other = (b"k", b"{}", 300, []), (b"x", b"{}", 50, [])
    kafka.logs = {
        TopicPartition("dead", 0): [letter(T0, 2, 100), letter(U0, 0, 100), letter(T1, 0, 9, None)],
        T0: [other, other, own, other, newer],
        T1: [(b"y", b"{}", 20, []), (b"y", b"{}", 100, [])],
        U0: [own, other],
    }

    found = what_to_replay(options(), lambda _: True, tables=True)

    assert found.replayed == (original(U0, 0, 100),)
    assert found.outdated == (original(T0, 2, 100),)
    assert found.keyless == (original(T1, 0, 9, None),)
    assert kafka.read_ranges[1:] == [(T0, 2), (T1, 1), (U0, 0)]


@pytest.mark.parametrize(
    ("letters", "begin"),
    [
        # Times decide: the third message is as old as the letter, the fourth newer.
        ([letter(T0, 3, 300)], 2),
        # The letter's own place is earlier than what times say, as they need not rise with offsets.
        ([letter(T0, 1, 300)], 1),
        ([letter(T0, 3, 300), letter(T0, 1, 300, b"l")], 1),
        ([letter(T0, 3, 300), letter(T0, 3, 100, b"l")], 0),
        # An original from ahead of the clock: a copy of it has the time at which it was written.
        ([letter(T0, 3, 9_000, sent=200)], 1),
        # Without a timestamp all may be newer.
        ([letter(T0, 3, -1)], 0),
    ],
)
def test_from_where_a_topic_is_read(kafka: Kafka, letters: list[Message], begin: int) -> None:
    """No newer message of a key is missed."""
    kafka.logs = {
        TopicPartition("dead", 0): letters,
        T0: [(b"x", b"", time, []) for time in (100, 200, 300, 400)],
    }
    what_to_replay(options(), lambda _: True, tables=True)

    assert kafka.read_ranges[1:] == [(T0, begin)]


def test_what_retention_has_taken_is_not_asked_for(kafka: Kafka) -> None:
    """A range begins where the partition does."""
    kafka.logs = {TopicPartition("dead", 0): [letter(T0, 0, 100)] * 3}
    kafka.begins = {TopicPartition("dead", 0): 2}
    found = what_to_replay(options(), lambda _: True, tables=False)

    assert kafka.read_ranges == [(TopicPartition("dead", 0), 2)]
    assert found.without_topic == (original(T0, 0, 100),)


def test_messages_are_written_back_and_confirmed(kafka: Kafka) -> None:
    """With their keys, values and headers, and as new ones: without their time."""
    one = Original(U0, 1, 100, b"k", None, [("a", b"1")])
    other = Original(T0, 1, 100, None, b"v")
    replay([one, other], options())

    assert kafka.log == [
        (["t", "u"], DeliveryGuarantee.AT_LEAST_ONCE),
        None,
        ("u", b"k", None, 0, [("a", b"1")]),
        ("t", None, b"v", 0, ()),
        "flush",
        "close",
    ]


def test_messages_that_are_still_there_are_written_behind_them(kafka: Kafka) -> None:
    """Their keys lie in those partitions, whatever chose them; another goes to the partition of its key."""
    kafka.logs = {
        TopicPartition("dead", 0): [letter(T1, 1, 100), letter(T1, 0, 9, b"l"), letter(T0, 0, 100, b"m")],
        T0: [(b"x", b"", 100, [])],
        T1: [(b"x", b"", 100, []), (b"k", b"?", 100, [])],
    }  # fmt: skip
    replay(what_to_replay(options(), lambda _: True, tables=True).replayed, options())

    sent = [each for each in kafka.log if each is None or isinstance(each, int | tuple)][1:]
    assert [each if each is None or isinstance(each, int) else each[1] for each in sent] == [
        None, b"m", b"l", 1, b"k",
    ]  # fmt: skip


def test_without_messages_nothing_is_opened(kafka: Kafka) -> None:
    """No broker need be there."""
    replay([], options())
    assert kafka.log == []
