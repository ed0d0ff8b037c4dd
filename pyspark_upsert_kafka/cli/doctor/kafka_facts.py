"""Asks the brokers for what the checks look at. It only reads: nothing is written, committed or created."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark_upsert_kafka.cli.doctor.checkpoint_checks import HORIZONS_MS
from pyspark_upsert_kafka.cli.doctor.facts import (
    BrokerFacts,
    CheckpointFacts,
    GroupFacts,
    MemoryFacts,
    PresentFacts,
    SampledRows,
    TopicFacts,
    WrittenTopicFacts,
)
from pyspark_upsert_kafka.cli.doctor.findings import NotSeen, grant
from pyspark_upsert_kafka.cli.doctor.topic_checks import CONFIGS, RETENTION
from pyspark_upsert_kafka.connector.reading.snapshot import snapshot_bytes
from pyspark_upsert_kafka.core.clock import now_ms
from pyspark_upsert_kafka.core.errors import BrokerError
from pyspark_upsert_kafka.core.options.values import Position, ReadOptions
from pyspark_upsert_kafka.core.positions.cluster_view import Bounds, ClusterView
from pyspark_upsert_kafka.core.positions.compaction import POLICY
from pyspark_upsert_kafka.core.positions.offsets import Range, TopicPartition, not_empty
from pyspark_upsert_kafka.core.positions.planning import shared
from pyspark_upsert_kafka.kafka.clients import client_version
from pyspark_upsert_kafka.kafka.cluster import Cluster

_UNTOLD_GROUP = "there is no such group yet, or neither the client nor the brokers tell it"


def servers_of(options: ReadOptions) -> str:
    """The bootstrap servers, as commands take them."""
    return options.table.properties.resolved()["bootstrap.servers"]


def broker_facts(cluster: Cluster, options: ReadOptions) -> BrokerFacts:
    """The brokers that there are.

    Raises:
        BrokerError: None answers.
    """
    addresses = tuple(sorted(cluster.brokers()))
    return BrokerFacts(servers_of(options), addresses, client_version(options.table.client))


def topic_facts(cluster: Cluster, options: ReadOptions, view: ClusterView) -> list[TopicFacts]:
    """What there is of each topic, by their names; a request is for all of them.

    Raises:
        BrokerError: No broker answers, or the user may not even see a topic.
    """
    names = sorted(view.topic_ids)
    if not names:
        return []
    bounds = by_topic(view)
    operations, configs = _operations(cluster, names), _configs(cluster, options, names)
    servers = servers_of(options)
    return [
        TopicFacts(
            name=name,
            servers=servers,
            bounds={tp.partition: each for tp, each in bounds[name].items()},
            operations=operations[name],
            configs=configs[name],
        )
        for name in names
    ]


def by_topic(view: ClusterView) -> dict[str, dict[TopicPartition, Bounds]]:
    """The bounds of the partitions of each topic."""
    found: dict[str, dict[TopicPartition, Bounds]] = {name: {} for name in view.topic_ids}
    for tp, each in view.bounds.items():
        found[tp.topic][tp] = each
    return found


def group_facts(cluster: Cluster, options: ReadOptions, name: str) -> GroupFacts:
    """What there is of the consumer group of the options.

    Raises:
        BrokerError: No broker answers.
    """
    operations = cluster.group_operations()
    untold = NotSeen(f"What the user may do with group {name!r} is not told: {_UNTOLD_GROUP}")
    return GroupFacts(name, servers_of(options), untold if operations is None else operations)


def hidden(cluster: Cluster, names: Sequence[str]) -> list[str]:
    """Those of the topics that the user may not even see."""
    found = []
    for name in names:
        try:
            cluster.existing([name])
        except BrokerError:
            found.append(name)
    return found


def written_topic_facts(cluster: Cluster, options: ReadOptions, name: str) -> WrittenTopicFacts:
    """What there is of the topic that dead letters are sent to.

    Raises:
        BrokerError: No broker answers, or the user may not even see it.
    """
    exists = bool(cluster.existing([name]))
    operations = _operations(cluster, [name])[name] if exists else frozenset()
    return WrittenTopicFacts(name, servers_of(options), exists, operations)


def _operations(cluster: Cluster, names: Sequence[str]) -> Mapping[str, frozenset[str] | NotSeen]:
    found = cluster.operations(names)
    if found is not None:
        return found
    return {
        name: NotSeen(
            f"What the user may do with topic {name!r} is not told by the client or the brokers",
            cluster.who_tells_operations,
        )
        for name in names
    }


def _configs(
    cluster: Cluster, options: ReadOptions, names: Sequence[str]
) -> Mapping[str, Mapping[str, str] | NotSeen]:
    try:
        return cluster.topic_configs(names, CONFIGS)
    except BrokerError as error:
        if not error.is_final:
            raise
    if len(names) > 1:  # of some of them they may be seen
        return {name: _configs(cluster, options, [name])[name] for name in names}
    (name,) = names
    why = f"The user may not see the configs of topic {name!r}"
    return {name: NotSeen(why, grant("DescribeConfigs", servers_of(options), name))}


def memory_facts(
    view: ClusterView, options: ReadOptions, rows: Mapping[TopicPartition, SampledRows]
) -> MemoryFacts:
    """What a snapshot of all that there is would read."""
    ranges = not_empty(
        Range(*tp, each.earliest, each.latest) for tp, each in sorted(view.bounds.items())
    )
    return MemoryFacts(
        ranges=tuple(shared(ranges, options.min_partitions)),
        rows=rows,
        limit=snapshot_bytes(options),
        is_given=options.snapshot_bytes is not None,
    )


def present_facts(
    cluster: Cluster,
    view: ClusterView,
    checkpoint: CheckpointFacts,
    topics: Sequence[TopicFacts],
) -> PresentFacts:
    """What there is of the topics of a checkpoint.

    Raises:
        BrokerError: No broker answers.
    """
    at_ms = now_ms()
    configs = {topic.name: topic.configs for topic in topics}
    bounds = by_topic(view)
    deleted: dict[TopicPartition, int] = {}
    for name, each in configs.items():
        kept_ms = -1 if isinstance(each, NotSeen) else _kept_ms(each)
        if kept_ms >= 0:
            topic = ClusterView({name: view.topic_ids[name]}, bounds[name])
            deleted |= _deleted_in_ms(cluster, topic, checkpoint, at_ms - kept_ms)
    return PresentFacts(at_ms, view.topic_ids, view.bounds, configs, deleted)


def _kept_ms(configs: Mapping[str, str]) -> int:
    """For how long messages are kept by their age; negative = for ever, or it is not told."""
    deletes = "delete" in configs.get(POLICY, "")
    return int(configs.get(RETENTION, -1)) if deletes else -1


def _deleted_in_ms(
    cluster: Cluster, view: ClusterView, checkpoint: CheckpointFacts, kept_since_ms: int
) -> dict[TopicPartition, int]:
    """Within how many ms retention may delete the next message of each partition: those that are soon deleted.

    Args:
        cluster: Says which offset is the first from a time on.
        view: The topic.
        checkpoint: What is read next.
        kept_since_ms: Messages from before this time may be deleted now.
    """
    found: dict[TopicPartition, int] = {}
    for horizon in HORIZONS_MS:
        time_ms = max(0, kept_since_ms + horizon)
        first = cluster.positions(Position("timestamp", time_ms), view)
        for tp, at in checkpoint.positions.items():
            if tp in first and at < min(first[tp], view.bounds[tp].latest):
                found.setdefault(tp, horizon)
    return found
