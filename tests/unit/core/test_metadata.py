"""Metadata columns: which columns of a schema they are, and what types hold them."""

from __future__ import annotations

import pytest
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DateType,
    DecimalType,
    IntegerType,
    LongType,
    MapType,
    ShortType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from pyspark_upsert_kafka.core.errors import SchemaError
from pyspark_upsert_kafka.core.metadata import (
    HEADERS,
    METADATA,
    METADATA_OF_FORMATS,
    MetadataColumn,
    metadata_columns,
)
from pyspark_upsert_kafka.core.options.catalog import METADATA_KEYS


def struct(**fields):
    """A struct of nullable fields."""
    return StructType([StructField(name, type_) for name, type_ in fields.items()])


HEADER = struct(key=StringType(), value=BinaryType())
STRICT_HEADER = StructType(
    [StructField("key", StringType(), False), StructField("value", BinaryType())]
)
BROKEN_HEADER = StructType(
    [StructField("key", StringType()), StructField("value", BinaryType(), False)]
)
ERROR_TYPE = struct(stage=StringType(), message=StringType(), key=BinaryType(), value=BinaryType())


def key_of(column):
    """The metadata key of a reserved name."""
    return next(key for key, metadata in METADATA.items() if metadata.column == column)


def columns(schema, *named, reading=True):
    """The metadata columns of a schema."""
    return metadata_columns(schema, named, reading=reading)


@pytest.mark.parametrize(
    ("name", "type_", "key"),
    [
        ("_topic", StringType(), "topic"),
        ("_partition", IntegerType(), "partition"),
        ("_partition", LongType(), "partition"),
        ("_offset", LongType(), "offset"),
        ("_timestamp", TimestampType(), "timestamp"),
        ("_timestamp", TimestampNTZType(), "timestamp"),
        ("_timestamp_type", StringType(), "timestamp-type"),
        ("_headers", ArrayType(HEADER), "header-list"),
        ("_headers", ArrayType(STRICT_HEADER, containsNull=False), "header-list"),
        ("_leader_epoch", IntegerType(), "leader-epoch"),
        ("_leader_epoch", LongType(), "leader-epoch"),
        ("_change_type", StringType(), "change-type"),
        ("_error", ERROR_TYPE, "error"),
        ("_OFFSET", LongType(), "offset"),
        ("_Change_Type", StringType(), "change-type"),
    ],
)
def test_reserved_names_are_metadata(name, type_, key):
    """A reserved name, in any case, is metadata of its key in each type that holds it."""
    assert columns(struct(**{"id": LongType(), name: type_})) == (MetadataColumn(name, key, type_),)


@pytest.mark.parametrize(
    ("key", "type_"),
    [
        ("topic", StringType()),
        ("partition", LongType()),
        ("offset", LongType()),
        ("timestamp", TimestampNTZType()),
        ("timestamp-type", StringType()),
        ("headers", MapType(StringType(), BinaryType())),
        ("header-list", ArrayType(HEADER)),
        ("leader-epoch", IntegerType()),
        ("change-type", StringType()),
    ],
)
def test_any_column_can_be_metadata(key, type_):
    """`metadata.<column>` makes a column of the user's own name metadata, whatever its case."""
    assert columns(struct(MyColumn=type_), ("mycolumn", key)) == (
        MetadataColumn("MyColumn", key, type_),
    )


def test_other_columns_are_no_metadata():
    """A column that only looks like metadata is an ordinary one."""
    assert columns(struct(offset=StringType(), __offset=StringType(), _key=StringType())) == ()


def test_none_makes_a_reserved_name_ordinary():
    """With `none` a reserved name may have any type, for it is a column of the row."""
    assert (
        columns(
            struct(_offset=StringType(), _Topic=LongType()), ("_offset", "none"), ("_topic", "none")
        )
        == ()
    )


def test_a_reserved_name_can_show_other_metadata():
    """`metadata._headers` = `headers` makes a map of it."""
    map_ = MapType(StringType(), BinaryType())

    assert columns(struct(_headers=map_), ("_headers", "headers")) == (
        MetadataColumn("_headers", "headers", map_),
    )


def test_metadata_may_be_shown_twice():
    """One metadata key in two columns is no trouble when reading; they come in schema order."""
    assert columns(struct(b=LongType(), _offset=LongType(), a=LongType()), ("a", "offset")) == (
        MetadataColumn("_offset", "offset", LongType()),
        MetadataColumn("a", "offset", LongType()),
    )


