"""A cluster by kafka-python: what both of its libraries have in common, such as which brokers they ask.

A broker that hangs still accepts connections. kafka-python takes it for one that is up, and may ask it again and again. So what
any broker can answer is not asked of one that has lately not answered in time.
"""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Callable, Hashable, Iterable, Sequence
from contextlib import AbstractContextManager
from threading import Lock
from typing import Any, TypeVar

from kafka import errors as kafka_errors
from kafka.errors import KafkaError

from pyspark_upsert_kafka.core.clock import Clock
from pyspark_upsert_kafka.core.options.properties import Properties
from pyspark_upsert_kafka.core.positions.offsets import Positions, TopicPartition
from pyspark_upsert_kafka.kafka.client_pool import Pool
from pyspark_upsert_kafka.kafka.cluster import (
    BackgroundCommits,
    Cluster,
    OffsetLookup,
    lent,
)
from pyspark_upsert_kafka.kafka.kafka_python.errors import retrying
from pyspark_upsert_kafka.kafka.kafka_python.installed import IS_KAFKA_PYTHON_3
from pyspark_upsert_kafka.kafka.kafka_python.properties import client_config
from pyspark_upsert_kafka.kafka.port_protocol import protocol_hint
from pyspark_upsert_kafka.kafka.retrying import Outage, Timeouts

T = TypeVar("T")

# After a broker's restart nobody waits long for the next try.
_CONFIG = {"reconnect_backoff_max_ms": 1_000}


class KafkaPythonCluster(Cluster):
    """Sends the requests over one connection, which is opened by the first of them.

    Args:
        properties: The client's properties.
        role: Part of the client id.
    """

    def __init__(self, properties: Properties, role: str) -> None:
        self.timeouts = Timeouts.from_properties(properties.resolved())
        request_ms = int(self.timeouts.request_s * 1000)
        config = client_config(properties, role, {**_CONFIG, "request_timeout_ms": request_ms})
        self.servers = str(config["bootstrap_servers"])
        self.may_create = bool(config.pop("allow_auto_create_topics", False))
        self.group = str(config.pop("group_id", ""))
        self._config = config
        self.outage = Outage()
        self._client: Any = None
        self._retrying = retrying(
            self.servers,
            self.timeouts,
            config["client_id"].errors,
            refresh=self._refresh,
            reopen=self._disconnect,
            hint=lambda: protocol_hint(self.servers, str(config.get("security_protocol", ""))),
            outage=self.outage,
        )
        self._commits = BackgroundCommits(self.group, self._commit, (KafkaError,))

    def close(self) -> None:
        """Ends the connection, after a commit that is under way."""
        self._commits.wait()
        self._disconnect()

    def commit(self, positions: Positions) -> None:
        """Commits positions to the group, without waiting; a warning is logged of the first failure."""
        self._commits.add(positions)

    def list_offsets(
        self, partitions: Sequence[TopicPartition], lookups: Sequence[OffsetLookup]
    ) -> list[dict[TopicPartition, int]]:
        """The offsets of the partitions for each lookup, one after the other; negative = none."""
        if not partitions:
            return [{} for _ in lookups]
        return [self._offsets(partitions, lookup) for lookup in lookups]

    def _call(self, what: str, request: Callable[[Any, float], T]) -> T:
        """The answer to a request, which gets the client and a timeout in seconds."""

        def attempt(timeout: float) -> T:
            if self._client is None:
                self._client = self._connect(timeout)
            return request(self._client, timeout)

        return self._retrying.call(what, attempt)

    def _refresh(self, _: float) -> bool:
        """Has the client look up leaders and brokers anew, with its next request: nobody has answered yet."""
        if self._client is not None:
            self._metadata(self._client).request_update()
        return False

    def _disconnect(self) -> None:
        """Ends the connection; the next request opens another."""
        client, self._client = self._client, None
        if client is not None:
            client.close()

    @abstractmethod
    def _connect(self, timeout: float) -> Any:
        """A client; raises KafkaError when no broker answers."""

    @abstractmethod
    def _metadata(self, client: Any) -> Any:
        """What a client knows of the cluster."""

    @abstractmethod
    def _offsets(
        self, partitions: Sequence[TopicPartition], lookup: OffsetLookup
    ) -> dict[TopicPartition, int]:
        """The offset of each partition for one lookup."""

    @abstractmethod
    def _commit(self, positions: Positions) -> None:
        """Commits positions to the group; raises what is wrong."""


POOL: Pool[KafkaPythonCluster] = Pool(lambda admin: admin.close())


def pooled_cluster(
    properties: Properties, role: str, outage_s: float = 0.0
) -> AbstractContextManager[KafkaPythonCluster]:
    """An admin connection with these properties, kept for the next task."""
    return lent(POOL, open_cluster, properties, role, outage_s)


def open_cluster(properties: Properties, role: str) -> KafkaPythonCluster:
    """A new admin connection with these properties."""
    if IS_KAFKA_PYTHON_3:
        from pyspark_upsert_kafka.kafka.kafka_python.library_v3 import KafkaPython3Cluster

        return KafkaPython3Cluster(properties, role)
    from pyspark_upsert_kafka.kafka.kafka_python.library_ng import KafkaPythonNgCluster

    return KafkaPythonNgCluster(properties, role)


Node = TypeVar("Node", bound=Hashable)

Address = tuple[str, int]
"""Host and port: the bootstrap server and the broker that it turns out to be are one."""

_AVOIDED_S = 30.0
"""For so long another broker is preferred; one that leads partitions is tried meanwhile, and noted again."""


class SilentBrokers:
    """Which brokers have not answered in time.

    Args:
        clock: Tells the time.
    """

    def __init__(self, clock: Clock = time) -> None:
        self._clock = clock
        self._until: dict[Address, float] = {}
        self._lock = Lock()

    def note(self, address: Address) -> None:
        """Takes note of a broker that has not answered in time."""
        with self._lock:
            self._until[address] = self._clock.monotonic() + _AVOIDED_S

    def forget(self, address: Address) -> None:
        """Takes note of a broker that has answered."""
        if address in self._until:  # nearly never, and this is called for each answer
            with self._lock:
                self._until.pop(address, None)

    def watched(self, answer: Any, address: Address | None) -> Any:
        """A future answer of a broker, from which it is noted or forgotten; None = the library does not say who is asked."""
        if address is None:
            return answer

        def note(error: Exception) -> None:
            if isinstance(error, kafka_errors.RequestTimedOutError):
                self.note(address)

        return answer.add_callback(lambda _: self.forget(address)).add_errback(note)

    def preferred(self, addresses: Iterable[Address]) -> list[Address]:
        """Those that have answered, or have not been asked; all of them where there is no such one."""
        with self._lock:
            now = self._clock.monotonic()
            silent = {address for address, until in self._until.items() if now < until}
        every = list(addresses)
        return [each for each in every if each not in silent] or every


SILENT = SilentBrokers()
"""Those of this process, whichever of its clients has noticed it."""
