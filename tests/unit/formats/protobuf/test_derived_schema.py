"""The Protobuf schema of columns, and the columns of a Protobuf schema."""

from __future__ import annotations

import pytest
from google.protobuf.descriptor_pb2 import DescriptorProto, FileDescriptorProto
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    ByteType,
    DataType,
    DateType,
    DayTimeIntervalType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    ShortType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
    VariantType,
)

from pyspark_upsert_kafka.core.errors import OptionError, SchemaError
from pyspark_upsert_kafka.formats.proto_registry import FORMAT
from pyspark_upsert_kafka.formats.protobuf.derived_schema import derived_schema
from pyspark_upsert_kafka.formats.protobuf.field_types import columns_of_message
from pyspark_upsert_kafka.formats.protobuf.proto_compiler import compiled
from pyspark_upsert_kafka.formats.protobuf.proto_schema import text_of
from pyspark_upsert_kafka.formats.registry_format import RegisteredSchema
from tests.laws import law
from tests.unit.formats.protobuf.codecs import columns, required
from tests.unit.formats.registry_codecs import Codecs

PROTO = Codecs(FORMAT)
NOBODY = frozenset[str]()


def test_the_text():
    """As Confluent's Flink derives it: the message ``Row``, numbers from 1 on, ``optional`` what may be NULL."""
    line = columns(price=DoubleType(), tags=ArrayType(StringType()))
    schema = columns(
        id=LongType(), name=StringType(), at=TimestampType(), lines=ArrayType(line), total=line,
        by_name=MapType(StringType(), LongType()),
    )  # fmt: skip

    assert (
        text_of(derived_schema(schema, frozenset({"id"})))
        == """\
syntax = "proto3";
package io.confluent.protobuf.generated;

import "google/protobuf/timestamp.proto";

message Row {
  int64 id = 1;
  optional string name = 2;
  optional .google.protobuf.Timestamp at = 3;
  repeated lines_Row lines = 4;
  optional total_Row total = 5;
  map<string, int64> by_name = 6;

  message lines_Row {
    optional double price = 1;
    repeated string tags = 2;
  }

  message total_Row {
    optional double price = 1;
    repeated string tags = 2;
  }
}
"""
    )


SIMPLE = [
    BinaryType(), BooleanType(), DayTimeIntervalType(), DecimalType(20, 0), DoubleType(), FloatType(),
    IntegerType(), LongType(), StringType(), TimestampType(),
]  # fmt: skip
SMALL = [ByteType(), ShortType()]
KEYS = [BooleanType(), IntegerType(), LongType(), StringType()]
NAMES = st.sampled_from(["a", "b", "a_b", "_c", "Row", "message", "optional", "x9"])


def structs(kinds: st.SearchStrategy[DataType]) -> st.SearchStrategy[StructType]:
    """Columns of these types, some of them NOT NULL."""
    fields = st.lists(st.tuples(NAMES, kinds, st.booleans()), min_size=1, max_size=4, unique_by=lambda field: field[0])  # fmt: skip
    return fields.map(lambda found: StructType([StructField(*each) for each in found]))


def schemas(simple: list[DataType]) -> st.SearchStrategy[StructType]:
    """Any columns that Protobuf can carry."""
    ones = st.recursive(st.sampled_from(simple), structs, max_leaves=4)
    arrays, maps = st.builds(ArrayType, ones), st.builds(MapType, st.sampled_from(KEYS), ones)
    return structs(ones | arrays | maps | structs(ones | arrays | maps))


def plain(file: FileDescriptorProto) -> FileDescriptorProto:
    """A file without its name and those that protoc makes up."""
    copy = FileDescriptorProto.FromString(file.SerializeToString())
    copy.ClearField("name")
    waiting: list[DescriptorProto] = list(copy.message_type)
    while waiting:
        message = waiting.pop()
        message.nested_type.sort(key=lambda nested: nested.name)
        waiting += message.nested_type
        for field in message.field:
            field.ClearField("json_name")
        for oneof in message.oneof_decl:
            oneof.ClearField("name")
    return copy


@law(60, few=15)
@given(schemas(SIMPLE + SMALL))
def test_the_text_says_what_is_written_with(schema):
    """What is registered is for protoc: it makes of it the very descriptors that messages are written with."""
    derived = derived_schema(schema, NOBODY)

    (*_, file) = compiled(RegisteredSchema("It", "PROTOBUF", text_of(derived))).files

    assert plain(file) == plain(derived.file)


