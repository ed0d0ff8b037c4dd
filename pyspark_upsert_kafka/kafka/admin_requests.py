"""The requests that a cluster needs of a client: topics, offsets, groups, configs."""

from __future__ import annotations

import logging
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TypeVar

from pyspark_upsert_kafka.core.errors import BrokerError
from pyspark_upsert_kafka.core.options.properties import Properties
from pyspark_upsert_kafka.core.positions.cluster_view import Bounds, TopicInfo
from pyspark_upsert_kafka.core.positions.offsets import Positions, TopicPartition
from pyspark_upsert_kafka.kafka.connections import timeouts
from pyspark_upsert_kafka.kafka.connections.failures import AttemptError, Failure, Kind
from pyspark_upsert_kafka.kafka.connections.outage import Outage
from pyspark_upsert_kafka.kafka.connections.pool import Pool
from pyspark_upsert_kafka.kafka.connections.timeouts import Timeouts

EARLIEST, LATEST = -2, -1
"""What Kafka's protocol has for a time that means the first or the last offset."""

_NO_OFFSET = -1

logger = logging.getLogger("pyspark_upsert_kafka")


@dataclass(frozen=True)
class OffsetLookup:
    """Which offset of a partition is wanted (Kafka's ListOffsets).

    Args:
        timestamp_ms: The first offset at or after this time; or `EARLIEST` or `LATEST`.
        read_committed: Whether the latest offset is before the first open transaction.
    """

    timestamp_ms: int
    read_committed: bool = False


def answered_offset(offset: int | None, lookup: OffsetLookup) -> int:
    """An offset as a broker, or a client for it, has answered; -1 = no message is as late as the time that was asked for.

    Raises:
        AttemptError: It is no offset, or none was answered, though there is no error either, as may come after a lost connection.
    """
    by_time = lookup.timestamp_ms not in (EARLIEST, LATEST)
    if offset is not None and (offset >= 0 or (offset == _NO_OFFSET and by_time)):
        return offset
    raise AttemptError(Failure(Kind.RETRIABLE, "no offset was answered"))


def answered_topic(name: str, id_: str, partitions: int) -> TopicInfo:
    """A topic as a broker has answered.

    Raises:
        AttemptError: It has no partitions, as no topic is.
    """
    if not partitions:
        raise AttemptError(
            Failure(Kind.RETRIABLE, f"topic {name!r} was answered without partitions")
        )
    return TopicInfo(id_, partitions)


