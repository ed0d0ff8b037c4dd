"""Bytes that stand before what a format writes, as those that name a message's schema."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyspark_upsert_kafka.core.bytes_column import BytesColumn, column_of, some_of
from pyspark_upsert_kafka.core.errors import SchemaError
from pyspark_upsert_kafka.formats.batches import nulls
from pyspark_upsert_kafka.formats.codec import Decoded, Decoder, Encoder
from pyspark_upsert_kafka.formats.decoded_size import Budget
from pyspark_upsert_kafka.formats.decoding import Refusal, merge_by_position
from pyspark_upsert_kafka.formats.registry_format import UnknownSchemaError
from pyspark_upsert_kafka.formats.writers_columns import SchemaStopError

_BYTES = pa.large_binary()
_LONGEST = 1 << 40
"""More bytes than any message has."""

_KEPT = 1_000
"""For how many prefixes a decoder is kept: a topic has few, but messages that do not belong there may begin with anything."""


@dataclass(frozen=True)
class PrefixedEncoder:
    """Puts the same bytes before each message of an encoder.

    Args:
        encoder: Writes what follows them.
        prefix: The bytes.
    """

    encoder: Encoder
    prefix: bytes

    def encode(self, rows: pa.RecordBatch) -> pa.LargeBinaryArray:
        """One message for each row. Raises EncodeError."""
        prefix, nothing = pa.scalar(self.prefix, _BYTES), pa.scalar(b"", _BYTES)
        return pc.binary_join_element_wise(prefix, self.encoder.encode(rows), nothing)


@dataclass(frozen=True)
class PrefixedDecoder:
    """Passes over the first bytes of each message.

    Args:
        decoder: Reads what follows them.
        length: How many there are.
    """

    decoder: Decoder
    length: int

    def decode(self, messages: Sequence[bytes]) -> Decoded:
        """All messages."""
        return self.decoder.decode(
            BytesColumn(pc.binary_slice(column_of(messages), self.length, _LONGEST))
        )


class DecoderByPrefix:
    """Decodes messages of several kinds, each told by what it begins with.

    Args:
        prefix_of: The prefix of a message, a few bytes. No prefix is the beginning of another one; a message that is
            too short to have a prefix is its own.
        compile_decoder: Compiles the decoder of all messages with a prefix; it is given them with their prefix. Where
            it raises a SchemaError, each of these messages is bad; with an UnknownSchemaError the next ones need not be.
        target: The columns.
    """

    def __init__(
        self,
        prefix_of: Callable[[bytes], bytes],
        compile_decoder: Callable[[bytes], Decoder],
        target: pa.Schema,
    ) -> None:
        self._prefix_of, self._target = prefix_of, target
        # Refusals are kept too: one may cost a compilation. They do not push out the decoders.
        self._compile = lru_cache(maxsize=_KEPT)(compile_decoder)
        self._kept = lru_cache(maxsize=_KEPT)(self._decoder_or_refusal)

    def decode(self, messages: Sequence[bytes]) -> Decoded:
        """The rows of all messages; those of one prefix are decoded together.

        Raises:
            TooManyMessagesError: The rows of all prefixes are too large together.
            SchemaStopError: Messages of a schema must not be decoded.
        """
        if not messages:
            return Decoded(nulls(self._target, 0))
        ends = pc.min_max(column_of(messages))
        prefix = self._prefix_of(ends["min"].as_py())
        if prefix == self._prefix_of(ends["max"].as_py()):  # then so begin all between the two
            return self._decoded(prefix, messages)
        budget, parts = Budget(len(messages)), []
        for prefix, places in self._places(messages).items():
            decoded = self._decoded(prefix, some_of(messages, places))
            budget.take(decoded.rows.nbytes)
            parts.append((np.array(places), decoded))
        return merge_by_position(parts)

    def _decoded(self, prefix: bytes, messages: Sequence[bytes]) -> Decoded:
        try:
            return self._decoder(prefix).decode(messages)
        except SchemaStopError as stop:
            stop.at(messages[0])

    def _decoder(self, prefix: bytes) -> Decoder:
        try:
            return self._kept(prefix)
        except UnknownSchemaError as error:
            return Refusal(str(error), self._target)

    def _decoder_or_refusal(self, prefix: bytes) -> Decoder:
        try:
            return self._compile(prefix)
        except UnknownSchemaError:
            raise
        except SchemaError as error:
            return Refusal(str(error), self._target)

    def _places(self, messages: Sequence[bytes]) -> Mapping[bytes, list[int]]:
        places: defaultdict[bytes, list[int]] = defaultdict(list)
        for at, message in enumerate(messages):
            places[self._prefix_of(message)].append(at)
        return places
