"""Errors and warnings about receipts: why a call of an exactly-once sink is rejected, and what may be written again."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark_upsert_kafka.core.delivery.receipts import Call

_NOTHING_WRITTEN = (
    "Nothing of this batch was written now. Go on from the newest checkpoint; to write the batches once more on "
    "purpose, give another 'sink.transactional-id-prefix'."
)

_RETENTION_S = 7 * 24 * 3600.0
"""How long brokers keep the offsets of a group, unless ``offsets.retention.minutes`` is set."""

_SURE = 0.9
"""The share of that time in which all receipts of a batch are certainly there: brokers look every ten minutes for what
has expired, each at another moment, and clocks differ."""


def no_receipt_of_ours(call: Call, topic: str) -> str:
    """The group of a receipt has an offset that is no receipt."""
    return (
        f"A consumer group that 'sink.transactional-id-prefix' = '{call.prefix}' names has committed an "
        f"offset on topic {topic!r} that is no receipt of this sink: another program uses the group. "
        "Give the sink another prefix."
    )


def other_topics(call: Call, topics: str) -> str:
    """Earlier calls wrote to other topics."""
    return (
        f"{_call(call)} wrote to topic '{topics}' before, and is to write to '{call.topics_text}' now, so its "
        "receipts say nothing about what is written there. Nothing of this call was written. Finish the batch as it "
        "was begun, with the same sinks in the same order; then give each sink a prefix of its own, and a new one to a "
        "sink whose topics change. (A new prefix for a batch that is half written writes all of it again.)"
    )


def newer_batch(call: Call, topics: str, batch: int) -> str:
    """A newer batch was begun already."""
    return (
        f"Batch {batch} of query {call.query} was written to topic '{topics}' already, and batch "
        f"{call.batch} is to be written now: the checkpoint was reset to an earlier state, or a newer run of the query "
        f"continues elsewhere. {_NOTHING_WRITTEN}"
    )


def another_batch(call: Call) -> str:
    """A batch of this number was begun with other rows, or with other keys."""
    return (
        f"Batch {call.batch} of query {call.query} was begun before as another one: the checkpoint was reset to an "
        "earlier state, so that Spark planned the batch again, or 'primary-key' or the type of its columns was changed before "
        f"the batch was done, or sinks of prefix '{call.prefix}' changed places. {_NOTHING_WRITTEN}"
    )


def another_sink(call: Call) -> str:
    """The batch was begun by a sink with other options or columns."""
    return (
        f"{_call(call)} was begun in batch {call.batch} by a sink with other options or other columns, which "
        "may have written some of its rows: two sinks of this prefix changed places, one was left out, or the "
        "sink was changed before the batch was done. Nothing of this call was written now. Finish the batch as it was "
        "begun, with the same sinks in the same order; then give each sink a prefix of its own. (A new prefix "
        "for a batch that is half written writes all of it again.)"
    )


def other_tasks(call: Call, tasks: int) -> str:
    """The batch was begun with another number of tasks."""
    return (
        f"Batch {call.batch} of query {call.query} was begun with 'sink.parallelism' = '{tasks}' and is to "
        f"be written again with '{call.tasks}', which would write again what some tasks have written "
        f"already. Set 'sink.parallelism' to '{tasks}' until this batch is done; a later batch may have "
        "another number. Nothing of this batch was written now."
    )


def like_another_call(call: Call) -> str:
    """Nothing in a receipt distinguishes the call from one before it in the same batch."""
    return (
        f"{_call(call)} in batch {call.batch} has the options and columns of a call before it, but other rows, "
        "or it writes to other brokers: if the batch runs again with the calls in another order, nothing tells one "
        "from the other. Nothing of this call was written. Leave the call before as it is, and give this one "
        "a prefix of its own. If these calls came in another order when the batch was begun, look at the topic: rows of this "
        "batch may be missing or there twice."
    )


def no_receipt(call: Call) -> str:
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
