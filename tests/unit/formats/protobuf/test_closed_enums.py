"""Enums of proto2, alone and among others: both paths read them as Google's runtime does."""

from __future__ import annotations

from typing import Any

import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorSet
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.types import (
    ArrayType,
    ByteType,
    IntegerType,
    LongType,
    MapType,
    ShortType,
    StringType,
    StructField,
    StructType,
)

from tests.laws import law
from tests.unit.formats.protobuf.codecs import Proto, batch, columns, descriptor_file, seen

TEXT = """
syntax = "proto2";
enum Color { RED = 0; GREEN = 5; NONE = 7; }
message Part { required Color color = 1; optional int64 id = 2; }
message Order {
  map<string, Color> colors = 1;
  required Color color = 2;
  optional Part part = 3;
  repeated Part parts = 4;
  optional int64 id = 5;
  optional Color other = 6;
  repeated Color list = 7;
}
message Written { repeated Color list = 1; optional Color one = 2; }
"""

MANY = 200


def proto(name: str) -> Proto:
    """A message whose enum begins with 1000 and has its 0 at the end, which protoc itself does not let into maps."""
    path = descriptor_file(TEXT, "--include_imports")
    files = FileDescriptorSet.FromString(path.read_bytes())
    (enum,) = files.file[0].enum_type
    enum.value[0].number, enum.value[2].number = 1000, 0
    path.write_bytes(files.SerializeToString())
    return Proto(TEXT, name)


RED, OTHER = b"\x10\xe8\x07", b"\x10\x07"
PART = StructType([StructField("id", LongType())])
ID = columns(id=LongType())

MESSAGES: dict[str, tuple[StructType, bytes]] = {
    "an entry without a value": (
        columns(colors=MapType(StringType(), StringType())),
        RED + b"\x0a\x03\x0a\x01k",
    ),
    "its number": (
        columns(colors=MapType(StringType(), IntegerType())),
        RED + b"\x0a\x03\x0a\x01k",
    ),
    "an entry without anything": (
        columns(colors=MapType(StringType(), StringType())),
        RED + b"\x0a\x00",
    ),
    "required, with an unknown number": (ID, OTHER + b"\x28\x01"),
    "required, known and then unknown": (ID, RED + OTHER + b"\x28\x01"),
    "required, unknown and then known": (ID, OTHER + RED + b"\x28\x01"),
    "required, as a column": (columns(color=StringType()), OTHER),
    "required within a column": (columns(part=PART), RED + b"\x1a\x04\x08\x07\x10\x05"),
    "required within an array": (columns(parts=ArrayType(PART)), RED + b"\x22\x04\x08\x07\x10\x05"),
    "required within no column": (ID, RED + b"\x22\x04\x08\x07\x10\x05\x28\x01"),
    "optional, with an unknown number": (columns(other=StringType()), RED + b"\x30\x07"),
    "optional, and no column": (ID, RED + b"\x30\x07\x28\x01"),
}


@pytest.mark.parametrize("case", MESSAGES)
@pytest.mark.parametrize("defaults", [False, True])
def test_a_message_reads_alone_as_among_others(case, defaults):
    """The same row, or the same error."""
    schema, message = MESSAGES[case]
    decode = proto("Order").decoder(schema, read_default_values=defaults).decode
    rows, count, errors, _ = seen(decode([message]))
    many = decode([message] * MANY)
    assert seen(many) == (
        rows * MANY if count else [],
        count * MANY,
        _repeated(errors),
        frozenset(),
    )


def _repeated(errors: dict[int, str]) -> dict[int, str]:
    return {at: why for at in range(MANY) for why in errors.values()}


def test_the_runtime_has_0_for_an_entry_without_a_value():
    """It is not the first value of the enum, which is that of a field without a value."""
    schema, message = MESSAGES["an entry without a value"]
    order = proto("Order")
    (value,) = order.message.FromString(message).colors.values()
    assert value == 0
    decoded = order.decoder(schema).decode([message] * MANY)
    assert decoded.rows.column(0).to_pylist() == [[("k", "NONE")]] * MANY


FIELDS = st.sampled_from([
    *(RED, OTHER, b"\x10\x05", b"\x28\x01", b"\x30\x07", b"\x38\x05", b"\x38\x07", b"\x3a\x02\x05\x07"),
    *(b"\x0a\x03\x0a\x01k", b"\x0a\x05\x0a\x01k\x10\x05", b"\x0a\x05\x0a\x01j\x10\x07"),
    *(b"\x22\x03\x08\xe8\x07", b"\x22\x02\x08\x07", b"\x1a\x02\x10\x05"),
])  # fmt: skip
ALL = columns(
    colors=MapType(StringType(), StringType()),
    color=StringType(),
    part=PART,
    id=LongType(),
    other=ShortType(),
    list=ArrayType(StringType()),
)


@law(150)
@given(st.lists(st.lists(FIELDS, max_size=6).map(b"".join), min_size=1, max_size=6), st.data())
def test_both_paths_read_the_same(messages, data):
    """Whichever columns are read, and whatever stands in the others."""
    names = data.draw(st.sets(st.sampled_from(ALL.names)))
    schema = StructType([field for field in ALL if field.name in names])
    order, many = proto("Order"), messages * MANY
    assert seen(order.decoder(schema).decode(many)) == seen(order.exactly(schema).decode(many))


@pytest.mark.parametrize("kind", [ByteType(), ShortType(), IntegerType(), LongType()])
def test_a_narrow_column_needs_no_room_for_the_first_value(kind):
    """It is written for a NULL in an array, as Flink does; a value that fits is written as it is."""
    written = proto("Written")
    schema = columns(list=ArrayType(kind), one=kind)
    rows: tuple[tuple[Any, ...], ...] = (([5, None], 5), ([0], None), (None, 0))
    seen_: list[Any] = []
    for message in written.encoder(schema).encode(batch(schema, *rows)):
        read = written.message.FromString(message)
        seen_.append((list(read.list), read.one if read.HasField("one") else None))
    assert seen_ == [([5, 1000], 5), ([0], None), ([], 0)]
