"""A few bytes of messages do not fill the memory: what a batch is decoded to is bounded, in every format."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
)

from pyspark_upsert_kafka.connector.reading.decoded_messages import in_parts
from pyspark_upsert_kafka.core.arrow import MAX_HELD_BYTES
from pyspark_upsert_kafka.core.bytes_column import BytesColumn
from pyspark_upsert_kafka.formats import decoded_size
from pyspark_upsert_kafka.formats.avro.avro_defaults import long
from pyspark_upsert_kafka.formats.codec import Decoded, Decoder, TooManyMessagesError
from pyspark_upsert_kafka.formats.decoded_size import slot_bytes
from pyspark_upsert_kafka.formats.prefixes import DecoderByPrefix
from pyspark_upsert_kafka.kafka.raw_batch import RawBatch
from tests.unit import children
from tests.unit.formats.avro import codecs as avro
from tests.unit.formats.csv import codecs as csv
from tests.unit.formats.json import codecs as json_
from tests.unit.formats.protobuf.codecs import Proto

FIELDS = 100
WIDE = StructType([StructField(f"c{at}", LongType()) for at in range(FIELDS)])
A = "a"


def table(kind: DataType) -> StructType:
    """One column."""
    return StructType([StructField(A, kind)])


def avro_record(name: str, fields: dict[str, Any]) -> dict[str, Any]:
    """A record of the fields."""
    declared = [{"name": field, "type": kind} for field, kind in fields.items()]
    return {"type": "record", "name": name, "fields": declared}


def avro_array(items: Any, kind: DataType) -> Decoder:
    """The decoder of a record with an array of these."""
    schema = avro_record("T", {A: {"type": "array", "items": items}})
    return avro.datum_decoder(schema, table(ArrayType(kind)))


AVRO_WIDE = ["null", avro_record("W", dict.fromkeys(WIDE.names, "long"))]
PROTO_WIDE = "".join(f"int64 c{at} = {at + 1};" for at in range(FIELDS))
PROTO = f"""
syntax = "proto3";
message W {{ {PROTO_WIDE} }}
message T {{ repeated W a = 1; map<string, W> m = 2; bytes blob = 3; repeated W other = 17; }}
"""


ARRAY_OF_WIDE = table(ArrayType(WIDE))


def proto(schema: StructType = ARRAY_OF_WIDE, **options: Any) -> Decoder:
    """The decoder of a message with wide messages in it."""
    return Proto(PROTO, "T").decoder(schema, **options)


Attack = tuple[Callable[[], Decoder], Callable[[int], bytes], int, int]
"""The decoder, a message of so many items, and how many items and messages there are."""

ATTACKS: dict[str, Attack] = {
    "json objects": (
        lambda: json_.decoder(table(ArrayType(WIDE))),
        lambda n: b'{"a":[' + b",".join([b"{}"] * n) + b"]}",
        400,
        80,
    ),
    "json nulls": (
        lambda: json_.decoder(table(ArrayType(WIDE))),
        lambda n: b'{"a":[' + b",".join([b"null"] * n) + b"]}",
        400,
        80,
    ),
    "json entries": (
        lambda: json_.decoder(table(MapType(StringType(), WIDE))),
        lambda n: json.dumps({A: {str(at): {} for at in range(n)}}).encode(),
        400,
        80,
    ),
    "protobuf messages": (proto, lambda n: b"\x0a\x00" * n, 200, 160),
    "protobuf tags of many bytes": (proto, lambda n: b"\x8a\x80\x00\x00" * n, 200, 160),
    "protobuf entries": (
        lambda: proto(StructType([StructField("m", MapType(StringType(), WIDE))])),
        lambda n: b"".join(b"\x12\x08\x0a\x06%06d" % at for at in range(n)),
        200,
        160,
    ),
    "avro nulls in a union": (
        lambda: avro_array(AVRO_WIDE, WIDE),
        lambda n: long(n) + b"\0" * n + long(0),
        200,
        160,
    ),
    "avro items of no bytes": (
        lambda: avro_array("null", LongType()),
        lambda n: long(n) + long(0),
        10_000,
        400,
    ),
    "avro long symbols": (
        lambda: avro_array({"type": "enum", "name": "E", "symbols": ["A" * 1_000]}, StringType()),
        lambda n: long(n) + b"\0" * n + long(0),
        400,
        80,
    ),
}


def parts(decoder: Decoder, messages: Sequence[bytes]) -> Iterator[tuple[int, Decoded]]:
    """What is decoded of messages as a task does it: how many messages a part has, and its rows."""
    batch = RawBatch(
        "t",
        0,
        BytesColumn.of([None] * len(messages)),
        BytesColumn.of(messages),
        [*range(len(messages))],
    )
    for part, decoded in in_parts(batch, lambda raw: decoder.decode(raw.values)):  # type: ignore[arg-type]
        yield len(part), decoded


HELD = MAX_HELD_BYTES // 16


def measure(attack: str) -> None:
    """Says the most bytes of Arrow at once, and the rows; run in a process of its own."""
    make, message, items, count = ATTACKS[attack]
    decoded_size.MAX_HELD_BYTES = HELD  # less to do
    rows = sum(done.rows.num_rows for _, done in parts(make(), [message(items)] * count))
    sys.stdout.write(f"{pa.default_memory_pool().max_memory()} {rows}")


@pytest.mark.parametrize("attack", ATTACKS)
def test_messages_of_few_bytes_are_decoded_in_parts_that_are_small(attack, monkeypatch):
    """Whatever becomes very wide: all rows come, and no part takes more than it may."""
    most = MAX_HELD_BYTES // 128
    monkeypatch.setattr(decoded_size, "MAX_HELD_BYTES", most)
    make, message, items, count = ATTACKS[attack]
    seen = [done.rows for _, done in parts(make(), [message(items // 4)] * (count // 4))]
    assert sum(rows.num_rows for rows in seen) == count // 4
    assert len(seen) > 1
    assert max(rows.nbytes for rows in seen) <= most


# Each takes a process of its own; what is left out differs in what its bytes look like alone.
@pytest.mark.alone("asserts how much memory is taken")
@pytest.mark.parametrize(
    "attack",
    sorted({*ATTACKS} - {"json nulls", "protobuf entries", "protobuf tags of many bytes"}),
)
def test_messages_of_few_bytes_take_no_more_memory_the_more_there_are(attack):
    """Whatever becomes very wide: all rows come, and what is held at once does not grow with the messages."""
    child = children.run(
        f"from tests.unit.formats.test_decoded_size import measure; measure({attack!r})"
    )
    assert child.code == 0, child.wrong
    held, rows = map(int, child.said.split())
    assert rows == ATTACKS[attack][3]
    assert held < 5 * HELD


@pytest.mark.parametrize("attack", sorted({*ATTACKS} - {"avro items of no bytes"}))
def test_one_message_that_takes_too_much_cannot_be_decoded(attack):
    """It is told so alone and among others."""
    make, message, _, _ = ATTACKS[attack]
    giant = message(200_000)
    decoded = make().decode([giant])
    assert list(decoded.errors) == [0]
    assert "it would take more than 128 MiB of memory" in decoded.errors[0]
    small = message(3)
    seen = [*parts(make(), [small] * 100 + [giant] + [small] * 100)]
    assert sum(int(done.read.sum()) for _, done in seen) == 200
    assert [why for _, done in seen for why in done.errors.values()] == [decoded.errors[0]]


@pytest.mark.alone("asserts how much memory Arrow has taken")
@pytest.mark.parametrize("attack", sorted({*ATTACKS} - {"avro items of no bytes"}))
def test_one_message_that_takes_too_much_takes_nothing(attack):
    """It is refused before the memory is taken."""
    make, message, _, _ = ATTACKS[attack]
    decode, giant = make().decode, message(200_000)
    before = pa.total_allocated_bytes()
    decoded = decode([giant])
    assert list(decoded.errors) == [0]
    assert pa.total_allocated_bytes() - before < 1_000_000


@pytest.mark.parametrize("form", ["json", "protobuf"])
def test_a_message_that_takes_too_much_is_a_parse_error(form):
    """The format's own ``ignore-parse-errors`` passes over it."""
    if form == "json":
        decoder = json_.decoder(table(ArrayType(WIDE)), ignore_parse_errors=True)
    else:
        decoder = proto(ignore_parse_errors=True)
    _, message, _, _ = ATTACKS["json objects" if form == "json" else "protobuf messages"]
    decoded = decoder.decode([message(200_000)])
    assert decoded.skipped == {0}
    assert not decoded.errors


