"""The checks of topics: what there is of them, who may use them, and what Kafka removes from them by itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from pyspark_upsert_kafka.cli.doctor.access_checks import operations_of
from pyspark_upsert_kafka.cli.doctor.findings import (
    RETENTION,
    RETENTION_BYTES,
    TOMBSTONES,
    Finding,
    Level,
    NotSeen,
    configure,
    counted,
    duration,
    error_finding,
    grant,
    servers_of,
)
from pyspark_upsert_kafka.connector.planning.unseen_messages import (
    LONG_MS,
    Hidden,
    hidden_messages,
    removed_past,
)
from pyspark_upsert_kafka.core.clock import now_ms
from pyspark_upsert_kafka.core.errors import BrokerError, OptionError
from pyspark_upsert_kafka.core.options.frozen_options import ReadOptions
from pyspark_upsert_kafka.core.positions.cluster_view import Bounds, ClusterView
from pyspark_upsert_kafka.core.positions.offsets import Positions, TopicPartition
from pyspark_upsert_kafka.kafka.cluster import POLICY, Cluster

_CONFIGS = (POLICY, RETENTION, RETENTION_BYTES, TOMBSTONES)
"""The configs of a topic that are looked at."""

_SHORT_RETENTION_MS = 86_400_000
"""A query that stands still over a night loses messages of a topic that keeps them for less."""

_SHORT_TOMBSTONES_MS = 3_600_000


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
class SeenTopics:
    """The topics of the table, which are there and may be seen.

    Args:
        view: What the brokers have of them.
        facts: What was seen of each.
    """

    view: ClusterView
    facts: tuple[TopicFacts, ...]


def seen_topics(cluster: Cluster, options: ReadOptions) -> SeenTopics | Finding:
    """The topics of the table, or what is wrong with them."""
    wanted = options.table.topics
    try:
        found = cluster.topics(wanted)
        view = cluster.view(found, read_committed=options.read_committed)
        facts = tuple(_topic_facts(cluster, options, view))
    except BrokerError as error:
        if not error.is_final:
            return error_finding("topic", error)
        names = _hidden(cluster, wanted.names)
        return error_finding("rights", error, grant("Read", servers_of(options), *names))
    except OptionError as error:  # what the client cannot do
        return error_finding("options", error)
    if not facts:
        text = f"There is no topic of the {wanted} that the user may see"
        return Finding("topic", Level.ERROR, text)
    return SeenTopics(view, facts)


def topic_findings(topics: SeenTopics, options: ReadOptions) -> Iterator[Finding]:
    """What is found of each topic, and of what open transactions hide in them."""
    for each in topics.facts:
        yield from check_topic(each, options)
    yield from map(_check_open_transaction, hidden_messages(topics.view, options))


def past_findings(
    start: Positions, stop: Positions, topics: SeenTopics, options: ReadOptions
) -> Iterator[Finding]:
    """Whether a past that the job reads between these offsets is known still."""
    removed = removed_past(start, stop, topics.view, options)
    if removed is not None:
        level = Level.ERROR if removed.is_whole else Level.WARNING
        yield Finding("past", level, removed.text, removed.advice)


def _topic_facts(cluster: Cluster, options: ReadOptions, view: ClusterView) -> list[TopicFacts]:
    """What there is of each topic, by their names; a request is for all of them.

    Raises:
        BrokerError: No broker answers, or the user may not even see a topic.
    """
    names = sorted(view.topic_ids)
    if not names:
        return []
    bounds = by_topic(view)
    operations, configs = operations_of(cluster, names), _configs(cluster, options, names)
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


def _hidden(cluster: Cluster, names: Sequence[str]) -> list[str]:
    """Those of the topics that the user may not even see."""
    found = []
    for name in names:
        try:
            cluster.existing([name])
        except BrokerError:
            found.append(name)
    return found


def _configs(
    cluster: Cluster, options: ReadOptions, names: Sequence[str]
) -> Mapping[str, Mapping[str, str] | NotSeen]:
    try:
        return cluster.topic_configs(names, _CONFIGS)
    except BrokerError as error:
        if not error.is_final:
            raise
    if len(names) > 1:  # of some of them they may be seen
        return {name: _configs(cluster, options, [name])[name] for name in names}
    (name,) = names
    why = f"The user may not see the configs of topic {name!r}"
    return {name: NotSeen(why, grant("DescribeConfigs", servers_of(options), name))}


def check_topic(facts: TopicFacts, options: ReadOptions) -> list[Finding]:
    """What there is of a topic, who may use it, and what Kafka removes from it."""
    return [
        _size(facts),
        _rights(facts),
        *_removal(facts, keeps_last=options.holds_table),
    ]


def _size(facts: TopicFacts) -> Finding:
    name = facts.name
    partitions = counted(len(facts.bounds), "partition")
    if not facts.offsets:
        return Finding(
            "topic", Level.OK, f"Topic {name!r} has {partitions} and no message", topic=name
        )
    text = f"Topic {name!r} has {partitions} and {counted(facts.offsets, 'offset')}"
    return Finding("topic", Level.OK, text, topic=name)


def _rights(facts: TopicFacts) -> Finding:
    name, may = facts.name, facts.operations
    if isinstance(may, NotSeen):
        return may.finding("rights", name)
    if "READ" not in may:
        text = f"The user may not read topic {name!r}"
        return Finding("rights", Level.ERROR, text, grant("Read", facts.servers, name), name)
    if "WRITE" not in may:
        text = f"The user may read topic {name!r}, and not write it"
        advice = f"For a job that writes: {grant('Write', facts.servers, name)}"
        return Finding("rights", Level.OK, text, advice, name)
    return Finding("rights", Level.OK, f"The user may read and write topic {name!r}", topic=name)


def _removal(facts: TopicFacts, *, keeps_last: bool) -> list[Finding]:
    configs = facts.configs
    if isinstance(configs, NotSeen):
        checks = (_POLICY_CHECK, "retention", "tombstones")
        return [configs.finding(check, facts.name) for check in checks]
    policy = configs.get(POLICY, "")
    deletes, compacts = "delete" in policy, "compact" in policy
    limits = (RETENTION, RETENTION_BYTES) if deletes else ()
    if keeps_last:
        found = [_if_told(_POLICY_CHECK, _table_policy, facts, configs, POLICY, *limits)]
    else:
        found = [_if_told(_POLICY_CHECK, _append_policy, facts, configs, POLICY)]
    if deletes:
        found.append(_if_told("retention", _retention, facts, configs, *limits))
    if compacts and keeps_last:
        found.append(_if_told("tombstones", _tombstones, facts, configs, TOMBSTONES))
    return found


_POLICY_CHECK = "cleanup-policy"


def _if_told(
    check: str,
    look: Callable[[TopicFacts, Mapping[str, str]], Finding],
    facts: TopicFacts,
    configs: Mapping[str, str],
    *needed: str,
) -> Finding:
    """What a check finds; or that it cannot be made, as brokers do not tell a config that it needs."""
    untold = [name for name in needed if name not in configs]
    if not untold:
        return look(facts, configs)
    why = f"The brokers do not tell {' and '.join(untold)} of topic {facts.name!r}"
    return NotSeen(why).finding(check, facts.name)


def _table_policy(facts: TopicFacts, configs: Mapping[str, str]) -> Finding:
    policy = configs[POLICY]
    if "delete" not in policy:
        return _policy(facts, configs, ": the last message of each key stays")
    if _keeps_all(configs):
        return _policy(facts, configs, f", and keeps every message ({RETENTION} = -1)")
    lost = f": a row that does not change for {_kept(configs)} is lost, and no tombstone says so"
    gone = [partition for partition, bounds in facts.bounds.items() if bounds.earliest > 0]
    if gone and "compact" not in policy:
        first = facts.bounds[gone[0]].earliest
        lost += f". That has happened: partition {gone[0]} begins at offset {first}"
    return _policy(facts, configs, lost, wanted="compact")


def _append_policy(facts: TopicFacts, configs: Mapping[str, str]) -> Finding:
    if "compact" not in configs[POLICY]:
        return _policy(facts, configs, ": no message is removed before its time")
    lost = ": every message is to be read, and compaction removes all but the last one of each key"
    return _policy(facts, configs, lost, wanted="delete")


def _policy(
    facts: TopicFacts, configs: Mapping[str, str], said: str, *, wanted: str | None = None
) -> Finding:
    """A finding about the policy: a warning, if another one is wanted."""
    name, text = facts.name, f"Topic {facts.name!r} has {POLICY} = {configs[POLICY]!r}{said}"
    if wanted is None:
        return Finding(_POLICY_CHECK, Level.OK, text, topic=name)
    advice = configure(f"{POLICY}={wanted}", name, facts.servers)
    return Finding(_POLICY_CHECK, Level.WARNING, text, advice, name)


def _check_open_transaction(hidden: Hidden) -> Finding:
    """Whether what an open transaction hides is hidden for long: exactly-once writers hold some open all the time."""
    long = hidden.since_ms is None or now_ms() - hidden.since_ms >= LONG_MS
    level = Level.WARNING if long else Level.OK
    advice = hidden.advice if long else ""
    return Finding("open-transaction", level, str(hidden), advice, hidden.place.topic)


def _keeps_all(configs: Mapping[str, str]) -> bool:
    """Whether a topic that is not compacted keeps all messages."""
    return int(configs[RETENTION]) < 0 and int(configs[RETENTION_BYTES]) < 0


def _kept(configs: Mapping[str, str]) -> str:
    """How long messages are kept, in words."""
    time, size = int(configs[RETENTION]), int(configs[RETENTION_BYTES])
    limits = [f"{duration(time)} ({RETENTION})"] if time >= 0 else []
    if size >= 0:
        limits.append(f"as long as a partition takes to grow by {size:,} bytes ({RETENTION_BYTES})")
    return ", or ".join(limits)


def _retention(facts: TopicFacts, configs: Mapping[str, str]) -> Finding:
    name, time = facts.name, int(configs[RETENTION])
    if _keeps_all(configs):
        text = f"Topic {name!r} keeps its messages for ever ({RETENTION} = -1)"
        return Finding("retention", Level.OK, text, topic=name)
    text = f"Topic {name!r} keeps its messages for {_kept(configs)}: a stream that stands still for longer loses some"
    if 0 <= time < _SHORT_RETENTION_MS:
        advice = configure(f"{RETENTION}=604800000", name, facts.servers)
        return Finding("retention", Level.WARNING, text, advice, name)
    return Finding("retention", Level.OK, text, topic=name)


def _tombstones(facts: TopicFacts, configs: Mapping[str, str]) -> Finding:
    name, time = facts.name, int(configs[TOMBSTONES])
    text = (
        f"Topic {name!r} keeps tombstones for {duration(time)} ({TOMBSTONES}): a stream that stands still for longer "
        "may miss deletes"
    )
    if time < _SHORT_TOMBSTONES_MS:
        advice = configure(f"{TOMBSTONES}=86400000", name, facts.servers)
        return Finding("tombstones", Level.WARNING, text, advice, name)
    return Finding("tombstones", Level.OK, text, topic=name)
