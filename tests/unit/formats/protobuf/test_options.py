"""Finding the message, and matching columns with its fields: all that is said when a query is planned."""

from __future__ import annotations

import sys

import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorSet
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
    VariantType,
)

from pyspark_upsert_kafka.core.errors import OptionError, SchemaError
from pyspark_upsert_kafka.formats.protobuf import FORMAT
from tests.unit.formats.codec_specs import codec_spec
from tests.unit.formats.protobuf.codecs import Proto, columns, descriptor_file
from tests.unit.formats.protobuf.corpus import EVERYTHING

TEXT = """
syntax = "proto3"; package shop.v1;
import "google/protobuf/timestamp.proto";
message Order { int64 id = 1; message Line { int64 id = 1; } map<string, int64> counts = 2; }
message Invoice { message Line { int64 id = 1; } google.protobuf.Timestamp at = 2; }
"""
ID = columns(id=LongType())


def compiled(name="Order", file=None, schema=ID):
    """The decoder for a message of the text above."""
    file = file or descriptor_file(TEXT, "--include_imports")
    options = {"descriptor-file": str(file), "message-name": name}
    return FORMAT.decoder(codec_spec(FORMAT, schema, "value", options))


@pytest.mark.parametrize(
    "name", ["shop.v1.Order", "Order", "v1.Order", "Order.Line", "shop.v1.Invoice.Line"]
)
def test_a_message_is_found_by_its_name_or_the_end_of_it(name):
    """Nested messages too, as long as it is only one."""
    assert compiled(name).decode([b"\x08\x07"]).rows.to_pylist() == [{"id": 7}]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("Line", "ambiguous; it may be shop.v1.Invoice.Line, shop.v1.Order.Line"),
        ("Ordre", "has no message 'Ordre'. Did you mean: shop.v1.Order"),
        ("shop.v2.Order", "Did you mean: shop.v1.Order"),
        ("rder", "has no message 'rder'"),
        ("zzzzz", "It has: google.protobuf.Timestamp, shop.v1.Invoice,"),
        ("Order.CountsEntry", "has no message"),
    ],
)
def test_an_unknown_name_is_told_from_an_ambiguous_one(name, said):
    """With the names that it may be instead."""
    with pytest.raises(OptionError, match=r"value.protobuf.message-name") as error:
        compiled(name)
    assert said in str(error.value)


def test_a_file_that_is_not_there_is_said_with_where_it_must_be(tmp_path):
    """A worker says the same when only the driver has the file."""
    with pytest.raises(OptionError, match=r"No such file.*driver and on every worker"):
        compiled(file=tmp_path / "gone.desc")


@pytest.mark.parametrize("data", [b"", b'syntax = "proto3";', b"\n\x00", b"\x00\x01"])
def test_a_file_that_is_no_descriptor_set_is_said_with_how_to_make_one(tmp_path, data):
    """A .proto file given by mistake, or an empty one."""
    (tmp_path / "file").write_bytes(data)
    with pytest.raises(OptionError, match=r"not a descriptor set.*protoc --include_imports"):
        compiled(file=tmp_path / "file")


def test_a_missing_import_is_named():
    """A descriptor set made without --include_imports."""
    with pytest.raises(OptionError, match=r"lacks 'google/protobuf/timestamp.proto', which 'test"):
        compiled(file=descriptor_file(TEXT))


def test_a_descriptor_that_contradicts_itself_is_refused(tmp_path):
    """The runtime's own words are shown."""
    files = FileDescriptorSet.FromString(descriptor_file(TEXT, "--include_imports").read_bytes())
    files.file[1].message_type[0].field[0].number = 2
    (tmp_path / "file").write_bytes(files.SerializeToString())
    with pytest.raises(OptionError, match=r"cannot be used.*duplicate field number"):
        compiled(file=tmp_path / "file")


