"""Bytes that stand before what a format writes, as those that name a message's schema."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyspark_upsert_kafka.core.errors import SchemaError
from pyspark_upsert_kafka.formats.batches import batch_of, merge_by_position
from pyspark_upsert_kafka.formats.codec import Decoded, Decoder, Encoder

_BYTES = pa.large_binary()


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
        start = self.length
        return self.decoder.decode([message[start:] for message in messages])


class DecoderByPrefix:
    """Decodes messages of several kinds, each told by what it begins with.

    Args:
        prefix_of: The prefix of a message, of a few bytes; none is the beginning of another one, but for that of a
            message that is too short to have one, which is the whole message.
        compile_decoder: Compiles the decoder of all messages with a prefix, which stands before each; a
            SchemaError is the fault of each of them.
        target: The columns.
    """

    def __init__(
        self,
        prefix_of: Callable[[bytes], bytes],
        compile_decoder: Callable[[bytes], Decoder],
        target: pa.Schema,
    ) -> None:
        self._prefix_of, self._compile, self._target = prefix_of, compile_decoder, target
        self._decoders: dict[bytes, Decoder] = {}

    def decode(self, messages: Sequence[bytes]) -> Decoded:
        """The rows of all messages; those of one prefix are decoded together."""
        if not messages:
            return Decoded(_no_rows(self._target))
        prefix = self._prefix_of(min(messages))
        if prefix == self._prefix_of(max(messages)):  # then so begin all that are between the two
            return self._decoder(prefix).decode(messages)
        return merge_by_position(
            [
                (np.array(places), self._decoder(prefix).decode([messages[at] for at in places]))
                for prefix, places in self._places(messages).items()
            ]
        )

    def _decoder(self, prefix: bytes) -> Decoder:
        if prefix not in self._decoders:
            try:
                self._decoders[prefix] = self._compile(prefix)
            except SchemaError as error:
                self._decoders[prefix] = _Refusal(str(error), self._target)
        return self._decoders[prefix]

    def _places(self, messages: Sequence[bytes]) -> Mapping[bytes, list[int]]:
        places: defaultdict[bytes, list[int]] = defaultdict(list)
        for at, message in enumerate(messages):
            places[self._prefix_of(message)].append(at)
        return places


@dataclass(frozen=True)
class _Refusal:
    why: str
    target: pa.Schema

    def decode(self, messages: Sequence[bytes]) -> Decoded:
        return Decoded(_no_rows(self.target), dict.fromkeys(range(len(messages)), self.why))


def _no_rows(target: pa.Schema) -> pa.RecordBatch:
    return batch_of([pa.array([], field.type) for field in target], target, 0)
