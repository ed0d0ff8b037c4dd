"""Markers: what a transaction of an exactly-once sink leaves, by which a task that runs again knows that it is done.

A marker is an offset that the transaction itself commits, for a group with the name of its transactional id
(``<prefix>-<query>-<call>-<task>``), on partition 0 of the sink's first topic. The offset is the number of
the micro-batch and one more; its metadata says how many tasks the batch has, what it holds, and which call of
`upsert_sink` wrote to which topics. Before any task starts, the driver commits the same under ``<prefix>-<query>-<call>-plan``.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256

from pyspark_upsert_kafka.core.errors import CheckpointError, OptionError

_NOTHING_WRITTEN = (
    "Nothing of this batch was written now. Go on from the newest checkpoint; to write the batches once more on "
    "purpose, give another 'sink.transactional-id-prefix'."
)

_LONGEST_TOPICS = 1000
"""Brokers take 4096 bytes of metadata (``offset.metadata.max.bytes``)."""


@dataclass(frozen=True)
class GroupOffset:
    """An offset that a consumer group has committed.

    Args:
        topic: The topic.
        partition: The partition.
        offset: The offset.
        metadata: The text that was committed with it.
    """

    topic: str
    partition: int
    offset: int
    metadata: str


@dataclass(frozen=True)
class Call:
    """One call of `upsert_sink` in a micro-batch of a query.

    Args:
        prefix: ``sink.transactional-id-prefix``.
        query: Id of the query, which survives restarts.
        number: Which call within the batch with this prefix it is, from 0.
        batch: Number of the micro-batch.
        tasks: How many tasks write it.
        topics: Topics of the sink.
        content: A digest of what the batch holds, the same when it runs again.
    """

    prefix: str
    query: str
    number: int
    batch: int
    tasks: int
    topics: tuple[str, ...]
    content: str

    def transactional_id(self, task: int) -> str:
        """The transactional id of a task, and the group of its marker.

        >>> Call("sink", "7d0c", 0, 12, 8, ("t",), "1f3b").transactional_id(3)
        'sink-7d0c-0-3'
        """
        return f"{self._name}-{task}"

    @property
    def plan_id(self) -> str:
        """The transactional id of the driver, and the group of its marker.

        >>> Call("sink", "7d0c", 0, 12, 8, ("t",), "1f3b").plan_id
        'sink-7d0c-0-plan'
        """
        return f"{self._name}-plan"

    @property
    def marker(self) -> GroupOffset:
        """What each transaction of this call commits.

        >>> Call("sink", "7d0c", 0, 12, 8, ("t", "s"), "1f3b").marker.metadata
        '{"tasks": 8, "call": 0, "content": "1f3b", "topic": "s;t"}'
        """
        about = {
            "tasks": self.tasks, "call": self.number, "content": self.content, "topic": _topics(self.topics),
        }  # fmt: skip
        return GroupOffset(min(self.topics), 0, self.batch + 1, json.dumps(about))

    @property
    def _name(self) -> str:
        return f"{self.prefix}-{self.query}-{self.number}"


@dataclass(frozen=True)
class Preparation:
    """What is to be done before the tasks of a call start.

    Args:
        commits_plan: Whether the plan is to be committed; it is there already when the batch runs again.
        fenced: Tasks of the batch before that this one does not have, whose late writers are to be fenced off.
        warnings: What is to be told.
    """

    commits_plan: bool
    fenced: range = range(0)
    warnings: tuple[str, ...] = ()


def preparation(call: Call, found: GroupOffset | None) -> Preparation:
    """What is to be done before the tasks start, as the marker of the last plan says.

    Args:
        call: The call that is to be written.
        found: The marker; None = there is none.

    Raises:
        CheckpointError: A newer batch was begun already, or this one with other rows.
        OptionError: The batch was begun with another number of tasks, or calls before wrote to other topics.
    """
    if found is None:
        return Preparation(commits_plan=True, warnings=_no_marker(call) if call.batch else ())
    before = _read(call, found)
    if before.batch == call.batch:
        return Preparation(commits_plan=False)
    return Preparation(commits_plan=True, fenced=range(call.tasks, max(before.tasks, call.tasks)))


def is_written(call: Call, found: GroupOffset | None) -> bool:
    """Whether a task has written this call already, as its marker says.

    Args:
        call: The call that is to be written.
        found: The marker; None = there is none.

    Raises:
        CheckpointError: The task has written a newer batch already, or this one with other rows.
        OptionError: It has written the batch as one of another number of tasks, or calls before wrote to
            other topics.
    """
    return found is not None and _read(call, found).batch == call.batch


@dataclass(frozen=True)
class _Written:
    """What a marker says of the batch that was written."""

    batch: int
    tasks: int
    content: str


def _read(call: Call, found: GroupOffset) -> _Written:
    """What a marker says: it is of the same call, of no newer batch, and of the same batch if it has its number."""
    try:
        about = json.loads(found.metadata)
        topics = str(about["topic"])
        written = _Written(found.offset - 1, int(about["tasks"]), str(about["content"]))
    except (ValueError, TypeError, KeyError):
        raise CheckpointError(
            f"A consumer group that 'sink.transactional-id-prefix' = '{call.prefix}' names has committed an "
            f"offset on topic {found.topic!r} that is no marker of this sink: another program uses the group. "
            "Give the sink another prefix."
        ) from None
    if topics != _topics(call.topics):
        raise OptionError(
            f"Call {call.number} of upsert_sink with 'sink.transactional-id-prefix' = '{call.prefix}' wrote to "
            f"topic '{topics}' before, and is to write to '{_topics(call.topics)}' now, so its markers say "
            "nothing about what is written there. Nothing of this call was written. Finish the batch as it was begun, "
            "with the same sinks in the same order; then give each sink a prefix of its own, and a new one to a "
            "sink whose topics change. (A new prefix for a batch that is half written writes all of it again.)"
        )
    if written.batch > call.batch:
        raise CheckpointError(
            f"Batch {written.batch} of query {call.query} was written to topic '{topics}' already, and batch "
            f"{call.batch} is to be written now: the checkpoint was set back, or a newer run of the query "
            f"goes on elsewhere. {_NOTHING_WRITTEN}"
        )
    if written.batch == call.batch:
        _check_same(call, written)
    return written


def _check_same(call: Call, written: _Written) -> None:
    """A batch that runs again is the same batch."""
    if written.content != call.content:
        raise CheckpointError(
            f"Batch {call.batch} of query {call.query} was begun before as another one: the checkpoint was set back, "
            "so that Spark planned the batch anew, or 'primary-key' or the type of its columns was changed before "
            f"the batch was done. {_NOTHING_WRITTEN}"
        )
    if written.tasks != call.tasks:
        raise OptionError(
            f"Batch {call.batch} of query {call.query} was begun with 'sink.parallelism' = '{written.tasks}' and is to "
            f"be written again with '{call.tasks}', which would write again what some tasks have written "
            f"already. Set 'sink.parallelism' to '{written.tasks}' until this batch is done; a later batch may have "
            "another number. Nothing of this batch was written now."
        )


def digest(*parts: str) -> str:
    """A short text that differs when one of the parts does.

    >>> digest("a", "b") == digest("ab"), len(digest("a"))
    (False, 16)
    """
    return sha256(json.dumps(parts).encode()).hexdigest()[:16]


def _no_marker(call: Call) -> tuple[str, ...]:
    text = (
        f"Query {call.query} writes batch {call.batch} to topic '{_topics(call.topics)}' exactly once, and no "
        f"marker of an earlier batch is there under 'sink.transactional-id-prefix' = '{call.prefix}'. That is "
        "so when this is the first batch written with this prefix, and when the query rested for longer than "
        "the brokers keep markers ('offsets.retention.minutes', 7 days unless set). In the second case "
        "messages of this batch that an earlier run has written are written again."
    )
    return (text,)


def _topics(names: Sequence[str]) -> str:
    """The topics in a text that is short enough for a marker, in any order the same."""
    text = ";".join(sorted(names))
    return text if len(text) <= _LONGEST_TOPICS else sha256(text.encode()).hexdigest()
