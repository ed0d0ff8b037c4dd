"""Maps in the texts of a registry, and messages behind maps: entries that are spelled out, and which messages have which indexes."""

from __future__ import annotations

import itertools
from contextlib import suppress
from typing import Any

import pytest
from pyspark.sql.types import LongType, MapType, StringType, StructType

from pyspark_upsert_kafka.core.errors import SchemaError
from pyspark_upsert_kafka.formats.proto_registry import FORMAT
from pyspark_upsert_kafka.formats.protobuf.proto_compiler import compiled, without_option
from pyspark_upsert_kafka.formats.protobuf.proto_schema import encoded_indexes
from pyspark_upsert_kafka.formats.registry_format import RegisteredSchema
from tests.unit.formats.protobuf.codecs import columns
from tests.unit.formats.registry_codecs import PREFIX, Codecs, rows_of
from tests.unit.formats.test_proto_registry import described

PROTO = Codecs(FORMAT)
MAPS = """
syntax = "proto3";
package shop;
message User {
  int64 id = 1;
  map<string, int64> scores = 2;
  message Inner { map<int64, Value> by_number = 1; message Value { string text = 1; } }
  Inner inner = 3;
}
"""
SPELLED_OUT = """
syntax = "proto3";
package shop;
// A comment with message X { option map_entry = true; }
message User {
  option (unknown.looks_like) = { text: "option map_entry = true;" };
  int64 id = 1 [json_name = "option map_entry = true; }"];
  repeated ScoresEntry scores = 2;
  message Inner {
    repeated ByNumberEntry by_number = 1;
    message Value { string text = 1; }
    message ByNumberEntry { option /* as Java writes it */ map_entry
      = true ; int64 key = 1; Value value = 2; }
  }
  Inner inner = 3;
  message ScoresEntry { option map_entry=true; string key = 1; int64 value = 2; }
}
""".replace("  option (unknown.looks_like)", "  // option (unknown.looks_like)")
TABLE = columns(
    id=LongType(),
    scores=MapType(StringType(), LongType()),
    inner=columns(by_number=MapType(LongType(), columns(text=StringType()))),
)
ROW = (1, [("a", 2)], {"by_number": [(3, {"text": "b"})]})


MESSAGE = (
    PREFIX + b"\0" + b"\x08\x01" + b"\x12\x05\x0a\x01a\x10\x02" + b"\x1a\x09\x0a\x07\x08\x03\x12\x03\x0a\x01b"
)  # fmt: skip


@pytest.mark.parametrize("text", [MAPS, SPELLED_OUT], ids=["map", "spelled out"])
def test_entries_that_are_spelled_out_are_maps(text: str) -> None:
    """As columns, when reading and when writing; also within messages, and whatever comments and texts say."""
    assert PROTO.columns(text) == TABLE
    assert rows_of(PROTO.read(TABLE, [MESSAGE] * 100, text)) == [ROW] * 100
    import pyarrow as pa

    from pyspark_upsert_kafka.core.arrow import arrow_schema

    row = pa.RecordBatch.from_pylist(
        [dict(zip(TABLE.names, ROW, strict=True))], schema=arrow_schema(TABLE)
    )
    assert PROTO.write(TABLE, row, text) == [MESSAGE]
    assert PROTO.writing(TABLE, text).schema == text


def test_a_schema_that_is_referred_to() -> None:
    """Its entries are maps too, be it a text or a descriptor."""
    body = MESSAGE.removeprefix(PREFIX + b"\0")
    message = PREFIX + b"\0\x0a" + bytes([len(body)]) + body
    text = 'syntax = "proto3"; import "user.proto"; message Top { shop.User user = 1; }'
    file = compiled(RegisteredSchema("It", "PROTOBUF", MAPS)).files[-1]
    for one in (SPELLED_OUT, described(file)):
        found = PROTO.read(columns(user=TABLE), [message], text, references=[("user.proto", one)])
        assert found.rows.to_pylist()[0]["user"]["scores"] == [("a", 2)]


@pytest.mark.parametrize(
    ("text", "entries"),
    [
        ("message A { option map_entry = true; }", {("A",)}),
        ("message A{option map_entry=true;}", {("A",)}),
        ("message A { option map_entry = false; }", set()),
        ("message A { message B { option\tmap_entry // x\n = /* ; */ true; } }", {("A", "B")}),
        ("message A { oneof o { group B = 1 { option map_entry = true; } } }", {("A", "B")}),
        (
            "message A { repeated group B = 1 [deprecated = true] { option map_entry = true; } }",
            {("A", "B")},
        ),
        ("export message A { option map_entry = true; } message B {}", {("A",)}),
        (
            "message A { option (x) = { a: { b: '}' } }; option map_entry = true; enum E { X = 0; } }",
            {("A",)},
        ),
    ],
)
def test_where_the_option_is_found(text: str, entries: set[Any]) -> None:
    """In the message that has it; all else stays where it was."""
    found = without_option(text)
    assert found.entries == entries
    assert "map_entry" not in found.text
    assert len(found.text) == len(text)
    assert found.text.count("\n") == text.count("\n")
    assert all(new in (old, " ") for old, new in zip(text, found.text, strict=True))


@pytest.mark.parametrize(
    "text",
    [
        "// option map_entry = true;",
        "message A { /* option map_entry = true; */ }",
        "message A { string s = 1 [default = 'option map_entry = true;']; }",
        'message A { string s = 1 [default = "\\"; option map_entry = true;"]; }',
        "message A { string map_entry = 1; }",
        "message A { option (map_entry) = true; }",
        "message A { option map_entry.x = true; }",
        "option map_entry = true;",
        "/* map_entry", "'map_entry", '"map_entry', "} } map_entry {",
    ],
)  # fmt: skip
def test_what_is_not_the_option(text: str) -> None:
    """It stays as it is."""
    assert without_option(text).text == text


