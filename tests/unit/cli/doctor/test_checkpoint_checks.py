"""What is said of a checkpoint, from facts alone."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pyspark_upsert_kafka.cli.doctor.checkpoint_checks import (
    CheckpointFacts,
    PresentFacts,
    check_checkpoint,
)
from pyspark_upsert_kafka.cli.doctor.findings import Level, NotSeen
from pyspark_upsert_kafka.core.positions.cluster_view import Bounds
from pyspark_upsert_kafka.core.positions.offsets import TopicPartition
from tests.unit.cli.doctor.test_topic_checks import CONFIGS, options

P0 = TopicPartition("t", 0)
HOUR_MS = 3_600_000
NOW_MS = 1_000 * HOUR_MS
CHECKPOINT = CheckpointFacts("/c", 3, NOW_MS - 2 * HOUR_MS, {P0: 5}, {"t": "id"})
BOTH = {**CONFIGS, "cleanup.policy": "compact,delete"}
PRESENT = PresentFacts(NOW_MS, {"t": "id"}, {P0: Bounds(2, 9, 9)}, {"t": BOTH})


def levels(facts: CheckpointFacts, present: PresentFacts, **more: object) -> dict[str, Level]:
    """The level of each check."""
    found = check_checkpoint(facts, present, options(**more), "k:9092")
    return {each.check.removeprefix("checkpoint-"): each.level for each in found}


def test_offsets_that_are_there() -> None:
    """It is said how much there is to read, and how old the checkpoint is."""
    found = check_checkpoint(CHECKPOINT, PRESENT, options(), "k:9092")

    assert [each.level for each in found] == [Level.OK] * 3
    assert found[0].text == (
        "The checkpoint '/c' (batch 3, 2 hours old) goes on from offsets that are there, with about 4 offsets to read"
    )


@pytest.mark.parametrize(
    ("present", "said"),
    [
        (replace(PRESENT, bounds={P0: Bounds(6, 9, 9)}), "at offset 5, and the first that is left is 6"),
        (replace(PRESENT, bounds={P0: Bounds(0, 4, 4)}), "at offset 5, and the topic ends at 4"),
        (replace(PRESENT, bounds={}), "partition 0, which does not exist"),
        (replace(PRESENT, topic_ids={"t": "other"}), "it was deleted and created again (id other)"),
        (replace(PRESENT, topic_ids={}), "does not exist or is not one of the table's"),
    ],
)  # fmt: skip
def test_offsets_that_are_gone(present: PresentFacts, said: str) -> None:
    """A job fails with them, unless it takes lost data."""
    (finding,) = check_checkpoint(CHECKPOINT, present, options(), "k:9092")

    assert (finding.level, said in finding.text) == (Level.ERROR, True)
    assert "'failOnDataLoss'" in finding.advice
    assert levels(CHECKPOINT, present, failOnDataLoss="false")["checkpoint"] is Level.WARNING


def test_an_unknown_id_proves_nothing() -> None:
    """Brokers before Kafka 2.8 have none."""
    assert levels(replace(CHECKPOINT, topic_ids={"t": ""}), PRESENT)["checkpoint"] is Level.OK
    assert levels(CHECKPOINT, replace(PRESENT, topic_ids={"t": ""}))["checkpoint"] is Level.OK


@pytest.mark.parametrize(
    ("deleted_in_ms", "said"),
    [({P0: 0}, "at any moment"), ({P0: 6 * HOUR_MS}, "within 6 hours")],
)
def test_what_retention_deletes_soon(deleted_in_ms: dict[TopicPartition, int], said: str) -> None:
    """It is a warning, with the command that keeps it."""
    present = replace(PRESENT, deleted_in_ms=deleted_in_ms)
    found = check_checkpoint(CHECKPOINT, present, options(), "k:9092")
    (finding,) = (each for each in found if each.check == "checkpoint-retention")

    assert (finding.level, said in finding.text) == (Level.WARNING, True)
    assert finding.advice.endswith("--entity-name t --add-config retention.ms=1209600000")


def test_a_topic_that_is_only_compacted_has_no_retention() -> None:
    """And one that is not compacted has no tombstones."""
    compacted, deleted = (
        replace(PRESENT, configs={"t": {**CONFIGS, "cleanup.policy": policy}})
        for policy in ("compact", "delete")
    )

    assert [*levels(CHECKPOINT, compacted)] == ["checkpoint", "tombstones"]
    assert [*levels(CHECKPOINT, deleted)] == ["checkpoint", "retention"]


@pytest.mark.parametrize(
    ("kept_ms", "at", "expected"),
    [
        (HOUR_MS, 5, {"tombstones": Level.WARNING}),
        (3 * HOUR_MS, 5, {"tombstones": Level.OK}),
        (HOUR_MS, 9, {}),  # all is read
    ],
)
def test_tombstones(kept_ms: int, at: int, expected: dict[str, Level]) -> None:
    """A checkpoint older than they are kept may miss deletes among what is not read yet."""
    configs = {**CONFIGS, "delete.retention.ms": str(kept_ms)}
    found = levels(
        replace(CHECKPOINT, positions={P0: at}), replace(PRESENT, configs={"t": configs})
    )

    assert {check: level for check, level in found.items() if check != "checkpoint"} == expected


def test_what_may_not_be_seen() -> None:
    """Configs that may not be seen, or that brokers do not tell, are named by the checks of topics."""
    hidden = replace(PRESENT, configs={"t": NotSeen("not allowed")})

    assert levels(CHECKPOINT, hidden) == {"checkpoint": Level.OK}
    untold = replace(PRESENT, configs={"t": {"cleanup.policy": "compact,delete"}})
    assert levels(CHECKPOINT, untold) == {"checkpoint": Level.OK}
