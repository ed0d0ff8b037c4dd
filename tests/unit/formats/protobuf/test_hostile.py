"""Messages made to do harm: each is a row or a bad message, and the process lives on."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from resource import RUSAGE_SELF, getrusage
from typing import Any

import numpy as np
import pytest
from google.protobuf.message import DecodeError
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.types import ArrayType, IntegerType, LongType, MapType, StringType, StructType

from pyspark_upsert_kafka.formats import protobuf
from pyspark_upsert_kafka.formats.protobuf import field_scan
from pyspark_upsert_kafka.formats.protobuf.field_types import DURATIONS, TIMESTAMPS
from tests.laws import law
from tests.unit.children import run
from tests.unit.formats.protobuf.codecs import Proto, columns, seen, shown
from tests.unit.formats.protobuf.corpus import EVERYTHING, WHOLE, varint
from tests.unit.formats.protobuf.mutations import mutated

MANY = 130
"""So many messages take the vectorised path."""

_MAPS = (
    'syntax = "proto2"; message M { map<string, V> m = 1; optional int64 n = 3; }'
    " message V { required int32 r = 1; map<string, int32> n = 2; repeated V l = 3;"
    " optional V s = 4; map<int32, V> v = 5; }"
)

_BATCH = f"""
from pyspark.sql.types import LongType
from tests.unit.formats.protobuf.codecs import Proto, columns
proto = Proto({_MAPS!r}, "M")
message = proto.message(n=7)
for key in "abc":
    for inner in "xy":
        message.m[key].n[inner] = 1
data = message.SerializePartialToString()
decode = proto.decoder(columns(n=LongType()), ignore_parse_errors=%s).decode
for many in ([data], [proto.message(n=7).SerializeToString()] * 200 + [data]):
    decoded = decode(many)
    print(int(decoded.read.sum()), sorted(decoded.errors.items()), sorted(decoded.skipped))
"""


_ENUM_MAP = Proto(
    'syntax = "proto2"; enum E { A = 0; B = 1; } message M { map<int32, E> m = 1; optional int64 n = 2; }',
    "M",
)
_ENTRIES = {
    "its only value": (b"\x08\x01\x10\x01", [(1, "B")]),
    "known and then unknown": (b"\x08\x01\x10\x01\x10\x07", None),
    "unknown and then known": (b"\x08\x01\x10\x07\x10\x01", None),
    "two that are known": (b"\x08\x01\x10\x00\x10\x01", [(1, "B")]),
}


@pytest.mark.parametrize("entry", _ENTRIES)
def test_an_entry_with_two_values_reads_alike_on_all_paths(entry):
    """The runtime takes an entry for unknown when its closed enum lacks any of the values, the last or not."""
    data, expected = _ENTRIES[entry]
    message = b"\x0a" + varint(len(data)) + data + b"\x10\x07"
    schema = columns(m=MapType(IntegerType(), StringType()), n=LongType())
    decode = _ENUM_MAP.decoder(schema).decode
    for many in ([message], [message] * MANY):
        decoded = decode(many)
        assert not decoded.errors
        assert decoded.rows.to_pylist() == [{"m": expected, "n": 7}] * len(many)


def test_a_map_in_a_map_that_lacks_a_required_field():
    """Is a bad message; the runtime's own list of what is missing would end the process."""
    child = run(_BATCH % False)
    reason = "required fields are missing: m{}.r"
    assert child.said.splitlines() == [
        f"0 {[(0, reason)]} []",
        f"200 {[(200, reason)]} []",
    ], child.wrong


def test_a_map_in_a_map_that_lacks_a_required_field_is_passed_over():
    """With ignore-parse-errors as any bad message is."""
    child = run(_BATCH % True)
    assert child.said.splitlines() == ["0 [] [0]", "200 [] [200]"], child.wrong


@pytest.mark.parametrize(
    ("message", "missing"),
    [
        (b"\x0a\x05\x0a\x01a\x12\x00", "m{}.r"),
        (b"\x0a\x09\x0a\x01a\x12\x04\x08\x01\x22\x00", "m{}.s.r"),
        (b"\x0a\x09\x0a\x01a\x12\x04\x1a\x00\x1a\x00", "m{}.r, m{}.l[].r"),
        (b"\x0a\x0d\x0a\x01a\x12\x08\x08\x01\x2a\x04\x08\x01\x12\x00", "m{}.v{}.r"),
    ],
)
def test_what_is_missing_is_named(message, missing):
    """By the way to it, whatever it stands in."""
    (reason,) = Proto(_MAPS, "M").decoder(columns()).decode([message]).errors.values()
    assert reason == f"required fields are missing: {missing}"


