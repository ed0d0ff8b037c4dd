"""One of Avro's ``int`` and ``long``: zigzag, in seven bits a byte (Avro specification 1.12, "Binary Encoding")."""

from __future__ import annotations

from pyspark_upsert_kafka.formats.binary.numbers import varint


def long(value: int) -> bytes:
    """One number."""
    return varint((value << 1) ^ (value >> 63))
