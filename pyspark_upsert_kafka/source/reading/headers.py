"""Which messages are read because of their headers (``scan.headers``)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from pyspark_upsert_kafka.core.options.parsers import WantedHeaders
from pyspark_upsert_kafka.kafka.reading.raw_batch import RawBatch


def with_headers(batches: Iterable[RawBatch], wanted: WantedHeaders) -> Iterator[RawBatch]:
    """The messages that have these headers, each with its value: as if there were no others.

    A message whose headers cannot be read may be one of them. It is kept, and its headers make it a bad message.

    Args:
        batches: The messages, with their headers.
        wanted: Names and values; a message that has a header several times needs the value in one of them. Empty = all
            messages are read.
    """
    if not wanted:
        yield from batches
        return
    for batch in batches:
        kept = _with_headers(batch, wanted)
        if len(kept):
            yield kept


def _with_headers(batch: RawBatch, wanted: WantedHeaders) -> RawBatch:
    mask = [True] * len(batch)
    for pair in wanted:
        mask = [fits and pair in headers for fits, headers in zip(mask, batch.headers, strict=True)]
    for at in batch.bad_headers:
        mask[at] = True
    return batch if all(mask) else batch.where(mask)
