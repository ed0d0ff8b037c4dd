"""What the connector asks of a cluster, over the requests that each client sends in its own way."""

from __future__ import annotations

import logging
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TypeVar

from pyspark_upsert_kafka.core.clock import Clock
from pyspark_upsert_kafka.core.errors import BrokerError, OptionError, UnknownTopicError, warn_once
from pyspark_upsert_kafka.core.options.frozen_options import Position, Topics
from pyspark_upsert_kafka.core.options.properties import Properties
from pyspark_upsert_kafka.core.positions.cluster_view import Bounds, ClusterView, TopicInfo
from pyspark_upsert_kafka.core.positions.offsets import Positions, TopicPartition
from pyspark_upsert_kafka.kafka.client_pool import Pool
from pyspark_upsert_kafka.kafka.failures import AttemptError, Failure, FailureKind
from pyspark_upsert_kafka.kafka.retrying import CLOSE_TIMEOUT_S, Outage, Timeouts

EARLIEST, LATEST = -2, -1
"""What Kafka's protocol has for a time that means the first or the last offset."""

POLICY = "cleanup.policy"
"""What `Cluster.topic_configs` is asked for most: whether a topic is compacted, or deletes messages."""

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
    raise AttemptError(Failure(FailureKind.RETRIABLE, "no offset was answered"))


def answered_topic(name: str, id_: str, partitions: int) -> TopicInfo:
    """A topic as a broker has answered.

    Raises:
        AttemptError: It has no partitions, as no topic is.
    """
    if not partitions:
        raise AttemptError(
            Failure(FailureKind.RETRIABLE, f"topic {name!r} was answered without partitions")
        )
    return TopicInfo(id_, partitions)


