"""Asks the brokers for what the checks look at. It only reads: nothing is written, committed or created."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark_upsert_kafka.cli.doctor.checkpoint_checks import HORIZONS_MS
from pyspark_upsert_kafka.cli.doctor.facts import (
    BrokerFacts,
    CheckpointFacts,
    MemoryFacts,
    PresentFacts,
    SampledRows,
    TopicFacts,
    WrittenTopicFacts,
)
from pyspark_upsert_kafka.cli.doctor.finding import NotSeen
from pyspark_upsert_kafka.cli.doctor.topic_checks import CONFIGS, RETENTION
from pyspark_upsert_kafka.cli.doctor.wording import grant
from pyspark_upsert_kafka.core.errors import BrokerError
from pyspark_upsert_kafka.core.options import Position, ReadOptions
from pyspark_upsert_kafka.core.options.times import now_ms
from pyspark_upsert_kafka.core.positions.cluster_view import ClusterView
from pyspark_upsert_kafka.core.positions.compaction import POLICY
from pyspark_upsert_kafka.core.positions.offsets import Range, TopicPartition, not_empty
from pyspark_upsert_kafka.core.positions.planning import shared
from pyspark_upsert_kafka.kafka.clients import client_version
from pyspark_upsert_kafka.kafka.connections.broker_version import oldest_release
from pyspark_upsert_kafka.kafka.interfaces import Cluster
from pyspark_upsert_kafka.source.reading.snapshot import snapshot_bytes


def servers_of(options: ReadOptions) -> str:
    """The bootstrap servers, as commands take them."""
    return options.table.properties.resolved()["bootstrap.servers"]


def broker_facts(cluster: Cluster, options: ReadOptions) -> BrokerFacts:
    """The brokers that there are.

    Raises:
        BrokerError: None answers.
    """
    addresses = tuple(sorted(cluster.brokers()))
    properties = options.table.properties.resolved()
    version = oldest_release(addresses, properties.get("security.protocol", ""))
    return BrokerFacts(
        servers_of(options), addresses, version, client_version(options.table.client)
    )


def topic_facts(cluster: Cluster, options: ReadOptions, name: str, view: ClusterView) -> TopicFacts:
    """What there is of a topic.

    Raises:
        BrokerError: No broker answers.
    """
    return TopicFacts(
        name=name,
        servers=servers_of(options),
        bounds={tp.partition: each for tp, each in view.bounds.items() if tp.topic == name},
        operations=_operations(cluster, options, name),
        configs=_configs(cluster, options, name),
    )


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
    operations = _operations(cluster, options, name) if exists else frozenset()
    return WrittenTopicFacts(name, servers_of(options), exists, operations)


def _operations(cluster: Cluster, options: ReadOptions, name: str) -> frozenset[str] | NotSeen:
    found = cluster.operations([name])
    if found is None:
        return NotSeen(
            f"What the user may do with topic {name!r} is not told by the client or the brokers",
            "With 'kafka.client' = 'librdkafka' and brokers from Kafka 2.3 on it is"
            if options.table.client != "librdkafka"
            else "",
        )
    return found[name]


def _configs(cluster: Cluster, options: ReadOptions, name: str) -> Mapping[str, str] | NotSeen:
    try:
        return cluster.topic_configs([name], CONFIGS)[name]
    except BrokerError as error:
        if not error.is_final:
            raise
        return NotSeen(
            f"The user may not see the configs of topic {name!r}",
            grant("DescribeConfigs", servers_of(options), name),
        )


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
    deleted: dict[TopicPartition, int] = {}
    for name, each in configs.items():
        if not isinstance(each, NotSeen) and "delete" in each[POLICY] and int(each[RETENTION]) >= 0:
            deleted |= _deleted_in_ms(
                cluster, _of_topic(view, name), checkpoint, at_ms - int(each[RETENTION])
            )
    return PresentFacts(at_ms, view.topic_ids, view.bounds, configs, deleted)


def _of_topic(view: ClusterView, name: str) -> ClusterView:
    bounds = {tp: each for tp, each in view.bounds.items() if tp.topic == name}
    return ClusterView({name: view.topic_ids[name]}, bounds)


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
