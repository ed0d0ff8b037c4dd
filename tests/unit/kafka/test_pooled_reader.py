"""How much is fetched at once, about what a range holds; and how ranges are read, of topics in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

import pytest

from pyspark_upsert_kafka.core.bytes_column import BytesColumn
from pyspark_upsert_kafka.core.errors import DataLossError, UnknownTopicError
from pyspark_upsert_kafka.core.options.properties import Properties
from pyspark_upsert_kafka.core.positions.cluster_view import Bounds, TopicInfo
from pyspark_upsert_kafka.core.positions.offsets import Range, TopicPartition
from pyspark_upsert_kafka.kafka import loss_checks, pooled_reader
from pyspark_upsert_kafka.kafka.client_pool import Pool
from pyspark_upsert_kafka.kafka.clients import ReadSettings
from pyspark_upsert_kafka.kafka.failures import ClientErrors
from pyspark_upsert_kafka.kafka.loss_checks import LossChecks
from pyspark_upsert_kafka.kafka.pooled_reader import (
    LARGE_FETCH,
    MEDIUM_FETCH,
    SMALL_FETCH,
    FetchSizes,
    FirstSmallFetcher,
    LentClients,
)
from pyspark_upsert_kafka.kafka.range_fetch import BATCH_BYTES, Fetched
from pyspark_upsert_kafka.kafka.raw_batch import RawBatch
from tests.unit.connector.fake_cluster import Clock
from tests.unit.kafka import memory_client
from tests.unit.kafka.memory_client import MemoryCluster, MemoryFetcher, MemoryReader


def fetched(size: int, *, average: int | None = None, **given: str) -> int:
    """What is fetched at once for a range of so many offsets."""
    sizes = FetchSizes()
    if average is not None:
        sizes.learn(Range("t", 0, 0, 1_000), 1_000 * average)
    properties = {name.replace("_", "."): value for name, value in given.items()}
    return sizes.choose(Range("t", 1, 50, 50 + size), properties)


@pytest.mark.parametrize(
    ("size", "average", "expected"),
    [
        (10, None, SMALL_FETCH),
        (1_000, None, MEDIUM_FETCH),
        (100_000, None, LARGE_FETCH),
        (100, 100, SMALL_FETCH),
        (1_000, 100, MEDIUM_FETCH),
        (100_000, 100, LARGE_FETCH),
        (10, 100_000, MEDIUM_FETCH),
        (100, 100_000, LARGE_FETCH),
        (1_000, 0, SMALL_FETCH),
        # A message has 16 bytes beside its own, and 1,024 of its own if none was seen.
        (2_016, None, MEDIUM_FETCH),
        (2_017, None, LARGE_FETCH),
        (1_024, 0, SMALL_FETCH),
        (1_025, 0, MEDIUM_FETCH),
        (131_072, 0, MEDIUM_FETCH),
        (131_073, 0, LARGE_FETCH),
    ],
)
def test_the_expected_bytes_decide(size, average, expected):
    """Offsets times the bytes of a message of that topic, as the last range had them; a guess at first."""
    assert fetched(size, average=average) == expected


def test_a_size_that_the_user_gives_needs_one_consumer_only():
    """All ranges are read alike then."""
    given = {"max_partition_fetch_bytes": "5000"}
    assert fetched(10, **given) == fetched(100_000, **given)


def test_each_topic_has_messages_of_its_own_size():
    """What was learned of one says nothing about another."""
    sizes = FetchSizes()
    sizes.learn(Range("large", 0, 0, 10), 10_000_000)

    assert sizes.choose(Range("large", 0, 0, 10), {}) == LARGE_FETCH
    assert sizes.choose(Range("other", 0, 0, 10), {}) == SMALL_FETCH


class Fetcher(MemoryFetcher):
    """Notes when it is closed; each message has 40 bytes."""

    def __init__(self, range_: Range, log: list[str]) -> None:
        super().__init__(range_)
        self._log = log

    def poll(self, position: int, end: int) -> Fetched:
        """Two messages at most."""
        found = super().poll(position, end)
        return replace(found, size_bytes=40 * len(found.batch))

    def close(self) -> None:
        """Takes note."""
        self._log.append("closed")


class Admin(MemoryCluster):
    """Answers for the topic t, of which it knows the id."""

    topic: TopicInfo | None = TopicInfo("id", 2)
    latest_is: int | Exception = 7

    def described(self, names: Sequence[str]) -> dict[str, TopicInfo]:
        """The topic, as long as it is there."""
        assert [*names] == ["t"]
        return {} if self.topic is None else {"t": self.topic}

    def latest_offsets(
        self, partitions: Sequence[TopicPartition], *, read_committed: bool
    ) -> dict[TopicPartition, int]:
        """As the test says; less where open transactions are not read."""
        if isinstance(self.latest_is, Exception):
            raise self.latest_is
        return dict.fromkeys(partitions, self.latest_is - read_committed)


class Reader(MemoryReader):
    """Notes what is opened and closed."""

    _pool = Pool(lambda _: None)

    def __init__(self, settings: ReadSettings) -> None:
        super().__init__(settings)
        self.log: list[str] = []

    @contextmanager
    def _cluster(self) -> Iterator[Admin]:
        yield Admin(self._properties)

    def _connect(self, fetch_bytes: int) -> None:
        self.log.append(f"opened for {fetch_bytes} bytes")

    def _fetcher(self, client: None, range_: Range) -> Fetcher:
        return Fetcher(range_, self.log)


@pytest.fixture
def reader(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Reader]:
    """Makes readers of a topic with six messages, each in a process of its own."""
    monkeypatch.setitem(memory_client.TOPICS, "t", [dict.fromkeys(range(6), (b"k", b"v")), {}])
    monkeypatch.setattr(pooled_reader, "_SIZES", FetchSizes())
    monkeypatch.setattr(loss_checks, "_confirmed", {})
    monkeypatch.setattr(loss_checks, "_lost", {})
    monkeypatch.setattr(Reader, "_pool", Pool(lambda _: None))

    def made(*, read_committed: bool = True, fail: bool = True) -> Reader:
        properties = Properties({"bootstrap.servers": "here"})
        return Reader(ReadSettings(properties, read_committed, fail, checks=LossChecks(Clock())))

    return made


def offsets(reader: Reader, begin: int, end: int) -> list[int]:
    """The offsets of the messages of a range."""
    batches = reader.read(Range("t", 0, begin, end, "id"))
    return [offset for batch in batches for offset in batch.offsets]


def test_a_range_is_read_and_its_fetches_end(reader: Callable[..., Reader]) -> None:
    """Nothing is fetched behind it; the next range of the size finds the client open."""
    one = reader()
    assert offsets(one, 1, 4) == [1, 2, 3]
    assert set(one.log[1:]) == {"closed"}
    again = reader()
    assert offsets(again, 4, 6) == [4, 5]

    assert one.log[0] == f"opened for {SMALL_FETCH} bytes"
    assert set(again.log) == {"closed"}


def test_the_sizes_of_messages_are_learned(reader: Callable[..., Reader]) -> None:
    """Those of the last range decide what is fetched at once for the next one."""
    assert offsets(reader(), 0, 6) == [*range(6)]
    assert offsets(reader(), 3, 3) == []
    sizes = pooled_reader._SIZES

    # Forty bytes of its own and sixteen beside them.
    assert sizes.choose(Range("t", 0, 0, SMALL_FETCH // 56), {}) == SMALL_FETCH
    assert sizes.choose(Range("t", 0, 0, SMALL_FETCH // 56 + 1), {}) == MEDIUM_FETCH


@pytest.mark.parametrize(
    ("topic", "latest", "end"),
    [
        (TopicInfo("id", 2), 9, 9),
        (TopicInfo("other", 2), 9, None),
        (TopicInfo("id", 1), 9, None),
        (None, 9, None),
        (TopicInfo("id", 2), UnknownTopicError("gone meanwhile"), None),
    ],
)
@pytest.mark.parametrize("fail", [True, False])
def test_how_far_a_partition_can_be_read_now(
    reader: Callable[..., Reader],
    monkeypatch: pytest.MonkeyPatch,
    topic: TopicInfo | None,
    latest: int | Exception,
    end: int | None,
    fail: bool,
) -> None:
    """Where the topic is lost that is an error, or no further than was planned."""
    monkeypatch.setattr(Admin, "topic", topic)
    monkeypatch.setattr(Admin, "latest_is", latest)
    range_ = Range("t", 1, 0, 5, "id")
    if end is None and fail:
        with pytest.raises(DataLossError):
            reader(fail=fail).end(range_)
        return

    assert reader(fail=fail, read_committed=False).end(range_) == (5 if end is None else end)
    assert reader(fail=fail, read_committed=True).end(range_) == (5 if end is None else end - 1)


@pytest.mark.parametrize("topic", [None, TopicInfo("other", 2)])
def test_a_topic_that_is_lost_is_not_read(
    reader: Callable[..., Reader], monkeypatch: pytest.MonkeyPatch, topic: TopicInfo | None
) -> None:
    """That is an error, or a warning and no rows."""
    monkeypatch.setattr(Admin, "topic", topic)

    with pytest.raises(DataLossError):
        offsets(reader(), 0, 6)
    assert offsets(reader(fail=False), 0, 6) == []


def test_the_first_fetch_of_a_topic_is_a_small_one(reader: Callable[..., Reader]) -> None:
    """In each process, of ranges that seem to be large; each message comes once."""
    first, next_ = reader(), reader()
    assert offsets(first, 0, 100_000) == [*range(6)]
    pooled_reader._SIZES.learn(Range("t", 0, 0, 1), 1_000)
    assert offsets(next_, 0, 100_000) == [*range(6)]

    opened = [f"opened for {size} bytes" for size in (SMALL_FETCH, LARGE_FETCH)]
    assert [each for each in first.log if each != "closed"] == opened
    assert first.log[:3] == [opened[0], opened[1], "closed"]
    assert [each for each in next_.log if each != "closed"] == []


def test_what_is_fetched_at_once() -> None:
    """As much of a partition as Kafka's own consumers at most; a range of few messages takes a small part of it."""
    assert (SMALL_FETCH, MEDIUM_FETCH, LARGE_FETCH) == (2**14, 2**18, 2**20)


