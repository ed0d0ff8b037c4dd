"""Reads where a query goes on from its checkpoint on this machine; nothing is written or locked there."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pyspark_upsert_kafka.cli.doctor.facts import CheckpointFacts
from pyspark_upsert_kafka.cli.doctor.finding import NotSeen
from pyspark_upsert_kafka.core.errors import CheckpointError
from pyspark_upsert_kafka.core.options.values import Topics
from pyspark_upsert_kafka.core.positions.offsets import StreamOffset, TopicPartition, stream_offset

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
