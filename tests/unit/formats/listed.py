"""What codecs give, as tests compare it: messages as a list, the rows of good messages alone."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from pyspark_upsert_kafka.formats.codec import Decoded, Encoder


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


def good_rows(decoded: Decoded) -> pa.RecordBatch:
    """The rows of the messages that were read, having seen that those of the others are NULL."""
    if decoded.read.all():
        return decoded.rows
    others = decoded.rows.filter(pa.array(~decoded.read))
    assert all(column.null_count == len(column) for column in others.columns)
    return decoded.rows.filter(pa.array(decoded.read))