@law(60, few=15)
@given(schemas(SIMPLE))
def test_a_derived_schema_gives_its_columns(schema):
    """What columns mean means those columns; arrays and maps may be NULL, and messages, whatever they were."""
    derived = derived_schema(schema, NOBODY)

    found = columns_of_message(derived.descriptor("io.confluent.protobuf.generated.Row"))

    assert found.simpleString() == schema.simpleString()
    for field, expected in zip(found, schema, strict=True):
        always = not isinstance(expected.dataType, tuple(map(type, SIMPLE[:-1]))) or (
            expected.dataType == DayTimeIntervalType()
        )
        assert field.nullable == (always or expected.nullable)


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        (DateType(), "Protobuf has no type for column 'c', DATE"),
        (TimestampNTZType(), "no type for column 'c', TIMESTAMP_NTZ"),
        (DecimalType(10, 2), r"no type for column 'c', DECIMAL\(10,2\)"),
        (VariantType(), "no type for column 'c', VARIANT"),
        (ArrayType(ArrayType(LongType())), r"no type for column 'c\[\]', ARRAY<BIGINT>"),
        (MapType(StringType(), ArrayType(LongType())), r"no type for column 'c\{\}', ARRAY<BIGINT>"),
        (MapType(DoubleType(), LongType()), "no maps with keys of the type DOUBLE"),
        (MapType(columns(x=LongType()), LongType()), "no maps with keys of the type STRUCT"),
        (columns(x=ArrayType(DateType())), r"no type for column 'c.x\[\]', DATE"),
    ],
)  # fmt: skip
def test_what_protobuf_cannot_carry(kind, message):
    """It is refused before anything is read or written, as the format ``protobuf`` refuses it."""
    for compile_it in (PROTO.writing, lambda it: PROTO.read(it, [], 'syntax = "proto3";')):
        with pytest.raises(SchemaError, match=message):
            compile_it(required(c=kind))


@pytest.mark.parametrize("name", ["ä", "a-b", "1a", "a b", ""])
def test_a_name_that_no_field_can_have(name):
    """It is refused with what a name is made of."""
    with pytest.raises(SchemaError, match="cannot be a field of a protobuf message"):
        PROTO.writing(StructType([StructField(name, LongType())]))


@pytest.mark.parametrize(
    ("schema", "name"),
    [
        (columns(a=columns(x=LongType()), a_Row=LongType()), "a_Row"),
        (columns(b=MapType(StringType(), LongType()), _b=MapType(StringType(), LongType())), "BEntry"),
        (columns(c=columns(b=MapType(StringType(), LongType()), BEntry=LongType())), "BEntry"),
    ],
)  # fmt: skip
def test_names_that_collide(schema, name):
    """A column that has the name of another one's message, and messages that have one name."""
    with pytest.raises(SchemaError, match=f"the name '{name}' for two things.*Rename the column"):
        PROTO.writing(schema)


FILE = """
syntax = "proto3";
package shop;
import "google/protobuf/timestamp.proto";
import "google/protobuf/wrappers.proto";
enum Color { RED = 0; }
message Order {
  uint32 number = 1; fixed64 large = 2; optional sint32 small = 3; Color color = 4; repeated Line lines = 5;
  google.protobuf.Timestamp at = 6; google.protobuf.Int32Value wrapped = 7; oneof either { bool yes = 8; }
  message Line { string item = 1; }
}
message Tree { Tree left = 1; }
"""


def test_columns_of_a_schema():
    """Those of the first message, or of the one that is named; NULL where a message may lack the field, as an older one may each."""
    assert PROTO.columns(FILE).simpleString() == (
        "struct<number:bigint,large:decimal(20,0),small:int,color:string,lines:array<struct<item:string>>,"
        "at:timestamp,wrapped:struct<value:int>,yes:boolean>"
    )
    assert all(field.nullable for field in PROTO.columns(FILE))
    given = PROTO.format.given("value", FILE)
    assert given is not None
    columns_ = PROTO.format.columns(given, PROTO.spec(columns(), {}), None)
    assert [field.nullable for field in columns_] == [
        False, False, True, False, True, True, True, True,
    ]  # fmt: skip
    line = PROTO.columns(FILE, **{"message-name": "Line"})
    assert line == columns(item=StringType())


@pytest.mark.parametrize(
    ("text", "options", "error", "message"),
    [
        (FILE, {"message-name": "Tree"}, SchemaError, "'shop.Tree' holds itself"),
        (FILE, {"message-name": "Ordre"}, OptionError, r"value\.proto-registry\.message-name': Schema id 7 has no message 'Ordre'. Did you mean: shop.Order"),
        ('syntax = "proto3";', {}, SchemaError, "Schema id 7 has no message"),
        ('syntax = "proto3"; message A { strin x = 1; }', {}, SchemaError, r'Schema id 7 is no Protobuf schema that can be used: line 1:32: "strin" is not defined'),
        ('syntax = "proto2"; message A { optional group B = 1 { } }', {}, SchemaError, "is a group"),
        ("", {}, SchemaError, "Schema id 7 has no message|no Protobuf schema"),
    ],
)  # fmt: skip
def test_a_schema_that_gives_no_columns(text, options, error, message):
    """It is refused with the reason, that of protoc with its line."""
    with pytest.raises(error, match=message):
        PROTO.columns(text, **options)
