"""Reads ranges, whichever client is used: it is opened at the first range and kept for the next ones."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import AbstractContextManager
from functools import partial
from typing import Generic, TypeVar

from pyspark_upsert_kafka.core.closing import undone_on_failure
from pyspark_upsert_kafka.core.errors import DataLossError, UnknownTopicError
from pyspark_upsert_kafka.core.options.properties import Properties
from pyspark_upsert_kafka.core.positions.cluster_view import Bounds, TopicInfo
from pyspark_upsert_kafka.core.positions.offsets import Range, TopicPartition
from pyspark_upsert_kafka.kafka.client_pool import Lease, Pool
from pyspark_upsert_kafka.kafka.clients import ReadSettings
from pyspark_upsert_kafka.kafka.cluster import Cluster
from pyspark_upsert_kafka.kafka.failures import ClientErrors
from pyspark_upsert_kafka.kafka.loss_checks import PlannedTopic
from pyspark_upsert_kafka.kafka.range_fetch import (
    BATCH_BYTES,
    Fetched,
    Fetcher,
    RangeFetch,
)
from pyspark_upsert_kafka.kafka.raw_batch import RawBatch
from pyspark_upsert_kafka.kafka.retrying import ReadWaits, message_timeout_s

C = TypeVar("C")

SMALL_FETCH, MEDIUM_FETCH, LARGE_FETCH = 16 * 1024, 256 * 1024, 1024 * 1024
"""Bytes that a consumer fetches at once; few sizes, since each needs a consumer of its own.

