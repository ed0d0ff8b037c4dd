"""Messages are the same to a decoder as a list and as a column, by whichever path it reads them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
from pyspark.sql.types import LongType, StringType, StructType

from pyspark_upsert_kafka.connector.format_catalog import format_named
from pyspark_upsert_kafka.core.bytes_column import BytesColumn
from pyspark_upsert_kafka.formats.codec import Decoder
from pyspark_upsert_kafka.formats.prefixes import DecoderByPrefix, PrefixedDecoder
from tests.unit.formats.codec_specs import codec_spec

SCHEMA = StructType().add("id", LongType()).add("name", StringType())
TEXT = StructType().add("name", StringType())

GOOD: dict[str, Callable[[int], bytes]] = {
    "json": lambda n: b'{"id": %d, "name": "N%d"}' % (n, n),
    "csv": lambda n: b"%d,N%d" % (n, n),
    "avro": lambda n: bytes([2, n % 64 * 2, 2, 2, 65 + n % 26]),
    "raw": lambda n: b"N%d" % n,
}
BAD = [b"", b"\xff", b"{", b'{"id": NaN, "name": "N"}', b'{"id": 1' + b"[" * 600, b'1,"']


def decoder(name: str) -> Decoder:
    """The decoder of a format."""
    schema = TEXT if name == "raw" else SCHEMA
    format_ = format_named(name, "value")
    return format_.decoder(codec_spec(format_, schema))


def same(decode: Decoder, messages: Sequence[bytes]) -> None:
    """Asserts that both give equal rows, and blame the same messages."""
    of_list = decode.decode(messages)
    # A part of a longer column, as a batch may be one.
    of_column = decode.decode(BytesColumn.of([b"before", *messages, b"behind"])[1:-1])

    assert of_column.rows.equals(of_list.rows)
    assert of_column.errors == of_list.errors


@pytest.mark.parametrize("bad", [[], BAD], ids=["good", "bad"])
@pytest.mark.parametrize("count", [1, 50, 3_000])
@pytest.mark.parametrize("name", GOOD)
def test_a_column_is_decoded_as_a_list_is(name: str, count: int, bad: list[bytes]) -> None:
    """By the row path, and by the vectorised one with what that leaves out."""
    messages = [GOOD[name](at) for at in range(count)]

    same(decoder(name), [*messages[: count // 2], *bad, *messages[count // 2 :]])


@pytest.mark.parametrize("prefixes", [[b"A____"], [b"A____", b"B____", b"C"]], ids=["one", "many"])
def test_a_column_with_prefixes_is_decoded_as_a_list_is(prefixes: list[bytes]) -> None:
    """Each by the decoder of its prefix, behind it."""
    inner = decoder("json")
    schema = inner.decode([]).rows.schema
    by_prefix = DecoderByPrefix(
        lambda message: message[:5], lambda _: PrefixedDecoder(inner, 5), schema
    )
    messages = [prefixes[at % len(prefixes)] + GOOD["json"](at) for at in range(500)]

    same(by_prefix, messages)
    same(PrefixedDecoder(inner, 5), [b"", b"1234", *messages])
