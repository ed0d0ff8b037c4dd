"""The checks of a query's checkpoint against its topics: whether what it reads next is still there, and for how long."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark_upsert_kafka.cli.doctor.facts import CheckpointFacts, PresentFacts
from pyspark_upsert_kafka.cli.doctor.finding import Finding, Level, NotSeen
from pyspark_upsert_kafka.cli.doctor.topic_checks import RETENTION, RETENTION_BYTES, TOMBSTONES
from pyspark_upsert_kafka.cli.doctor.wording import configure, counted, duration
from pyspark_upsert_kafka.core.options.values import ReadOptions
from pyspark_upsert_kafka.core.positions.compaction import POLICY
from pyspark_upsert_kafka.core.positions.offsets import TopicPartition

HORIZONS_MS = (0, 3_600_000, 6 * 3_600_000, 86_400_000, 3 * 86_400_000)
"""How far ahead it is looked for what retention deletes: now, and within so many ms."""

_AGAIN = (
    "Start with a new checkpoint, or set 'failOnDataLoss' to 'false' to go on from what is there"
)


def check_checkpoint(
    facts: CheckpointFacts, present: PresentFacts, options: ReadOptions, servers: str
) -> list[Finding]:
    """What a query that goes on from a checkpoint meets.

    Args:
        facts: The checkpoint.
        present: What there is of its topics.
        options: How they are read.
        servers: The bootstrap servers, for commands.
    """
    found = [_positions(facts, present, options)]
    if found[0].level is not Level.ERROR:
        found += _retention(facts, present, servers)
        found += _tombstones(facts, present, servers)
    return found


def _positions(facts: CheckpointFacts, present: PresentFacts, options: ReadOptions) -> Finding:
    """Whether the offsets that are read next are there."""
    lost = _lost(facts, present)
    if lost:
        level = Level.ERROR if options.fail_on_data_loss else Level.WARNING
        return Finding("checkpoint", level, lost, _AGAIN if options.fail_on_data_loss else "")
    behind = sum(
        present.bounds[tp].latest - at for tp, at in facts.positions.items() if tp in present.bounds
    )
    text = (
        f"The checkpoint {facts.folder!r} {_age(facts, present)} goes on from offsets that are there, with about "
        f"{counted(max(0, behind), 'offset')} to read"
    )
    return Finding("checkpoint", Level.OK, text)


def _lost(facts: CheckpointFacts, present: PresentFacts) -> str:
    """What the checkpoint wants and is gone; empty = nothing."""
    begin = f"The checkpoint {facts.folder!r} goes on"
    for topic, known in sorted(facts.topic_ids.items()):
        now = present.topic_ids.get(topic)
        if now is None:
            return f"{begin} in topic {topic!r}, which does not exist or is not one of the table's"
        if known and now and known != now:
            return f"{begin} in another topic {topic!r} (id {known}): it was deleted and created again (id {now})"
    for tp, at in sorted(facts.positions.items()):
        bounds = present.bounds.get(tp)
        if bounds is None:
            return f"{begin} in {tp}, which does not exist"
        if at < bounds.earliest:
            return (
                f"{begin} in {tp} at offset {at}, and the first that is left is {bounds.earliest}"
            )
        if at > bounds.high:
            return f"{begin} in {tp} at offset {at}, and the topic ends at {bounds.high}"
    return ""


def _age(facts: CheckpointFacts, present: PresentFacts) -> str:
    if facts.batch is None:
        return "(no batch is done)"
    if facts.planned_ms is None:
        return f"(batch {facts.batch})"
    return f"(batch {facts.batch}, {duration(max(0, present.now_ms - facts.planned_ms))} old)"


def _retention(facts: CheckpointFacts, present: PresentFacts, servers: str) -> list[Finding]:
    """When retention passes the offsets, for each topic that deletes by age or size."""
    found = []
    for topic, configs in _known(facts, present, RETENTION, RETENTION_BYTES).items():
        if "delete" not in configs[POLICY]:
            continue
        time = int(configs[RETENTION])
        size = int(configs[RETENTION_BYTES])
        by_size = f"; {RETENTION_BYTES} = {size} may delete it sooner" if size >= 0 else ""
        soon = {tp: ms for tp, ms in present.deleted_in_ms.items() if tp.topic == topic}
        if time >= 0 and soon:
            found.append(_soon_deleted(topic, soon, time, by_size, servers))
        else:
            text = f"Retention does not delete what is read next of topic {topic!r} within {duration(HORIZONS_MS[-1])}{by_size}"
            found.append(Finding("checkpoint-retention", Level.OK, text, topic=topic))
    return found


def _soon_deleted(
    topic: str, soon: Mapping[TopicPartition, int], time: int, by_size: str, servers: str
) -> Finding:
    first = min(soon, key=lambda tp: soon[tp])
    when = f"within {duration(soon[first])}" if soon[first] else "at any moment"
    text = (
        f"Retention may delete what is read next of {first}, {when}: it keeps messages for {duration(time)} "
        f"({RETENTION}){by_size}"
    )
    advice = f"Start the query before, or {configure(f'{RETENTION}={2 * time}', topic, servers)}"
    return Finding("checkpoint-retention", Level.WARNING, text, advice, topic)


def _tombstones(facts: CheckpointFacts, present: PresentFacts, servers: str) -> list[Finding]:
    """Whether compaction may have removed tombstones that are not read yet, for each compacted topic."""
    found: list[Finding] = []
    if facts.planned_ms is None:
        return found
    age = present.now_ms - facts.planned_ms
    for topic, configs in _known(facts, present, TOMBSTONES).items():
        if "compact" not in configs[POLICY] or not _is_behind(topic, facts, present):
            continue
        time = int(configs[TOMBSTONES])
        text = f"Topic {topic!r} keeps tombstones for {duration(time)} ({TOMBSTONES}), and the checkpoint is {duration(max(0, age))} old"
        if age > time:
            advice = (
                "Start with a new checkpoint and 'scan.startup.mode' = 'full', and for the next time "
                f"{configure(f'{TOMBSTONES}={2 * age}', topic, servers)}"
            )
            missed = f"{text}: the query may miss deletes"
            found.append(Finding("checkpoint-tombstones", Level.WARNING, missed, advice, topic))
        else:
            found.append(Finding("checkpoint-tombstones", Level.OK, text, topic=topic))
    return found


def _known(
    facts: CheckpointFacts, present: PresentFacts, *needed: str
) -> dict[str, Mapping[str, str]]:
    """The configs of the checkpoint's topics, where these are told: that they are not is said by the checks of topics."""
    return {
        topic: configs
        for topic, configs in sorted(present.configs.items())
        if topic in facts.topic_ids
        and not isinstance(configs, NotSeen)
        and configs.keys() >= {POLICY, *needed}
    }


def _is_behind(topic: str, facts: CheckpointFacts, present: PresentFacts) -> bool:
    return any(
        tp in present.bounds and at < present.bounds[tp].latest
        for tp, at in facts.positions.items()
        if tp.topic == topic
    )
