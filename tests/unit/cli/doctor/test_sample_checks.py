"""What is said of a sample of messages, from facts alone."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pyspark_upsert_kafka.cli.doctor.findings import Finding, Level, NotSeen
from pyspark_upsert_kafka.cli.doctor.message_sample import (
    SampledBadMessage,
    SampledKey,
    SampleFacts,
)
from pyspark_upsert_kafka.cli.doctor.sample_checks import check_sample
from pyspark_upsert_kafka.kafka.outgoing_messages import partition_of
from tests.unit.cli.doctor.test_topic_checks import APPEND, options

MURMUR2 = {"scan.key-partitioner": "murmur2"}


def key(data: bytes, partition: int | None = None, written: bytes | None = None) -> SampledKey:
    """A key of a topic with four partitions, by default as this connector would write it."""
    place = partition_of(data, 4) if partition is None else partition
    return SampledKey("t", place, data, data if written is None else written)


def sample(*keys: SampledKey) -> SampleFacts:
    """A sample with these keys."""
    return SampleFacts(messages=4, offsets=9, values=4, partitions={"t": 4}, keys=keys)


def found(facts: SampleFacts | NotSeen, **more: object) -> dict[str, Finding]:
    """The findings by their checks."""
    return {each.check: each for each in check_sample(facts, options(**more))}


ELSEWHERE = key(b"a", (partition_of(b"a", 4) + 1) % 4)
TOMBSTONE = replace(ELSEWHERE, deletes=True, offset=3)
SPACED = key(b'{"a": 1}', 0, written=b'{"a":1}')


def in_one(*keys: SampledKey) -> SampleFacts:
    """A sample of a topic with one partition."""
    return replace(sample(*keys), partitions={"t": 1})


HEALTHY = sample(key(b"a"), key(b"b"), key(b"b"))


@pytest.mark.parametrize(
    ("facts", "more", "expected"),
    [
        (HEALTHY, {}, {}),
        (HEALTHY, MURMUR2, {}),
        (sample(ELSEWHERE), {}, {"key-partition": Level.WARNING}),
        (sample(ELSEWHERE), MURMUR2, {"key-partition": Level.ERROR}),
        (sample(key(b"a"), ELSEWHERE), {}, {"key-partition": Level.WARNING, "key-in-two-partitions": Level.ERROR}),
        (sample(key(b"a"), ELSEWHERE), {"scan.snapshot.merge-partitions": "true"}, {"key-partition": Level.WARNING}),
        (in_one(SPACED), {}, {"key-spelling": Level.WARNING}),
        (in_one(SPACED), MURMUR2, {"key-spelling": Level.ERROR}),
        (in_one(SPACED, key(b'{"a":1}', 0)), {}, {"key-spelling": Level.WARNING}),
        (replace(HEALTHY, unspelled="no registry"), {}, {"key-spelling": Level.NOT_CHECKED}),
        (sample(replace(key(b"a"), deletes=True, offset=2), key(b"a"), ELSEWHERE), {}, {"key-partition": Level.WARNING}),
        (sample(ELSEWHERE, TOMBSTONE, key(b"a")), MURMUR2, {}),
        (sample(ELSEWHERE, TOMBSTONE), {}, {"key-partition": Level.WARNING}),
        (sample(TOMBSTONE, replace(ELSEWHERE, offset=9), key(b"a")), {},
         {"key-partition": Level.WARNING, "key-in-two-partitions": Level.ERROR}),
        (sample(), {}, dict.fromkeys(("key-partition", "key-in-two-partitions", "key-spelling"), Level.NOT_CHECKED)),
    ],
)  # fmt: skip
def test_keys(facts: SampleFacts, more: dict[str, object], expected: dict[str, Level]) -> None:
    """Places and spellings of keys; they are errors where the table has wrong rows, or an option relies on them."""
    checks = ("key-partition", "key-in-two-partitions", "key-spelling")
    seen = found(facts, **more)

    assert {check: seen[check].level for check in checks} == {
        **dict.fromkeys(checks, Level.OK),
        **expected,
    }


def test_keys_are_counted_and_not_messages() -> None:
    """One key with two messages is one key, and the sentence has the right verb."""
    seen = found(sample(ELSEWHERE, replace(ELSEWHERE, offset=1)))
    assert seen["key-partition"].text.startswith("1 of 1 key is not in the partition")
    assert found(in_one(SPACED, SPACED))["key-spelling"].text.startswith("1 of 1 key has other")
    others = [replace(ELSEWHERE, data=data, written=data, partition=9) for data in (b"a", b"b")]
    assert found(sample(*others))["key-partition"].text.startswith("2 of 2 keys are not in")


def test_a_key_that_was_moved_where_murmur2_puts_it() -> None:
    """What is left in its old partition ends with a tombstone: until compaction has removed it, that is said."""
    text = found(sample(ELSEWHERE, TOMBSTONE, key(b"a")))["key-partition"].text

    assert text.endswith(
        "; other partitions have only old messages of 1 key, and tombstones that delete them"
    )


def test_equal_keys_of_two_spellings_in_two_partitions_are_one_key() -> None:
    """Equal keys are told by what this connector would write."""
    facts = sample(key(b'{"a":1}', 0), key(b'{"a": 1}', 1, written=b'{"a":1}'))

    assert "in the partitions 0 and 1" in found(facts)["key-in-two-partitions"].text
    assert "are one key of the table" in found(facts)["key-spelling"].text


def test_equal_bytes_in_two_topics_are_two_keys() -> None:
    """Each topic has its partitions."""
    facts = replace(
        sample(key(b"a", 0), replace(key(b"a", 1), topic="u")), partitions={"t": 1, "u": 2}
    )

    assert found(facts)["key-in-two-partitions"].level is Level.OK


BAD = SampledBadMessage("t", 0, 7, "value", "not JSON")
NULL = SampledBadMessage("t", 1, 8, "null-key", "no key")


@pytest.mark.parametrize(
    ("bad", "mode", "messages", "null_keys"),
    [
        ((), "fail", Level.OK, Level.OK),
        ((BAD,), "fail", Level.ERROR, Level.OK),
        ((NULL,), "fail", Level.OK, Level.ERROR),
        ((BAD, NULL), "ignore", Level.WARNING, Level.WARNING),
        ((NULL,) * 4, "ignore", Level.OK, Level.ERROR),
    ],
)
def test_bad_messages(
    bad: tuple[SampledBadMessage, ...], mode: str, messages: Level, null_keys: Level
) -> None:
    """They fail a job unless an option says what is done with them; no key at all is no table."""
    seen = found(replace(HEALTHY, bad=bad), **{"error-handling.mode": mode})

    assert (seen["bad-messages"].level, seen["null-keys"].level) == (messages, null_keys)
    if BAD in bad:
        assert "topic 't', partition 0, offset 7: not JSON" in seen["bad-messages"].text


def test_an_append_topic_has_no_keys_to_look_at() -> None:
    """Its messages are rows, with a key or without."""
    assert [*found(HEALTHY, **APPEND)] == ["sample", "bad-messages", "columns"]
    assert [*found(NotSeen("why"), **APPEND)] == ["bad-messages", "columns"]


def test_what_was_not_seen_is_said_of_each_check() -> None:
    """With the reason."""
    seen = found(NotSeen("The user may not read topic 't'"))

    assert [*seen] == [
        "bad-messages", "null-keys", "columns", "key-partition", "key-in-two-partitions", "key-spelling",
    ]  # fmt: skip
    assert {each.text for each in seen.values()} == {"The user may not read topic 't'"}


def test_an_empty_topic_is_one_finding() -> None:
    """There is nothing to say of its messages and keys."""
    (finding,) = check_sample(replace(HEALTHY, messages=0, keys=()), options())

    assert (finding.check, finding.level) == ("sample", Level.NOT_CHECKED)


def test_a_cdc_format_without_a_key_format_says_itself_what_the_key_is() -> None:
    """The keys of its messages are not read."""
    seen = found(HEALTHY, value__format="debezium-json", key__format=None)

    assert seen["key-partition"].level is Level.NOT_CHECKED