def test_what_is_missing_under_a_key_that_is_not_utf8():
    """Cannot be named: proto2 lets such a key pass, and the runtime gives no way to its value."""
    message = b"\x0a\x05\x0a\x01\xff\x12\x00"
    assert Proto(_MAPS, "M").decoder(columns()).decode([message]).errors == {
        0: "required fields are missing"
    }


def test_many_missing_fields_are_not_all_named():
    """A message may lack millions; the reason stays short."""
    proto = Proto(_MAPS, "M")
    message = proto.message()
    value = message.m["a"]
    value.l.extend(value.__class__() for _ in range(100_000))
    data = message.SerializePartialToString()
    (reason,) = proto.decoder(columns()).decode([data]).errors.values()
    assert reason == "required fields are missing: m{}.r, m{}.l[].r"


_FEW_FIELDS = """
message N { OPTIONAL string s = 1; SURE int64 i = 2; }
message M {
  OPTIONAL string s = 1; OPTIONAL N n = 2; repeated N ns = 3; map<string, N> m = 4;
  oneof o { string a = 5; N b = 6; } repeated sint32 p = 7; repeated string ss = 8;
}
"""


def _few_fields(syntax: str, optional: str, sure: str) -> Proto:
    text = _FEW_FIELDS.replace("OPTIONAL", optional).replace("SURE", sure)
    return Proto(f'syntax = "{syntax}"; {text}', "M")


FEW_FIELDS = [
    _few_fields("proto2", "optional", "optional"),
    _few_fields("proto2", "optional", "required"),
    _few_fields("proto3", "", ""),
]
"""A message small enough that mutations meet each other in it."""

_PART = columns(s=StringType(), i=LongType())
_ALL = columns(
    s=StringType(), n=_PART, ns=ArrayType(_PART), m=MapType(StringType(), _PART), a=StringType(),
    b=_PART, p=ArrayType(IntegerType()), ss=ArrayType(StringType()),
)  # fmt: skip
_SCHEMAS = [_ALL, columns(), columns(s=StringType(), n=columns(i=LongType()))]


def refused(proto: Proto, data: bytes) -> bool:
    """Whether the runtime takes the message for a bad one."""
    try:
        return not proto.message.FromString(data).IsInitialized()
    except DecodeError:
        return True


def check_every_way(proto: Proto, schema: StructType, many: Sequence[bytes]) -> None:
    """Alone by the row path, or among others: the same row, or the same reason, as the runtime has it."""
    good = [proto.message(s="x", n={"i": 1}).SerializeToString()] * MANY
    decode, exactly = proto.decoder(schema).decode, proto.exactly(schema).decode
    alone = [exactly([data]) for data in many]
    for data, decoded in zip(many, alone, strict=True):
        assert seen(decode([data])) == seen(decoded)
        assert bool(decoded.errors) >= refused(proto, data)
        if not schema.fields:
            assert bool(decoded.errors) == refused(proto, data)
    among = decode([*good, *many, *good])
    among.rows.validate(full=True)
    assert dict(among.errors) == {
        MANY + at: reason for at, each in enumerate(alone) for reason in each.errors.values()
    }
    (row,) = shown(exactly(good[:1]).rows)
    wanted = [row] * MANY, *(shown(each.rows) for each in alone), [row] * MANY
    assert shown(among.rows) == [*chain.from_iterable(wanted)]


def law_of_every_way(examples: int = 250) -> None:
    """`check_every_way` for messages with their fields repeated, spoiled and moved."""

    @law(examples)
    @given(
        data=st.data(),
        proto=st.sampled_from(FEW_FIELDS),
        schema=st.sampled_from(_SCHEMAS),
    )
    def holds(data: Any, proto: Proto, schema: StructType) -> None:
        check_every_way(proto, schema, data.draw(st.lists(mutated(proto), min_size=1, max_size=6)))

    holds()


def law_of_walks(examples: int = 250) -> None:
    """`law_of_every_way` for messages of which each is walked through by itself."""
    field_scan._STEPS, field_scan._FEW = -1_000, 1_000_000
    law_of_every_way(examples)


@pytest.mark.parametrize("law", ["law_of_every_way", "law_of_walks"])
def test_a_message_reads_alike_alone_and_among_others(law):
    """However it was mutated; in a process of its own, for the runtime could end it."""
    child = run(f"from tests.unit.formats.protobuf.test_hostile import {law} as law; law()")
    assert child.code == 0, child.wrong


