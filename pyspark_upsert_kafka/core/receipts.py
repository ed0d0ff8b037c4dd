"""Receipts: what a transaction of an exactly-once sink leaves, by which a task that runs again knows that it is done.

A receipt is an offset that the transaction itself commits, for a group with the name of its transactional id
(``<prefix>-<query>-<call>-<task>``), on partition 0 of the sink's first topic. The offset is the number of
the micro-batch and one more; its metadata says how many tasks the batch has, what it holds, and which call of
`upsert_sink` wrote to which topics as which sink. Before any task starts, the driver commits the same under
``<prefix>-<query>-<call>-plan``, with the time.
"""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass, replace
from datetime import timedelta
from hashlib import sha256

from pyspark_upsert_kafka.core.errors import CheckpointError, OptionError

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
        sink: A digest of what the sink is: its options and the columns of its rows; empty = not known.
        options: A digest of its options alone; empty = not known.
        finishes: Whether the batch was begun by the same sink, maybe with other columns, as before a new start of the query that has
            more, or fewer.
    """

    prefix: str
    query: str
    number: int
    batch: int
    tasks: int
    topics: tuple[str, ...]
    content: str
    sink: str = ""
    options: str = ""
    finishes: bool = False

    def to_text(self) -> str:
        """The call as an option that `upsert_sink` passes on; `call_of_text` reads it."""
        return json.dumps(asdict(self))

    def transactional_id(self, task: int) -> str:
        """The transactional id of a task, and the group of its receipt.

        >>> Call("sink", "7d0c", 0, 12, 8, ("t",), "1f3b").transactional_id(3)
        'sink-7d0c-0-3'
        """
        return f"{self._name}-{task}"

    @property
    def driver_id(self) -> str:
        """The transactional id of the driver, and the group of its receipt.

        >>> Call("sink", "7d0c", 0, 12, 8, ("t",), "1f3b").driver_id
        'sink-7d0c-0-plan'
        """
        return f"{self._name}-plan"

    @property
    def receipt(self) -> GroupOffset:
        """What each transaction of this call commits.

        >>> Call("sink", "7d0c", 0, 12, 8, ("t", "s"), "1f3b").receipt.metadata
        '{"tasks": 8, "call": 0, "content": "1f3b", "topic": "s;t"}'
        """
        about = {
            "tasks": self.tasks, "call": self.number, "content": self.content, "topic": self.topics_text,
            **({"sink": self.sink} if self.sink else {}),
            **({"options": self.options} if self.options else {}),
        }  # fmt: skip
        return GroupOffset(min(self.topics), 0, self.batch + 1, json.dumps(about))

    def driver_receipt(self, now: float) -> GroupOffset:
        """What the driver commits before the tasks start.

        Args:
            now: The time, in seconds since the epoch.
        """
        about = json.loads(self.receipt.metadata)
        return replace(self.receipt, metadata=json.dumps({**about, "begun": int(now)}))

    @property
    def topics_text(self) -> str:
        """The topics in a text that is short enough for a receipt, in any order the same."""
        text = ";".join(sorted(self.topics))
        return text if len(text) <= _LONGEST_TOPICS else sha256(text.encode()).hexdigest()

    def other_query(self, group: str) -> str | None:
        """The id of another query that has written with this prefix, if this is the group of its driver.

        >>> here, there = (f"{n}d0cf6a1-0000-4000-8000-000000000000" for n in (7, 8))
        >>> call = Call("sink", here, 0, 12, 8, ("t",), "1f3b")
        >>> call.other_query(f"sink-{there}-1-plan") == there, call.other_query(call.driver_id)
        (True, None)
        """
        found = re.fullmatch(rf"{re.escape(self.prefix)}-([0-9a-f-]{{36}})-\d+-plan", group)
        return found[1] if found and found[1] != self.query else None

    @property
    def _name(self) -> str:
        return f"{self.prefix}-{self.query}-{self.number}"


def call_of_text(text: str) -> Call:
    """The call that `Call.to_text` wrote."""
    call = json.loads(text)
    return Call(**{**call, "topics": tuple(call["topics"])})


@dataclass(frozen=True)
class Preparation:
    """What is to be done before the tasks of a call start.

    Args:
        commits_receipt: Whether the driver commits its receipt; it is there already when the batch runs again.
        fenced: Tasks of the batch before that this one does not have, whose late writers are to be fenced off.
        warnings: What is logged.
        begun: When a batch that runs again was begun, in seconds since the epoch; None = it is a new one, or that is
            not known.
        unwritten: Tasks of another sink, which has begun the batch: it may be begun anew once it is sure that none of them has
            written, and that no later call of the batch was begun.
        may_finish: Whether the batch was begun with the same options, so that only columns differ, if anything does: if no batch has
            a later call, it is the same sink, and its batch may be finished, whatever columns its tasks have had.
    """

    commits_receipt: bool
    fenced: range = range(0)
    warnings: tuple[str, ...] = ()
    begun: int | None = None
    unwritten: range = range(0)
    may_finish: bool = False


def preparation(call: Call, found: GroupOffset | None, *, may_begin: bool = True) -> Preparation:
    """What is to be done before the tasks start, as the driver's last receipt says.

    Args:
        call: The call that is to be written.
        found: The receipt; None = there is none.
        may_begin: Whether the call can be told from those before it in its batch. A call that cannot is not begun; it is only
            finished, if an earlier version of this package has begun it.

    Raises:
        CheckpointError: A newer batch was begun already, or this one with other rows.
        OptionError: The batch was begun with another number of tasks, calls before wrote to other topics, or the call cannot
            be told from another one.
    """
    before = None if found is None else _read(call, found, any_sink=True)
    is_begun = before is not None and before.batch == call.batch
    # Of a first batch nobody knows which calls it was to have.
    may_finish = (
        before is not None and call.number == 0 < call.batch and _has_same_options(call, before)
    )
    if before is not None and is_begun and not _is_another_sink(call, before):
        return Preparation(commits_receipt=False, begun=before.begun, may_finish=may_finish)
    if not may_begin:
        raise OptionError(_like_another_call(call))
    if before is not None and is_begun:
        return Preparation(
            commits_receipt=True, unwritten=range(before.tasks), may_finish=may_finish
        )
    if before is None:
        warnings = (_no_receipt(call),) if call.batch else ()
        return Preparation(commits_receipt=True, warnings=warnings)
    return Preparation(
        commits_receipt=True, fenced=range(call.tasks, max(before.tasks, call.tasks))
    )


def check_unwritten(call: Call, found: GroupOffset | None) -> None:
    """Checks that the batch of a call is not that of a receipt: of one of its tasks, or of the driver for a call after it.

    Args:
        call: The call that is to be written, by a sink with other options or other columns than that which has begun it.
        found: The receipt; None = there is none.

    Raises:
        OptionError: Something of the batch was written, or a later call of it was begun.
    """
    if found is not None and found.offset == call.batch + 1:
        raise OptionError(_another_sink(call))


def is_written(call: Call, found: GroupOffset | None) -> bool:
    """Whether a task has written this call already, as its receipt says.

    Args:
        call: The call that is to be written.
        found: The receipt; None = there is none.

    Raises:
        CheckpointError: The task has written a newer batch already, or this one with other rows.
        OptionError: It has written the batch as one of another number of tasks or of another sink, or calls before
            wrote to other topics.
    """
    return found is not None and _read(call, found).batch == call.batch


@dataclass(frozen=True)
class _Written:
    """What a receipt says of the batch that was written."""

    batch: int
    tasks: int
    content: str
    sink: str
    options: str
    begun: int | None


def _read(call: Call, found: GroupOffset, *, any_sink: bool = False) -> _Written:
    """What a receipt says: it is of the same call, of no newer batch, and of the same batch if it has its number."""
    try:
        about = json.loads(found.metadata)
        topics = str(about["topic"])
        # Earlier versions say neither which sink it was nor when.
        sink, options = (str(about.get(name, "")) for name in ("sink", "options"))
        begun = about.get("begun")
        written = _Written(
            found.offset - 1,
            int(about["tasks"]),
            str(about["content"]),
            sink,
            options,
            None if begun is None else int(begun),
        )
    except (ValueError, TypeError, KeyError, AttributeError):
        raise CheckpointError(_no_receipt_of_ours(call, found.topic)) from None
    if topics != call.topics_text:
        raise OptionError(_other_topics(call, topics))
    if written.batch > call.batch:
        raise CheckpointError(_newer_batch(call, topics, written.batch))
    if written.batch == call.batch:
        _check_same(call, written, any_sink=any_sink)
    return written


def _is_another_sink(call: Call, written: _Written) -> bool:
    if call.finishes and _has_same_options(call, written):
        return False
    return bool(call.sink and written.sink and written.sink != call.sink)


def _has_same_options(call: Call, written: _Written) -> bool:
    return bool(call.options) and written.options == call.options


def _check_same(call: Call, written: _Written, *, any_sink: bool) -> None:
    """A batch that runs again is the same batch, written by the same sink."""
    if written.content != call.content:
        raise CheckpointError(_another_batch(call))
    if _is_another_sink(call, written) and not any_sink:
        raise OptionError(_another_sink(call))
    if written.tasks != call.tasks:
        raise OptionError(_other_tasks(call, written.tasks))


def digest(*parts: str) -> str:
    """A short text that differs when one of the parts does.

    >>> digest("a", "b") == digest("ab"), len(digest("a"))
    (False, 16)
    """
    return sha256(json.dumps(parts).encode()).hexdigest()[:16]


_NOTHING_WRITTEN = (
    "Nothing of this batch was written now. Go on from the newest checkpoint; to write the batches once more on "
    "purpose, give another 'sink.transactional-id-prefix'."
)

_RETENTION_S = 7 * 24 * 3600.0
"""How long brokers keep the offsets of a group, unless ``offsets.retention.minutes`` is set."""

_SURE = 0.9
"""The share of that time in which all receipts of a batch are certainly there: brokers look every ten minutes for what
has expired, each at another moment, and clocks differ."""


def _no_receipt_of_ours(call: Call, topic: str) -> str:
    """The group of a receipt has an offset that is no receipt."""
    return (
        f"A consumer group that 'sink.transactional-id-prefix' = '{call.prefix}' names has committed an "
        f"offset on topic {topic!r} that is no receipt of this sink: another program uses the group. "
        "Give the sink another prefix."
    )


def _other_topics(call: Call, topics: str) -> str:
    """Earlier calls wrote to other topics."""
    return (
        f"{_call(call)} wrote to topic '{topics}' before, and is to write to '{call.topics_text}' now, so its "
        "receipts say nothing about what is written there. Nothing of this call was written. Finish the batch as it "
        "was begun, with the same sinks in the same order; then give each sink a prefix of its own, and a new one to a "
        "sink whose topics change. (A new prefix for a batch that is half written writes all of it again.)"
    )


def _newer_batch(call: Call, topics: str, batch: int) -> str:
    """A newer batch was begun already."""
    return (
        f"Batch {batch} of query {call.query} was written to topic '{topics}' already, and batch "
        f"{call.batch} is to be written now: the checkpoint was reset to an earlier state, or a newer run of the query "
        f"continues elsewhere. {_NOTHING_WRITTEN}"
    )


def _another_batch(call: Call) -> str:
    """A batch of this number was begun with other rows, or with other keys."""
    return (
        f"Batch {call.batch} of query {call.query} was begun before as another one: the checkpoint was reset to an "
        "earlier state, so that Spark planned the batch again, or 'primary-key' or the type of its columns was changed before "
        f"the batch was done, or sinks of prefix '{call.prefix}' changed places. {_NOTHING_WRITTEN}"
    )


def _another_sink(call: Call) -> str:
    """The batch was begun by a sink with other options or columns."""
    return (
        f"{_call(call)} was begun in batch {call.batch} by a sink with other options or other columns, which "
        "may have written some of its rows: two sinks of this prefix changed places, one was left out, or the "
        "sink was changed before the batch was done. Nothing of this call was written now. Finish the batch as it was "
        "begun, with the same sinks in the same order; then give each sink a prefix of its own. (A new prefix "
        "for a batch that is half written writes all of it again.)"
    )


def _other_tasks(call: Call, tasks: int) -> str:
    """The batch was begun with another number of tasks."""
    return (
        f"Batch {call.batch} of query {call.query} was begun with 'sink.parallelism' = '{tasks}' and is to "
        f"be written again with '{call.tasks}', which would write again what some tasks have written "
        f"already. Set 'sink.parallelism' to '{tasks}' until this batch is done; a later batch may have "
        "another number. Nothing of this batch was written now."
    )


def _like_another_call(call: Call) -> str:
    """Nothing in a receipt distinguishes the call from one before it in the same batch."""
    return (
        f"{_call(call)} in batch {call.batch} has the options and columns of a call before it, but other rows, "
        "or it writes to other brokers: if the batch runs again with the calls in another order, nothing tells one "
        "from the other. Nothing of this call was written. Leave the call before as it is, and give this one "
        "a prefix of its own. If these calls came in another order when the batch was begun, look at the topic: rows of this "
        "batch may be missing or there twice."
    )


def _no_receipt(call: Call) -> str:
    """The warning about a later batch than the first one without any receipt before it."""
    return (
        f"Query {call.query} writes batch {call.batch} to topic '{call.topics_text}' exactly once, and no "
        f"receipt of an earlier batch is there under 'sink.transactional-id-prefix' = '{call.prefix}'. That is "
        "so when this is the first batch written with this prefix, and when the query was stopped for longer than "
        "the brokers keep receipts ('offsets.retention.minutes', 7 days unless set). In the second case "
        "messages of this batch that an earlier run has written are written again."
    )


def old_receipts(call: Call, age_s: float, retention_s: float | None) -> tuple[str, ...]:
    """The warning about a batch that was begun so long ago that some of its receipts may be gone.

    Args:
        call: The call that is to be written again.
        age_s: How long ago it was begun, in seconds.
        retention_s: How long brokers keep receipts, in seconds; None = that is not known.
    """
    kept = _RETENTION_S if retention_s is None else retention_s
    if age_s <= kept * _SURE:
        return ()
    text = (
        f"Batch {call.batch} of query {call.query} was begun {timedelta(seconds=round(age_s))} ago and runs again, and "
        f"brokers keep its receipts for {timedelta(seconds=round(kept))} ('offsets.retention.minutes'): some tasks' "
        f"receipts may be gone already. What these tasks have written to topic '{call.topics_text}' is written again."
    )
    return (text,)


def another_query(call: Call, other: str) -> str:
    """The warning about a new query whose prefix another one has used for the same topic."""
    return (
        f"Query {call.query} is new, and query {other} has written to topic '{call.topics_text}' before, with the same "
        f"'sink.transactional-id-prefix' = '{call.prefix}'. If this is the same query with a new checkpoint, all that "
        "it has written is written again: receipts belong to a checkpoint. If "
        "these are two queries, nothing is wrong."
    )


def _call(call: Call) -> str:
    return (
        f"Call {call.number} of upsert_sink with 'sink.transactional-id-prefix' = '{call.prefix}'"
    )
