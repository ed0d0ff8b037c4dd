"""The partitions that hold some keys, if their writer gives keys the bytes and the partitions that this connector would."""

from __future__ import annotations

import logging
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import Any

import pyarrow as pa
from pyspark.sql.types import (
    BinaryType,
    BooleanType,
    ByteType,
    DateType,
    DecimalType,
    IntegerType,
    LongType,
    ShortType,
    StringType,
    StructField,
)

from pyspark_upsert_kafka.connector.format_catalog import (
    read_key_side,
    read_value_side,
    wanted_schema_ids,
)
from pyspark_upsert_kafka.connector.reading.decoded_messages import (
    DecodedSide,
    decode_side,
    in_parts,
    with_schema_ids,
)
from pyspark_upsert_kafka.connector.reading.wanted_records import wanted_records
from pyspark_upsert_kafka.core.arrow import arrow_schema, canonical_keys
from pyspark_upsert_kafka.core.closing import closing
from pyspark_upsert_kafka.core.errors import BrokerError, EncodeError, SchemaError
from pyspark_upsert_kafka.core.options.frozen_options import FormatChoice, ReadOptions
from pyspark_upsert_kafka.core.positions.offsets import Range, TopicPartition
from pyspark_upsert_kafka.core.table import Table
from pyspark_upsert_kafka.formats.codec import Side
from pyspark_upsert_kafka.kafka.clients import ReadSettings, load_client
from pyspark_upsert_kafka.kafka.outgoing_messages import partition_of
from pyspark_upsert_kafka.kafka.raw_batch import RawBatch

logger = logging.getLogger("pyspark_upsert_kafka")

_MOST_KEYS = 1000
"""The partitions of more keys than these are not looked for: they are probably all there are."""

_MOST_MESSAGES = 1000
"""How many of the first messages of a partition are compared with what this connector would write."""

_ONE_SPELLING = (
    BinaryType, BooleanType, ByteType, DateType, DecimalType, IntegerType, LongType, ShortType, StringType,
)  # fmt: skip
"""Types whose equal values are written in one way: of floating numbers 0.0 and -0.0 are not, and timestamps depend on zones."""


def keys_of(table: Table, values: Sequence[Sequence[Any] | None]) -> pa.RecordBatch | None:
    """The keys that have one of the values in each column.

    Args:
        table: Their table.
        values: Values of each key column, in Python's types; None = they are not known.

    Returns:
        The key columns, one row for each key; None = the values do not name a few keys, each of which has one spelling.
    """
    known = [each for each in values if each is not None]
    if len(known) < len(values) or math.prod(map(len, known)) > _MOST_KEYS:
        return None
    if not all(_has_one_spelling(field) for field in table.key):
        return None
    schema = arrow_schema(table.key_message)
    try:
        columns = [
            pa.array(column, field.type)
            for column, field in zip(zip(*product(*known), strict=True), schema, strict=True)
        ]
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
        return None
    return pa.RecordBatch.from_arrays(columns, schema.names)


def _has_one_spelling(field: StructField) -> bool:
    """Whether equal values of a column are written in one way; texts that are compared by a collation are not."""
    type_ = field.dataType
    return type(type_) in _ONE_SPELLING and (
        not isinstance(type_, StringType) or type_ == StringType()
    )


class KeyPlace:
    """Finds the partitions that hold some keys.

    Args:
        keys: The columns of the key, with a row for each of the keys.
        table: Their table; its keys are read.
        options: How the table is read.
    """

    def __init__(self, keys: pa.RecordBatch, table: Table, options: ReadOptions) -> None:
        self._table, self._options = table, options
        self._bytes = KeyBytes(table, options)
        self._values = pa.RecordBatch.from_arrays(keys.columns, table.key_message.names)

    def partitions(
        self, ranges: Sequence[Range], counts: Mapping[str, int]
    ) -> frozenset[TopicPartition] | None:
        """The partitions that hold the keys, of each topic at least one; None = they may be in any.

        Args:
            ranges: What there is to read.
            counts: How many partitions each topic has.
        """
        if any(_is_zero(column) for column in self._values.columns):
            return None
        try:
            messages = self._bytes.of(self._values)
        except (
            BrokerError,  # a registry that does not know the key's schema
            SchemaError,
            EncodeError,
        ) as error:
            logger.warning(
                "Every partition is read, since the key's bytes are not known: %s", error
            )
            return None
        chosen = {
            TopicPartition(topic, partition_of(message, count))
            for topic, count in counts.items()
            for message in messages
        }
        for topic in counts:
            of_topic = [range_ for range_ in ranges if range_.topic == topic]
            of_topic.sort(key=lambda r: TopicPartition(r.topic, r.partition) not in chosen)
            if of_topic and not self.is_ours(of_topic[0], counts):
                return None
        return frozenset(chosen)

    def is_ours(self, range_: Range, counts: Mapping[str, int]) -> bool:
        """Whether the first messages of a range have the keys, and are in the partition, that this connector would write.

        A warning is logged if not.

        Args:
            range_: The range.
            counts: How many partitions each topic has.
        """
        batch = self._first_messages(range_)
        return batch is None or self._is_ours(batch, counts[range_.topic])

    def _first_messages(self, range_: Range) -> RawBatch | None:
        options, records = self._options, wanted_records(self._table, self._options)
        details = self._bytes.details
        if records is not None:
            details |= wanted_schema_ids(read_value_side(self._table, options))
        reader = load_client(options.table.client).reader(ReadSettings.of(options, details))
        whole = replace(range_, share=None)
        with closing(reader.read(whole)) as batches:  # type: ignore[type-var]
            found = next(batches, None)
        # Keys of other record types are none of the table's.
        return found if found is None or records is None else records.of(found)

    def _is_ours(self, batch: RawBatch, partitions: int) -> bool:
        for _, key, ours in self._bytes.written_again(batch.part(0, _MOST_MESSAGES)):
            if key != ours or partition_of(key, partitions) != batch.partition:
                logger.warning(
                    "Every partition is read: topic %r has a key in partition %d that this connector would "
                    "write in another way, or to another partition.", batch.topic, batch.partition,
                )  # fmt: skip
                return False
        return True


def _is_zero(column: pa.Array) -> bool:
    """Whether it is a floating 0.0, which equals -0.0 and has other bytes."""
    return bool(pa.types.is_floating(column.type) and column[0].as_py() == 0)


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
        self.details = wanted_schema_ids(side)
        """What keys that are written again must have been read with."""

    def of(self, keys: pa.RecordBatch) -> list[bytes]:
        """The bytes of keys, given as the columns of the message key.

        Raises:
            BrokerError: A registry does not answer, or refuses.
            SchemaError: A registry does not know the key's schema.
            EncodeError: A value cannot be written.
        """
        found: list[bytes] = self._side.encoder().encode(canonical_keys(keys)).to_pylist()
        return found

    def written_again(self, batch: RawBatch) -> Iterator[tuple[int, bytes, bytes]]:
        """Each key that can be decoded: its offset, its bytes, and those that this connector would write. Raises as `of` does."""
        decoder = self._side.decoder()

        def decoded_keys(part: RawBatch) -> DecodedSide:
            read, _ = with_schema_ids(part, self._side)
            return decode_side(read.keys, decoder, "key")

        for part, decoded in in_parts(batch, decoded_keys):
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
