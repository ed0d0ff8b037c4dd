"""Protobuf behind a schema's id and message indexes: what is written, and what is read by which schema."""

from __future__ import annotations

import base64
import itertools
import tracemalloc
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.types import (
    ArrayType,
    DoubleType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    TimestampType,
)

from pyspark_upsert_kafka.core.errors import OptionError, SchemaError
from pyspark_upsert_kafka.formats.proto_registry import FORMAT
from pyspark_upsert_kafka.formats.protobuf.field_types import columns_of_message
from pyspark_upsert_kafka.formats.protobuf.proto_compiler import compiled
from pyspark_upsert_kafka.formats.protobuf.proto_schema import encoded_indexes
from pyspark_upsert_kafka.formats.registry_format import Reference, RegisteredSchema
from tests.laws import law
from tests.unit.formats.listed import good_rows
from tests.unit.formats.protobuf.codecs import batch, columns, required, seen
from tests.unit.formats.protobuf.corpus import EVERYTHING, PROTO2, PROTO3, messages, schemas
from tests.unit.formats.registry_codecs import PREFIX, Codecs, rows_of

PROTO = Codecs(FORMAT)
USER = columns(id=LongType(), name=StringType())
HEAD = PREFIX + b"\0"
FILE = """
syntax = "proto3";
package shop;
message User { int64 id = 1; string name = 2; map<string, int64> scores = 3; message Inner { int64 id = 7; } }
message Other { string name = 1; }
"""


def test_what_is_written():
    """The prefix, the index of the first message in its short form, and what Protobuf writes."""
    rows = batch(USER, (1, "a"), (None, None))

    messages = PROTO.write(USER, rows)

    assert messages == [HEAD + b"\x08\x01\x12\x01a", HEAD]
    text = PROTO.writing(USER).schema
    assert rows_of(PROTO.read(USER, messages, text)) == [(1, "a"), (None, None)]


@pytest.mark.parametrize(
    ("name", "indexes", "schema"),
    [
        (None, (0,), USER),
        ("shop.User", (0,), USER),
        ("Inner", (0, 0), columns(id=LongType())),
        ("Other", (1,), columns(name=StringType())),
    ],
)
def test_a_message_of_several(name, indexes, schema):
    """The first one is written, or that which is named; the entries of a map are not counted. A message says which it is."""
    row = ("a",) if schema.names == ["name"] else (1, "a")[: len(schema)]
    options = {} if name is None else {"message-name": name}

    (message,) = PROTO.write(schema, batch(schema, row), FILE, options=options)

    assert message.startswith(PREFIX + encoded_indexes(indexes))
    assert PROTO.writing(schema, FILE, options=options).schema == FILE
    assert rows_of(PROTO.read(schema, [message], FILE)) == [row]


def test_messages_of_several_kinds_in_one_batch():
    """Each is read by its own; a bad one is blamed alone."""
    schema = columns(name=StringType())
    many = [
        PREFIX + b"\x02\x02" + b"\x0a\x01a",
        HEAD + b"\x12\x01b",
        PREFIX + b"\x02\x04",
        PREFIX + b"\x01",
        PREFIX,
        HEAD + b"\x12\x05b",
    ]

    decoded = PROTO.read(schema, many, FILE)

    assert good_rows(decoded).to_pylist() == [{"name": "a"}, {"name": "b"}]
    assert decoded.errors[2] == "Schema id 7 has no message with the indexes [2]."
    assert "no message indexes" in decoded.errors[3]
    assert "no message indexes" in decoded.errors[4]
    assert sorted(decoded.errors) == [2, 3, 4, 5]


@law(30)
@given(
    data=st.data(),
    syntax=st.sampled_from(["proto2", "proto3"]),
    schema=schemas(),
    copies=st.sampled_from([1, 130]),
)
def test_it_is_protobuf_behind_a_prefix(data, syntax, schema, copies):
    """What the format ``protobuf`` reads of messages by their descriptor, of any schema, by either of its paths."""
    proto = EVERYTHING[syntax]
    text = {"proto2": PROTO2, "proto3": PROTO3}[syntax]
    drawn = data.draw(st.lists(messages(proto), max_size=3))
    many = [each.SerializeToString() for each in drawn] * copies + [b"\xff"]
    head = PREFIX + b"\x02\x02"  # the second message of the file

    decoded = PROTO.read(schema, [head + each for each in many], text)

    assert seen(decoded) == seen(proto.decoder(schema).decode(many))


