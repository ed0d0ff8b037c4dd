"""A Kafka client whose brokers have their troubles at times that a test writes down; time passes only where somebody waits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from typing import Any, TypeVar

from pyspark_upsert_kafka.core.bytes_column import BytesColumn
from pyspark_upsert_kafka.core.clock import Backoff
from pyspark_upsert_kafka.core.errors import BrokerError
from pyspark_upsert_kafka.core.options.properties import Properties
from pyspark_upsert_kafka.core.positions.cluster_view import Bounds, TopicInfo
from pyspark_upsert_kafka.core.positions.offsets import Positions, Range, TopicPartition
from pyspark_upsert_kafka.kafka.client_pool import Pool
from pyspark_upsert_kafka.kafka.clients import ReadSettings
from pyspark_upsert_kafka.kafka.cluster import EARLIEST, Cluster, OffsetLookup
from pyspark_upsert_kafka.kafka.failures import ClientErrors, Failure, FailureKind
from pyspark_upsert_kafka.kafka.loss_checks import LossChecks
from pyspark_upsert_kafka.kafka.pooled_reader import PooledReader
from pyspark_upsert_kafka.kafka.range_fetch import Fetched
from pyspark_upsert_kafka.kafka.raw_batch import RawBatch
from pyspark_upsert_kafka.kafka.retrying import Outage, Retrying, Timeouts
from tests.unit.connector.fake_cluster import Clock

T = TypeVar("T")

Span = tuple[float, float]
"""From one time to another, in seconds since the begin of the test."""

FOR_EVER = 1e9

_PORTS = count(1)


class TroubleError(Exception):
    """What the client raises when a request fails: it holds the kind."""


@dataclass
class ScriptedBroker:
    """Brokers with topics of some partitions, each of which holds as many messages.

    Args:
        partitions: The number of partitions of each topic.
        messages: The number of messages of each partition.
        away: Nobody listens.
        hung: Connections stay open, and nothing is answered.
        leaderless: Partitions have no leader; all else is answered.
        idle_s: Connections that were not used for so long have been ended, in seconds.
    """

    partitions: Mapping[str, int] = field(default_factory=lambda: {"t": 1})
    messages: int = 100
    away: Sequence[Span] = ()
    hung: Sequence[Span] = ()
    leaderless: Sequence[Span] = ()
    idle_s: float = FOR_EVER
    clock: Clock = field(default_factory=Clock)
    lookups: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self._began_at = self.clock.now
        self.servers = f"scripted:{next(_PORTS)}"

    @property
    def passed_s(self) -> float:
        """The seconds that have passed."""
        return self.clock.now - self._began_at

    def left_of(self, spans: Sequence[Span]) -> float:
        """How long one of these spans still lasts; 0 = now is in none of them."""
        return max([end - self.passed_s for begin, end in spans if begin <= self.passed_s < end], default=0.0)  # fmt: skip

    def properties(self, given: Mapping[str, object]) -> Properties:
        """The client's properties."""
        more = {name: str(value) for name, value in given.items()}
        return Properties({"bootstrap.servers": self.servers, **more})

    def cluster(self, **given: object) -> Cluster:
        """What asks it, with properties whose names have _ for a dot."""
        properties = {name.replace("_", "."): value for name, value in given.items()}
        return ScriptedCluster(self, self.properties(properties))

    def offsets(self, range_: Range, outage_s: float = 0.0, **given: object) -> list[int]:
        """The offsets that reading a range gives."""
        properties = {name.replace("_", "."): value for name, value in given.items()}
        settings = ReadSettings(
            self.properties(properties), read_committed=True, fail_on_data_loss=True, outage_s=outage_s,
            checks=LossChecks(self.clock),
        )  # fmt: skip
        batches = ScriptedReader(settings, self).read(range_)
        return [offset for batch in batches for offset in batch.offsets]


class Connection:
    """One connection of a client."""

    def __init__(self, broker: ScriptedBroker) -> None:
        self._broker, self._used_at = broker, broker.clock.now

    def ask(self, timeout: float, *, leader: bool = False) -> None:
        """Returns when there is an answer.

        Args:
            timeout: For the answer, in seconds.
            leader: Whether the leader of a partition is asked.
        """
        broker, clock = self._broker, self._broker.clock
        was_idle_s, self._used_at = clock.now - self._used_at, clock.now
        if was_idle_s > broker.idle_s or broker.left_of(broker.away):
            clock.sleep(0.01)
            raise TroubleError(FailureKind.AWAY)
        if hangs_s := broker.left_of(broker.hung):
            clock.sleep(min(timeout, hangs_s))
            if hangs_s > timeout:
                raise TroubleError(FailureKind.AWAY)
        clock.sleep(0.01)
        if leader and broker.left_of(broker.leaderless):
            raise TroubleError(FailureKind.RETRIABLE)
        self._used_at = clock.now