@pytest.mark.parametrize("messages", [1, 20, 75])
def test_few_messages_with_many_items_are_read_by_columns(messages, monkeypatch):
    """Row by row an item of two bytes costs what its message has of columns, twenty microseconds for a hundred."""

    def row_reader(*_: object) -> None:
        return None  # it cannot be called

    monkeypatch.setattr(protobuf, "row_reader", row_reader)
    wide = columns(**{f"c{at}": LongType() for at in range(100)})
    fields = "".join(f"int64 {name} = {at + 1};" for at, name in enumerate(wide.names))
    proto = Proto(
        f'syntax = "proto3"; message W {{ {fields} }} message M {{ repeated W a = 1; }}', "M"
    )
    items = 15_000 // messages
    decoded = proto.decoder(columns(a=ArrayType(wide))).decode([b"\x0a\x00" * items] * messages)
    assert decoded.rows.column(0).value_lengths().to_pylist() == [items] * messages


_SIZE = 1_000_000
_MOST = 64
"""So many times its size a message may take while it is read: a value has two bytes at least, eight in
a column, and more as an object of Python on the way there."""


def _nested(depth: int) -> bytes:
    data = b""
    for _ in range(depth):
        data = b"\x92\x01" + varint(len(data)) + data  # 18: the message in itself
    return data


def huge(size: int) -> dict[str, tuple[bytes, bool]]:
    """Messages of so many bytes, and whether they are bad."""
    return {
        "nested too deep": (_nested(size // 50), True),
        "nested as deep as may be": (_nested(99), False),
        "groups that never end": (b"\x9b\x06" * (size // 2), True),
        "groups side by side": (b"\x9b\x06\x9c\x06" * (size // 4), False),
        "packed numbers": (b"\xb2\x01" + varint(size) + b"\x01" * size, False),
        "a number without end": (b"\xb2\x01" + varint(size) + b"\xff" * size, True),
        "empty messages": (b"\xda\x01\x00" * (size // 3), False),
        "empty timestamps": (b"\xaa\x02\x00" * (size // 3), False),
        "empty strings": (b"\xd2\x01\x00" * (size // 3), False),
        "entries of a map": (b"\x82\x02\x02\x08\x01" * (size // 5), False),
        "one string again and again": (b"\x72\x01a" * (size // 3), False),
        "a length beyond the end": (b"\x72\xff\xff\xff\xff\x07", True),
    }


def read_huge() -> None:
    """Reads each huge message alone and among others, and asserts what it took."""
    proto = EVERYTHING["proto3"]
    decode, good = proto.decoder(WHOLE).decode, [b""] * MANY
    decode(good)
    for name, (data, bad) in huge(_SIZE).items():
        before = getrusage(RUSAGE_SELF).ru_maxrss
        for many, at in (([data], 0), ([*good, data], MANY)):
            assert list(decode(many).errors) == ([at] if bad else []), name
        taken = (getrusage(RUSAGE_SELF).ru_maxrss - before) * 1024
        assert taken < _MOST * _SIZE, f"{name}: {taken} bytes"


@pytest.mark.alone("asserts how much memory is taken")
def test_huge_messages_take_no_more_than_a_multiple_of_their_size():
    """Whatever they hold, each is a row or a bad message; in a process of its own, which one could end."""
    child = run("from tests.unit.formats.protobuf.test_hostile import read_huge; read_huge()")
    assert child.code == 0, child.wrong


@pytest.mark.parametrize("name", huge(20_000))
def test_hostile_messages_are_rows_or_bad_messages(name):
    """Alone and among others, whatever they repeat."""
    proto, (data, bad) = EVERYTHING["proto3"], huge(20_000)[name]
    decode, good = proto.decoder(WHOLE).decode, [b""] * MANY
    for many, at in (([data], 0), ([*good, data], MANY)):
        assert list(decode(many).errors) == ([at] if bad else [])


@pytest.mark.parametrize("timestamps", [TIMESTAMPS, DURATIONS])
@given(
    seconds=st.integers(-(2**63), 2**63 - 1) | st.integers(-5, 5) | st.sampled_from(
        [edge + off for edge in (-62135596800, 253402300799, 315576000000) for off in (-1, 0, 1)]
    ),
    nanos=st.integers(-(2**31), 2**31 - 1) | st.integers(-2000, 2000),
)  # fmt: skip
def test_one_moment_is_read_as_many_are(timestamps, seconds, nanos):
    """The row path reads one at a time, the vectorised path columns: the same microseconds, or none."""
    micros, good = timestamps.micros(np.array([seconds]), np.array([nanos]))
    assert timestamps.micros_of(seconds, nanos) == (int(micros[0]) if good[0] else None)
