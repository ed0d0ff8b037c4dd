"""Confluent's wire format: a message begins with a magic byte, ``0x00``, and four bytes, the id of its schema."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from pyspark_upsert_kafka.core.errors import SchemaError, shown
from pyspark_upsert_kafka.formats.codec import Decoder
from pyspark_upsert_kafka.formats.prefixes import DecoderByPrefix

PREFIX_LENGTH = 5
"""So many bytes stand before what the format writes."""

_MAGIC_BYTE = 0
_HIGHEST = 0x7F  # in the first byte of an id, which is a positive number of 32 bits


def prefix_of(schema_id: int) -> bytes:
    """What a message of this schema begins with."""
    return bytes([_MAGIC_BYTE]) + schema_id.to_bytes(4, "big")


def decoder_by_id(compile_decoder: Callable[[int], Decoder], target: pa.Schema) -> DecoderByPrefix:
    """The decoder of messages of any schema.

    Args:
        compile_decoder: Compiles the decoder of one schema's messages, prefix and all; a SchemaError
            is the fault of each message that names this schema.
        target: The columns.
    """

    def of_prefix(prefix: bytes) -> Decoder:
        if len(prefix) < PREFIX_LENGTH or prefix[0] != _MAGIC_BYTE or prefix[1] > _HIGHEST:
            raise SchemaError(_WRONG_PREFIX.format(prefix=shown(prefix)))
        return compile_decoder(int.from_bytes(prefix[1:], "big"))

    return DecoderByPrefix(lambda message: message[:PREFIX_LENGTH], of_prefix, target)


_WRONG_PREFIX = (
    "the message does not begin with a zero byte and the four bytes of a schema id, as the "
    "serializers of a schema registry write it; it begins with {prefix!r}"
)