class Cluster(ABC):
    """What the connector asks of the brokers. A client implements the requests, the abstract methods.

    Retriable errors are retried, and what remains is a BrokerError: that no broker answers, or that access is denied.
    """

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

    who_tells_operations: str = (
        "With 'kafka.client' = 'librdkafka' and brokers from Kafka 2.3 on it is"
    )
    """With what `operations` are told, where this client does not tell them; else empty."""

    clock: Clock = time
    """Tells the time, and waits."""

    @abstractmethod
    def names(self) -> Sequence[str]:
        """Names of all topics."""

    @abstractmethod
    def described(self, names: Sequence[str]) -> dict[str, TopicInfo]:
        """Those of the topics that exist, by name; there is one name at least."""

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
        """Commits positions to the group, without waiting; a warning is logged of the first failure, as `BackgroundCommits` does."""

    @abstractmethod
    def close(self) -> None:
        """Ends the connection."""

    def create(self, names: Sequence[str]) -> None:
        """Lets the broker create missing topics in its own way; asked only where `may_create` is true."""
        raise NotImplementedError

    def operations(self, topics: Sequence[str]) -> dict[str, frozenset[str]] | None:  # noqa: ARG002
        """What the user may do with topics that exist, by topic: names of ACL operations, such as ``READ``; None = not told.

        Raises:
            BrokerError: No broker answers, or the user may not even see a topic.
        """
        return None

    def group_operations(self) -> frozenset[str] | None:
        """What the user may do with the group of the properties, as `operations` has it; empty = not even see it."""
        return None

    def wait_out(self, outage_s: float) -> None:
        """Has requests wait for so long (seconds) for brokers that are all away; a warning is logged every 30 seconds."""
        self.outage.limit_s = outage_s

    def topics(self, wanted: Topics) -> dict[str, TopicInfo]:
        """The wanted topics, by name; one just created, or to be created, is waited for.

        Raises:
            BrokerError: A named topic does not exist.
        """
        if wanted.pattern is not None:
            return self.existing(self._matching(wanted))
        found = self.existing(wanted.names)
        wait_s = min(_MISSING_AFTER_S, self.timeouts.api_s)
        if len(found) < len(wanted.names) and self.may_create:
            self.create([name for name in wanted.names if name not in found])
            wait_s = self.timeouts.api_s
        deadline = self.clock.monotonic() + wait_s
        while len(found) < len(wanted.names) and self.clock.monotonic() < deadline:
            self.clock.sleep(_PAUSE_S)
            found = self.existing(wanted.names)
        missing = [name for name in wanted.names if name not in found]
        if missing:
            raise BrokerError(missing_topic(missing[0], self.servers))
        return found

    def existing(self, names: Sequence[str]) -> dict[str, TopicInfo]:
        """Those of the topics that exist, by name; a missing one is no error."""
        return self.described(names) if names else {}

    def view(self, topics: Mapping[str, TopicInfo], *, read_committed: bool) -> ClusterView:
        """The bounds of every partition of these topics, without those deleted meanwhile.

        Args:
            topics: As `topics` or `existing` gave them.
            read_committed: Whether ``latest`` is before the first open transaction.
        """
        deadline = self.clock.monotonic() + self.timeouts.api_s
        while True:
            try:
                return ClusterView(
                    {name: topic.id for name, topic in topics.items()},
                    self.bounds(partitions_of(topics), read_committed=read_committed),
                )
            except UnknownTopicError:
                # Metadata may know a new partition before its leader does.
                left = self.existing(list(topics))
                if left == topics and self.clock.monotonic() > deadline:
                    raise
                topics = left
                self.clock.sleep(_PAUSE_S)

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

    def latest(self, view: ClusterView, *, read_committed: bool) -> dict[TopicPartition, int]:
        """The latest offset of each partition of a view as it is now: the cheapest request there is.

        Empty when a partition is gone: then a new view is needed.
        """
        try:
            return self.latest_offsets(list(view.bounds), read_committed=read_committed)
        except UnknownTopicError:
            return {}

    def latest_offsets(
        self, partitions: Sequence[TopicPartition], *, read_committed: bool
    ) -> dict[TopicPartition, int]:
        """The latest offsets of these partitions; raises UnknownTopicError for one that is unknown."""
        (found,) = self.list_offsets(
            partitions, [OffsetLookup(LATEST, read_committed=read_committed)]
        )
        return found

    def positions(self, position: Position, view: ClusterView) -> dict[TopicPartition, int]:
        """Where a position is in each partition of the view (``specific-offsets``: of those named).

        The caller checks whether an offset that was named or committed is still there.

        Raises:
            OptionError: A named partition does not exist, or nothing is committed.
        """
        partitions = list(view.bounds)
        if position.mode == "earliest-offset":
            return {tp: bounds.earliest for tp, bounds in view.bounds.items()}
        if position.mode == "timestamp":
            (found,) = self.list_offsets(partitions, [OffsetLookup(position.timestamp_ms or 0)])
            return timestamp_offsets(found, view)
        if position.mode == "specific-offsets":
            return specific_offsets(position, view)
        if position.mode == "group-offsets":
            committed = self.group_offsets(partitions)
            return group_offsets(committed, position, view, self.group)
        return view.latest

    def _matching(self, wanted: Topics) -> list[str]:
        pattern = wanted.pattern
        names = sorted(
            name
            for name in self.names()
            if pattern is not None and pattern.fullmatch(name) and not name.startswith("__")
        )
        if pattern is not None and not names:
            warn_once(
                f"No topic at '{self.servers}' matches 'topic-pattern' = '{pattern.pattern}', so there is nothing to "
                "read yet. A pattern is a regular expression that matches the whole name, as in 'users-.*'. Topics that the "
                "user may not describe are not seen."
            )
        return names


A = TypeVar("A", bound=Cluster)


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
        self._group, self._commit, self._warned = group, commit, False
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
            thread.join(CLOSE_TIMEOUT_S)
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
                self._warn(error)

    def _warn(self, error: Exception) -> None:
        """Logs why the first commit that fails has failed, and nothing of later ones: the query goes on."""
        if not self._warned:
            self._warned = True
            logger.warning(
                "Offsets are not committed to group %r, so Kafka's tools do not show how far the query "
                "is: %s. The query itself goes on; its checkpoint decides.",
                self._group, error,
            )  # fmt: skip


