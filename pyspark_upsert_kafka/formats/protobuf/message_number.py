"""Which message of a schema follows, as the serializers of AWS Glue say it: by one number, in the bytes of a varint.

The number is the place of its full name among those of all messages of the file, in the order of their texts. Entries of maps are
messages there, as in each descriptor.
Source: ``MessageIndexFinder`` and ``ProtobufWireFormatEncoder`` of Amazon's schema-registry-serde (1.1.27), whose comment says
zigzag where they write a plain varint.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyspark_upsert_kafka.core.errors import SchemaError, shown
from pyspark_upsert_kafka.formats.binary_values import varint
from pyspark_upsert_kafka.formats.protobuf.proto_schema import ProtoSchema, WhichMessage

_LONGEST = 5  # bytes of a number of 32 bits


def number_part(message: bytes, start: int) -> bytes:
    r"""The beginning of a message up to the end of its number; where there is none, as many bytes as it could take.

    Args:
        message: The message.
        start: Where the number begins.

    >>> number_part(b"__\x81\x01abc", 2), number_part(b"__\x00abc", 2)
    (b'__\x81\x01', b'__\x00')
    """
    longest = message[: start + _LONGEST]
    for end, byte in enumerate(longest[start:], start + 1):
        if byte < 0x80:
            return message[:end]
    return longest


def name_of_number(schema: ProtoSchema, prefix: bytes, start: int) -> str:
    """The full name of the message whose number ends the prefix.

    Raises:
        SchemaError: There is none, or the prefix ends with no number.
    """
    digits = prefix[start:]
    number = sum((byte & 0x7F) << 7 * place for place, byte in enumerate(digits))
    if not digits or digits[-1] >= 0x80 or varint(number) != digits:
        raise SchemaError(
            "behind the id of the schema version there is no number of a message, as the Protobuf serializer of AWS Glue writes "
            f"it; it goes on with {shown(digits)!r}"
        )
    names = _numbered(schema)
    if number >= len(names):
        raise SchemaError(f"{schema.origin} has no message with the number {number}.")
    return names[number]


def encoded_number(schema: ProtoSchema, name: str) -> bytes:
    """The number of the message with this full name, in the bytes that a message has for it."""
    return varint(_numbered(schema).index(name))


def _numbered(schema: ProtoSchema) -> list[str]:
    return sorted(_names(schema.file.package, schema.file.message_type))


def _names(scope: str, messages: Any) -> Iterator[str]:
    for message in messages:
        name = f"{scope}.{message.name}" if scope else str(message.name)
        yield name
        yield from _names(name, message.nested_type)


NUMBER = WhichMessage(
    number_part,
    lambda schema, prefix, start: [name_of_number(schema, prefix, start)],
    encoded_number,
)
"""By the number that the serializers of AWS Glue write."""
