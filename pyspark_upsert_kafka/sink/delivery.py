"""How the messages of one task reach the brokers, and what becomes of them when the task fails.

What a guarantee means for acks and idempotence is in ``core/delivery/guarantee.py``. The delivery of ``exactly-once``
is in ``sink/exactly_once.py``.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Protocol

from pyspark_upsert_kafka.core.closing import undone_on_failure
from pyspark_upsert_kafka.core.options import WriteOptions
from pyspark_upsert_kafka.kafka.clients import load_sending_client
from pyspark_upsert_kafka.kafka.interfaces import Sender
from pyspark_upsert_kafka.kafka.sending.messages import Messages
from pyspark_upsert_kafka.sink.buffer import KeyedBuffer
from pyspark_upsert_kafka.sink.exactly_once import ExactlyOnceDelivery, OpenTransaction
from pyspark_upsert_kafka.sink.written import CountingSender, SentMessages
from pyspark_upsert_kafka.spark_task import TaskIdentity

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


class PlainDelivery:
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
    delivery = _delivery(task, options, sent, with_metadata=with_metadata)
    with undone_on_failure(delivery.abort, task):
        yield delivery
        delivery.commit()


def _delivery(
    task: TaskIdentity, options: WriteOptions, sent: SentMessages, *, with_metadata: bool
) -> Delivery:
    if options.call is None:
        return PlainDelivery(lambda: open_sender(options, sent, with_metadata=with_metadata))
    buffer = partial(buffered, options=options, sent=sent)
    opened = transactions(options, with_metadata=with_metadata)
    return ExactlyOnceDelivery(options.call, task.task, opened, buffer)


def transactions(options: WriteOptions, *, with_metadata: bool = True) -> OpenTransaction:
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
