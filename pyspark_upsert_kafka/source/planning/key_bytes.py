"""The bytes that this connector would write for keys, to compare them with those that others have written."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pyarrow as pa

from pyspark_upsert_kafka.core.options.values import FormatChoice, ReadOptions
from pyspark_upsert_kafka.core.table import Table
from pyspark_upsert_kafka.formats.codec import Side
from pyspark_upsert_kafka.kafka.reading.raw_batch import RawBatch
from pyspark_upsert_kafka.sides import read_key_side
from pyspark_upsert_kafka.source.reading.decoded_side import decode_side
from pyspark_upsert_kafka.source.reading.task import in_parts


class KeyBytes:
    """Writes keys again that were read; registers no schema for it.

    Args:
        table: Their table; its keys are read.
        options: How the table is read.
    """

    def __init__(self, table: Table, options: ReadOptions) -> None:
        side = read_key_side(table, _not_registering(options))
        if side is None:
            raise ValueError("Nothing says how keys are written that are not read.")
        self._side: Side = side

    def of(self, keys: pa.RecordBatch) -> list[bytes]:
        """The bytes of keys, given as the columns of the message key.

        Raises:
            BrokerError: A registry does not answer, or refuses.
            SchemaError: A registry does not know the key's schema.
            EncodeError: A value cannot be written.
        """
        found: list[bytes] = self._side.encoder().encode(keys).to_pylist()
        return found

    def written_again(self, batch: RawBatch) -> Iterator[tuple[int, bytes, bytes]]:
        """Each key that can be decoded: its offset, its bytes, and those that this connector would write. Raises as `of` does."""
        decoder = self._side.decoder()
        for part, decoded in in_parts(batch, lambda each: decode_side(each.keys, decoder, "key")):
            places = decoded.places
            written = self.of(decoded.rows.take(pa.array(places)))
            for at, ours in zip(places.tolist(), written, strict=True):
                yield part.offsets[at], part.keys[at], ours


def _not_registering(options: ReadOptions) -> ReadOptions:
    """The options with which no schema is registered when a key is encoded."""
    choice = options.table.key_format
    if choice is None:
        return options
    settled = [
        (name, False if name == "auto.register.schemas" else value)
        for name, value in choice.options
    ]
    format_ = FormatChoice(choice.name, tuple(settled))
    return replace(options, table=replace(options.table, key_format=format_))
