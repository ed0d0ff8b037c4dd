"""How the rows of one task are written: as messages that reach the brokers, and what becomes of them when the task fails.

What a guarantee means for acks and idempotence is in ``core/delivery_guarantee.py``. For ``exactly-once``, a task's messages
and its receipt are in one transaction, so a task that runs again writes nothing to readers with ``isolation.level`` =
``read_committed``. What a receipt says is in ``core/receipts.py``.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import lru_cache, partial
from itertools import chain
from typing import Protocol

import pyarrow as pa

from pyspark_upsert_kafka.connector.reported_writes import WrittenByTask
from pyspark_upsert_kafka.connector.spark_task import (
    KEPT_CODECS,
    TaskIdentity,
    current_run,
    freeze_modules,
    session_time_zone,
)
from pyspark_upsert_kafka.connector.writing.keyed_buffer import KeyedBuffer
from pyspark_upsert_kafka.connector.writing.row_encoding import RowEncoder
from pyspark_upsert_kafka.connector.writing.sink_warnings import warn_of_speculation
from pyspark_upsert_kafka.core.arrow import MAX_HELD_BYTES
from pyspark_upsert_kafka.core.bytes_column import BytesColumn
from pyspark_upsert_kafka.core.closing import closing, undone_on_failure
from pyspark_upsert_kafka.core.errors import warn_once
from pyspark_upsert_kafka.core.options.frozen_options import WriteOptions
from pyspark_upsert_kafka.core.positions.progress import Written
from pyspark_upsert_kafka.core.receipts import (
    Call,
    another_query,
    check_unwritten,
    is_written,
    old_receipts,
    preparation,
)
from pyspark_upsert_kafka.core.table import Table
from pyspark_upsert_kafka.kafka.clients import Sender, TransactionalSender, load_sending_client
from pyspark_upsert_kafka.kafka.outgoing_messages import Messages


def write_rows(
    batches: Iterator[pa.RecordBatch], table: Table, options: WriteOptions, task: TaskIdentity
) -> WrittenByTask:
    """Writes the rows of one task and returns, when the broker has confirmed them all, how much that was.

    Raises:
        EncodeError: A row cannot be written.
        DeliveryError: The broker did not take a message.
        BrokerError: No broker answers, or a topic does not exist.
    """
    freeze_modules()
    warn_of_speculation(task, options)
    # The call is another one in each micro-batch.
    encoder = _row_encoder(table, replace(options, call=None), session_time_zone())
    parts = chain.from_iterable(map(_parts, batches))
    sent = SentMessages()
    with delivering(task, options, sent, with_metadata=encoder.sets_metadata) as delivery:
        for messages in encoder.messages(parts, options.order or "in-task"):
            delivery.send(messages)
    return WrittenByTask(current_run(), task.batch, sent.total)


@lru_cache(maxsize=KEPT_CODECS)
def _row_encoder(table: Table, options: WriteOptions, time_zone: str) -> RowEncoder:
    """Kept for the next task of the worker, which in a stream is one of the same table."""
    return RowEncoder(table, options, time_zone)


def _parts(rows: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """The rows in parts that are not too large to be encoded together.

    Their messages, and the texts on the way, take several times as many bytes.
    """
    if rows.nbytes <= MAX_HELD_BYTES or rows.num_rows < 2:
        # A copy: Arrow converts the whole of what a slice is a part of, or refuses it beyond 2 GiB.
        is_slice = rows.get_total_buffer_size() > MAX_HELD_BYTES
        yield rows.take(pa.array(range(rows.num_rows))) if is_slice else rows
        return
    half = rows.num_rows // 2
    yield from _parts(rows.slice(0, half))
    yield from _parts(rows.slice(half))


class SentMessages:
    """Counts the messages that a task has sent; when their sender was flushed, brokers have confirmed them."""

    def __init__(self) -> None:
        self.total = Written()

    def add(self, messages: Messages) -> None:
        """Counts messages."""
        tombstones = messages.values.null_count
        size = BytesColumn(messages.keys).size + BytesColumn(messages.values).size
        self.total = Written.sum(
            [self.total, Written(len(messages) - tombstones, tombstones, size)]
        )


logger = logging.getLogger("pyspark_upsert_kafka")


class Delivery(Protocol):
    """Delivers the messages of one task, which ends with either `commit` or `abort`."""

    def send(self, messages: Messages) -> None:
        """Takes messages; the first ones begin the delivery.

        Raises:
            DeliveryError: This or an earlier message was refused.
            BrokerError: No broker answers, or a topic does not exist.
        """

    def commit(self) -> None:
        """Returns when the guarantee holds for every message.

        Raises:
            DeliveryError: The first message that was refused.
        """

    def abort(self) -> None:
        """Gives up, as far as the guarantee asks for it."""


class _PlainDelivery:
    """Sends messages as they come (``none``, ``at-least-once``).

    Nothing is taken back: a task that failed sends its messages again when Spark runs it again, which leaves
    the table as it was.

    Args:
        open_sender: Opens the sender, once there is a message: a shuffle makes many tasks without rows.
    """

    def __init__(self, open_sender: Callable[[], Sender]) -> None:
        self._open_sender = open_sender
        self._sender: Sender | None = None

    def send(self, messages: Messages) -> None:
        """Hands messages to the sender."""
        if self._sender is None:
            self._sender = self._open_sender()
        self._sender.send(messages)

    def commit(self) -> None:
        """Returns when the broker has confirmed every message."""
        if self._sender is not None:
            self._sender.flush()
        self._close()

    def abort(self) -> None:
        """Closes the sender."""
        self._close()

    def _close(self) -> None:
        """Closes the sender, if one is open, and no more than once."""
        sender, self._sender = self._sender, None
        if sender is not None:
            sender.close()


@contextmanager
def delivering(
    task: TaskIdentity, options: WriteOptions, sent: SentMessages, *, with_metadata: bool
) -> Iterator[Delivery]:
    """The delivery of a task's messages: committed at the end, aborted when anything fails.

    What goes wrong while aborting is logged: it must not take the place of the task's own error.

    Args:
        task: The task.
        options: How it writes.
        sent: Counts its messages.
        with_metadata: Whether its messages may have timestamps or headers.
    """
    delivery: Delivery
    if options.call is None:
        delivery = _PlainDelivery(lambda: open_sender(options, sent, with_metadata=with_metadata))
    else:
        opened = transactions(options, with_metadata=with_metadata)
        buffer = partial(buffered, options=options, sent=sent)
        delivery = ExactlyOnceDelivery(options.call, task.task, opened, buffer)
    with undone_on_failure(delivery.abort, task):
        yield delivery
        delivery.commit()


def transactions(options: WriteOptions, *, with_metadata: bool = True) -> _OpenTransaction:
    """What opens a sender with a transactional id, as the options want it."""
    table = options.table
    client = load_sending_client(table.client, "'sink.delivery-guarantee' = 'exactly-once'")
    return partial(
        client.transactional_sender,
        table.properties,
        table.topics.names,
        with_metadata=with_metadata,
    )


def open_sender(options: WriteOptions, sent: SentMessages, *, with_metadata: bool) -> Sender:
    """A sender as the options want it, wrapped in the keyed buffer if there is one."""
    table = options.table
    sender = load_sending_client(table.client, "writing a table").sender(
        table.properties, table.topics.names, options.guarantee, with_metadata=with_metadata
    )
    return buffered(sender, options, sent)


def buffered(sender: Sender, options: WriteOptions, sent: SentMessages) -> Sender:
    """The sender, counting what it sends, and wrapped in the keyed buffer if there is one."""
    counting = CountingSender(sender, sent)
    return counting if options.buffer is None else KeyedBuffer(counting, options.buffer)


_LOOKED_AT = 10
"""Of so many queries before with the same prefix it is looked up where they wrote, each in a request of its own."""

_OpenTransaction = Callable[[str], TransactionalSender]
"""Opens a sender with a transactional id."""


def prepare(call: Call, open_: _OpenTransaction, *, may_begin: bool = True) -> Call:
    """Prepares a call on the driver, before any of its tasks starts, and returns it as the tasks are to know it.

    The driver commits its receipt first, so that a batch that runs again with another number of tasks is refused.

    Args:
        call: The call that is to be written.
        open_: Opens a sender with a transactional id.
        may_begin: Whether the call can be told from those before it in its batch.

    Raises:
        CheckpointError: A newer batch was begun already.
        OptionError: The batch was begun with another number of tasks or by another sink, calls before wrote to
            other topics, or the call cannot be told from another one.
        BrokerError: No broker answers, a topic does not exist, or access is denied.
    """
    with closing(open_(call.driver_id)) as driver:
        found = driver.committed(call.receipt.topic) or driver.committed_anywhere()
        todo = preparation(call, found, may_begin=may_begin)
        warn_once(*todo.warnings)
        if todo.begun is not None:
            warn_once(*old_receipts(call, time.time() - todo.begun, driver.retention_s()))
        if found is None and call.batch == 0:
            warn_once(*_queries_before(call, driver))
        if todo.may_finish or todo.unwritten:
            later = replace(call, number=call.number + 1)
            of_later = driver.committed(call.receipt.topic, later.driver_id)
            if todo.may_finish and of_later is None:
                return replace(call, finishes=True)
            if todo.unwritten:
                check_unwritten(call, of_later)
                _fence_unwritten(call, open_, todo.unwritten)
        for task in todo.fenced:
            open_(call.transactional_id(task)).close()
        if todo.commits_receipt:
            driver.begin()
            driver.commit(call.driver_receipt(time.time()))
    return call


def _fence_unwritten(call: Call, open_: _OpenTransaction, tasks: range) -> None:
    """Fences off the tasks of a sink with other options or columns, which has begun the batch and has written nothing of it.

    So it is when the rows could not be read, as where a new start of the query has more columns.

    Raises:
        OptionError: Something of the batch was written.
    """
    for task in tasks:
        with closing(open_(call.transactional_id(task))) as late:
            check_unwritten(call, late.committed(call.receipt.topic))


def _queries_before(call: Call, driver: TransactionalSender) -> list[str]:
    """The warning about a query that has written to the same topic with the same prefix, if there is one."""
    found = {group: call.other_query(group) for group in driver.groups(f"{call.prefix}-")}
    drivers = [(group, other) for group, other in found.items() if other is not None]
    for group, other in drivers[:_LOOKED_AT]:
        if driver.committed(call.receipt.topic, group) is not None:
            return [another_query(call, other)]
    return []


class ExactlyOnceDelivery:
    """Writes the messages of a task in one transaction, unless its receipt says that they are written.

    The receipt is read after the sender is open: from then on no late attempt can write any more. When a
    commit fails, it may be unknown whether it took place: the task fails, and the next attempt's look at the
    receipt decides. A task without messages writes nothing, and needs no receipt.

    Args:
        call: The call that the task belongs to.
        task: Number of the task.
        open_: Opens a sender with a transactional id.
        buffered: What the sender is wrapped in.
    """

    def __init__(
        self,
        call: Call,
        task: int,
        open_: _OpenTransaction,
        buffered: Callable[[Sender], Sender] = lambda sender: sender,
    ) -> None:
        self._call, self._task = call, task
        self._open, self._buffered = open_, buffered
        self._transaction: TransactionalSender | None = None
        self._sender: Sender | None = None
        self._has_begun = False

    def send(self, messages: Messages) -> None:
        """Hands messages to the sender; drops them when they are written already.

        Raises:
            CheckpointError: The task has written a newer batch already.
        """
        if not self._has_begun and len(messages):
            self._begin()
            self._has_begun = True
        if self._sender is not None:
            self._sender.send(messages)

    def commit(self) -> None:
        """Commits messages and receipt, once the broker has confirmed every message."""
        if self._sender is not None and self._transaction is not None:
            self._sender.flush()
            self._transaction.commit(self._call.receipt)
        self._close()

    def abort(self) -> None:
        """Aborts the transaction, so that it holds no reader up."""
        self._close()

    def _begin(self) -> None:
        transaction = self._open(self._call.transactional_id(self._task))
        self._sender = self._transaction = transaction
        if is_written(self._call, transaction.committed(self._call.receipt.topic)):
            self._close()
        else:
            transaction.begin()
            self._sender = self._buffered(transaction)

    def _close(self) -> None:
        """Closes the sender, if one is open, and no more than once."""
        sender, self._sender, self._transaction = self._sender, None, None
        if sender is not None:
            sender.close()


class CountingSender:
    """A sender that counts what it sends.

    Args:
        sender: Sends.
        sent: Counts.
    """

    def __init__(self, sender: Sender, sent: SentMessages) -> None:
        self._sender, self._sent = sender, sent

    def send(self, messages: Messages) -> None:
        """Hands messages to the sender."""
        self._sender.send(messages)
        self._sent.add(messages)

    def flush(self) -> None:
        """Returns when the broker has confirmed every message sent so far."""
        self._sender.flush()

    def cancel(self) -> None:
        """Ends, from another thread, what waits in `send` or `flush`."""
        self._sender.cancel()

    def close(self) -> None:
        """Closes the sender."""
        self._sender.close()