class ScriptedCluster(Cluster):
    """Asks over one connection, by the retry loop of every client."""

    def __init__(self, broker: ScriptedBroker, properties: Properties) -> None:
        self.servers, self.group = broker.servers, ""
        self.timeouts = Timeouts.from_properties(properties)
        self.outage = Outage(clock=broker.clock.monotonic)
        self._broker, self._connection = broker, Connection(broker)
        self.clock = broker.clock

    def _call(self, what: str, answer: Callable[[], T], *, leader: bool = False) -> T:
        def request(timeout: float) -> T:
            self._connection.ask(timeout, leader=leader)
            return answer()

        def refresh(timeout: float) -> bool:
            self._connection.ask(timeout)
            return True

        clock = self._broker.clock
        return Retrying(
            self.servers, self.timeouts, ClientErrors(clock=clock.monotonic), (TroubleError,),
            lambda error: Failure(error.args[0], "no answer"), refresh, outage=self.outage,
            backoff=Backoff(0.1, 1.0, random=lambda: 0.5), clock=clock,
        ).call(what, request)  # fmt: skip

    def names(self) -> Sequence[str]:
        return [*self._broker.partitions]

    def described(self, names: Sequence[str]) -> dict[str, TopicInfo]:
        self._broker.lookups.update(names)
        there = self._broker.partitions
        found = {name: TopicInfo(f"id of {name}", there[name]) for name in names if name in there}
        return self._call("look up topics", lambda: found)

    def list_offsets(
        self, partitions: Sequence[TopicPartition], lookups: Sequence[OffsetLookup]
    ) -> list[dict[TopicPartition, int]]:
        ends = [0 if each.timestamp_ms == EARLIEST else self._broker.messages for each in lookups]
        found = [dict.fromkeys(partitions, end) for end in ends]
        return self._call("look up offsets", lambda: found, leader=True)

    def group_offsets(self, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
        return dict.fromkeys(partitions, -1)

    def topic_configs(
        self, topics: Sequence[str], names: Sequence[str]
    ) -> dict[str, dict[str, str]]:
        return {}

    def brokers(self) -> list[str]:
        return [self.servers]

    def commit(self, positions: Positions) -> None:
        """Nothing is kept of it."""

    def close(self) -> None:
        """Nothing is open."""


class ScriptedFetcher:
    """Fetches five messages with each poll, and none while it is in trouble."""

    def __init__(self, broker: ScriptedBroker, range_: Range) -> None:
        self.errors = ClientErrors(clock=broker.clock.monotonic)
        self._broker, self._range, self._connection = broker, range_, Connection(broker)

    def seek(self, offset: int) -> None:
        """Each poll is told where it begins."""

    def poll(self, position: int, end: int) -> Fetched:
        try:
            self._connection.ask(0.05, leader=True)
        except TroubleError:
            found = range(position, position)
        else:
            found = range(position, min(position + 5, end, self._broker.messages))
        self._broker.clock.sleep(0.05)
        place, column = (
            (self._range.topic, self._range.partition),
            BytesColumn.of([b"x"] * len(found)),
        )
        return Fetched(RawBatch(*place, column, column, [*found]), found.stop, 2 * len(found))

    def bounds(self) -> Bounds:
        try:
            self._connection.ask(5.0, leader=True)
        except TroubleError as error:
            raise BrokerError("no answer in time") from error
        return Bounds(0, self._broker.messages, self._broker.messages)

    def close(self) -> None:
        """Nothing is under way."""


class ScriptedReader(PooledReader[None]):
    """Reads ranges of scripted brokers."""

    _pool: Pool[Any] = Pool(lambda _: None)

    def __init__(self, settings: ReadSettings, broker: ScriptedBroker) -> None:
        super().__init__(settings)
        self._broker = broker

    @contextmanager
    def _cluster(self) -> Iterator[Cluster]:
        admin = ScriptedCluster(self._broker, self._properties)
        admin.outage.limit_s = self._settings.outage_s
        yield admin

    def _connect(self, fetch_bytes: int) -> None:
        """Nothing is opened."""

    def _fetcher(self, client: None, range_: Range) -> ScriptedFetcher:
        return ScriptedFetcher(self._broker, range_)