class AdminRequests(ABC):
    """Single requests to the brokers, each retried while that may help: what remains is a BrokerError."""

    servers: str
    """The bootstrap servers."""

    timeouts: Timeouts
    """For one attempt and for all of them."""

    outage: Outage
    """How long brokers that are all away are waited for."""

    group: str
    """The consumer group of the properties; empty = none."""

    may_create: bool = False
    """Whether the broker may create a topic that does not exist."""

    @abstractmethod
    def names(self) -> Sequence[str]:
        """Names of all topics."""

    @abstractmethod
    def existing(self, names: Sequence[str]) -> dict[str, TopicInfo]:
        """Those of the topics that exist, by name."""

    @abstractmethod
    def list_offsets(
        self, partitions: Sequence[TopicPartition], lookups: Sequence[OffsetLookup]
    ) -> list[dict[TopicPartition, int]]:
        """The offsets of the partitions for each lookup; negative = none.

        Raises:
            UnknownTopicError: A partition is not known.
        """

    @abstractmethod
    def group_offsets(self, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
        """The offsets that the group has committed; negative = none."""

    @abstractmethod
    def topic_configs(
        self, topics: Sequence[str], names: Sequence[str]
    ) -> dict[str, dict[str, str]]:
        """Configs of topics, by topic and name, without those that brokers do not tell.

        Raises:
            BrokerError: No broker answers, or the ACLs do not allow it.
        """

    @abstractmethod
    def brokers(self) -> list[str]:
        """The addresses of all brokers."""

    @abstractmethod
    def commit(self, positions: Positions) -> None:
        """Commits positions to the group, without waiting; a warning is logged of the first failure."""

    @abstractmethod
    def close(self) -> None:
        """Ends the connection."""

    def create(self, names: Sequence[str]) -> None:
        """Lets the broker create missing topics in its own way; asked only where `may_create` is true."""
        raise NotImplementedError

    def operations(self, topics: Sequence[str]) -> dict[str, frozenset[str]] | None:  # noqa: ARG002
        """What the user may do with topics, as names of ACL operations; None = the client or the brokers do not tell."""
        return None

    def group_operations(self) -> frozenset[str] | None:
        """What the user may do with the group, as names of ACL operations; None = the client or the brokers do not tell."""
        return None

    def bounds(
        self, partitions: Sequence[TopicPartition], *, read_committed: bool
    ) -> dict[TopicPartition, Bounds]:
        """The bounds of these partitions; raises UnknownTopicError for one that is unknown."""
        lookups = [OffsetLookup(EARLIEST), OffsetLookup(LATEST)]
        if read_committed:
            lookups.append(OffsetLookup(LATEST, read_committed=True))
        earliest, high, *stable = self.list_offsets(partitions, lookups)
        latest = stable[0] if stable else high
        # The answers are of slightly different moments, and others write meanwhile.
        return {
            tp: Bounds(earliest[tp], latest[tp], max(high[tp], latest[tp])) for tp in partitions
        }

    def latest(
        self, partitions: Sequence[TopicPartition], *, read_committed: bool
    ) -> dict[TopicPartition, int]:
        """The latest offsets of these partitions; raises UnknownTopicError for one that is unknown."""
        (found,) = self.list_offsets(
            partitions, [OffsetLookup(LATEST, read_committed=read_committed)]
        )
        return found

    def at_timestamp(
        self, partitions: Sequence[TopicPartition], timestamp_ms: int
    ) -> dict[TopicPartition, int]:
        """The first offset at or after a time; negative = none."""
        (found,) = self.list_offsets(partitions, [OffsetLookup(timestamp_ms)])
        return found


A = TypeVar("A", bound=AdminRequests)


def lent(
    pool: Pool[A],
    open_: Callable[[Properties, str], A],
    properties: Properties,
    role: str,
    outage_s: float,
) -> AbstractContextManager[A]:
    """An admin connection from a pool, kept for the next task.

    Args:
        pool: The client's.
        open_: Opens one with properties and a role.
        properties: The client's properties.
        role: What it is for.
        outage_s: How long brokers that are all away are waited for, in seconds.
    """

    def connect() -> A:
        admin = open_(properties, role)
        admin.outage.limit_s = outage_s
        return admin

    return pool.client((properties.resolved(), role, outage_s), connect)


class CommitWarning:
    """Logs a warning of the first commit that fails, and none of later ones: the query goes on.

    Args:
        group: The consumer group.
    """

    def __init__(self, group: str) -> None:
        self._group = group
        self._warned = False

    def warn(self, error: object) -> None:
        """Logs the reason, unless there was a warning before."""
        if not self._warned:
            self._warned = True
            logger.warning(
                "Offsets are not committed to group %r, so Kafka's tools do not show how far the query "
                "is: %s. The query itself goes on; its checkpoint decides.",
                self._group, error,
            )  # fmt: skip


class BackgroundCommits:
    """Commits in the background, one at a time and the last one last.

    Args:
        group: The consumer group, for the warning.
        commit: Commits positions and waits for the answer.
        raised: What it may raise beside a BrokerError.
    """

    def __init__(
        self,
        group: str,
        commit: Callable[[Positions], None],
        raised: tuple[type[Exception], ...],
    ) -> None:
        self._commit, self._warning = commit, CommitWarning(group)
        self._raised: tuple[type[Exception], ...] = (BrokerError, *raised)
        self._lock = threading.Lock()
        self._waiting: dict[TopicPartition, int] = {}
        self._thread: threading.Thread | None = None

    def add(self, positions: Positions) -> None:
        """Has positions committed."""
        with self._lock:
            self._waiting.update(positions)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, daemon=True)
                self._thread.start()

    def wait(self) -> bool:
        """Waits a little for what is under way; false = it still is."""
        thread = self._thread
        if thread is not None:
            thread.join(timeouts.CLOSE_TIMEOUT_S)
        return thread is None or not thread.is_alive()

    def _run(self) -> None:
        while True:
            with self._lock:
                positions, self._waiting = self._waiting, {}
                if not positions:
                    self._thread = None
                    return
            try:
                self._commit(positions)
            except self._raised as error:
                self._warning.warn(error)