# A column that the writer's schema lacks

WRITTEN = {
    "proto2": 'syntax = "proto2"; message Row { optional int64 id = 1; optional In in = 2; repeated In ins = 3; map<string, In> by = 4; MORE } message In { optional int64 x = 1; }',
    "proto3": 'syntax = "proto3"; message Row { int64 id = 1; In in = 2; repeated In ins = 3; map<string, In> by = 4; MORE } message In { optional int64 x = 1; }',
    "editions": 'edition = "2023"; message Row { int64 id = 1; In in = 2; repeated In ins = 3; map<string, In> by = 4; MORE } message In { int64 x = 1; }',
    "implicit": 'edition = "2023"; option features.field_presence = IMPLICIT; message Row { int64 id = 1; In in = 2; repeated In ins = 3; map<string, In> by = 4; MORE } message In { int64 x = 1; }',
}  # fmt: skip
INNER = columns(x=LongType(), y=StringType(), z=ArrayType(TimestampType()))
ADDED = columns(
    id=LongType(), name=StringType(), at=TimestampType(), tags=ArrayType(StringType()), of=INNER,
    points=MapType(StringType(), DoubleType()), ins=ArrayType(INNER), by=MapType(StringType(), INNER),
)  # fmt: skip
ADDED.add("in", INNER)
MESSAGE = (
    HEAD
    + b"\x08\x05"
    + b"\x12\x02\x08\x01"
    + b"\x1a\x02\x08\x02"
    + b"\x22\x07\n\x01k\x12\x02\x08\x03"
)


@pytest.mark.parametrize("syntax", WRITTEN)
@pytest.mark.parametrize(
    "more",
    ["", "reserved 536870911;", "optional bool last = 536870911;"],
    ids=["free", "reserved", "taken"],
)
def test_columns_that_the_writer_did_not_have(syntax, more):
    """They are NULL, wherever they stand; what was written is read beside them."""
    more = more if syntax in ("proto2", "proto3") else more.replace("optional ", "")
    more = more.replace("536870911;", "536870911 to max;") if "reserved" in more else more
    text = WRITTEN[syntax].replace("MORE", more)

    (row,) = PROTO.read(ADDED, [MESSAGE], text).rows.to_pylist()

    def inner(x: int) -> dict[str, Any]:
        return {"x": x, "y": None, "z": None}

    assert row == {
        "id": 5, "name": None, "at": None, "tags": None, "of": None, "points": None,
        "ins": [inner(2)], "by": [("k", inner(3))], "in": inner(1),
    }  # fmt: skip


@pytest.mark.parametrize("kept", ["extensions 100 to max", "reserved 100 to max"])
def test_numbers_that_are_kept_for_others(kept):
    """A message may have them: what stands there is not taken for the column that is lacking."""
    text = f'syntax = "proto2"; message Row {{ optional int64 id = 1; {kept}; }}'
    with_the_highest = HEAD + b"\x08\x05" + b"\xfa\xff\xff\xff\x0f\x01x"

    assert rows_of(PROTO.read(USER, [with_the_highest], text)) == [(5, None)]


@pytest.mark.parametrize(
    "within",
    [
        "oneof name { int64 a = 2; }",
        "message name {} optional name a = 2;",
        "enum E { name = 0; } optional E a = 2;",
        "reserved 2 to max;",
        "extensions 2 to max;",
        "reserved 2 to 99; extensions 100 to max;",
    ],
)
def test_columns_with_a_name_or_number_that_is_not_free(within):
    """A column that the writer did not have is NULL, whatever else in the message has its name or all numbers."""
    text = f'syntax = "proto2"; message Row {{ optional int64 id = 1; {within} }}'

    assert rows_of(PROTO.read(USER, [HEAD + b"\x08\x05"] * 300, text)) == [(5, None)] * 300


def test_maps_whose_names_differ_in_case():
    """The entries of both would have one name: the map that the writer did not have is NULL nevertheless."""
    schema = columns(id=LongType(), Scores=MapType(StringType(), LongType()))

    assert rows_of(PROTO.read(schema, [HEAD + b"\x08\x05"], FILE)) == [(5, None)]


def test_defaults_of_columns_that_the_writer_did_not_have():
    """With ``read-default-values`` they have their type's default, as other fields that a message lacks."""
    options = {"read-default-values": True}
    text = 'syntax = "proto3"; message Row { int64 id = 1; }'

    assert rows_of(PROTO.read(USER, [HEAD], text, options=options)) == [(0, "")]