@pytest.mark.parametrize(
    "entry",
    [
        "message TagsEntry { option map_entry = true; string key = 1; }",
        "message TagsEntry { option map_entry = true; double key = 1; string value = 2; }",
        "message TagsEntry { option map_entry = true; string key = 1; string value = 2; string more = 3; }",
        "message TagsEntry { option map_entry = true; string value = 1; string key = 2; }",
    ],
)
def test_what_is_no_entry(entry: str) -> None:
    """The schema is refused, as protoc would refuse a descriptor with it."""
    text = f'syntax = "proto3"; message A {{ repeated TagsEntry tags = 1; {entry} }}'
    with pytest.raises(SchemaError, match="Schema id 7 is no Protobuf schema that can be used"):
        PROTO.columns(text)


# Message indexes

BEHIND_A_MAP = """
syntax = "proto3";
message Outer {
  map<string, string> tags = 1;
  message Other { string text = 1; }
  message Inner { string text = 1; }
}
"""
BEHIND_A_GROUP = """
syntax = "proto2";
message Outer {
  optional group Tags = 1 { optional string x = 1; }
  message Other { optional string text = 1; }
  message Inner { optional string text = 1; }
}
"""
BEHIND_AN_ENTRY = BEHIND_A_MAP.replace(
    "map<string, string> tags = 1;",
    "repeated TagsEntry tags = 1; message TagsEntry { option map_entry = true; string key = 1; string value = 2; }",
)
TEXT = columns(text=StringType())


def as_descriptor(text: str) -> str:
    """The same schema, as a client for Python registers it."""
    return described(compiled(RegisteredSchema("It", "PROTOBUF", text)).files[-1])


def names(text: str, *indexes: int) -> list[str]:
    """The messages that may have these indexes; none, if the schema has none."""
    with suppress(SchemaError):
        return compiled(RegisteredSchema("It", "PROTOBUF", text)).names_at(indexes)
    return []


@pytest.mark.parametrize("text", [BEHIND_A_MAP, BEHIND_A_GROUP], ids=["map", "group"])
def test_indexes_of_a_text(text: str) -> None:
    """Java counts what stands in it; whoever counts the messages of a descriptor may mean another one."""
    assert names(text, 0) == ["Outer"]
    assert names(text, 0, 0) == ["Outer.Other"]
    assert names(text, 0, 1) == ["Outer.Inner", "Outer.Other"]
    assert names(text, 0, 2) == ["Outer.Inner"]
    assert names(text, 0, 3) == []
    assert names(text, 1) == []


@pytest.mark.parametrize("text", [BEHIND_AN_ENTRY, as_descriptor(BEHIND_A_MAP), as_descriptor(BEHIND_AN_ENTRY)])  # fmt: skip
def test_indexes_of_a_descriptor(text: str) -> None:
    """Entries count, as in Java and Python; so they do where a text spells them out."""
    assert names(text, 0) == ["Outer"]
    assert names(text, 0, 0) == []
    assert names(text, 0, 1) == ["Outer.Other"]
    assert names(text, 0, 2) == ["Outer.Inner"]
    assert names(text, 0, 3) == []


def test_indexes_are_those_that_were_written() -> None:
    """A message that is written is read as what it is, whichever way its schema is given."""
    for text, name in itertools.product(
        (BEHIND_A_MAP, BEHIND_A_GROUP, BEHIND_AN_ENTRY, as_descriptor(BEHIND_A_MAP), MAPS, SPELLED_OUT),
        ("Other", "Inner", "Outer", "User", "Value"),
    ):  # fmt: skip
        schema = compiled(RegisteredSchema("It", "PROTOBUF", text))
        for full in schema.names:
            if full.rpartition(".")[2] == name and full not in schema.implied:
                assert schema.names_at(schema.indexes_of(full))[0] == full


def read(text: str, *indexes: int, schema: StructType = TEXT, **given: Any) -> Any:
    """What a message with these indexes gives."""
    return PROTO.read(schema, [PREFIX + encoded_indexes(indexes) + b"\x0a\x01a"], text, **given)


def test_a_message_that_may_be_two_is_not_read() -> None:
    """The error names both, and the option that decides."""
    assert rows_of(read(BEHIND_A_MAP, 0, 0)) == [("a",)]
    assert rows_of(read(BEHIND_A_MAP, 0, 2)) == [("a",)]
    assert read(BEHIND_A_MAP, 0, 1).errors[0] == (
        "the message indexes [0, 1] may mean two messages of Schema id 7: 'Outer.Inner', if its writer counts the messages of "
        "its text, and 'Outer.Other', if its writer counts those of a descriptor, in which each map is a message. Set "
        "'value.proto-registry.message-name' to the one that is meant"
    )
    for name in ("Inner", "Outer.Other"):
        assert rows_of(read(BEHIND_A_MAP, 0, 1, options={"message-name": name})) == [("a",)]


def test_a_given_schema_decides_too() -> None:
    """Of two messages the one that has its name is read."""
    given = 'syntax = "proto3"; message Inner { string text = 1; }'
    assert rows_of(read(BEHIND_A_MAP, 0, 1, given=given)) == [("a",)]
    assert "may mean two" in read(BEHIND_A_MAP, 0, 1, given=given.replace("Inner", "X")).errors[0]


def test_blocks_that_stand_within_each_other_too_deep():
    """What is kept of each option is no list of the names of a million messages: protoc refuses such a text anyway."""
    found = without_option("message A { option map_entry = true; " * 5_000)
    assert max(map(len, found.entries)) == 100