@pytest.mark.parametrize(
    "items",
    [
        b"1",
        pytest.param(b'"x"', marks=pytest.mark.long("a number is read as NULL likewise")),
        b"{}",
        pytest.param(b"null", marks=pytest.mark.long("a number is read as NULL likewise")),
    ],
)
def test_what_is_read_as_null_where_an_object_is_expected_takes_as_much(items):
    """With ``ignore-parse-errors`` two bytes, as a number and a comma, become a wide struct of NULLs."""
    decoder = json_.decoder(table(ArrayType(WIDE)), ignore_parse_errors=True)

    def message(count: int) -> bytes:
        return b'{"a":[' + b",".join([items] * count) + b"]}"

    assert decoder.decode([message(200_000)]).skipped == {0}
    seen = [(count, done.rows.nbytes) for count, done in parts(decoder, [message(1_000)] * 200)]
    assert sum(count for count, _ in seen) == 200
    assert max(size for _, size in seen) <= MAX_HELD_BYTES


LOOKS_LARGE: dict[str, tuple[Callable[[], Decoder], bytes]] = {
    "braces in a json text": (
        lambda: json_.decoder(table(ArrayType(WIDE))),
        b'{"x":"' + b"{" * 300_000 + b'","a":[{"c0":7}]}',
    ),
    "json objects that are no column": (
        lambda: json_.decoder(table(ArrayType(WIDE))),
        b'{"x":[' + b",".join([b"{}"] * 300_000) + b'],"a":[{"c0":7}]}',
    ),
    "tags in a protobuf blob": (
        proto,
        b"\x1a\xe0\xa7\x12" + b"\x0a" * 300_000 + b"\x0a\x02\x08\x07",
    ),
    "counts of avro that are skipped": (
        lambda: avro.datum_decoder(
            avro_record(
                "T",
                {
                    "x": {"type": "array", "items": "long"},
                    A: {"type": "array", "items": AVRO_WIDE},
                },
            ),
            table(ArrayType(WIDE)),
        ),
        long(300_000)
        + b"\0" * 300_000
        + long(0)
        + long(1)
        + long(1)
        + long(7)
        + b"\0" * (FIELDS - 1)
        + long(0),
    ),
}


