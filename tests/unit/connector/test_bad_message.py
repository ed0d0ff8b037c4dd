"""What is told of a message that cannot be decoded."""

from __future__ import annotations

import pytest

from pyspark_upsert_kafka.connector.bad_messages import (
    BadMessage,
    first_per_message,
    format_hint,
    with_format_hint,
)
from pyspark_upsert_kafka.core.errors import DecodeError

REGISTRY = (
    "; it begins as with a schema registry, with a zero byte and perhaps the schema id 16909060:"
)

GLUE = (
    "; it begins as with a registry of AWS Glue, with perhaps the id of a schema version "
    "00000000-0000-0000-0000-000000000007:"
)


@pytest.mark.parametrize(
    ("data", "format_", "hint"),
    [
        (b"\0\1\2\3\4{", "json", REGISTRY),
        (b"\0\1\2\3\4{", "csv", REGISTRY),
        (b"\0\1\2\3\4{", "avro", REGISTRY),
        (b"\0\1\2\3\4{", "protobuf", REGISTRY),
        # A prefix alone has no message behind it.
        (b"\0\1\2\3\4", "json", ""),
        (b"\1\0\0\1\2{", "json", ""),
        (b"\0\1\2\3\4{", "avro-confluent", ""),
        (b"\0\1\2\3\4{", "avro-glue", REGISTRY),
        (b"\3\0" + bytes(15) + b"\7", "json", GLUE),
        (b"\3\5" + bytes(15) + b"\7x", "avro-confluent", GLUE),
        (b"\3\0" + bytes(15) + b"\7", "avro-glue", ""),
        (b"\3\0" + bytes(15), "json", ""),
        (b"\3\1" + bytes(15) + b"\7", "json", ""),
        (b' \n{"id":1}', "avro", "; it begins with '{', as JSON does"),
        (b"[1]", "csv", "; it begins with '[', as JSON does"),
        (b"{", "protobuf", "; it begins with '{', as JSON does"),
        (b'{"id":1}', "json", ""),
        (b'{"id":1}', "raw", "; it begins with '{', as JSON does"),
        (b"id", "csv", ""),
        (b"", "csv", ""),
    ],
)
def test_what_the_bytes_look_like(data: bytes, format_: str, hint: str) -> None:
    """Where they begin as another format does: the prefix of a registry, or JSON."""
    found = format_hint(data, format_)

    assert found.startswith(hint)
    assert bool(found) == bool(hint)


def test_a_hint_stands_behind_the_reason() -> None:
    """Without one, and without bytes, the message stays as it is."""
    bad = BadMessage(7, "value", "no record")

    assert with_format_hint(bad, b"{", "avro") == BadMessage(
        7, "value", "no record; it begins with '{', as JSON does"
    )
    assert with_format_hint(bad, b"x", "avro") is bad
    assert with_format_hint(bad, None, "avro") is bad


@pytest.mark.parametrize(
    ("data", "format_", "hint"),
    [
        ((7).to_bytes(8, "big"), "json", "'key.format' = 'raw' reads that, as BIGINT"),
        ((7).to_bytes(4, "big"), "avro", "'key.format' = 'raw' reads that, as INT"),
        (b"\0\0\0\0\1abc", "json", "perhaps the schema id 1:"),
        (b"order-1", "json", "'key.format' = 'raw' reads that as STRING, and 'csv' as a number too"),
        (b"7", "json", "'key.format' = 'raw' reads that as STRING"),
        (b"\xff7", "json", ""),
        (b"{7", "json", ""),
        (b"", "json", ""),
        (b"order-1", "csv", ""),
        (b"7", "raw", "; it may be a text: 'key.format' = 'raw' reads that as STRING, and 'csv' as a number too"),
        (b"\0\0\7", "raw", ""),
    ],
)  # fmt: skip
def test_a_key_that_is_a_plain_value(data: bytes, format_: str, hint: str) -> None:
    """A text or a number, as most producers write keys, is no object: the reason says which format reads it. A value is a row."""
    assert hint in with_format_hint(BadMessage(0, "key", ""), data, format_).reason
    if not hint:
        assert not with_format_hint(BadMessage(0, "key", ""), data, format_).reason
    assert "key.format" not in with_format_hint(BadMessage(0, "value", ""), data, format_).reason


def test_of_a_message_the_first_error_counts() -> None:
    """In the order of offsets; a message that is skipped has none."""
    errors = [
        BadMessage(at, stage, "")
        for at, stage in ((5, "key"), (2, "value"), (5, "value"), (3, "key"))
    ]

    assert first_per_message(errors, {3}) == [errors[1], errors[0]]


@pytest.mark.parametrize(
    ("reason", "shown"),
    [
        ("x is wrong.", "x is wrong"),
        ("x is wrong", "x is wrong"),
        ("a long one...", "a long one..."),
        (".", ""),
    ],
)
def test_a_reason_has_no_full_stop(reason: str, shown: str) -> None:
    """It stands within a sentence, which then would end with two of them."""
    bad = BadMessage(0, "value", reason)
    assert bad.reason == shown
    assert ".. " not in str(DecodeError("t", 0, 0, "value", bad.reason)).replace("...", "")
