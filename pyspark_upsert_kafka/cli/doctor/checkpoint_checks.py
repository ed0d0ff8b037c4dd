"""Where a query goes on from its checkpoint on this machine, and the checks of that against its topics.

Is what it reads next still there, and for how long? Nothing is written or locked in the folder.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

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
    servers_of,
)
from pyspark_upsert_kafka.cli.doctor.topic_checks import SeenTopics, by_topic
from pyspark_upsert_kafka.core.clock import now_ms
from pyspark_upsert_kafka.core.errors import BrokerError, CheckpointError
from pyspark_upsert_kafka.core.options.frozen_options import Position, ReadOptions, Topics
from pyspark_upsert_kafka.core.positions.cluster_view import Bounds, ClusterView
from pyspark_upsert_kafka.core.positions.offsets import (
    Positions,
    StreamOffset,
    TopicPartition,
    stream_offset,
)
from pyspark_upsert_kafka.kafka.cluster import POLICY, Cluster


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


def checkpoint_findings(
    folder: str, cluster: Cluster, topics: SeenTopics, options: ReadOptions
) -> Iterator[Finding]:
    """What a query meets that goes on from the checkpoint in a folder."""
    try:
        facts = checkpoint_facts(folder, options.table.topics)
    except CheckpointError as error:
        yield error_finding("checkpoint", error)
        return
    if isinstance(facts, NotSeen):
        yield facts.finding("checkpoint")
        return
    try:
        present = _present_facts(cluster, topics, facts)
    except BrokerError as error:
        yield NotSeen(str(error).rstrip(".")).finding("checkpoint")
        return
    yield from check_checkpoint(facts, present, options, servers_of(options))


_ELSEWHERE = re.compile(r"(?!file:)[A-Za-z][A-Za-z0-9+.-]+:/")


def checkpoint_facts(folder: str, topics: Topics) -> CheckpointFacts | NotSeen:
    """Where a query goes on that has this checkpoint.

    Args:
        folder: The checkpoint, as its query has it.
        topics: Those of the table: a query may read other sources too.

    Raises:
        CheckpointError: It is no checkpoint of this table, or cannot be read.
    """
    if _ELSEWHERE.match(folder):
        return NotSeen(
            f"The checkpoint {folder!r} is not on this machine",
            "Copy its folders 'offsets' and 'commits' to this machine and give that folder",
        )
    path = Path(re.sub("^file:(?://)?", "", folder))
    planned = _batches(path / "offsets")
    if not planned:
        raise CheckpointError(
            f"There is no checkpoint in {folder!r}: it has no folder 'offsets' with a batch. Give the query's "
            "checkpointLocation."
        )
    done = sorted(planned & _batches(path / "commits"))
    begun = [batch for batch in planned if not done or batch > done[-1]]
    last = _Log.of(path / "offsets" / str(done[-1]), topics) if done else None
    # A batch that was planned and is not done is read again, from where it begins.
    again = _Log.of(path / "offsets" / str(min(begun)), topics) if begun else None
    return CheckpointFacts(
        folder=folder,
        batch=done[-1] if done else None,
        planned_ms=last.planned_ms if last else None,
        positions={**(last.positions if last else {}), **(again.begins if again else {})},
        topic_ids={**(last.topic_ids if last else {}), **(again.topic_ids if again else {})},
    )


def _batches(folder: Path) -> set[int]:
    """The numbers of the batches that a folder has a file of.

    Raises:
        CheckpointError: The folder is there, and cannot be read.
    """
    try:
        return {int(each.name) for each in folder.iterdir() if each.name.isdecimal()}
    except FileNotFoundError:
        return set()
    except OSError as error:
        raise _unreadable(folder, error.strerror) from None


def _unreadable(path: Path, why: object) -> CheckpointError:
    return CheckpointError(f"{str(path)!r} of the checkpoint cannot be read: {why}.")


class _Log:
    """A file of the offset log: the positions of this table's topics.

    Args:
        offsets: Those of this table's sources.
        planned_ms: When the batch was planned; None = it does not say.
    """

    def __init__(self, offsets: list[StreamOffset], planned_ms: int | None) -> None:
        self.planned_ms = planned_ms
        self.positions: dict[TopicPartition, int] = {}
        self.begins: dict[TopicPartition, int] = {}
        self.topic_ids: dict[str, str] = {}
        for each in offsets:
            # If two sources read a partition, the one that is further behind needs more of it.
            for at, found in ((each.positions, self.positions), (each.begins, self.begins)):
                for tp, offset in at.items():
                    found[tp] = min(offset, found.get(tp, offset))
            self.topic_ids.update(each.topic_ids)

    @classmethod
    def of(cls, file: Path, topics: Topics) -> _Log:
        """What a file holds.

        Raises:
            CheckpointError: It cannot be read, or holds no position of the topics.
        """
        try:
            lines = file.read_text(encoding="utf-8").splitlines()
            parsed = [json.loads(line) for line in lines[1:] if line.strip() not in {"", "-"}]
            offsets = [stream_offset(each) for each in _ours(parsed[1:])]
        except (OSError, ValueError, RecursionError) as error:
            raise _unreadable(file, error) from None
        if not parsed:
            raise _unreadable(file, "it is empty, or was not written to its end")
        metadata = parsed[0] if isinstance(parsed[0], dict) else {}
        known = [each for each in offsets if each is not None]
        fitting = [
            each for each in known if any(_is_named(name, topics) for name in each.topic_ids)
        ]
        if not fitting:
            others = sorted({topic for each in known for topic in each.topic_ids})
            holds = (
                f"positions of {', '.join(map(repr, others))}"
                if others
                else "no position of this connector"
            )
            raise CheckpointError(
                f"The checkpoint is not that of topic {topics}: {str(file)!r} holds {holds}. Give the checkpoint "
                "of the query that reads this table."
            )
        time = metadata.get("batchTimestampMs")
        return cls(fitting, time if isinstance(time, int) and time > 0 else None)


def _ours(parsed: Any) -> Iterator[Mapping[str, Any]]:
    """The offsets of this connector among those of all sources of a query.

    The log has a line for each source; a newer layout has the sources by their names, with offsets as text.
    """
    if isinstance(parsed, dict):
        if "version" in parsed and ("topics" in parsed or "initial" in parsed):
            yield parsed
            return
        parsed = list(parsed.values())
    if isinstance(parsed, list):
        for each in parsed:
            yield from _ours(each)
    elif isinstance(parsed, str) and parsed.startswith("{"):
        try:
            yield from _ours(json.loads(parsed))
        except ValueError:
            return


def _is_named(topic: str, topics: Topics) -> bool:
    return topic in topics.names or bool(topics.pattern and topics.pattern.fullmatch(topic))


_HORIZONS_MS = (0, 3_600_000, 6 * 3_600_000, 86_400_000, 3 * 86_400_000)
"""How far ahead it is looked for what retention deletes: now, and within so many ms."""


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


def _present_facts(
    cluster: Cluster, topics: SeenTopics, checkpoint: CheckpointFacts
) -> PresentFacts:
    """What there is of the topics of a checkpoint.

    Raises:
        BrokerError: No broker answers.
    """
    at_ms, view = now_ms(), topics.view
    configs = {topic.name: topic.configs for topic in topics.facts}
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
    for horizon in _HORIZONS_MS:
        time_ms = max(0, kept_since_ms + horizon)
        first = cluster.positions(Position("timestamp", time_ms), view)
        for tp, at in checkpoint.positions.items():
            if tp in first and at < min(first[tp], view.bounds[tp].latest):
                found.setdefault(tp, horizon)
    return found


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
            text = f"Retention does not delete what is read next of topic {topic!r} within {duration(_HORIZONS_MS[-1])}{by_size}"
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
