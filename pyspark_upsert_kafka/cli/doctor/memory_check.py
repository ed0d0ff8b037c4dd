"""The check of the table's size against the memory of the tasks that read it."""

from __future__ import annotations

import math

from pyspark_upsert_kafka.cli.doctor.facts import MemoryFacts
from pyspark_upsert_kafka.cli.doctor.finding import Finding, Level, NotSeen
from pyspark_upsert_kafka.cli.doctor.wording import megabytes
from pyspark_upsert_kafka.core.positions.offsets import Range, TopicPartition
from pyspark_upsert_kafka.core.positions.planning import tasks_to_share

_CHECK = "memory"


def check_memory(facts: MemoryFacts | NotSeen) -> Finding:
    """Whether the largest task of a snapshot holds its part of the table, if all of it is like the sample."""
    if isinstance(facts, NotSeen):
        return facts.finding(_CHECK)
    if not (facts.rows and facts.ranges):
        return NotSeen("There is no message to look at").finding(_CHECK)
    sizes = {range_: _bytes(range_, facts) for range_ in facts.ranges}
    largest = max(sizes, key=lambda each: sizes[each])
    needed, pieces = sizes[largest], largest.share.count if largest.share else 1
    source = (
        "'scan.snapshot.memory'"
        if facts.is_given
        else "half of a worker's memory, as this machine has it"
    )
    part = "" if pieces == 1 else f", one of {pieces} parts"
    text = (
        f"A task that reads the table holds up to about {megabytes(needed)} (topic {largest.topic!r}, partition "
        f"{largest.partition}{part}, if all of it is like the sample) of {megabytes(facts.limit)}, {source}"
    )
    if needed <= facts.limit:
        return Finding(_CHECK, Level.OK, text)
    wanted = math.ceil(needed * pieces / facts.limit)
    advice = (
        f"Have more tasks share the keys: 'minPartitions' = '{tasks_to_share(largest, wanted)}'; or let a task hold more with "
        "'scan.snapshot.memory'"
    )
    return Finding(_CHECK, Level.WARNING, text, advice)


def _bytes(range_: Range, facts: MemoryFacts) -> float:
    """How many bytes a task holds of a range; one without a sample is like all the others."""
    sample = facts.rows.get(TopicPartition(range_.topic, range_.partition))
    samples = facts.rows.values() if sample is None else [sample]
    size, offsets = sum(each.size for each in samples), sum(each.offsets for each in samples)
    pieces = range_.share.count if range_.share else 1
    return size / offsets * range_.size / pieces