def test_a_column_that_may_not_be_null_and_is_lacking():
    """The message cannot be decoded, by the column's name."""
    decoded = PROTO.read(required(id=LongType(), name=StringType()), [HEAD], 'syntax = "proto3"; message Row { int64 id = 1; }')  # fmt: skip

    assert "name" in decoded.errors[0]


def test_a_column_of_another_type_than_the_writers():
    """The messages of that schema are refused with both types."""
    decoded = PROTO.read(USER, [HEAD], 'syntax = "proto3"; message Row { int64 name = 1; }')

    assert "column 'name' is string, but field 'Row.name' is int64" in decoded.errors[0]


def test_a_number_that_became_wider():
    """An INT that became a LONG is read, and the other way round as far as the values fit."""
    text = 'syntax = "proto3"; message Row { int32 id = 1; int64 n = 2; }'
    schema = columns(id=LongType(), n=IntegerType())

    decoded = PROTO.read(schema, [HEAD + b"\x08\x05\x10\x06", HEAD + b"\x10\x80\x80\x80\x80\x10"], text)  # fmt: skip

    assert good_rows(decoded).to_pylist() == [{"id": 5, "n": 6}]
    assert "does not fit" in decoded.errors[1]


# A schema that is given to read by


def test_a_given_schema_reads_by_numbers():
    """So a field that was renamed is still read; a column that is no field of it is refused when planned."""
    given_one = 'syntax = "proto3"; message Row { int64 id = 1; string name = 2; }'
    written = 'syntax = "proto3"; package old; message Row { int64 number = 1; string title = 2; }'
    message = HEAD + b"\x08\x05\x12\x01a"

    assert rows_of(PROTO.read(USER, [message], written, given_one)) == [(5, "a")]
    with pytest.raises(SchemaError, match="Column 'number' does not exist"):
        PROTO.read(columns(number=LongType()), [], written, given_one)


def test_another_message_than_the_given_schemas():
    """It is refused: its numbers mean something else."""
    given_one = 'syntax = "proto3"; message Row { int64 id = 1; }'
    decoded = PROTO.read(columns(id=LongType()), [HEAD + b"\x08\x05"], FILE, given_one)

    assert decoded.errors == {0: "the message is a 'shop.User', and not a 'Row', which is read"}


# Schemas


def test_references():
    """What a schema refers to is compiled with it, and so is what every registry knows."""
    address = 'syntax = "proto3"; package a; message Address { string zip = 1; }'
    text = """
        syntax = "proto3";
        import "deep/address.proto"; import "google/type/date.proto"; import "confluent/meta.proto";
        import "confluent/type/decimal.proto";
        message User {
          int64 id = 1 [(confluent.field_meta) = { doc: "number" }]; a.Address at = 2; google.type.Date born = 3;
          confluent.type.Decimal price = 4;
        }
    """
    schema = columns(at=columns(zip=StringType()), born=columns(year=IntegerType()))
    message = HEAD + b"\x12\x03\x0a\x01z" + b"\x1a\x03\x08\xea\x0f"

    decoded = PROTO.read(schema, [message], text, references=[("deep/address.proto", address)])

    assert rows_of(decoded) == [({"zip": "z"}, {"year": 2026})]


def test_schemas_that_are_descriptors():
    """In base64, as some clients register them: a schema, what it refers to, or both."""
    address = 'syntax = "proto3"; package a; message Address { string zip = 1; }'
    text = """
        syntax = "proto3"; import "address.proto"; import "google/protobuf/timestamp.proto";
        message User { int64 id = 1; a.Address at = 2; google.protobuf.Timestamp since = 3; }
    """
    schema = RegisteredSchema("It", "PROTOBUF", text, (Reference("address.proto", address),))
    files = {file.name.rpartition("/")[2]: described(file) for file in compiled(schema).files}
    table = columns(id=LongType(), at=columns(zip=StringType()))
    message = HEAD + b"\x08\x05" + b"\x12\x03\x0a\x01z"

    for one, other in itertools.product(
        (text, files["registered-schema.proto"]), (address, files["address.proto"])
    ):
        decoded = PROTO.read(table, [message], one, references=[("address.proto", other)])
        assert rows_of(decoded) == [(5, {"zip": "z"})]


def described(file: Any) -> str:
    """A file's descriptor in base64."""
    return base64.b64encode(file.SerializeToString()).decode()


