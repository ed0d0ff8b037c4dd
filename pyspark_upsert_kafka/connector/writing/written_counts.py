"""What a task has written: counted where messages are sent, and summed up where a batch is committed."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql.datasource import WriterCommitMessage

from pyspark_upsert_kafka.connector.reported_writes import report
from pyspark_upsert_kafka.core.bytes_column import BytesColumn
from pyspark_upsert_kafka.core.positions.progress import Written

if TYPE_CHECKING:
    from pyspark_upsert_kafka.kafka.clients import Sender
    from pyspark_upsert_kafka.kafka.messages import Messages

logger = logging.getLogger("pyspark_upsert_kafka")


@dataclass(frozen=True)
class WrittenByTask(WriterCommitMessage):
    """What a task has written, which Spark hands to `commit` on the driver.

    Args:
        run: Id of the run of the streaming query; None = it is none, or Spark Connect does not tell.
        batch: Number of the micro-batch.
        written: What the brokers have confirmed.
    """

    run: str | None
    batch: int | None
    written: Written


def report_batch(messages: Sequence[WriterCommitMessage | None]) -> None:
    """Logs what all tasks have written, and tells a `ProgressListener`; nothing, if they do not know their batch."""
    tasks = [each for each in messages if isinstance(each, WrittenByTask)]
    batches = {(task.run, task.batch) for task in tasks}
    if len(batches) != 1:
        return
    ((run, batch),) = batches
    if run is None or batch is None:
        return
    written = Written.sum(task.written for task in tasks)
    logger.info("Batch %d of run %s has written %s.", batch, run, written)
    report(run, batch, written)


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
