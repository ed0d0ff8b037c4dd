"""The timestamp of a single message, for what is said about its partition."""

from __future__ import annotations

import logging

from pyspark_upsert_kafka.core.closing import closing
from pyspark_upsert_kafka.core.errors import UpsertKafkaError
from pyspark_upsert_kafka.core.metadata import Detail
from pyspark_upsert_kafka.core.options.values import ReadOptions
from pyspark_upsert_kafka.core.positions.offsets import Range
from pyspark_upsert_kafka.kafka.clients import ReadSettings, load_client

logger = logging.getLogger("pyspark_upsert_kafka")


def first_time_ms(range_: Range, options: ReadOptions) -> int | None:
    """The timestamp of the first message of a range, in ms since the epoch; None = there is none, or it is not known.

    It costs a request, and what is said without it is true as well: an error is logged, and not raised.
    """
    settings = ReadSettings(options.table.properties, False, False, frozenset({Detail.TIMESTAMP}))
    try:
        with closing(load_client(options.table.client).reader(settings).read(range_)) as batches:  # type: ignore[type-var]
            for batch in batches:
                if len(batch):
                    return batch.timestamps[0] if batch.timestamp_types[0] else None
    except UpsertKafkaError as error:
        logger.info(
            "The time of the message at topic %r, partition %d, offset %d is not known: %s",
            range_.topic, range_.partition, range_.begin, error,
        )  # fmt: skip
    return None
