"""The smallest Kafka client: it reads topics that this process holds, and writes nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice

from pyspark_upsert_kafka.core.bytes_column import BytesColumn
from pyspark_upsert_kafka.core.metadata import Headers
from pyspark_upsert_kafka.core.options.properties import Properties
from pyspark_upsert_kafka.core.positions.cluster_view import Bounds, TopicInfo
from pyspark_upsert_kafka.core.positions.offsets import Positions, Range, TopicPartition
from pyspark_upsert_kafka.kafka.client_pool import Pool
from pyspark_upsert_kafka.kafka.clients import RangeReader, ReadSettings
from pyspark_upsert_kafka.kafka.cluster import EARLIEST, Cluster, OffsetLookup
from pyspark_upsert_kafka.kafka.failures import ClientErrors
from pyspark_upsert_kafka.kafka.pooled_reader import PooledReader
from pyspark_upsert_kafka.kafka.range_fetch import Fetched
from pyspark_upsert_kafka.kafka.raw_batch import RawBatch
from pyspark_upsert_kafka.kafka.retrying import Outage, Timeouts

Log = Mapping[int, tuple[bytes | None, bytes | None]]
"""Keys and values by their offsets, which may have gaps."""

TOPICS: dict[str, list[Log]] = {}
"""The partitions of each topic."""

HEADERS: dict[tuple[str, int, int], Headers] = {}
"""The headers of messages that have any, by topic, partition and offset."""


def bounds_of(topic: str, partition: int) -> Bounds:
    """The bounds of a partition."""
    log = TOPICS[topic][partition]
    end = max(log, default=-1) + 1
    return Bounds(min(log, default=0), end, end)


class MemoryCluster(Cluster):
    """Answers for a cluster whose consumer groups have committed nothing."""

    def __init__(self, properties: Properties) -> None:
        self.servers, self.group = properties["bootstrap.servers"], properties.get("group.id", "")
        self.timeouts, self.outage = Timeouts.from_properties(properties), Outage()

    def names(self) -> Sequence[str]:
        return [*TOPICS]

    def described(self, names: Sequence[str]) -> dict[str, TopicInfo]:
        return {name: TopicInfo("", len(TOPICS[name])) for name in names if name in TOPICS}

    def list_offsets(
        self, partitions: Sequence[TopicPartition], lookups: Sequence[OffsetLookup]
    ) -> list[dict[TopicPartition, int]]:
        bounds = {tp: bounds_of(*tp) for tp in partitions}
        return [
            {
                tp: b.earliest if each.timestamp_ms == EARLIEST else b.latest
                for tp, b in bounds.items()
            }
            for each in lookups
        ]

    def group_offsets(self, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
        return dict.fromkeys(partitions, -1)

    def topic_configs(
        self, topics: Sequence[str], names: Sequence[str]
    ) -> dict[str, dict[str, str]]:
        return {topic: dict.fromkeys(names, "") for topic in topics}

    def brokers(self) -> list[str]:
        return [self.servers]

    def commit(self, positions: Positions) -> None:
        """Nothing is kept of it."""

    def close(self) -> None:
        """Nothing is open."""


class MemoryFetcher:
    """Gives the messages of a partition, two with each poll."""

    def __init__(self, range_: Range) -> None:
        self._topic, self._partition, self.errors = range_.topic, range_.partition, ClientErrors()

    def seek(self, offset: int) -> None:
        """Each poll is told where it begins."""

    def poll(self, position: int, end: int) -> Fetched:
        log = TOPICS[self._topic][self._partition]
        found = list(islice((at for at in sorted(log) if position <= at < end), 2))
        keys, values = [log[at][0] for at in found], [log[at][1] for at in found]
        headers = [HEADERS.get((self._topic, self._partition, at), ()) for at in found]
        batch = RawBatch(
            self._topic,
            self._partition,
            BytesColumn.of(keys),
            BytesColumn.of(values),
            found,
            headers=headers,
        )
        return Fetched(batch, found[-1] + 1 if found else end)

    def bounds(self) -> Bounds:
        return bounds_of(self._topic, self._partition)

    def close(self) -> None:
        """Nothing is under way."""


class MemoryReader(PooledReader[None]):
    """Reads ranges; there is no connection to keep."""

    _pool = Pool(lambda _: None)

    @contextmanager
    def _cluster(self) -> Iterator[Cluster]:
        yield MemoryCluster(self._properties)

    def _connect(self, fetch_bytes: int) -> None:
        """Nothing is opened."""

    def _fetcher(self, client: None, range_: Range) -> MemoryFetcher:
        return MemoryFetcher(range_)


class MemoryClient:
    """The roles of a client that only reads."""

    packages = ()

    def cluster(self, properties: Properties, role: str) -> Cluster:
        return MemoryCluster(properties)

    def reader(self, settings: ReadSettings) -> RangeReader:
        return MemoryReader(settings)


CLIENT = MemoryClient()