@pytest.mark.parametrize("missing", ["descriptor-file", "message-name"])
def test_both_options_are_required(missing):
    """The one that is missing is named, with its meaning."""
    options = {"descriptor-file": "file", "message-name": "M"} | {missing: None}
    with pytest.raises(OptionError, match=f"key.protobuf.{missing}' is missing.*Required"):
        FORMAT.encoder(codec_spec(FORMAT, ID, "key", options))


def test_a_missing_runtime_is_said_with_what_to_install(monkeypatch):
    """The package works without it, but for this format."""
    monkeypatch.setitem(sys.modules, "google.protobuf", None)
    with pytest.raises(OptionError, match=r"pip install 'pyspark-upsert-kafka\[protobuf\]'"):
        compiled()


MISFITS = [
    ("nosuch", LongType(), "Column 'nosuch' does not exist in the definition of protobuf message"),
    ("leaf", columns(nosuch=LongType()), "Column 'leaf.nosuch' does not exist"),
    (
        "int32",
        StringType(),
        "column 'int32' is string, but field 'shop.v1.Everything.int32' is int32",
    ),
    ("int32", DecimalType(20, 0), "which needs an integer type"),
    ("uint64", DecimalType(19, 0), "which needs DECIMAL(20,0) or an integer type"),
    ("float", DoubleType(), "which needs FLOAT"),
    ("double", FloatType(), "which needs DOUBLE"),
    ("string", BinaryType(), "which needs STRING"),
    ("bytes", StringType(), "which needs BINARY"),
    ("color", DoubleType(), "which needs STRING or an integer type"),
    ("leaf", StringType(), "is message, which needs STRUCT"),
    ("at", TimestampNTZType(), "which needs TIMESTAMP or STRUCT"),
    ("at", DateType(), "which needs TIMESTAMP or STRUCT"),
    ("took", TimestampType(), "which needs INTERVAL DAY TO SECOND or STRUCT"),
    ("loose", LongType(), "is repeated int32, which needs ARRAY<an integer type>"),
    ("int32", ArrayType(IntegerType()), "column 'int32' is array<int>"),
    ("strings", ArrayType(LongType()), "column 'strings[]' is bigint"),
    ("by_name", ArrayType(columns(key=StringType())), "is map, which needs MAP"),
    ("by_name", MapType(LongType(), LongType()), "column 'by_name{key}' is bigint"),
    ("by_name", MapType(StringType(), StringType()), "column 'by_name{}' is string"),
    ("leaves", MapType(StringType(), LongType()), "is repeated message, which needs ARRAY<STRUCT>"),
    ("string", VariantType(), "column 'string' is variant"),
]


@pytest.mark.parametrize(("name", "kind", "said"), MISFITS, ids=str)
@pytest.mark.parametrize("side", ["decoder", "encoder"])
def test_a_column_that_does_not_fit_is_refused(name, kind, said, side):
    """When planned, on both sides, with column, type and field."""
    with pytest.raises(SchemaError) as error:
        getattr(EVERYTHING["proto3"], side)(columns(**{name: kind}))
    assert said in str(error.value)


def test_a_column_twice_is_refused():
    """In a struct, where Spark itself says nothing."""
    twice = StructType([StructField("id", LongType())] * 2)
    with pytest.raises(SchemaError, match=r"'leaf.id' occurs 2 times"):
        EVERYTHING["proto3"].decoder(columns(leaf=twice))


GROUPS = Proto(
    'syntax = "proto2"; message M { optional group Part = 1 { optional int64 id = 1; }'
    " optional int64 id = 2; }",
    "M",
)


def test_groups_are_refused_as_columns_and_passed_over_otherwise():
    """proto2 has them; they are deprecated."""
    with pytest.raises(SchemaError, match="groups are not read"):
        GROUPS.decoder(columns(part=ID))
    message = GROUPS.message(part={"id": 1}, id=7).SerializeToString()
    assert GROUPS.decoder(ID).decode([message] * 199).rows.to_pylist() == [{"id": 7}] * 199
