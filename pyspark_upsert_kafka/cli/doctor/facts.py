"""What was seen of brokers, topics, messages and checkpoints: values, from which the checks make findings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pyspark_upsert_kafka.cli.doctor.findings import NotSeen
from pyspark_upsert_kafka.core.positions.cluster_view import Bounds
from pyspark_upsert_kafka.core.positions.offsets import Positions, Range, TopicPartition


@dataclass(frozen=True)
class BrokerFacts:
    """What was seen of the brokers.

    Args:
        servers: The bootstrap servers.
        addresses: The addresses of all brokers.
        client: The Kafka client and its version.
    """

    servers: str
    addresses: tuple[str, ...]
    client: str


@dataclass(frozen=True)
class TopicFacts:
    """What was seen of a topic.

    Args:
        name: Its name.
        servers: The bootstrap servers, for commands.
        bounds: The offsets of each partition.
        operations: The ACL operations that the user may do with it.
        configs: Its configs, without those that brokers do not tell.
    """

    name: str
    servers: str
    bounds: Mapping[int, Bounds]
    operations: frozenset[str] | NotSeen
    configs: Mapping[str, str] | NotSeen

    @property
    def offsets(self) -> int:
        """How many offsets it has."""
        return sum(each.latest - each.earliest for each in self.bounds.values())


@dataclass(frozen=True)
class WrittenTopicFacts:
    """What was seen of the topic that dead letters are sent to.

    Args:
        name: Its name.
        servers: The bootstrap servers, for commands.
        exists: Whether it is there.
        operations: The ACL operations that the user may do with it.
    """

    name: str
    servers: str
    exists: bool
    operations: frozenset[str] | NotSeen


@dataclass(frozen=True)
class GroupFacts:
    """What was seen of the consumer group of the options.

    Args:
        name: Its name.
        servers: The bootstrap servers, for commands.
        operations: The ACL operations that the user may do with it.
    """

    name: str
    servers: str
    operations: frozenset[str] | NotSeen


@dataclass(frozen=True)
class SampledKey:
    """The key of a message.

    Args:
        topic: Its topic.
        partition: Its partition.
        data: Its bytes.
        written: The bytes that this connector would write for it; None = not known.
        offset: The offset of the message.
        deletes: Whether the message is a tombstone.
    """

    topic: str
    partition: int
    data: bytes
    written: bytes | None = None
    offset: int = 0
    deletes: bool = False

    @property
    def identity(self) -> tuple[str, bytes]:
        """What equal keys of a topic have in common."""
        return self.topic, self.data if self.written is None else self.written


@dataclass(frozen=True)
class SampledBadMessage:
    """A message that cannot be decoded.

    Args:
        topic: Its topic.
        partition: Its partition.
        offset: Its offset.
        stage: What of it cannot be decoded: ``key``, ``value``, ``null-key`` or ``headers``.
        reason: Why.
    """

    topic: str
    partition: int
    offset: int
    stage: str
    reason: str


@dataclass(frozen=True)
class SampledRows:
    """How much memory the rows of one partition's sample take.

    Args:
        size: Bytes, as a snapshot counts them.
        offsets: How many offsets the sample covers.
    """

    size: int
    offsets: int


@dataclass(frozen=True)
class SampleFacts:
    """What was seen of some messages.

    Args:
        messages: How many were read.
        offsets: How many offsets all topics have.
        values: How many of the messages have a value.
        partitions: The number of partitions of each topic.
        keys: The keys that are not null and can be decoded.
        unspelled: Why it is not known how this connector would write them; empty = it is known.
        bad: The messages that cannot be decoded.
        warnings: What the connector has logged about the messages.
        rows: The rows of each partition; empty = no table is read.
    """

    messages: int
    offsets: int
    values: int
    partitions: Mapping[str, int]
    keys: tuple[SampledKey, ...] = ()
    unspelled: str = ""
    bad: tuple[SampledBadMessage, ...] = ()
    warnings: tuple[str, ...] = ()
    rows: Mapping[TopicPartition, SampledRows] = field(default_factory=dict)


@dataclass(frozen=True)
class MemoryFacts:
    """What a snapshot would read, and what its tasks may hold.

    Args:
        ranges: What is read, by task.
        rows: The rows of each partition's sample.
        limit: How many bytes a task may hold.
        is_given: Whether an option gives the limit.
    """

    ranges: tuple[Range, ...]
    rows: Mapping[TopicPartition, SampledRows]
    limit: int
    is_given: bool


@dataclass(frozen=True)
class CheckpointFacts:
    """Where a query goes on from its checkpoint.

    Args:
        folder: The checkpoint.
        batch: The last batch that is done; None = none is.
        planned_ms: When that was planned, in ms since the epoch; None = not known.
        positions: The offset that is read next in each partition.
        topic_ids: The id of each topic; empty text = not known.
    """

    folder: str
    batch: int | None
    planned_ms: int | None
    positions: Positions
    topic_ids: Mapping[str, str]


@dataclass(frozen=True)
class PresentFacts:
    """What there is of the topics of a checkpoint.

    Args:
        now_ms: The time, in ms since the epoch.
        topic_ids: The id of each topic; empty text = not known.
        bounds: The offsets of each partition.
        configs: The configs of each topic, without those that brokers do not tell.
        deleted_in_ms: Within how many ms retention may delete the next message of a partition; a partition that is not
            among them has more time than was asked for.
    """

    now_ms: int
    topic_ids: Mapping[str, str]
    bounds: Mapping[TopicPartition, Bounds]
    configs: Mapping[str, Mapping[str, str] | NotSeen]
    deleted_in_ms: Mapping[TopicPartition, int] = field(default_factory=dict)