@pytest.mark.parametrize("case", LOOKS_LARGE)
def test_a_message_that_only_looks_large_is_decoded(case):
    """What no column holds, and what stands in a text, takes nothing."""
    make, message = LOOKS_LARGE[case]
    decoded = make().decode([message])
    assert not decoded.errors
    assert decoded.rows.column(0).to_pylist()[0][0]["c0"] == 7


FULL: dict[str, tuple[Callable[[], Decoder], Callable[[dict[str, Any]], bytes]]] = {
    "json": (lambda: json_.decoder(ARRAY_OF_WIDE), lambda rows: json.dumps(rows).encode()),
    "protobuf": (
        proto,
        lambda rows: Proto(PROTO, "T").message(**rows).SerializeToString(),
    ),
}


@pytest.mark.parametrize("form", FULL)
def test_items_full_of_values_are_not_taken_for_more_items(form, monkeypatch):
    """Many bytes of a batch that are few items are no reason to decode it in parts."""
    make, message = FULL[form]
    messages = [message({A: [dict.fromkeys(WIDE.names, 1_000_000_000)] * 2})] * 200
    whole = make().decode(messages)
    monkeypatch.setattr(decoded_size, "MAX_HELD_BYTES", 2 * whole.rows.nbytes)
    assert make().decode(messages).rows.equals(whole.rows)


