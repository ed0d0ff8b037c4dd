"""Writes the rows of a task: record batches -> messages that the broker has confirmed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from itertools import chain

import pyarrow as pa

from pyspark_upsert_kafka.connector.spark_task import (
    KEPT_CODECS,
    TaskIdentity,
    current_run,
    freeze_modules,
    session_time_zone,
)
from pyspark_upsert_kafka.connector.writing.delivery import delivering
from pyspark_upsert_kafka.connector.writing.row_encoding import (
    RowEncoder,
    preimages_in,
    sets_metadata,
)
from pyspark_upsert_kafka.connector.writing.sink_warnings import warn_of_speculation
from pyspark_upsert_kafka.connector.writing.written_counts import SentMessages, WrittenByTask
from pyspark_upsert_kafka.core.arrow import MAX_HELD_BYTES
from pyspark_upsert_kafka.core.options.values import WriteOptions
from pyspark_upsert_kafka.core.table import Table


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
    preimages = preimages_in(options.order or "in-task")
    sent = SentMessages()
    with delivering(task, options, sent, with_metadata=sets_metadata(table)) as delivery:
        for part in chain.from_iterable(map(_parts, batches)):
            delivery.send(preimages.settle(encoder.encode(part)))
        rest = preimages.rest()
        if rest is not None:
            delivery.send(rest)
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
