"""Where a query goes on, by the folder of its checkpoint."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from pyspark_upsert_kafka.cli.doctor.checkpoint_checks import CheckpointFacts, checkpoint_facts
from pyspark_upsert_kafka.cli.doctor.findings import NotSeen
from pyspark_upsert_kafka.core.errors import CheckpointError
from pyspark_upsert_kafka.core.options.frozen_options import Topics
from pyspark_upsert_kafka.core.positions.offsets import StreamOffset, TopicPartition

T = Topics(("t",))
METADATA = '{"batchWatermarkMs":0,"batchTimestampMs":7000,"conf":{}}'


def offset(at: int, begin: int | None = None, topic: str = "t") -> str:
    """An offset of a topic with one partition, as Spark keeps it."""
    place = TopicPartition(topic, 0)
    begins = {} if begin is None else {place: begin}
    return json.dumps(StreamOffset({place: at}, begins, topic_ids={topic: "id"}).to_json())


def checkpoint(folder: Path, planned: dict[int, str], done: list[int]) -> str:
    """Writes a checkpoint with these batches."""
    for name in ("offsets", "commits"):
        (folder / name).mkdir()
    for batch, lines in planned.items():
        (folder / "offsets" / str(batch)).write_text(f"v1\n{METADATA}\n{lines}")
    for batch in done:
        (folder / "commits" / str(batch)).write_text("v1\n{}")
    (folder / "offsets" / ".1.crc").write_text("x")
    return str(folder)


def at(facts: CheckpointFacts | NotSeen) -> tuple[int | None, dict[str, int]]:
    """The last batch that is done, and the next offset of each topic."""
    assert isinstance(facts, CheckpointFacts)
    return facts.batch, {tp.topic: offset for tp, offset in facts.positions.items()}


@pytest.mark.parametrize(
    ("planned", "done", "batch", "next_"),
    [
        ({0: offset(3, 1), 1: offset(5)}, [0, 1], 1, 5),
        ({0: offset(3, 1), 1: offset(5)}, [0], 0, 3),  # batch 1 is read again
        ({0: offset(3, 1)}, [], None, 1),
        ({0: offset(3), 1: offset(9, 7)}, [0], 0, 7),  # it began elsewhere: data was lost
        ({9: offset(3), 10: offset(5)}, [9, 10], 10, 5),
    ],
)
def test_where_a_query_goes_on(
    tmp_path: Path, planned: dict[int, str], done: list[int], batch: int | None, next_: int
) -> None:
    """After the last batch that is done; a batch that was planned and is not done is read again."""
    facts = checkpoint_facts(checkpoint(tmp_path, planned, done), T)

    assert at(facts) == (batch, {"t": next_})
    assert isinstance(facts, CheckpointFacts)
    assert facts.topic_ids == {"t": "id"}
    assert facts.planned_ms == (7000 if done else None)


@pytest.mark.parametrize(
    "lines",
    [
        f"-\n51\n{offset(5)}",
        f"{offset(8)}\n{offset(5)}",  # two sources read the topic: the one that is behind
        f"{offset(5)}\n{offset(1, topic='other')}",
        json.dumps({"users": offset(5), "rate": "51"}),  # by the names of sources
        json.dumps({"users": json.loads(offset(5))}),
    ],
)
def test_a_query_may_have_several_sources(tmp_path: Path, lines: str) -> None:
    """Those of the table are found among them, in the log's layout of now and by names."""
    assert at(checkpoint_facts(checkpoint(tmp_path, {0: lines}, [0]), T)) == (0, {"t": 5})


def test_topics_may_be_a_pattern(tmp_path: Path) -> None:
    """As the table has them."""
    folder = checkpoint(tmp_path, {0: offset(5)}, [0])

    assert at(checkpoint_facts(f"file://{folder}", Topics(pattern=re.compile("t.*"))))[1] == {
        "t": 5
    }


@pytest.mark.parametrize(
    ("planned", "said"),
    [
        ({}, "There is no checkpoint in"),
        ({0: offset(5, topic="other")}, "holds positions of 'other'"),
        ({0: "51"}, "holds no position of this connector"),
        ({0: "{"}, "offsets/0' of the checkpoint cannot be read"),
        ({0: "[" * 100_000}, "cannot be read"),
        ({0: '{"version": 9, "topics": {}}'}, "cannot read"),
    ],
)
def test_what_is_no_checkpoint_of_the_table(
    tmp_path: Path, planned: dict[int, str], said: str
) -> None:
    """Is an error that says what it is."""
    with pytest.raises(CheckpointError, match=said):
        checkpoint_facts(checkpoint(tmp_path, planned, list(planned)), T)


def test_what_is_half_written(tmp_path: Path) -> None:
    """A file that is empty, as after a crash, and a folder that cannot be read, are not another query's."""
    folder = checkpoint(tmp_path, {0: offset(5)}, [0])
    (tmp_path / "offsets" / "0").write_text("")
    with pytest.raises(CheckpointError, match="it is empty, or was not written to its end"):
        checkpoint_facts(folder, T)
    with pytest.raises(CheckpointError, match="cannot be read: Not a directory"):
        checkpoint_facts(f"{folder}/offsets/0", T)


@pytest.mark.parametrize(
    "folder", ["s3a://bucket/c", "hdfs://n:8020/c", "dbfs:/c", "abfss://c@a/x"]
)
def test_a_checkpoint_that_is_not_on_this_machine(folder: str) -> None:
    """It is said what to copy."""
    found = checkpoint_facts(folder, T)

    assert isinstance(found, NotSeen)
    assert "'offsets' and 'commits'" in found.advice
