"""The checks of a sample of messages: whether they can be read, whether equal keys are one key, whether the table fits into memory."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from pyspark_upsert_kafka.cli.doctor.findings import Finding, Level, NotSeen, counted
from pyspark_upsert_kafka.cli.doctor.message_sample import (
    SampledBadMessage,
    SampledKey,
    SampledRows,
    SampleFacts,
)
from pyspark_upsert_kafka.connector.planning.first_look import types_seen
from pyspark_upsert_kafka.connector.reading.snapshot import snapshot_bytes
from pyspark_upsert_kafka.core.errors import shown, shown_names
from pyspark_upsert_kafka.core.options.frozen_options import ReadOptions
from pyspark_upsert_kafka.core.positions.cluster_view import ClusterView
from pyspark_upsert_kafka.core.positions.offsets import Range, TopicPartition, not_empty
from pyspark_upsert_kafka.core.positions.planning import shared, tasks_to_share
from pyspark_upsert_kafka.formats.record_names import names_without
from pyspark_upsert_kafka.kafka.outgoing_messages import partition_of

_SAMPLE_CHECKS = ("bad-messages", "null-keys", "columns")
_KEY_CHECKS = ("key-partition", "key-in-two-partitions", "key-spelling")

_OTHER_KEYS = NotSeen(
    "The keys of messages are not read: the row of a CDC format says what its key is",
)


def check_sample(facts: SampleFacts | NotSeen, options: ReadOptions) -> list[Finding]:
    """What a sample of messages shows."""
    is_table = options.holds_table
    checks = [*_SAMPLE_CHECKS, *(_KEY_CHECKS if is_table else ())]
    if not is_table:
        checks.remove("null-keys")
    if isinstance(facts, NotSeen):
        return [facts.finding(check) for check in checks]
    text = f"{counted(facts.messages, 'message')} read, from the beginning and the end of {counted(facts.offsets, 'offset')}"
    chosen = _chosen(facts, options)
    if not facts.messages:
        of = f"None of {counted(facts.passed_over, 'message')} of the sample is read"
        none = of if facts.passed_over else "The sample has no message"
        text = f"{none}: neither messages nor keys are checked"
        return [*chosen, Finding("sample", Level.NOT_CHECKED, text)]
    found = [*chosen, Finding("sample", Level.OK, text)]
    found += [_bad(facts, options), *_columns(facts)]
    if is_table:
        found.append(_null_keys(facts, options))
        found += _keys(facts, options)
    return found


def _chosen(facts: SampleFacts, options: ReadOptions) -> list[Finding]:
    """Whether the messages that options ask for are there."""
    found: list[Finding] = []
    if options.wanted_headers and facts.passed_over and not facts.messages:
        text = (
            f"No message of the sample, of {facts.passed_over:,}, has the headers of 'scan.headers'"
        )
        found.append(Finding("headers", Level.WARNING, text))
    if not options.record_names or not facts.record_types:
        return found
    lacking = names_without(options.record_names, facts.record_types)
    if not lacking:
        text = "The sample has messages of each record type of 'scan.record-names'"
        return [*found, Finding("record-names", Level.OK, text)]
    others = [*facts.record_types]
    text = f"No message of the sample is of the record type {shown_names(lacking)}. {types_seen(lacking, others)}"
    advice = "If such messages are rare, look at more by --sample; else correct 'scan.record-names'"
    return [*found, Finding("record-names", Level.WARNING, text.rstrip("."), advice)]


def _bad(facts: SampleFacts, options: ReadOptions) -> Finding:
    bad = [each for each in facts.bad if each.stage != "null-key"]
    if not bad:
        text = "Every message of the sample can be decoded"
        return Finding("bad-messages", Level.OK, text)
    text = f"{len(bad):,} of {counted(facts.messages, 'message')} cannot be decoded, the first at {_place(bad[0])}: {bad[0].reason}"
    return _of_mode("bad-messages", text.rstrip("."), options)


def _null_keys(facts: SampleFacts, options: ReadOptions) -> Finding:
    if options.table.key_format is None:
        return _OTHER_KEYS.finding("null-keys")
    null = [each for each in facts.bad if each.stage == "null-key"]
    if not null:
        return Finding("null-keys", Level.OK, "Every message of the sample has a key")
    some = _some_of(len(null), facts.messages, "message", "has no key", "have no key")
    text = f"{some}, the first at {_place(null[0])}"
    if len(null) == facts.messages:
        advice = "A topic without keys holds no table: give --append ('read.mode' = 'append')"
        return Finding("null-keys", Level.ERROR, text, advice)
    return _of_mode("null-keys", text, options)


def _of_mode(check: str, text: str, options: ReadOptions) -> Finding:
    """A finding about messages that fail a job, unless the options say what is done with them."""
    if options.bad_messages_become != "fail":
        done = f"{text}. 'error-handling.mode' = '{options.error_mode}' goes on past them"
        return Finding(check, Level.WARNING, done)
    advice = (
        "Repair what writes them; to go on past them, set 'error-handling.mode' to 'ignore', or to 'log' with "
        "'error-handling.log.target', the topic that they are sent to"
    )
    return Finding(check, Level.ERROR, text, advice)


def _place(bad: SampledBadMessage) -> str:
    return f"topic {bad.topic!r}, partition {bad.partition}, offset {bad.offset}"


def _columns(facts: SampleFacts) -> list[Finding]:
    if facts.warnings:
        return [Finding("columns", Level.WARNING, text.rstrip(".")) for text in facts.warnings]
    if len(facts.bad) == facts.messages:
        return [NotSeen("No message of the sample can be decoded").finding("columns")]
    if not facts.values:
        return [NotSeen("No message of the sample has a value").finding("columns")]
    return [
        Finding("columns", Level.OK, "The messages of the sample have the columns of the table")
    ]


def _keys(facts: SampleFacts, options: ReadOptions) -> list[Finding]:
    if options.table.key_format is None:
        return [_OTHER_KEYS.finding(check) for check in _KEY_CHECKS]
    if not facts.keys:
        return [
            NotSeen("No key of the sample can be decoded").finding(check) for check in _KEY_CHECKS
        ]
    relies = options.key_partitioner is not None
    return [
        _partitions(facts, relies=relies),
        _in_two_partitions(facts, options),
        _spellings(facts, relies=relies),
    ]


def _partitions(facts: SampleFacts, *, relies: bool) -> Finding:
    """Whether keys lie where murmur2 puts their bytes.

    Args:
        facts: The sample.
        relies: Whether an option says so.
    """
    check = "key-partition"
    others, moved = _elsewhere(facts)
    if not others:
        text = "Each key of the sample is in the partition where murmur2 puts it"
        if moved:
            text += f"; other partitions have only old messages of {counted(moved, 'key')}, and tombstones that delete them"
        return Finding(check, Level.OK, text)
    key, wanted = others[0]
    place = (
        "in the partition where murmur2, the partitioner of Java, Flink and this connector, puts"
    )
    misplaced = [key for key, _ in others]
    text = (
        f"{_some_keys(misplaced, facts, f'is not {place} it', f'are not {place} them')}: {shown(key.data)} is in partition "
        f"{key.partition} and not in {wanted} of topic {key.topic!r}"
    )
    return _hurt_by_option(check, text, relies=relies)


def _elsewhere(facts: SampleFacts) -> tuple[list[tuple[SampledKey, int]], int]:
    """The keys that are not where murmur2 puts them, each with that partition; and how many others have moved there.

    A key has moved if its last message in the other partition is a tombstone, and there is one where murmur2 puts it.
    """
    placed = [(key, partition_of(key.data, facts.partitions[key.topic])) for key in facts.keys]
    arrived = {key.identity for key, wanted in placed if key.partition == wanted}
    deleted = {_place_of(key) for key in _last_of_each(facts.keys) if key.deletes}
    others: list[tuple[SampledKey, int]] = []
    moved = set()
    for key, wanted in placed:
        if key.partition == wanted:
            continue
        if key.identity in arrived and _place_of(key) in deleted:
            moved.add(key.identity)
        else:
            others.append((key, wanted))
    return others, len(moved)


def _place_of(key: SampledKey) -> tuple[tuple[str, bytes], int]:
    """What all messages of a key in one partition have in common."""
    return key.identity, key.partition


def _some_keys(some: Sequence[SampledKey], facts: SampleFacts, one: str, more: str) -> str:
    """How many different keys these are, of those of the sample, and what is so with them."""
    different, all_ = ({key.identity for key in keys} for keys in (some, facts.keys))
    return _some_of(len(different), len(all_), "key", one, more)


def _hurt_by_option(check: str, text: str, *, relies: bool) -> Finding:
    if relies:
        advice = "Leave out 'scan.key-partitioner': reads with a filter on the key miss rows"
        return Finding(check, Level.ERROR, text, advice)
    advice = (
        "Do not write to this topic from Spark or Flink beside its own writer, and do not set 'scan.key-partitioner'. Copy it "
        "to a new topic with this connector, if that is wanted"
    )
    return Finding(check, Level.WARNING, text, advice)


def _in_two_partitions(facts: SampleFacts, options: ReadOptions) -> Finding:
    check, rows = "key-in-two-partitions", defaultdict(list)
    for key in _last_of_each(facts.keys):
        if not key.deletes:
            rows[key.identity].append(key)
    apart = [found for found in rows.values() if len(found) > 1]
    if not apart:
        return Finding(check, Level.OK, "Each key of the sample is in one partition only")
    first = apart[0]
    where = " and ".join(str(partition) for partition in sorted(key.partition for key in first))
    unless = (
        ", unless a tombstone follows that the sample lacks"
        if facts.messages < facts.offsets
        else ""
    )
    text = (
        f"{counted(len(apart), 'key')} of {len(rows):,} in more than one partition: {shown(first[0].data)} is in the "
        f"partitions {where} of topic {first[0].topic!r}"
    )
    if options.merges_partitions:
        return Finding(check, Level.OK, f"{text}. The table has one row of each key")
    text = f"{text}. The table has a row of each, one of them old{unless}"
    advice = (
        "Copy the topic to a new one with this connector (partitions were added to it, or its writers have different "
        "partitioners), or write a tombstone of the key to its old partition. 'scan.snapshot.merge-partitions' = 'true' shows one "
        "row of each key, for which each task reads all partitions"
    )
    return Finding(check, Level.ERROR, text, advice)


def _last_of_each(keys: Sequence[SampledKey]) -> list[SampledKey]:
    """The last message of each key in each partition."""
    in_order = sorted(keys, key=lambda key: key.offset)
    return list({_place_of(key): key for key in in_order}.values())


def _spellings(facts: SampleFacts, *, relies: bool) -> Finding:
    """Whether equal keys have equal bytes, and those that this connector would write."""
    check, spellings = "key-spelling", defaultdict(set)
    if facts.unspelled:
        return NotSeen(
            f"It is not known how this connector would write the keys: {facts.unspelled.rstrip('.')}"
        ).finding(check)
    for key in facts.keys:
        spellings[key.identity].add(key.data)
    several = [sorted(found) for found in spellings.values() if len(found) > 1]
    if several:
        first, second = several[0][:2]
        text = (
            f"{counted(len(several), 'key')} of {len(spellings):,} in several spellings: {shown(first)} and {shown(second)} "
            "are one key of the table. Kafka takes them for two: compaction keeps both, and they may be in two partitions"
        )
        return _hurt_by_option(check, text, relies=relies)
    others = [key for key in facts.keys if key.data != key.written]
    if others:
        text = (
            f"{_some_keys(others, facts, 'has', 'have')} other bytes than this connector would write: "
            f"{shown(others[0].data)} would be {shown(others[0].written)}. To Kafka, a key that is written from Spark or Flink would be another key"
        )
        return _hurt_by_option(check, text, relies=relies)
    return Finding(
        check, Level.OK, "Each key of the sample has the bytes that this connector would write"
    )


_MEMORY = "memory"


def memory_findings(
    sample: SampleFacts | NotSeen, view: ClusterView, options: ReadOptions
) -> Iterator[Finding]:
    """Whether the table fits into memory, if it is read into memory, as far as a sample of it tells."""
    if options.mode != "snapshot" and not options.table_first:
        return
    if isinstance(sample, NotSeen):
        yield check_memory(sample)
    elif sample.messages and len(sample.bad) == sample.messages:
        yield check_memory(NotSeen("No message of the sample can be decoded"))
    else:
        yield check_memory(_memory_facts(view, options, sample.rows))


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


def _memory_facts(
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


def check_memory(facts: MemoryFacts | NotSeen) -> Finding:
    """Whether the largest task of a snapshot holds its part of the table, if all of it is like the sample."""
    if isinstance(facts, NotSeen):
        return facts.finding(_MEMORY)
    if not (facts.rows and facts.ranges):
        return NotSeen("There is no message to look at").finding(_MEMORY)
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
        f"A task that reads the table holds up to about {_megabytes(needed)} (topic {largest.topic!r}, partition "
        f"{largest.partition}{part}, if all of it is like the sample) of {_megabytes(facts.limit)}, {source}"
    )
    if needed <= facts.limit:
        return Finding(_MEMORY, Level.OK, text)
    wanted = math.ceil(needed * pieces / facts.limit)
    advice = (
        f"Have more tasks share the keys: 'minPartitions' = '{tasks_to_share(largest, wanted)}'; or let a task hold more with "
        "'scan.snapshot.memory'"
    )
    return Finding(_MEMORY, Level.WARNING, text, advice)


def _bytes(range_: Range, facts: MemoryFacts) -> float:
    """How many bytes a task holds of a range; one without a sample is like all the others."""
    sample = facts.rows.get(TopicPartition(range_.topic, range_.partition))
    samples = facts.rows.values() if sample is None else [sample]
    size, offsets = sum(each.size for each in samples), sum(each.offsets for each in samples)
    pieces = range_.share.count if range_.share else 1
    return size / offsets * range_.size / pieces


def _some_of(count: int, whole: int, what: str, one: str, more: str) -> str:
    """How many of some things, and what is so with them.

    Args:
        count: How many.
        whole: How many things there are.
        what: One of them.
        one: What is said of one.
        more: What is said of more than one.

    >>> _some_of(1, 1, "key", "is old", "are old"), _some_of(2, 3, "key", "is old", "are old")
    ('1 of 1 key is old', '2 of 3 keys are old')
    """
    return f"{count:,} of {counted(whole, what)} {one if count == 1 else more}"


def _megabytes(size: float) -> str:
    """A number of bytes, rounded up.

    >>> _megabytes(3 * 2**20), _megabytes(100)
    ('3 MB', '1 MB')
    """
    return f"{math.ceil(size / 2**20):,} MB"