def test_messages_that_no_column_holds_are_counted_too():
    """The protobuf runtime makes room for all fields of a message that it reads."""
    decode = proto(StructType([StructField("blob", BinaryType())])).decode
    decoded = decode([b"\x8a\x01\x00" * 200_000])
    assert "it would take more than 128 MiB of memory" in decoded.errors[0]


CORPUS: dict[str, tuple[Decoder, list[bytes]]] = {
    "json": (
        json_.decoder(table(ArrayType(WIDE))),
        [json.dumps({A: [{"c1": i}] * (i % 5)}).encode() for i in range(300)],
    ),
    "json without items": (
        json_.decoder(WIDE),
        [json.dumps({"c1": i}).encode() for i in range(300)],
    ),
    "csv": (
        csv.decoder(StructType([*table(ArrayType(LongType())), StructField("b", LongType())])),
        [f"{';'.join(['7'] * (i % 5))},{i}".encode() for i in range(300)],
    ),
    "avro": (
        avro_array(AVRO_WIDE, WIDE),
        [long(1 + i % 5) + (long(1) + bytes(FIELDS)) * (1 + i % 5) + long(0) for i in range(300)],
    ),
    "protobuf": (proto(), [b"\x0a\x02\x08" + bytes([i % 100]) for i in range(300)]),
}


@pytest.mark.parametrize("form", CORPUS)
def test_parts_are_what_the_whole_is(form, monkeypatch):
    """Where a batch is split, its rows are those of the whole, bad messages included."""
    decoder, messages = CORPUS[form]
    messages = [*messages[:100], b"\xff\xff", *messages[100:]]
    whole = decoder.decode(messages)
    monkeypatch.setattr(decoded_size, "MAX_HELD_BYTES", 20_000)
    with pytest.raises(TooManyMessagesError):
        decoder.decode(messages)
    seen = [*parts(decoder, messages)]
    assert len(seen) > 1
    assert sum(count for count, _ in seen) == len(messages)
    rows = pa.Table.from_batches([done.rows for _, done in seen])
    assert rows.combine_chunks().equals(pa.Table.from_batches([whole.rows]).combine_chunks())
    assert [why for _, done in seen for why in done.errors.values()] == [*whole.errors.values()]


@pytest.mark.parametrize(
    "kind",
    [
        pa.int64(),
        pa.bool_(),
        pa.string(),
        pa.decimal128(10, 2),
        pa.struct([("a", pa.int32()), ("b", pa.list_(pa.int64()))]),
        pa.map_(pa.string(), pa.int64()),
    ],
)
def test_a_slot_takes_what_arrow_gives_it(kind):
    """A column of NULLs takes as much as was said."""
    count = 8_000
    taken = pa.nulls(count, kind).nbytes
    assert taken <= slot_bytes(kind) * count + 64
    assert taken >= 0.9 * (slot_bytes(kind) - 0.5) * count


def test_messages_of_many_prefixes_share_one_budget(monkeypatch):
    """Each schema's messages take less than they may, and all of them together more."""
    monkeypatch.setattr(decoded_size, "MAX_HELD_BYTES", 20_000)
    target = pa.schema([(A, pa.string())])

    class Texts:
        def decode(self, messages: Sequence[bytes]) -> Decoded:
            texts = pa.array([message.decode() for message in messages])
            return Decoded(pa.RecordBatch.from_arrays([texts], schema=target))

    decoder = DecoderByPrefix(lambda message: message[:1], lambda _: Texts(), target)
    messages = [prefix * 5_000 for prefix in (b"a", b"b", b"c", b"d", b"e", b"f")]
    with pytest.raises(TooManyMessagesError):
        decoder.decode(messages)
    seen = [done.rows.column(0).to_pylist() for _, done in parts(decoder, messages)]
    assert [text for texts in seen for text in texts] == [message.decode() for message in messages]
