"""Confluent's wire format: a message begins with a magic byte, ``0x00``, and four bytes, the id of its schema."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from pyspark_upsert_kafka.core.errors import SchemaError, shown
from pyspark_upsert_kafka.formats.batches import batch_of, merge_by_position
from pyspark_upsert_kafka.formats.codec import Decoded, Decoder

PREFIX_LENGTH = 5
"""So many bytes stand before what the format writes."""

_MAGIC_BYTE = 0
_HIGHEST = 0x7F  # in the first byte of an id, which is a positive number of 32 bits


def prefix_of(schema_id: int) -> bytes:
    """What a message of this schema begins with."""
    return bytes([_MAGIC_BYTE]) + schema_id.to_bytes(4, "big")


class DecoderById:
    """Decodes messages of any schema.

    Args:
        compile_decoder: Compiles the decoder of one schema's messages, prefix and all; a SchemaError
            is the fault of each message that names this schema.
        target: The columns.
    """

    def __init__(self, compile_decoder: Callable[[int], Decoder], target: pa.Schema) -> None:
        self._compile, self._target = compile_decoder, target
        self._decoders: dict[bytes, Decoder] = {}

    def decode(self, messages: Sequence[bytes]) -> Decoded:
        """The rows of all messages; those of one schema are decoded together."""
        if not messages:
            return Decoded(_no_rows(self._target))
        prefix = min(messages)[:PREFIX_LENGTH]
        if prefix == max(messages)[:PREFIX_LENGTH]:  # then so do all that are between the two
            return self._decoder(prefix).decode(messages)
        return merge_by_position(
            [
                (np.array(places), self._decoder(prefix).decode([messages[at] for at in places]))
                for prefix, places in _places_by_prefix(messages).items()
            ]
        )

    def _decoder(self, prefix: bytes) -> Decoder:
        if prefix not in self._decoders:
            self._decoders[prefix] = self._compiled(prefix)
        return self._decoders[prefix]

    def _compiled(self, prefix: bytes) -> Decoder:
        if len(prefix) < PREFIX_LENGTH or prefix[0] != _MAGIC_BYTE or prefix[1] > _HIGHEST:
            return _Refusal(_WRONG_PREFIX.format(prefix=shown(prefix)), self._target)
        try:
            return self._compile(int.from_bytes(prefix[1:], "big"))
        except SchemaError as error:
            return _Refusal(str(error), self._target)


_WRONG_PREFIX = (
    "the message does not begin with a zero byte and the four bytes of a schema id, as the "
    "serializers of a schema registry write it; it begins with {prefix!r}"
)


@dataclass(frozen=True)
class _Refusal:
    why: str
    target: pa.Schema

    def decode(self, messages: Sequence[bytes]) -> Decoded:
        return Decoded(_no_rows(self.target), dict.fromkeys(range(len(messages)), self.why))


def _no_rows(target: pa.Schema) -> pa.RecordBatch:
    return batch_of([pa.array([], field.type) for field in target], target, 0)


def _places_by_prefix(messages: Sequence[bytes]) -> Mapping[bytes, list[int]]:
    places: defaultdict[bytes, list[int]] = defaultdict(list)
    for at, message in enumerate(messages):
        places[message[:PREFIX_LENGTH]].append(at)
    return places
