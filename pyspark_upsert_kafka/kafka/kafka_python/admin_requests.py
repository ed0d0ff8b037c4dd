"""What both libraries share in asking: attempts over one connection, and commits that nobody waits for."""

from __future__ import annotations

import logging
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from kafka.errors import KafkaError

from pyspark_upsert_kafka.core.cluster_view import Bounds
from pyspark_upsert_kafka.core.errors import BrokerError
from pyspark_upsert_kafka.core.offsets import Positions, TopicPartition
from pyspark_upsert_kafka.core.properties import Properties
from pyspark_upsert_kafka.kafka import timeouts
from pyspark_upsert_kafka.kafka.kafka_python.errors import retrying
from pyspark_upsert_kafka.kafka.kafka_python.properties import client_config
from pyspark_upsert_kafka.kafka.timeouts import Timeouts

logger = logging.getLogger("pyspark_upsert_kafka")

T = TypeVar("T")

EARLIEST, LATEST = -2, -1
"""What Kafka's protocol has for a time that means the first or the last offset."""

# After a broker's restart nobody waits long for the next try.
_CONFIG = {"reconnect_backoff_max_ms": 1_000}


class KafkaPythonAdmin(ABC):
    """Single questions over one connection, which is opened by the first of them.

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
        self._client: Any = None
        self._retrying = retrying(
            self.servers,
            self.timeouts,
            config["client_id"].errors,
            refresh=self._refresh,
            reopen=self._reopen,
        )
        self._commits = _Commits(self.group, self._commit)

    def close(self) -> None:
        """Ends the connection, after a commit that is under way."""
        self._commits.wait()
        self._reopen()

    def commit(self, positions: Positions) -> None:
        """Commits positions to the group, without waiting; trouble is one warning."""
        self._commits.add(positions)

    def latest(
        self, partitions: Sequence[TopicPartition], *, committed: bool
    ) -> dict[TopicPartition, int]:
        """The latest offsets of these partitions."""
        return self._offsets(partitions, LATEST, committed=committed)

    def at_timestamp(
        self, partitions: Sequence[TopicPartition], timestamp_ms: int
    ) -> dict[TopicPartition, int]:
        """The first offset at or after a time; negative = none."""
        return self._offsets(partitions, timestamp_ms, committed=False)

    def bounds(
        self, partitions: Sequence[TopicPartition], *, committed: bool
    ) -> dict[TopicPartition, Bounds]:
        """The bounds of these partitions."""
        earliest = self._offsets(partitions, EARLIEST, committed=False)
        high = self._offsets(partitions, LATEST, committed=False)
        latest = self._offsets(partitions, LATEST, committed=True) if committed else high
        # The answers are of slightly different moments, and others write meanwhile.
        return {
            tp: Bounds(earliest[tp], latest[tp], max(high[tp], latest[tp])) for tp in partitions
        }

    def _call(self, what: str, request: Callable[[Any, float], T]) -> T:
        """The answer to a request, which gets the client and a timeout in seconds."""

        def asked(timeout: float) -> T:
            if self._client is None:
                self._client = self._open(timeout)
            return request(self._client, timeout)

        return self._retrying.call(what, asked)

    def _refresh(self, _: float) -> None:
        """Has the client look up leaders and brokers anew, with its next request."""
        if self._client is not None:
            self._metadata(self._client).request_update()

    def _reopen(self) -> None:
        """Ends the connection; the next question opens another."""
        client, self._client = self._client, None
        if client is not None:
            client.close()

    @abstractmethod
    def names(self) -> Sequence[str]:
        """Names of all topics."""

    @abstractmethod
    def existing(self, names: Sequence[str]) -> dict[str, tuple[str, int]]:
        """Name -> id and number of partitions, of the topics that exist."""

    @abstractmethod
    def create(self, names: Sequence[str]) -> None:
        """Lets the broker create missing topics in its own way."""

    @abstractmethod
    def committed(self, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
        """The offsets that the group has committed; negative = none."""

    @abstractmethod
    def settings(self, topics: Sequence[str], names: Sequence[str]) -> dict[str, dict[str, str]]:
        """Settings of topics, by topic and name; a BrokerError when we may not know."""

    @abstractmethod
    def _open(self, timeout: float) -> Any:
        """A client; raises KafkaError when no broker answers."""

    @abstractmethod
    def _metadata(self, client: Any) -> Any:
        """What a client knows of the cluster."""

    @abstractmethod
    def _offsets(
        self, partitions: Sequence[TopicPartition], at: int, *, committed: bool
    ) -> dict[TopicPartition, int]:
        """The offset of each partition at a time (ms), at its `EARLIEST` or `LATEST`."""

    @abstractmethod
    def _commit(self, positions: Positions) -> None:
        """Commits positions to the group; raises what is wrong."""


class _Commits:
    """Commits in the background, one at a time and the last one last."""

    def __init__(self, group: str, commit: Callable[[Positions], None]) -> None:
        self._group, self._commit = group, commit
        self._lock = threading.Lock()
        self._waiting: dict[TopicPartition, int] = {}
        self._thread: threading.Thread | None = None
        self._warned = False

    def add(self, positions: Positions) -> None:
        """Has positions committed."""
        with self._lock:
            self._waiting.update(positions)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, daemon=True)
                self._thread.start()

    def wait(self) -> None:
        """Waits a little for what is under way."""
        thread = self._thread
        if thread is not None:
            thread.join(timeouts.STALL_CHECK_S)

    def _run(self) -> None:
        while True:
            with self._lock:
                positions, self._waiting = self._waiting, {}
                if not positions:
                    self._thread = None
                    return
            try:
                self._commit(positions)
            except (BrokerError, KafkaError) as error:
                self._warn(error)

    def _warn(self, error: Exception) -> None:
        if not self._warned:
            self._warned = True
            logger.warning(
                "Offsets are not committed to group %r, so Kafka's tools do not show how far the query "
                "is: %s. The query itself goes on; its checkpoint decides.",
                self._group, error,
            )  # fmt: skip