@pytest.mark.parametrize("text", ["", "abcd", "AAAA", "no proto"])
def test_what_is_neither_text_nor_descriptor(text):
    """It is refused in protoc's words alone."""
    with pytest.raises(SchemaError, match=r"Schema id 7 (has no message|is no Protobuf)") as error:
        PROTO.columns(text)
    assert "WARNING" not in str(error.value)


@pytest.mark.parametrize("name", ["/etc/x.proto", "../x.proto", "a/../../x.proto", "a\\b", "", ".", "a\0b", "x" * 300])  # fmt: skip
def test_a_reference_that_leads_out(name):
    """A file is written nowhere but in a folder of its own."""
    with pytest.raises(SchemaError, match="names that cannot be"):
        PROTO.read(USER, [HEAD], 'syntax = "proto3";', references=[(name, "")])


def test_a_schema_that_protoc_refuses():
    """Each message that names it is refused, with protoc's reason; nothing is said of folders."""
    text = 'syntax = "proto3"; import "x.proto"; message A { int64 id = 1; }'

    with pytest.raises(SchemaError, match=r"Schema id 7 is no Protobuf .* used: x.proto: File not") as error:  # fmt: skip
        PROTO.read(USER, [HEAD], text)
    assert "/tmp" not in str(error.value)
    with pytest.raises(SchemaError, match=r"'value\.proto-registry\.schema' is no Protobuf schema"):
        PROTO.writing(USER, text)


@pytest.mark.parametrize("kind", ["AVRO", "JSON"])
def test_messages_of_another_kind(kind):
    """They are refused by the type of their schema."""
    with pytest.raises(SchemaError, match=f"Schema id 7 is of the type {kind}, not a Protobuf"):
        PROTO.read(USER, [HEAD], "{}", kind=kind)


def test_a_message_that_a_schema_does_not_have():
    """The option is named, and the nearest one."""
    with pytest.raises(OptionError, match=r"value\.proto-registry\.message-name': .* Did you mean"):
        PROTO.writing(USER, FILE, options={"message-name": "Usr"})


def test_what_protoc_says(capfd):
    """Warnings and errors do not go to the standard error stream, where nobody knows whose they are."""
    head = 'syntax = "proto3"; import "google/protobuf/any.proto";'

    PROTO.columns(f"{head} message A {{}}")
    with pytest.raises(SchemaError, match="Expected message name"):
        PROTO.columns(f"{head} message {{")

    assert capfd.readouterr() == ("", "")


def test_messages_that_multiply_at_each_level_are_refused():
    """A schema of 1 KB that means a billion columns is refused in words."""

    def columns_at(levels: int) -> Any:
        above = (
            f"message M{at} {{ M{at - 1} a = 1; M{at - 1} b = 2; }}\n"
            for at in range(levels, 0, -1)
        )
        text = f'syntax = "proto3";\n{"".join(above)}message M0 {{ int32 x = 1; }}'
        schema = RegisteredSchema("Schema id 7", "PROTOBUF", text)
        return columns_of_message(compiled(schema).descriptor(f"M{levels}"))

    assert columns_at(3).simpleString().count("x:int") == 8
    with pytest.raises(SchemaError, match="'M30' has more than 100,000 fields in all"):
        columns_at(30)


@pytest.mark.alone("asserts how much memory is taken")
def test_what_protoc_says_of_each_field():
    """It repeats the name of the message each time; only the beginning is read."""
    fields = "".join(f"  Unknown f = {at};\n" for at in range(1, 1_000))
    text = f'syntax = "proto3";\nmessage {"M" * 20_000} {{\n{fields}}}'
    tracemalloc.start()
    with pytest.raises(
        SchemaError, match=r"^Schema id 7 is no Protobuf schema that can be used: .{,2000}$"
    ):
        compiled(RegisteredSchema("Schema id 7", "PROTOBUF", text))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 10_000_000


def test_what_protoc_may_take():
    """A schema of a few hundred kilobytes for which it needs more than its share is refused, and nothing else ends."""
    numbers = [*range(1, 19_000), *range(20_000, 26_000)]
    fields = "".join(f"  int32 f{at} = {at};\n" for at in numbers)
    text = f'syntax = "proto3";\nmessage {"M" * 60_000} {{\n{fields}}}'
    with pytest.raises(
        SchemaError, match="can be used: protoc needs more than 1 GB or 60 s for it"
    ):
        compiled(RegisteredSchema("Schema id 7", "PROTOBUF", text))
