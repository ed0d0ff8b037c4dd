"""The partition that holds a key, if its writer gives keys the bytes and the partitions that this connector would."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace

import pyarrow as pa

from pyspark_upsert_kafka.cli.show.one_key import OneKey
from pyspark_upsert_kafka.core.delivery.murmur2 import partition_of
from pyspark_upsert_kafka.core.errors import BrokerError, OptionError, SchemaError
from pyspark_upsert_kafka.core.options import FormatChoice, ReadOptions
from pyspark_upsert_kafka.core.positions.offsets import Range, TopicPartition
from pyspark_upsert_kafka.core.table.columns import Table
from pyspark_upsert_kafka.formats.codec import Side
from pyspark_upsert_kafka.kafka.clients import load_client
from pyspark_upsert_kafka.kafka.interfaces import ReadSettings
from pyspark_upsert_kafka.kafka.reading.raw_batch import RawBatch
from pyspark_upsert_kafka.sides import read_key_side
from pyspark_upsert_kafka.source.reading.decoded_side import decode_side
from pyspark_upsert_kafka.source.reading.task import in_parts

logger = logging.getLogger("pyspark_upsert_kafka")


class KeyPlace:
    """Finds the partition that holds a key.

    Args:
        key: The key.
        table: Its table.
        options: How the table is read.
    """

    def __init__(self, key: OneKey, table: Table, options: ReadOptions) -> None:
        self._options = options
        side = read_key_side(table, _not_registering(options))
        if side is None:
            raise OptionError("--key needs 'key.format': nothing says how keys are written.")
        self._side: Side = side
        names = table.key_message.names
        self._values = pa.RecordBatch.from_arrays(key.values.columns, names)

    def partitions(
        self, ranges: Sequence[Range], counts: Mapping[str, int]
    ) -> frozenset[TopicPartition] | None:
        """The partitions that hold the key, one of each topic; None = it may be in any.

        Args:
            ranges: What there is to read.
            counts: How many partitions each topic has.
        """
        if any(_is_zero(column) for column in self._values.columns):
            return None
        try:
            (message,) = self._messages(self._values)
        except (
            BrokerError,
            SchemaError,
        ) as error:  # a registry that does not know the key's schema
            logger.warning(
                "Every partition is read, since the key's bytes are not known: %s", error
            )
            return None
        chosen = {TopicPartition(name, partition_of(message, n)) for name, n in counts.items()}
        for topic, count in counts.items():
            of_topic = [range_ for range_ in ranges if range_.topic == topic]
            of_topic.sort(key=lambda r: TopicPartition(r.topic, r.partition) not in chosen)
            if of_topic and not self._is_ours(self._first_messages(of_topic[0]), count):
                return None
        return frozenset(chosen)

    def _messages(self, keys: pa.RecordBatch) -> list[bytes]:
        found: list[bytes] = self._side.encoder().encode(keys).to_pylist()
        return found

    def _first_messages(self, range_: Range) -> RawBatch | None:
        options = self._options
        reader = load_client(options.table.client).reader(ReadSettings.of(options, frozenset()))
        whole = replace(range_, share=None)
        with closing(reader.read(whole)) as batches:  # type: ignore[type-var]
            return next(batches, None)

    def _is_ours(self, batch: RawBatch | None, partitions: int) -> bool:
        """Whether keys have the bytes that this connector would write, and lie in the partition to which it would send them."""
        if batch is None:
            return True
        for key, ours in self._written_again(batch):
            if key != ours or partition_of(key, partitions) != batch.partition:
                logger.warning(
                    "Every partition is read: topic %r has a key in partition %d that this connector would "
                    "write in another way, or to another partition.", batch.topic, batch.partition,
                )  # fmt: skip
                return False
        return True

    def _written_again(self, batch: RawBatch) -> Iterator[tuple[bytes, bytes]]:
        """Each key that can be decoded: its bytes, and those that this connector would write."""
        decoder = self._side.decoder()
        for part, decoded in in_parts(batch, lambda each: decode_side(each.keys, decoder, "key")):
            with_row = zip(part.keys, decoded.index, strict=True)
            readable = [key for key, row in with_row if key is not None and row >= 0]
            yield from zip(readable, self._messages(decoded.rows), strict=True)


def _is_zero(column: pa.Array) -> bool:
    """Whether it is a floating 0.0, which equals -0.0 and has other bytes."""
    return bool(pa.types.is_floating(column.type) and column[0].as_py() == 0)


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