_MISSING_AFTER_S = 5.0
"""A topic does not exist when no lookup has found it for so long: one just created is not known to every broker yet."""

_PAUSE_S = 0.2

_MAX_MESSAGE_BYTES = "max.message.bytes"


def partitions_of(topics: Mapping[str, TopicInfo]) -> list[TopicPartition]:
    """Every partition of these topics."""
    return [
        TopicPartition(name, number)
        for name, topic in sorted(topics.items())
        for number in range(topic.partitions)
    ]


def max_message_bytes(cluster: Cluster, topics: Sequence[str]) -> list[int]:
    """The ``max.message.bytes`` of each topic that brokers tell; nothing when the ACLs do not allow it, as they need not for writing.

    Raises:
        BrokerError: No broker answers, or a topic does not exist.
    """
    cluster.topics(Topics(names=tuple(topics)))
    try:
        found = cluster.topic_configs(topics, [_MAX_MESSAGE_BYTES])
    except BrokerError as error:
        logger.info("Topic settings are not known: %s", error)
        return []
    return [int(each[_MAX_MESSAGE_BYTES]) for each in found.values() if _MAX_MESSAGE_BYTES in each]


def missing_topic(name: str, servers: str) -> str:
    """The message about a missing topic: how to create it, compacted if it holds a table."""
    return (
        f"Topic {name!r} does not exist at {servers!r}. Check its name, or create it, for example: "
        f"kafka-topics.sh --bootstrap-server {servers} --create --topic {name} --partitions 4 "
        "--config cleanup.policy=compact (without --config for dead letters, and for messages without a key). "
        "With 'properties.allow.auto.create.topics' = 'true', the broker creates it."
    )


def timestamp_offsets(
    found: Mapping[TopicPartition, int], view: ClusterView
) -> dict[TopicPartition, int]:
    """The first offsets at or after a time; where there is none, or none that may be read, the latest.

    Args:
        found: The brokers' answer; a negative offset stands for none.
        view: What the brokers have.
    """
    return {
        tp: bounds.latest if found[tp] < 0 else min(found[tp], bounds.latest)
        for tp, bounds in view.bounds.items()
    }


def specific_offsets(position: Position, view: ClusterView) -> dict[TopicPartition, int]:
    """The offsets that the user has named.

    Raises:
        OptionError: A named partition does not exist.
        BrokerError: The topic is gone.
    """
    if not view.topic_ids:
        raise BrokerError("The topic was deleted while its offsets were looked up.")
    (topic,) = view.topic_ids
    found = {}
    for partition, offset in position.offsets:
        tp = TopicPartition(topic, partition)
        if tp not in view.bounds:
            raise OptionError(
                f"Specific offsets name partition {partition} of topic {topic!r}, which has the "
                f"partitions 0 to {len(view.bounds) - 1}."
            )
        found[tp] = offset
    return found


def group_offsets(
    committed: Positions, position: Position, view: ClusterView, group: str
) -> dict[TopicPartition, int]:
    """The offsets that a group has committed; where it has none, ``auto.offset.reset`` decides.

    Args:
        committed: The group's offsets; a negative one stands for none.
        position: What to do where there is none.
        view: What the brokers have.
        group: The group's name.

    Raises:
        OptionError: There is none, and nothing says what to do.
    """
    found = {}
    for tp, bounds in view.bounds.items():
        if committed[tp] >= 0:
            found[tp] = committed[tp]
        elif position.reset == "none":
            raise OptionError(
                f"Group {group!r} has no committed offset for {tp}: commit one, or say where to "
                "start with 'properties.auto.offset.reset' = 'earliest' or 'latest'."
            )
        else:
            found[tp] = bounds.earliest if position.reset == "earliest" else bounds.latest
    return found