@pytest.mark.parametrize("size", [10, 1_000, 100_000])
def test_what_is_much_when_it_is_unpacked_is_fetched_in_small_pieces(size):
    """A client unpacks the whole of a fetch, which may be ten thousand times as large, before a message is taken from it."""
    sizes = FetchSizes()
    assert not sizes.is_tried("t")

    sizes.note_first("t", BATCH_BYTES // 2)
    sizes.note_first("other", BATCH_BYTES // 2 - 1)

    assert sizes.is_tried("t")
    assert sizes.choose(Range("t", 0, 0, size), {}) == SMALL_FETCH
    assert sizes.choose(Range("other", 0, 0, 100_000), {}) == LARGE_FETCH
    given = {"max.partition.fetch.bytes": "5000"}
    assert sizes.choose(Range("t", 0, 0, size), given) == LARGE_FETCH


class Scripted:
    """A fetcher that gives what it is told, and notes what is done."""

    def __init__(self, name: str, done: list[str], *counts: int, **more: object) -> None:
        self._name, self._done, self._counts, self._more = name, done, list(counts), more
        self.errors = ClientErrors()

    def seek(self, offset: int) -> None:
        """Notes it."""
        self._done.append(f"{self._name} seeks {offset}")

    def poll(self, position: int, end: int) -> Fetched:
        """So many messages of a kilobyte."""
        self._done.append(f"{self._name} polls {position}")
        count = min(self._counts.pop(0), end - position)
        found = [*range(position, position + count)]
        column = BytesColumn.of([b"k"] * count)
        fetched = Fetched(RawBatch("t", 0, column, column, found), position + count, 1_000 * count)
        for name, value in self._more.items():
            setattr(fetched, name, value)
        return fetched

    def bounds(self) -> Bounds:
        """Its name, in a way."""
        return Bounds(0, len(self._name), 0)

    def close(self) -> None:
        """Notes it."""
        self._done.append(f"{self._name} closes")


def read(
    first: Scripted, rest: Scripted | None, noted: list[int], end: int = 10
) -> FirstSmallFetcher:
    """Reads a range to its end."""
    fetcher = FirstSmallFetcher(first, noted.append, lambda: rest)
    fetcher.seek(0)
    position, found = 0, list[int]()
    while position < end:
        fetched = fetcher.poll(position, end)
        position = fetched.position
        found += fetched.batch.offsets
        if not fetched.may_grow:
            break
    assert found == [*range(position)]
    return fetcher


def test_after_the_first_messages_another_fetcher_goes_on():
    """Behind them, and with its own errors and bounds; each message comes once."""
    done: list[str] = []
    noted: list[int] = []
    rest = Scripted("rest", done, 3, 9)
    fetcher = read(Scripted("first", done, 0, 0, 4), rest, noted)
    fetcher.close()

    assert done == [
        "first seeks 0", "first polls 0", "first polls 0", "first polls 0", "first closes",
        "rest seeks 4", "rest polls 4", "rest polls 7", "rest closes",
    ]  # fmt: skip
    assert noted == [4_000]
    assert fetcher.errors is rest.errors
    assert fetcher.bounds().latest == len("rest")


@pytest.mark.parametrize(
    ("rest", "first", "more"),
    [
        (None, (4, 9), {}),  # the topic unpacks much
        ("rest", (10,), {}),  # the range has ended
        ("rest", (4,), {"is_out_of_range": True}),
        ("rest", (4,), {"damage": "checksum"}),
        ("rest", (4,), {"fatal_error": "no"}),
    ],
)
def test_the_first_fetcher_goes_on(rest, first, more):
    """Where small fetches suit the topic, nothing is left, or the broker says what is wrong."""
    done: list[str] = []
    noted: list[int] = []
    read(Scripted("first", done, *first, **more), rest and Scripted(rest, done), noted)

    assert noted == ([] if more else [1_000 * first[0]])
    assert {each.split()[0] for each in done} == {"first"}


def test_errors_and_bounds_are_those_of_the_first_fetcher_at_first():
    """And it is told to seek and to close."""
    done: list[str] = []
    first = Scripted("first", done)
    fetcher = FirstSmallFetcher(first, list[int]().append, lambda: None)
    fetcher.seek(7)
    fetcher.close()

    assert fetcher.errors is first.errors
    assert fetcher.bounds().latest == len("first")
    assert done == ["first seeks 7", "first closes"]


def opened(reader: Reader) -> list[int]:
    """How many bytes the clients fetch at once that were opened for a large range."""
    assert [each for batch in reader.read(Range("t", 0, 0, 50_000, "id")) for each in batch.offsets]
    return [int(each.split()[2]) for each in reader.log if each.startswith("opened")]


def test_of_a_topic_that_is_tried_no_small_fetch_is_made(
    reader: Callable[..., Reader], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first range begins with one, to see how much that is when it is unpacked."""
    assert opened(reader())[0] == SMALL_FETCH
    monkeypatch.setattr(Reader, "_pool", Pool(lambda _: None))

    assert SMALL_FETCH not in opened(reader())


def test_clients_that_are_replaced_are_closed_at_once():
    """They failed: nobody is lent one again, and none is open beside the new one for as long as the range is read."""
    closed, names = [], iter(["first", "rest", "new"])
    clients = LentClients(Pool(closed.append))
    clients.take("small", lambda: next(names))
    clients.take("large", lambda: next(names))

    assert clients.replace("large", lambda: next(names)) == "new"
    assert sorted(closed) == ["first", "rest"]
    clients.discard()
    assert closed[2:] == ["new"]
