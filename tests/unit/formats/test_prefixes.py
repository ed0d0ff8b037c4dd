"""Messages of very many schemas."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Sequence

import pyarrow as pa

from pyspark_upsert_kafka.core.bytes_column import BytesColumn
from pyspark_upsert_kafka.formats.codec import Decoded
from pyspark_upsert_kafka.formats.prefixes import DecoderByPrefix

TARGET = pa.schema([("schema", pa.int64()), ("value", pa.int64())])


class Reads:
    """Reads a number behind a prefix, as a decoder of that schema would."""

    def __init__(self, schema: int) -> None:
        self.schema = schema

    def decode(self, messages: Sequence[bytes]) -> Decoded:
        found = [(self.schema, int(message[4:])) for message in messages]
        columns = [pa.array(column, pa.int64()) for column in zip(*found, strict=True)]
        return Decoded(pa.record_batch(columns, schema=TARGET), {})


def test_ten_thousand_schemas() -> None:
    """Each message is read by its own, in its place, and decoders are kept of a bounded number."""
    kept: weakref.WeakSet[Reads] = weakref.WeakSet()

    def compiled(prefix: bytes) -> Reads:
        reads = Reads(int.from_bytes(prefix, "big"))
        kept.add(reads)
        return reads

    decoder = DecoderByPrefix(lambda message: message[:4], compiled, TARGET)
    numbers = [(n * 7919) % 10_000 for n in range(20_000)]
    batches = [
        decoder.decode(
            BytesColumn.of(n.to_bytes(4, "big") + b"%d" % n for n in numbers[at:][:2_500])
        )
        for at in range(0, len(numbers), 2_500)
    ]

    rows = [tuple(row.values()) for batch in batches for row in batch.rows.to_pylist()]
    assert rows == [(n, n) for n in numbers]
    gc.collect()
    assert len(kept) <= 1_000
