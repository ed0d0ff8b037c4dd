"""A batch is decoded in parts, and what was decoded in vain is not held meanwhile."""

from __future__ import annotations

import weakref
from typing import Any

from pyspark_upsert_kafka.connector.reading.decoded_messages import in_parts
from pyspark_upsert_kafka.core.bytes_column import BytesColumn
from pyspark_upsert_kafka.formats.codec import TooManyMessagesError
from pyspark_upsert_kafka.kafka.raw_batch import RawBatch


class Large:
    """What takes memory."""


def test_what_was_decoded_in_vain_is_released():
    """The error of a batch that is too large would keep the frames in which its rows are."""
    held: list[Any] = []

    def decode(part: RawBatch) -> list[int]:
        decoded = Large()
        held.append(weakref.ref(decoded))
        if len(part) > 1:
            raise TooManyMessagesError(len(part) // 2)
        assert not any(each() for each in held[:-1])
        return list(part.offsets)

    batch = RawBatch("t", 0, BytesColumn.of([None] * 8), BytesColumn.of([b"v"] * 8), [*range(8)])
    assert [rows for _, rows in in_parts(batch, decode)] == [[at] for at in range(8)]
