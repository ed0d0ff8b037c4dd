"""Reads ranges, whichever client is used: it is opened at the first range and kept for the next ones."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from functools import partial
from typing import Generic, TypeVar

from pyspark_upsert_kafka.core.errors import DataLossError, UnknownTopicError
from pyspark_upsert_kafka.core.options.properties import Properties
from pyspark_upsert_kafka.core.positions.cluster_view import TopicInfo
from pyspark_upsert_kafka.core.positions.offsets import Range, TopicPartition
from pyspark_upsert_kafka.kafka.admin_requests import AdminRequests
from pyspark_upsert_kafka.kafka.connections.pool import Pool
from pyspark_upsert_kafka.kafka.connections.timeouts import ReadWaits, message_timeout_s
from pyspark_upsert_kafka.kafka.interfaces import ReadSettings
from pyspark_upsert_kafka.kafka.reading.fetcher import Fetcher
from pyspark_upsert_kafka.kafka.reading.planned_topic import PlannedTopic
from pyspark_upsert_kafka.kafka.reading.range_fetch import RangeFetch
from pyspark_upsert_kafka.kafka.reading.raw_batch import RawBatch

C = TypeVar("C")

SMALL_FETCH, MEDIUM_FETCH, LARGE_FETCH = 16 * 1024, 256 * 1024, 1024 * 1024
"""Bytes that a consumer fetches at once; few sizes, since each needs a consumer of its own."""

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
    """

    def __init__(self) -> None:
        self._average: dict[str, float] = {}

    def learn(self, range_: Range, count_bytes: int) -> None:
        """Takes note of how many bytes the messages of a range had, as far as they were taken out."""
        self._average[range_.topic] = count_bytes / range_.size

    def choose(self, range_: Range, properties: Mapping[str, str]) -> int:
        """Bytes to fetch at once: one of the three sizes, the largest if the user gives a size."""
        expected = range_.size * (self._average.get(range_.topic, _GUESS) + _OVERHEAD)
        if expected > _MEDIUM_RANGE or _FETCH_BYTES in properties:
            return LARGE_FETCH
        return SMALL_FETCH if expected <= SMALL_FETCH else MEDIUM_FETCH


_SIZES = FetchSizes()


class PooledReader(ABC, Generic[C]):
    """Reads ranges, each with a client that nobody else uses meanwhile.

    Args:
        settings: How it reads.
    """

    _pool: Pool[C]

    def __init__(self, settings: ReadSettings) -> None:
        level = "read_committed" if settings.read_committed else "read_uncommitted"
        self._settings = settings
        self._properties = Properties({**settings.properties, "isolation.level": level})

    def read(self, range_: Range) -> Iterator[RawBatch]:
        """The messages of the range, in batches."""
        properties = self._properties.resolved()
        # A caller that stops early leaves fetches under way: then the pool closes the client.
        fetch_bytes = _SIZES.choose(range_, self._properties)
        opened_with = (properties, fetch_bytes)
        with self._pool.client(opened_with, partial(self._connect, fetch_bytes)) as client:
            fetcher = self._fetcher(client, range_)
            servers, checks = self._properties["bootstrap.servers"], self._settings.checks
            fetch = RangeFetch(
                fetcher,
                PlannedTopic(range_, servers, partial(self._topic, range_.topic), checks),
                fail_on_data_loss=self._settings.fail_on_data_loss,
                waits=ReadWaits(message_timeout_s(properties), self._settings.outage_s),
                checks=checks,
            )
            yield from fetch.batches()
            fetcher.close()
            if range_.size:
                _SIZES.learn(range_, fetch.size_bytes)

    def end(self, range_: Range) -> int:
        """The offset up to which the partition of a range can be read now; the range's own end where the topic is lost."""
        partition = TopicPartition(range_.topic, range_.partition)
        with self._admin() as admin:
            lookup = partial(_topic, admin, range_.topic)
            planned = PlannedTopic(range_, admin.servers, lookup, self._settings.checks)
            loss = planned.loss_before()
            if loss is None:
                try:
                    return admin.latest([partition], read_committed=self._settings.read_committed)[
                        partition
                    ]
                except UnknownTopicError as error:  # the client tells no ids
                    loss = DataLossError(*partition, range_.end, None, str(error))
        if self._settings.fail_on_data_loss:
            raise loss
        return range_.end

    def _topic(self, name: str) -> TopicInfo | None:
        with self._admin() as admin:
            return _topic(admin, name)

    @abstractmethod
    def _admin(self) -> AbstractContextManager[AdminRequests]:
        """Lends an admin client."""

    @abstractmethod
    def _connect(self, fetch_bytes: int) -> C:
        """Opens a client that fetches a number of bytes at once."""

    @abstractmethod
    def _fetcher(self, client: C, range_: Range) -> Fetcher:
        """Fetches the partition of a range with a client."""


def _topic(admin: AdminRequests, name: str) -> TopicInfo | None:
    return admin.existing([name]).get(name)
