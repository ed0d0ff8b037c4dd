"""What is done with messages that cannot be decoded (``error-handling.mode``)."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

from pyspark_upsert_kafka.core.errors import DecodeError
from pyspark_upsert_kafka.core.options import ReadOptions
from pyspark_upsert_kafka.kafka.reading.raw_batch import RawBatch
from pyspark_upsert_kafka.source.bad_messages.bad_message import BadMessage
from pyspark_upsert_kafka.source.bad_messages.dead_letters import DeadLetters

logger = logging.getLogger("pyspark_upsert_kafka")

ErrorHandler = Callable[[RawBatch, Sequence[BadMessage]], None]
"""Called with each batch that has bad messages."""


def error_handler(options: ReadOptions) -> ErrorHandler:
    """The handler for the error mode of the options."""
    if options.sends_dead_letters:
        return DeadLetters(options).send
    return {"fail": _fail, "ignore": _warn, "column": _keep}[options.error_mode]


def _fail(batch: RawBatch, bad: Sequence[BadMessage]) -> None:
    first = bad[0]
    raise DecodeError(
        batch.topic, batch.partition, batch.offsets[first.index], first.stage, first.reason
    )


def _warn(batch: RawBatch, bad: Sequence[BadMessage]) -> None:
    first = bad[0]
    logger.warning(
        "Skipped %d messages that cannot be decoded in topic %r, partition %d, offsets %d to %d; "
        "the first at offset %d (%s): %s",
        len(bad), batch.topic, batch.partition, batch.offsets[0], batch.offsets[-1],
        batch.offsets[first.index], first.stage, first.reason,
    )  # fmt: skip


def _keep(batch: RawBatch, bad: Sequence[BadMessage]) -> None:
    """Nothing to do: the error column shows them."""
