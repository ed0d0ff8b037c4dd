"""Whether a table fits into tasks, if all of it is like the sample."""

from __future__ import annotations

import re
from dataclasses import replace

from pyspark_upsert_kafka.cli.doctor.findings import Level, NotSeen
from pyspark_upsert_kafka.cli.doctor.message_sample import SampledRows
from pyspark_upsert_kafka.cli.doctor.sample_checks import MemoryFacts, check_memory
from pyspark_upsert_kafka.core.positions.offsets import Range, TopicPartition
from pyspark_upsert_kafka.core.positions.planning import shared

MB = 2**20
RANGES = (Range("t", 0, 0, 1_000), Range("t", 1, 0, 100_000))
ROWS = {
    TopicPartition("t", 0): SampledRows(10_000, 10),
    TopicPartition("t", 1): SampledRows(10_000, 10),
}


def facts(limit: int, tasks: int | None = None) -> MemoryFacts:
    """Two partitions whose rows take 1,000 bytes each: 1 MB and 95 MB."""
    return MemoryFacts(tuple(shared(RANGES, tasks)), ROWS, limit, is_given=True)


def test_the_largest_part_decides() -> None:
    """A table that fits is well."""
    finding = check_memory(facts(100 * MB))

    assert finding.level is Level.OK
    assert "up to about 96 MB (topic 't', partition 1, if" in finding.text


def test_the_advice_makes_it_fit() -> None:
    """So many tasks hold it, of which each then has a part."""
    finding = check_memory(facts(10 * MB))
    (tasks,) = re.findall(r"'minPartitions' = '(\d+)'", finding.advice)

    assert finding.level is Level.WARNING
    assert check_memory(facts(10 * MB, int(tasks))).level is Level.OK
    assert check_memory(facts(10 * MB, int(tasks) // 2)).level is Level.WARNING


def test_a_partition_without_a_sample_is_like_the_others() -> None:
    """A sample may be too small for each partition to be in it, and the largest one still decides."""
    sampled = replace(facts(10 * MB), rows={TopicPartition("t", 0): SampledRows(10_000, 10)})

    assert check_memory(sampled).level is Level.WARNING
    assert check_memory(replace(sampled, rows={})).level is Level.NOT_CHECKED


def test_nothing_is_said_of_what_was_not_seen() -> None:
    """An empty topic, and a sample that could not be read."""
    empty, unread = check_memory(replace(facts(1), ranges=())), check_memory(NotSeen("why"))

    assert empty.level is unread.level is Level.NOT_CHECKED