They count as they are sent: a client unpacks the whole of a fetch, which may be ten thousand times as large. The large one is the Java
client's default. Where a broker is near, 256 KB are as fast; where it is far, a partition gives one fetch in a round trip.
"""

_GUESS = 1024
"""Bytes of a message, as long as none of its topic was seen."""

_OVERHEAD = 16
"""Bytes of a message beside its key, value and headers, about."""

_MEDIUM_RANGE = 8 * MEDIUM_FETCH

_FETCH_BYTES = "max.partition.fetch.bytes"
"""The property by which a user gives a size."""


class FetchSizes:
    """Chooses how much is fetched at once, by what a range is expected to hold.

    What a client has fetched beyond the end of a range is thrown away with it.

    The first fetch of a topic is a small one. If that is much when it is unpacked, all of its fetches are small; each then brings enough.
    """

    def __init__(self) -> None:
        self._average: dict[str, float] = {}
        self._unpacks_much: dict[str, bool] = {}

    def is_tried(self, topic: str) -> bool:
        """Whether it is known how much a fetch of the topic is when it is unpacked."""
        return topic in self._unpacks_much

    def note_first(self, topic: str, count_bytes: int) -> None:
        """Takes note of how many bytes small fetches brought in the time of a batch.

        Their number is not known: at most one in two milliseconds. So what fills half of a batch was packed to a twentieth, or it
        is messages so large that each comes alone.
        """
        self._unpacks_much[topic] = count_bytes >= BATCH_BYTES // 2

    def learn(self, range_: Range, count_bytes: int) -> None:
        """Takes note of how many bytes the messages of a range had, as far as they were taken out."""
        self._average[range_.topic] = count_bytes / range_.size

    def choose(self, range_: Range, properties: Mapping[str, str]) -> int:
        """Bytes to fetch at once: one of the three sizes, the largest if the user gives a size."""
        expected = range_.size * (self._average.get(range_.topic, _GUESS) + _OVERHEAD)
        if _FETCH_BYTES in properties:
            return LARGE_FETCH
        if self._unpacks_much.get(range_.topic, False):
            return SMALL_FETCH
        if expected > _MEDIUM_RANGE:
            return LARGE_FETCH
        return SMALL_FETCH if expected <= SMALL_FETCH else MEDIUM_FETCH


_SIZES = FetchSizes()


class FirstSmallFetcher:
    """Fetches little at first, and then as much at once as suits what that was when it was unpacked.

    Args:
        first: Fetches little.
        note: Called with the bytes of what came first.
        rest: Gives the fetcher of what follows; None = the first one.
    """

    def __init__(
        self, first: Fetcher, note: Callable[[int], object], rest: Callable[[], Fetcher | None]
    ) -> None:
        self._fetcher, self._note = first, note
        self._rest: Callable[[], Fetcher | None] | None = rest

    @property
    def errors(self) -> ClientErrors:
        """The errors that the client has reported."""
        return self._fetcher.errors

    def seek(self, offset: int) -> None:
        """Lets the next poll begin at this offset."""
        self._fetcher.seek(offset)

    def poll(self, position: int, end: int) -> Fetched:
        """The next messages."""
        fetched = self._fetcher.poll(position, end)
        if self._rest is not None and len(fetched.batch) and fetched.may_grow:
            self._note(fetched.size_bytes)
            if fetched.position < end:
                self._go_on(self._rest(), fetched.position)
            self._rest = None
        return fetched

    def _go_on(self, rest: Fetcher | None, position: int) -> None:
        if rest is not None:
            self._fetcher.close()
            self._fetcher = rest
            rest.seek(position)

    def bounds(self) -> Bounds:
        """The bounds of the partition as a broker knows them now."""
        return self._fetcher.bounds()

    def close(self) -> None:
        """Ends fetching."""
        self._fetcher.close()


class LentClients(Generic[C]):
    """The clients of one range.

    Args:
        pool: Lends them.
    """

    def __init__(self, pool: Pool[C]) -> None:
        self._pool = pool
        self._leases: list[Lease[C]] = []

    def take(self, settings: Hashable, open_: Callable[[], C]) -> C:
        """A client with these settings."""
        self._leases.append(self._pool.take(settings, open_))
        return self._leases[-1].client

    def replace(self, settings: Hashable, open_: Callable[[], C]) -> C:
        """A new client in the place of all that were lent."""
        lease = self._pool.open(settings, open_)
        self.discard()
        self._leases.append(lease)
        return lease.client

    def give_back(self) -> None:
        """Keeps them for others."""
        while self._leases:
            self._pool.give_back(self._leases.pop())

    def discard(self) -> None:
        """Ends them."""
        while self._leases:
            self._pool.discard(self._leases.pop())


class PooledReader(ABC, Generic[C]):
    """Reads ranges, each with a client that nobody else uses meanwhile.

    Args:
        settings: How it reads.
    """

    _pool: Pool[C]

    def __init__(self, settings: ReadSettings) -> None:
        level = "read_committed" if settings.read_committed else "read_uncommitted"
        self._settings = settings
        self._properties = settings.properties.replaced({"isolation.level": level})

    def read(self, range_: Range) -> Iterator[RawBatch]:
        """The messages of the range, in batches."""
        properties = self._properties.resolved()
        # A caller that stops early leaves fetches under way: then the pool closes the clients.
        clients = LentClients(self._pool)
        with undone_on_failure(clients.discard):
            fetcher = self._opened(properties, range_, clients)
            servers, checks = self._properties["bootstrap.servers"], self._settings.checks
            fetch = RangeFetch(
                fetcher,
                PlannedTopic(range_, servers, partial(self._topic, range_.topic), checks),
                fail_on_data_loss=self._settings.fail_on_data_loss,
                waits=ReadWaits(message_timeout_s(properties), self._settings.outage_s),
                checks=checks,
            )
            fetch.renewed = partial(self._renewed, properties, range_, clients)
            for batch in fetch.batches():
                batch.keep_of_headers(self._settings.details)
                yield batch
            fetch.close()
        clients.give_back()
        if range_.size:
            _SIZES.learn(range_, fetch.size_bytes)

    def _renewed(self, properties: Properties, range_: Range, clients: LentClients[C]) -> Fetcher:
        """A fetcher with a new client in the place of those that the range has."""
        fetch_bytes = _SIZES.choose(range_, self._properties)
        connect = partial(self._connect, fetch_bytes)
        return self._fetcher(clients.replace((properties, fetch_bytes), connect), range_)

    def _opened(self, properties: Properties, range_: Range, clients: LentClients[C]) -> Fetcher:
        """The fetcher of a range, with clients that are lent until they are given back."""

        def fetcher(fetch_bytes: int) -> Fetcher:
            connect = partial(self._connect, fetch_bytes)
            return self._fetcher(clients.take((properties, fetch_bytes), connect), range_)

        def rest() -> Fetcher | None:
            fetch_bytes = _SIZES.choose(range_, self._properties)
            return None if fetch_bytes == SMALL_FETCH else fetcher(fetch_bytes)

        fetch_bytes = _SIZES.choose(range_, self._properties)
        if (
            fetch_bytes == SMALL_FETCH
            or _FETCH_BYTES in properties
            or _SIZES.is_tried(range_.topic)
        ):
            return fetcher(fetch_bytes)
        note = partial(_SIZES.note_first, range_.topic)
        return FirstSmallFetcher(fetcher(SMALL_FETCH), note, rest)

    def end(self, range_: Range) -> int:
        """The offset up to which the partition of a range can be read now; the range's own end where the topic is lost."""
        partition = TopicPartition(range_.topic, range_.partition)
        with self._cluster() as cluster:
            lookup = partial(_topic, cluster, range_.topic)
            planned = PlannedTopic(range_, cluster.servers, lookup, self._settings.checks)
            loss = planned.loss_before()
            if loss is None:
                try:
                    return cluster.latest_offsets(
                        [partition], read_committed=self._settings.read_committed
                    )[partition]
                except UnknownTopicError as error:  # the client tells no ids
                    loss = DataLossError(*partition, range_.end, None, str(error))
        if self._settings.fail_on_data_loss:
            raise loss
        return range_.end

    def _topic(self, name: str) -> TopicInfo | None:
        with self._cluster() as cluster:
            return _topic(cluster, name)

    @abstractmethod
    def _cluster(self) -> AbstractContextManager[Cluster]:
        """Lends a cluster."""

    @abstractmethod
    def _connect(self, fetch_bytes: int) -> C:
        """Opens a client that fetches a number of bytes at once."""

    @abstractmethod
    def _fetcher(self, client: C, range_: Range) -> Fetcher:
        """Fetches the partition of a range with a client."""


def _topic(cluster: Cluster, name: str) -> TopicInfo | None:
    return cluster.existing([name]).get(name)