@pytest.mark.parametrize(
    ("name", "type_", "wanted", "seen"),
    [
        ("_topic", BinaryType(), "STRING", "BINARY"),
        ("_partition", ShortType(), "INT or BIGINT", "SMALLINT"),
        ("_partition", StringType(), "INT or BIGINT", "STRING"),
        ("_offset", IntegerType(), "BIGINT", "INT"),
        ("_offset", DecimalType(20, 0), "BIGINT", "DECIMAL(20,0)"),
        ("_timestamp", LongType(), "TIMESTAMP or TIMESTAMP_NTZ", "BIGINT"),
        ("_timestamp", DateType(), "TIMESTAMP or TIMESTAMP_NTZ", "DATE"),
        ("_headers", StringType(), "ARRAY<STRUCT<KEY:STRING,VALUE:BINARY>>", "STRING"),
        (
            "_headers",
            MapType(StringType(), BinaryType()),
            "ARRAY<STRUCT<KEY:STRING,VALUE:BINARY>>",
            "MAP<STRING,BINARY>",
        ),
        (
            "_headers",
            ArrayType(struct(key=StringType(), value=StringType())),
            "ARRAY<STRUCT<KEY:STRING,VALUE:BINARY>>",
            "ARRAY<STRUCT<KEY:STRING,VALUE:STRING>>",
        ),
        (
            "_headers",
            ArrayType(struct(k=StringType(), v=BinaryType())),
            "ARRAY<STRUCT<KEY:STRING,VALUE:BINARY>>",
            "ARRAY<STRUCT<K:STRING,V:BINARY>>",
        ),
        (
            "_error",
            StringType(),
            "STRUCT<STAGE:STRING,MESSAGE:STRING,KEY:BINARY,VALUE:BINARY>",
            "STRING",
        ),
    ],
)
@pytest.mark.parametrize("reading", [True, False])
def test_another_type_is_refused(name, type_, wanted, seen, reading):
    """The error names the column, its metadata, both types and the way out."""
    with pytest.raises(SchemaError) as error:
        columns(struct(**{name: type_}), reading=reading)

    assert str(error.value) == (
        f"Column {name!r} shows the metadata {key_of(name)!r}, which is {wanted}, but has the type "
        f"{seen}. Change its type, or make it an ordinary column with 'metadata.{name}' = 'none'."
    )


BROKEN = pytest.mark.parametrize(
    ("key", "type_"),
    [
        ("header-list", ArrayType(BROKEN_HEADER)),
        ("headers", MapType(StringType(), BinaryType(), valueContainsNull=False)),
    ],
)


@BROKEN
def test_a_type_must_not_promise_what_a_message_may_lack(key, type_):
    """The value of a header may be null: Spark would believe a NOT NULL there."""
    with pytest.raises(
        SchemaError, match=f"^Column 'h' shows the metadata '{key}' and has NOT NULL"
    ):
        columns(struct(h=type_), ("h", key))


@BROKEN
def test_what_is_written_may_promise_more(key, type_):
    """A DataFrame knows that its headers have values."""
    assert columns(struct(h=type_), ("h", key), reading=False) == (MetadataColumn("h", key, type_),)


def test_an_option_must_name_a_column_that_is_read():
    """When reading, `metadata.<column>` for no column is a mistake."""
    with pytest.raises(SchemaError) as error:
        columns(struct(id=LongType(), At=LongType()), ("at", "offset"), ("att", "timestamp"))

    assert str(error.value) == (
        "Option 'metadata.att' names a column that is not in the table's schema. Its columns: id, At."
    )


def test_a_column_need_not_be_written():
    """Options of a table serve for writing a part of its columns."""
    assert columns(struct(id=LongType()), ("at", "offset"), reading=False) == ()


def test_the_keys_that_an_option_can_name():
    """All metadata but `error`, which has its reserved name only; `none` is for ordinary columns."""
    assert METADATA_KEYS == (
        "topic", "partition", "offset", "timestamp", "timestamp-type", "headers", "header-list",
        "leader-epoch", "change-type", "none",
    )  # fmt: skip
    assert HEADERS <= METADATA.keys() == {*METADATA_KEYS} - {"none"} | {"error"}


def test_what_a_sink_takes_from_the_row():
    """These set the message that is written; the rest of the metadata is ignored."""
    writable = {key for key, metadata in METADATA.items() if metadata.writable}

    assert writable == {"topic", "timestamp", "headers", "header-list", "change-type"}


def test_what_not_every_message_has():
    """A timestamp, a leader's epoch, an error: such a column is never NOT NULL."""
    nullable = {key for key, metadata in METADATA.items() if metadata.nullable}

    assert nullable == {"timestamp", "leader-epoch", "error"}
    assert all(metadata.nullable for metadata in METADATA_OF_FORMATS.values())
