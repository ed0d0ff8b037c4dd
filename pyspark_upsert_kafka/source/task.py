"""Reads the ranges of a task: messages -> record batches in exactly Spark's schema."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa

from pyspark_upsert_kafka.core.arrow import arrow_schema
from pyspark_upsert_kafka.core.metadata import METADATA, Detail
from pyspark_upsert_kafka.core.offsets import Range
from pyspark_upsert_kafka.core.options import ReadOptions
from pyspark_upsert_kafka.core.table import Table
from pyspark_upsert_kafka.formats.codec import TooManyMessagesError
from pyspark_upsert_kafka.kafka.clients import load_client
from pyspark_upsert_kafka.kafka.interfaces import RawBatch
from pyspark_upsert_kafka.source.dead_letters import DETAILS
from pyspark_upsert_kafka.source.error_handling import ErrorHandler, error_handler
from pyspark_upsert_kafka.source.rows import RowDecoder, Rows
from pyspark_upsert_kafka.source.snapshot import Snapshot
from pyspark_upsert_kafka.time_zone import session_time_zone


def read_ranges(
    ranges: Sequence[Range], table: Table, options: ReadOptions
) -> Iterator[pa.RecordBatch]:
    """The rows of ranges, one range after another, as record batches in the table's schema.

    Raises:
        DecodeError: A message cannot be decoded, and ``error-handling.mode`` is ``fail``.
        DataLossError: Offsets of a range are gone, and ``failOnDataLoss`` is true.
        BrokerError: The broker stays away, or refuses.
    """
    schema = arrow_schema(table.schema)
    decoder = RowDecoder(table, options, session_time_zone())
    handle_errors = error_handler(options)
    reader = load_client(options.table.client).reader(
        options.table.properties,
        committed=options.read_committed,
        fail_on_data_loss=options.fail_on_data_loss,
        details=_details(table, options),
    )
    for range_ in ranges:
        rows = _decoded(reader.read(range_), decoder, handle_errors)
        if options.mode == "snapshot":
            rows = _table(rows, schema, table.key_names)
        for each in rows:
            if len(each):
                yield pa.RecordBatch.from_arrays(each.columns, schema=schema)


def _decoded(
    batches: Iterable[RawBatch], decoder: RowDecoder, handle_errors: ErrorHandler
) -> Iterator[Rows]:
    for whole in batches:
        for batch, rows in decode_in_parts(decoder, whole):
            if rows.bad:
                handle_errors(batch, rows.bad)
            yield rows


def _table(changes: Iterable[Rows], schema: pa.Schema, key: Sequence[str]) -> Iterator[Rows]:
    """The last change of each key, if it is not a delete."""
    snapshot = Snapshot(key)
    for rows in changes:
        snapshot.add(_nullable(rows, schema), rows.deletes)
    for kept in snapshot.rows():
        yield Rows(kept.columns, None, [])


def decode_in_parts(decoder: RowDecoder, batch: RawBatch) -> Iterator[tuple[RawBatch, Rows]]:
    """The rows of a batch, in as many parts as are needed for no part to become too large."""
    try:
        rows = decoder.decode(batch)
    except TooManyMessagesError as error:
        for at in range(0, len(batch), error.most):
            yield from decode_in_parts(decoder, batch.part(at, at + error.most))
    else:
        yield batch, rows


def _nullable(rows: Rows, schema: pa.Schema) -> pa.RecordBatch:
    """The rows with nullable columns: deletes among them have NULL in NOT NULL columns."""
    fields = [field.with_nullable(True) for field in schema]
    return pa.RecordBatch.from_arrays(rows.columns, schema=pa.schema(fields))


def _details(table: Table, options: ReadOptions) -> frozenset[Detail]:
    """What is needed of a message beside its key, value and offset."""
    shown = (METADATA[column.key].detail for column in table.metadata)
    wanted = frozenset(detail for detail in shown if detail is not None)
    return wanted | DETAILS if options.sends_dead_letters else wanted
