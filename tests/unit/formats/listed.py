"""Encoders whose messages are lists, which are easier to compare than columns."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from pyspark_upsert_kafka.formats.codec import Encoder


@dataclass(frozen=True)
class Listed:
    """An encoder that lists its messages, having seen that they are a column as `Encoder` promises."""

    encoder: Encoder

    def encode(self, rows: pa.RecordBatch) -> list[bytes]:
        """One message for each row."""
        column = self.encoder.encode(rows)
        assert column.type == pa.large_binary()
        assert (len(column), column.null_count) == (rows.num_rows, 0)
        messages: list[bytes] = column.to_pylist()
        return messages
