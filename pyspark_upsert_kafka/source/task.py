"""What a task does: a range of a partition -> record batches in exactly Spark's schema."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from itertools import chain

import pyarrow as pa

from pyspark_upsert_kafka.core.arrow import arrow_schema
from pyspark_upsert_kafka.core.errors import DecodeError
from pyspark_upsert_kafka.core.offsets import Range
from pyspark_upsert_kafka.core.options import ReadOptions
from pyspark_upsert_kafka.core.table import Table
from pyspark_upsert_kafka.formats.codec import TooManyMessagesError
from pyspark_upsert_kafka.kafka.clients import load_client
from pyspark_upsert_kafka.kafka.interfaces import RawBatch
from pyspark_upsert_kafka.source.dead_letters import DeadLetters
from pyspark_upsert_kafka.source.metadata import DETAILS, BadMessage
from pyspark_upsert_kafka.source.rows import RowDecoder, Rows
from pyspark_upsert_kafka.source.snapshot import Snapshot
from pyspark_upsert_kafka.time_zone import session_time_zone

logger = logging.getLogger("pyspark_upsert_kafka")


def read_range(range_: Range, table: Table, options: ReadOptions) -> Iterator[pa.RecordBatch]:
    """The rows of a range, as record batches in the table's schema.

    Raises:
        DecodeError: A message cannot be decoded, and ``error-handling.mode`` is ``fail``.
        DataLossError: Offsets of the range are gone, and ``failOnDataLoss`` is true.
        BrokerError: The broker stays away, or refuses.
    """
    schema = arrow_schema(table.schema)
    decode = RowDecoder(table, options, session_time_zone())
    handle_bad = _handler(options)
    snapshot = Snapshot(table.key_names) if options.mode == "snapshot" else None
    read = load_client(options.table.client).reader(
        options.table.properties,
        committed=options.read_committed,
        fail_on_data_loss=options.fail_on_data_loss,
        details=_wants_details(table, options),
    )
    for batch, rows in chain.from_iterable(_decoded(decode, batch) for batch in read(range_)):
        if rows.bad:
            handle_bad(batch, rows.bad)
        if snapshot is not None:
            snapshot.add(_nullable(rows, schema), rows.deletes)
        elif len(rows):
            yield pa.RecordBatch.from_arrays(rows.columns, schema=schema)
    if snapshot is not None:
        for kept in snapshot.rows():
            yield pa.RecordBatch.from_arrays(kept.columns, schema=schema)


def _decoded(decode: RowDecoder, batch: RawBatch) -> Iterator[tuple[RawBatch, Rows]]:
    """The rows of a batch; where they would be too large together, those of its parts one by one."""
    try:
        rows = decode(batch)
    except TooManyMessagesError as error:
        for at in range(0, len(batch), error.most):
            yield from _decoded(decode, batch.part(at, at + error.most))
    else:
        yield batch, rows


def _nullable(rows: Rows, schema: pa.Schema) -> pa.RecordBatch:
    """The rows while deletes are among them, which have NULL in NOT NULL columns."""
    fields = [field.with_nullable(True) for field in schema]
    return pa.RecordBatch.from_arrays(rows.columns, schema=pa.schema(fields))


def _wants_details(table: Table, options: ReadOptions) -> bool:
    """Whether anything shows more of a message than its key, value and place, or sends it on."""
    return options.error_mode == "log" or any(column.key in DETAILS for column in table.metadata)


def _fail(batch: RawBatch, bad: list[BadMessage]) -> None:
    first = bad[0]
    raise DecodeError(
        batch.topic, batch.partition, batch.offsets[first.index], first.stage, first.reason
    )


def _ignore(batch: RawBatch, bad: list[BadMessage]) -> None:
    first = bad[0]
    logger.warning(
        "Skipped %d messages that cannot be decoded in topic %r, partition %d, offsets %d to %d; "
        "the first at offset %d (%s): %s",
        len(bad), batch.topic, batch.partition, batch.offsets[0], batch.offsets[-1],
        batch.offsets[first.index], first.stage, first.reason,
    )  # fmt: skip


def _show(batch: RawBatch, bad: list[BadMessage]) -> None:
    """Bad messages are rows of their own (``error-handling.mode`` = ``column``)."""


def _handler(options: ReadOptions) -> Callable[[RawBatch, list[BadMessage]], None]:
    if options.error_mode == "log":
        return DeadLetters(options)
    return {"fail": _fail, "ignore": _ignore, "column": _show}[options.error_mode]
