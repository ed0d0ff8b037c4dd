"""What is said of brokers and topics, from facts alone."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pyspark_upsert_kafka.cli.doctor.access_checks import (
    BrokerFacts,
    GroupFacts,
    WrittenTopicFacts,
    check_brokers,
    check_group,
    check_written_topic,
)
from pyspark_upsert_kafka.cli.doctor.findings import Finding, Level, NotSeen
from pyspark_upsert_kafka.cli.doctor.topic_checks import TopicFacts, check_topic
from pyspark_upsert_kafka.connector.format_catalog import format_options
from pyspark_upsert_kafka.core.options.frozen_options import ReadOptions
from pyspark_upsert_kafka.core.options.read import read_options
from pyspark_upsert_kafka.core.positions.cluster_view import Bounds
from tests.table_options import table_options

CONFIGS = {
    "cleanup.policy": "compact",
    "retention.ms": "604800000",
    "retention.bytes": "-1",
    "delete.retention.ms": "86400000",
}
TOPIC = TopicFacts(
    "t", "k:9092", {0: Bounds(0, 9, 9)}, frozenset({"READ", "WRITE", "DESCRIBE_CONFIGS"}), CONFIGS
)


def options(**more: object) -> ReadOptions:
    """Options of a batch read of a table, unless they say something else."""
    return read_options(table_options(**more), format_options, stream=False)


APPEND = {"primary_key": None, "key__format": None, "read__mode": "append"}


def found(facts: TopicFacts, **more: object) -> dict[str, Finding]:
    """The findings by their checks."""
    return {each.check: each for each in check_topic(facts, options(**more))}


def configured(**configs: str) -> TopicFacts:
    """The topic with other configs."""
    changed = {name.replace("_", "."): value for name, value in configs.items()}
    return replace(TOPIC, configs={**CONFIGS, **changed})


def test_brokers_are_counted_and_the_client_told() -> None:
    """With its version, which decides on what it can do."""
    facts = BrokerFacts("k:9092", ("a:1", "b:1"), "librdkafka (confluent-kafka 2.16.1)")

    assert check_brokers(facts).text == (
        "2 brokers at k:9092; the client is librdkafka (confluent-kafka 2.16.1)"
    )


@pytest.mark.parametrize(
    ("operations", "level", "said"),
    [
        ({"READ", "WRITE"}, Level.OK, "may read and write"),
        ({"READ", "DESCRIBE"}, Level.OK, "and not write it"),
        ({"DESCRIBE"}, Level.ERROR, "may not read"),
        ({"WRITE"}, Level.ERROR, "may not read"),
    ],
)
def test_rights(operations: set[str], level: Level, said: str) -> None:
    """Reading is what a job cannot do without; the advice is the command that grants it."""
    finding = found(replace(TOPIC, operations=frozenset(operations)))["rights"]

    assert (finding.level, said in finding.text) == (level, True)
    if level is Level.ERROR:
        assert finding.advice == (
            "kafka-acls.sh --bootstrap-server k:9092 --add --allow-principal User:NAME --operation Read --topic t"
        )


@pytest.mark.parametrize(
    ("configs", "more", "level"),
    [
        ({}, {}, Level.OK),
        ({"cleanup_policy": "delete"}, {}, Level.WARNING),
        ({"cleanup_policy": "compact,delete"}, {}, Level.WARNING),
        ({"cleanup_policy": "delete", "retention_ms": "-1"}, {}, Level.OK),
        ({"cleanup_policy": "delete", "retention_ms": "-1", "retention_bytes": "9"}, {}, Level.WARNING),
        ({"cleanup_policy": "delete"}, APPEND, Level.OK),
        ({"cleanup_policy": "compact"}, APPEND, Level.WARNING),
        ({"cleanup_policy": "delete"},
         {"value__format": "debezium-json", "primary_key": None, "key__format": None, "read__mode": "changelog"}, Level.OK),
        ({"cleanup_policy": "delete"}, {"value__format": "debezium-json"}, Level.WARNING),
    ],
)  # fmt: skip
def test_cleanup_policies(configs: dict[str, str], more: dict[str, object], level: Level) -> None:
    """A table wants its topic compacted, and what reads every message does not."""
    assert found(configured(**configs), **more)["cleanup-policy"].level is level


@pytest.mark.parametrize(
    ("configs", "level", "said"),
    [
        ({"retention_ms": "604800000"}, Level.OK, "for 7 days (retention.ms)"),
        ({"retention_ms": "86399999"}, Level.WARNING, "for 23 hours (retention.ms)"),
        ({"retention_ms": "-1", "retention_bytes": "1000"}, Level.OK, "to grow by 1,000 bytes"),
        ({"retention_ms": "-1"}, Level.OK, "for ever"),
    ],
)
def test_retention(configs: dict[str, str], level: Level, said: str) -> None:
    """A stream that stands still over a night is to find its messages."""
    finding = found(configured(cleanup_policy="delete", **configs), **APPEND)["retention"]

    assert (finding.level, said in finding.text) == (level, True)


def test_retention_is_nothing_to_a_topic_that_is_only_compacted() -> None:
    """And tombstones do not matter to one that is not."""
    assert "retention" not in found(TOPIC)
    assert "tombstones" not in found(configured(cleanup_policy="delete"))


@pytest.mark.parametrize(("time", "level"), [("3600000", Level.OK), ("3599999", Level.WARNING)])
def test_tombstones(time: str, level: Level) -> None:
    """They are to outlive the restart of a stream."""
    assert found(configured(delete_retention_ms=time))["tombstones"].level is level


def test_configs_that_may_not_be_seen() -> None:
    """Each check that needs them says so."""
    seen = found(replace(TOPIC, configs=NotSeen("Not allowed", "grant it")))

    checks = ("cleanup-policy", "retention", "tombstones")
    assert {seen[check].level for check in checks} == {Level.NOT_CHECKED}
    assert {seen[check].advice for check in checks} == {"grant it"}


@pytest.mark.parametrize(
    ("exists", "operations", "level"),
    [
        (True, frozenset({"WRITE"}), Level.OK),
        (True, frozenset({"READ"}), Level.ERROR),
        (True, NotSeen("not told"), Level.NOT_CHECKED),
        (False, frozenset(), Level.ERROR),
    ],
)
def test_dead_letters(exists: bool, operations: frozenset[str] | NotSeen, level: Level) -> None:
    """Their topic must be there, and the user must be allowed to write to it."""
    assert check_written_topic(WrittenTopicFacts("d", "k:1", exists, operations)).level is level


COMMITS = {"READ", "DESCRIBE"}
STARTS_THERE = {"scan.startup.mode": "group-offsets", "properties.group.id": "g"}


@pytest.mark.parametrize(
    ("operations", "more", "level"),
    [
        (COMMITS, {}, Level.OK),
        (COMMITS, STARTS_THERE, Level.OK),
        ({"DESCRIBE"}, {}, Level.WARNING),
        ({"DESCRIBE"}, STARTS_THERE, Level.WARNING),
        (set(), {}, Level.WARNING),
        (set(), STARTS_THERE, Level.ERROR),
    ],
)
def test_the_consumer_group(operations: set[str], more: dict[str, object], level: Level) -> None:
    """A query goes on if it cannot commit, and cannot start where the group is if it may not see that."""
    given = {**more, "read__mode": "changelog"}
    stream = read_options(table_options(**given), format_options, stream=True)
    finding = check_group(GroupFacts("g", "k:9092", frozenset(operations)), stream)

    assert finding.level is level
    if level is not Level.OK:
        assert finding.advice.endswith("--operation Read --group g")


@pytest.mark.parametrize(
    ("untold", "expected"),
    [
        ("cleanup.policy", {"cleanup-policy": "cleanup.policy"}),
        ("retention.bytes", {"cleanup-policy": "retention.bytes", "retention": "retention.bytes"}),
        ("delete.retention.ms", {"tombstones": "delete.retention.ms"}),
    ],
)
def test_a_config_that_brokers_do_not_tell(untold: str, expected: dict[str, str]) -> None:
    """What depends on it is not checked, and everything else is."""
    policy = "compact,delete"
    configs = {**CONFIGS, "cleanup.policy": policy}
    seen = found(replace(TOPIC, configs={n: v for n, v in configs.items() if n != untold}))

    not_checked = {check: each for check, each in seen.items() if each.level is Level.NOT_CHECKED}
    assert {check: each.text for check, each in not_checked.items()} == {
        check: f"The brokers do not tell {config} of topic 't'"
        for check, config in expected.items()
    }


def test_a_compacted_topic_needs_no_retention() -> None:
    """Its policy alone says that the last message of each key stays."""
    configs = {"cleanup.policy": "compact", "delete.retention.ms": "86400000"}
    seen = found(replace(TOPIC, configs=configs))

    assert [seen[check].level for check in ("cleanup-policy", "tombstones")] == [Level.OK, Level.OK]
