"""Exactly once: a task's messages and its receipt are in one transaction, so a task that runs again writes nothing.

For readers with ``isolation.level`` = ``read_committed``. What a receipt says is in ``core/delivery/receipts.py``.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from pyspark_upsert_kafka.core.closing import closing
from pyspark_upsert_kafka.core.delivery.receipt_messages import another_query, old_receipts
from pyspark_upsert_kafka.core.delivery.receipts import Call, is_written, preparation
from pyspark_upsert_kafka.core.warning import warn_once
from pyspark_upsert_kafka.kafka.interfaces import Sender, TransactionalSender
from pyspark_upsert_kafka.kafka.sending.messages import Messages

_LOOKED_AT = 10
"""Of so many queries before with the same prefix it is looked up where they wrote, each in a request of its own."""

OpenTransaction = Callable[[str], TransactionalSender]
"""Opens a sender with a transactional id."""


def prepare(call: Call, open_: OpenTransaction, *, may_begin: bool = True) -> None:
    """Prepares a call on the driver, before any of its tasks starts.

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
        for task in todo.fenced:
            open_(call.transactional_id(task)).close()
        if todo.commits_receipt:
            driver.begin()
            driver.commit(call.driver_receipt(time.time()))


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
        open_: OpenTransaction,
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
