"""The table: key, value and metadata columns, and the rules about them."""

from __future__ import annotations

import pickle

import pytest
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    ByteType,
    CalendarIntervalType,
    DateType,
    DayTimeIntervalType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    NullType,
    ShortType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
    VariantType,
    YearMonthIntervalType,
)

from pyspark_upsert_kafka.core.errors import OptionError, SchemaError
from pyspark_upsert_kafka.core.metadata import MetadataColumn
from pyspark_upsert_kafka.core.options.read import read_options
from pyspark_upsert_kafka.core.options.write import write_options
from pyspark_upsert_kafka.core.table import Table, as_in_ddl, table_to_read, table_to_write
from tests.table_options import table_options

BASE = table_options()
APPEND = {"primary-key": None, "key.format": None, "read.mode": "append"}
PREFIXED = {"value.fields-include": "EXCEPT_KEY", "key.fields-prefix": "k_"}

LONG, TEXT = LongType(), StringType()
ID, NAME = StructField("id", LONG), StructField("name", TEXT)
CHANGE = StructField("_change_type", TEXT)
OFFSET = StructField("_offset", LONG)
ERROR = StructField(
    "_error",
    StructType(
        [
            StructField("stage", TEXT),
            StructField("message", TEXT),
            StructField("key", BinaryType()),
            StructField("value", BinaryType()),
        ]
    ),
)


def field(name, type_=LONG, nullable=True):
    """A column."""
    return StructField(name, type_, nullable)


def not_null(name, type_=LONG):
    """A column that is NOT NULL."""
    return StructField(name, type_, nullable=False)


def given(options):
    """The base options and these; None takes one away."""
    return {name: value for name, value in {**BASE, **options}.items() if value is not None}


def no_options(name, side):
    """A format without options."""
    return ()


def snapshot(*fields, **options):
    """The table of a batch read."""
    planned = read_options(given(options), no_options, stream=False)
    return table_to_read(StructType([*fields]), planned)


def changelog(*fields, **options):
    """The table of a streaming read."""
    planned = read_options(given(options), no_options, stream=True)
    return table_to_read(StructType([*fields]), planned)


def append(*fields, **options):
    """The table of an append source."""
    return changelog(*fields, **{**APPEND, **options})


def written(*fields, **options):
    """The table of a write."""
    return table_to_write(StructType([*fields]), write_options(given(options), no_options))


# Which column is what


def test_the_columns_of_a_table():
    """Metadata is in neither key nor value; under ALL the value has every physical column."""
    schema = StructType([OFFSET, NAME, ID, CHANGE])

    assert changelog(*schema) == Table(
        schema=schema,
        physical=(NAME, ID),
        key=(ID,),
        value=(NAME, ID),
        metadata=(
            MetadataColumn("_offset", "offset", LONG),
            MetadataColumn("_change_type", "change-type", TEXT),
        ),
    )


def test_the_value_without_the_key():
    """Under EXCEPT_KEY the value has the other physical columns, in schema order."""
    table = changelog(field("a"), ID, field("b"), CHANGE, **{"value.fields-include": "EXCEPT_KEY"})

    assert (table.physical, table.key, table.value) == (
        (field("a"), ID, field("b")),
        (ID,),
        (field("a"), field("b")),
    )


def test_the_key_is_in_the_order_of_the_primary_key():
    """Not the schema but `primary-key` orders the message key; the value is in schema order."""
    table = snapshot(field("a"), field("b"), field("c"), **{"primary-key": "c,a"})

    assert (table.key_names, table.key_message) == (
        ("c", "a"),
        StructType([field("c"), field("a")]),
    )
    assert table.value_message == StructType([field("a"), field("b"), field("c")])


def test_the_prefix_is_stripped_in_the_message_key():
    """The table has the prefix, the message key has not; nullability stays."""
    table = snapshot(not_null("k_id"), field("id"), **{**PREFIXED, "primary-key": "k_id"})

    assert table == Table(
        schema=StructType([not_null("k_id"), field("id")]),
        physical=(not_null("k_id"), field("id")),
        key=(not_null("k_id"),),
        value=(field("id"),),
        metadata=(),
        key_prefix="k_",
    )
    assert table.key_names == ("k_id",)
    assert table.key_message == StructType([not_null("id")])
    assert table.value_message == StructType([field("id")])


def test_a_table_may_be_all_key():
    """Under EXCEPT_KEY the value of such a table has no column, and is a value all the same."""
    assert snapshot(ID, **{"value.fields-include": "EXCEPT_KEY"}).value == ()


def test_the_key_column_is_found_in_any_case():
    """Spark does not tell apart `ID` and `id`; the table's spelling is the one in the message."""
    table = snapshot(field("ID"), NAME)

    assert (table.key_names, table.key_message.names) == (("ID",), ["ID"])


def test_an_append_source_has_no_key():
    """All physical columns are the value's."""
    assert append(NAME, ID, OFFSET) == Table(
        schema=StructType([NAME, ID, OFFSET]),
        physical=(NAME, ID),
        key=(),
        value=(NAME, ID),
        metadata=(MetadataColumn("_offset", "offset", LONG),),
        is_keyed=False,
    )


def test_columns_of_the_key_in_an_append_source():
    """They may be NULL where they are not NOT NULL: they are no primary key."""
    shop = not_null("shop")
    table = append(shop, ID, NAME, **{"key.fields": "shop;id", "key.format": "json"})

    assert table.key == (shop, ID)
    assert table.required("key") == table.required("value") == {"shop"}


def test_a_reserved_name_can_be_an_ordinary_column():
    """`none` puts it among the physical columns, in the key too."""
    table = snapshot(OFFSET, NAME, **{"metadata._offset": "none", "primary-key": "_offset"})

    assert (table.key, table.value, table.metadata) == ((OFFSET,), (OFFSET, NAME), ())


def test_the_first_column_of_a_metadata_key_is_the_one():
    """Whoever asks for a metadata key gets its first column, or nothing."""
    table = snapshot(ID, field("at"), OFFSET, **{"metadata.AT": "offset"})

    assert table.metadata_column("offset") == MetadataColumn("at", "offset", LONG)
    assert table.metadata_column("topic") is None


def test_a_table_goes_to_the_workers():
    """A table is pickled with each task."""
    table = changelog(ID, NAME, CHANGE)

    assert pickle.loads(pickle.dumps(table)) == table


# The key


@pytest.mark.parametrize(
    "type_",
    [
        BooleanType(), ByteType(), ShortType(), IntegerType(), LONG, FloatType(), DoubleType(),
        DecimalType(10, 2), TEXT, BinaryType(), DateType(), TimestampType(), TimestampNTZType(),
        DayTimeIntervalType(), YearMonthIntervalType(),
    ],
    ids=lambda type_: type_.simpleString(),
)  # fmt: skip
def test_a_key_column_has_a_simple_type(type_):
    """Every type without parts can be a key."""
    assert snapshot(field("id", type_)).key == (field("id", type_),)


@pytest.mark.parametrize(
    "type_",
    [
        ArrayType(LONG), MapType(TEXT, LONG), StructType([ID]), VariantType(), NullType(),
        CalendarIntervalType(),
    ],
    ids=lambda type_: type_.simpleString(),
)  # fmt: skip
@pytest.mark.parametrize("table", [snapshot, written])
def test_a_key_column_of_another_type_is_refused(table, type_):
    """The error names the column and its type."""
    with pytest.raises(SchemaError) as error:
        table(field("id", type_), NAME)

    assert str(error.value) == (
        f"Column 'id' is part of the primary key and has the type {type_.simpleString().upper()}; a "
        "key column must be of a simple type."
    )


@pytest.mark.parametrize("fields", [(NAME, field("v")), (NAME, field("v"), OFFSET)])
@pytest.mark.parametrize("table", [snapshot, written])
def test_an_unknown_key_column_is_told_in_flinks_words(table, fields):
    """The error lists what can be a key: physical columns."""
    with pytest.raises(SchemaError) as error:
        table(*fields, **{"primary-key": "name,_offset"})

    assert str(error.value) == (
        "Could not find the field '_offset' in the table schema for usage in the key format. A key "
        "field must be a regular, physical column. The following columns can be selected in the "
        "'key.fields' option: [name, v] (Option 'primary-key' means the same.)"
    )


def test_a_key_column_that_shows_metadata_is_no_key():
    """Metadata never enters the key."""
    with pytest.raises(SchemaError, match=r"^Could not find the field 'id' in the table schema"):
        snapshot(ID, NAME, **{"metadata.id": "offset"})


@pytest.mark.parametrize("key", ["id", "K_id"])
def test_a_key_column_without_the_prefix_is_told_in_flinks_words(key):
    """Each key column must have the prefix, in the same letters."""
    with pytest.raises(OptionError) as error:
        snapshot(field("k_a"), field(key), NAME, **PREFIXED, **{"primary-key": f"k_a,{key}"})

    assert str(error.value) == (
        "All fields in 'key.fields' must be prefixed with 'k_' when option 'key.fields-prefix' is set "
        f"but field '{key}' is not prefixed. (Option 'primary-key' means the same as 'key.fields'.)"
    )


def test_a_key_column_must_have_a_name_behind_the_prefix():
    """A message key cannot have a column without a name."""
    with pytest.raises(OptionError, match=r"^Column 'k_' has no name in the message key"):
        snapshot(field("k_"), NAME, **PREFIXED, **{"primary-key": "k_"})


# The schema as a whole


@pytest.mark.parametrize("table", [snapshot, append, written])
def test_no_two_columns_have_one_name(table):
    """Names are distinguished regardless of case, as Spark does."""
    with pytest.raises(SchemaError, match=r"^The schema has the column 'name' more than once"):
        table(ID, NAME, field("Name"))


@pytest.mark.parametrize(
    "table", [append, lambda *fields: append(*fields, **{"scan.deletes": "drop"})]
)
def test_a_table_has_columns_of_its_own(table):
    """Metadata alone is no table."""
    with pytest.raises(SchemaError, match=r"^The schema has no physical column, only metadata\.$"):
        table(OFFSET)


def test_a_changelog_shows_its_changes():
    """Without a change column a delete would look like a row of NULLs."""
    with pytest.raises(SchemaError) as error:
        changelog(ID, NAME)

    assert str(error.value) == (
        "A changelog shows deletes in its change column, which the schema does not have: add the column "
        "'_change_type STRING', or leave deletes out with 'scan.deletes' = 'drop'."
    )


@pytest.mark.parametrize(
    ("fields", "options"),
    [
        ((ID, CHANGE), {}),
        ((ID, field("op", TEXT)), {"metadata.op": "change-type"}),
        ((ID,), {"scan.deletes": "drop"}),
        ((ID, CHANGE), {"scan.deletes": "drop"}),
    ],
)
def test_what_is_enough_for_a_changelog(fields, options):
    """A change column of any name, or no deletes."""
    assert changelog(*fields, **options).schema == StructType([*fields])


def test_an_ordinary_column_shows_no_changes():
    """`_change_type` as a column of the row is no change column."""
    with pytest.raises(SchemaError, match=r"^A changelog shows deletes in its change column"):
        changelog(ID, CHANGE, **{"metadata._change_type": "none"})


def test_a_batch_of_changes_shows_them_too():
    """What holds for a stream holds for `read.mode` = `changelog` in a batch."""
    with pytest.raises(SchemaError, match=r"^A changelog shows deletes in its change column"):
        snapshot(ID, **{"read.mode": "changelog"})


@pytest.mark.parametrize(
    ("column", "options"),
    [(CHANGE, {}), (field("op", TEXT), {"metadata.op": "change-type"})],
)
def test_an_append_source_knows_no_changes(column, options):
    """Every message is a row there; the error names the column."""
    with pytest.raises(SchemaError) as error:
        append(ID, column, **options)

    assert str(error.value) == (
        f"'read.mode' = 'append' has no changes: leave out the column {column.name!r}."
    )


@pytest.mark.parametrize("table", [changelog, append])
def test_errors_in_a_column_need_the_column(table):
    """`error-handling.mode` = `column` needs a place to show them."""
    fields = (ID, CHANGE) if table is changelog else (ID,)

    with pytest.raises(
        SchemaError, match=r"^'error-handling\.mode' = 'column' needs the column '_error"
    ):
        table(*fields, **{"error-handling.mode": "column"})


def test_errors_in_a_column():
    """With `_error` the schema is complete; without that mode the column is there and NULL."""
    assert (
        changelog(ID, CHANGE, ERROR, **{"error-handling.mode": "column"}).metadata[1].key == "error"
    )
    assert changelog(ID, CHANGE, ERROR).metadata[1].key == "error"


def test_an_option_names_a_column_that_is_read():
    """`metadata.<column>` for a column that is not there is a mistake when reading."""
    with pytest.raises(SchemaError, match=r"^Option 'metadata\.at' names a column that is not in"):
        snapshot(ID, **{"metadata.at": "offset"})


# NOT NULL

IN_CHANGELOG = (
    "Column {!r} is NOT NULL; in a changelog only primary-key columns may be, since a delete has "
    "no other columns. Make it nullable."
)
WITH_ERRORS = (
    "Column {!r} is NOT NULL, but with 'error-handling.mode' = 'column' a row with an error shows "
    "NULL in it. Make it nullable."
)


@pytest.mark.parametrize(
    ("table", "fields", "options"),
    [
        (changelog, [not_null("id"), NAME, CHANGE], {}),
        (changelog, [not_null("id"), NAME], {"scan.deletes": "drop"}),
        (snapshot, [not_null("id"), not_null("name")], {}),
        (append, [not_null("id"), not_null("name")], {}),
        (snapshot, [ID, not_null("_offset"), not_null("_change_type", TEXT)], {}),
        (append, [ID, not_null("_offset"), not_null("_partition"), not_null("_topic", TEXT)], {}),
        (append, [ID, not_null("h", MapType(TEXT, BinaryType()))], {"metadata.h": "headers"}),
        (written, [not_null("id"), not_null("name"), not_null("_change_type", TEXT)], {}),
        (written, [not_null("id"), not_null("_timestamp", TimestampType())], {}),
    ],
)
def test_not_null_is_kept_where_it_holds(table, fields, options):
    """Key columns in a changelog; every column but uncertain metadata elsewhere."""
    assert table(*fields, **options).schema == StructType(fields)


@pytest.mark.parametrize(
    ("table", "column", "options", "message"),
    [
        (changelog, not_null("name"), {}, IN_CHANGELOG),
        (changelog, not_null("name"), {"scan.deletes": "drop"}, IN_CHANGELOG),
        (changelog, not_null("_offset"), {}, IN_CHANGELOG),
        (
            snapshot,
            not_null("name"),
            {"read.mode": "changelog", "scan.deletes": "drop"},
            IN_CHANGELOG,
        ),
        (append, not_null("name"), {"error-handling.mode": "column"}, WITH_ERRORS),
        (append, not_null("_offset"), {"error-handling.mode": "column"}, WITH_ERRORS),
        (
            append,
            not_null("_timestamp", TimestampType()),
            {},
            (
                "Column {!r} is NOT NULL, but not every message has the metadata 'timestamp'. Make it "
                "nullable."
            ),
        ),
        (
            snapshot,
            not_null("_leader_epoch", IntegerType()),
            {},
            (
                "Column {!r} is NOT NULL, but not every message has the metadata 'leader-epoch'. Make it "
                "nullable."
            ),
        ),
    ],
)
def test_not_null_is_refused_where_it_may_break(table, column, options, message):
    """Spark relies on NOT NULL, so what may be NULL must not be called so; the error names the column."""
    change = [CHANGE] if table is changelog else []

    with pytest.raises(SchemaError) as error:
        table(ID, column, *change, ERROR, **options)

    assert str(error.value) == message.format(column.name)


def test_with_errors_in_a_column_no_key_is_sure():
    """A message whose key cannot be decoded has no key column to show."""
    with pytest.raises(SchemaError) as error:
        changelog(not_null("id"), CHANGE, ERROR, **{"error-handling.mode": "column"})

    assert str(error.value) == WITH_ERRORS.format("id")


# Writing


def test_what_was_read_can_be_written():
    """A table with every metadata column is written back as it is."""
    schema = [
        ID, NAME, CHANGE, OFFSET, ERROR, field("_topic", TEXT), field("_partition", IntegerType()),
        field("_timestamp", TimestampType()), field("_timestamp_type", TEXT),
        field("_leader_epoch", IntegerType()), field("_headers", HEADERS),
    ]  # fmt: skip

    table = written(*schema)

    assert (table.key, table.value) == ((ID,), (ID, NAME))
    assert {column.name for column in table.metadata} == {each.name for each in schema[2:]}


def test_a_part_of_the_table_can_be_written():
    """What `metadata.<column>` names need not be there."""
    assert written(ID, **{"metadata.at": "timestamp"}).metadata == ()


def test_with_one_topic_the_topic_column_is_ignored():
    """There is nothing to choose, however many columns show the topic."""
    table = written(ID, field("_topic", TEXT), field("a", TEXT), **{"metadata.a": "topic"})

    assert [column.key for column in table.metadata] == ["topic", "topic"]


def test_with_several_topics_a_column_chooses():
    """A list of topics needs a topic column, of any name."""
    assert written(ID, field("_topic", TEXT), topic="a;b").value == (ID,)
    assert written(ID, field("dest", TEXT), topic="a;b", **{"metadata.dest": "topic"}).value == (
        ID,
    )


def test_with_several_topics_someone_must_choose():
    """The error lists the topics and names the column."""
    with pytest.raises(SchemaError) as error:
        written(ID, NAME, topic="a;b")

    assert str(error.value) == (
        "The topic of a row is not known: option 'topic' lists a, b, so the rows need the column "
        "'_topic STRING', which chooses one of them."
    )


HEADERS = ArrayType(StructType([field("key", TEXT), field("value", BinaryType())]))


@pytest.mark.parametrize(
    ("columns", "options", "message"),
    [
        (
            [field("m", MapType(TEXT, BinaryType())), field("_headers", HEADERS)],
            {"metadata.m": "headers"},
            (
                "The writable metadata is ambiguous. Please use either metadata key 'headers' or "
                "'header-list'."
            ),
        ),
        (
            [CHANGE, field("op", TEXT)],
            {"metadata.op": "change-type"},
            "The writable metadata is ambiguous: 2 columns set 'change-type'.",
        ),
        (
            [field("a", TimestampType()), field("_timestamp", TimestampType())],
            {"metadata.a": "timestamp"},
            "The writable metadata is ambiguous: 2 columns set 'timestamp'.",
        ),
        (
            [field("_topic", TEXT), field("dest", TEXT)],
            {"metadata.dest": "topic", "topic": "a;b"},
            "The writable metadata is ambiguous: 2 columns set 'topic'.",
        ),
    ],
)
def test_what_is_written_is_set_by_one_column(columns, options, message):
    """Two columns for one thing to write leave it open which one counts."""
    with pytest.raises(SchemaError) as error:
        written(ID, *columns, **options)

    assert str(error.value) == message


@pytest.mark.parametrize(
    ("key", "type_"), [("headers", MapType(TEXT, BinaryType())), ("header-list", HEADERS)]
)
def test_headers_are_written_from_a_map_or_a_list(key, type_):
    """One of the two is no trouble."""
    assert written(ID, field("h", type_), **{"metadata.h": key}).metadata == (
        MetadataColumn("h", key, type_),
    )


def test_what_is_ignored_may_be_there_twice():
    """Metadata that a sink does not take from the row makes no trouble."""
    assert written(ID, OFFSET, field("at"), **{"metadata.at": "offset"}).value == (ID,)


def test_the_columns_of_a_key_are_never_null_under_their_names_in_the_message():
    """In the key of the message they have no prefix."""
    table = changelog(field("k_id"), field("name"), CHANGE, **{**PREFIXED, "primary-key": "k_id"})

    assert (table.required("key"), table.required("value")) == ({"id"}, {"k_id"})


def test_what_a_ddl_declares_virtual_is_not_written():
    """Rows that were read may have it; a metadata column without VIRTUAL sets what is sent."""
    ddl = """CREATE TABLE t (
      id BIGINT, at TIMESTAMP_LTZ(3) METADATA FROM 'timestamp', place INT METADATA FROM 'partition' VIRTUAL,
      PRIMARY KEY (id) NOT ENFORCED
    ) WITH ('connector' = 'upsert-kafka')"""
    options = write_options(table_options(ddl=ddl, **{"primary-key": None}), no_options)
    at, place = StructField("at", TimestampType()), StructField("place", IntegerType())

    assert [
        each.name for each in table_to_write(StructType([ID, at, place]), options).metadata
    ] == ["at"]
    assert as_in_ddl(StructType([ID, at]), options.table) == StructType([ID, at])


@pytest.mark.parametrize(
    ("given", "in_ddl", "holds"),
    [
        (ByteType(), "SMALLINT", True),
        (ShortType(), "BIGINT", True),
        (FloatType(), "DOUBLE", True),
        (LongType(), "INT", False),
        (DoubleType(), "FLOAT", False),
        (IntegerType(), "DOUBLE", False),
        (StringType(), "INT", False),
        (IntegerType(), "STRING", False),
    ],
)
def test_rows_become_the_wider_types_of_a_ddl(given, in_ddl, holds):
    """Whole numbers and floating ones, each among its own: no value changes. Others are to be cast."""
    ddl = f"CREATE TABLE t (id BIGINT, n {in_ddl}, PRIMARY KEY (id) NOT ENFORCED) WITH ('connector' = 'upsert-kafka')"
    options = write_options(table_options(ddl=ddl, **{"primary-key": None}), no_options)
    rows = StructType([ID, StructField("n", given)])

    if holds:
        (_, n) = as_in_ddl(rows, options.table)
        assert n.dataType.simpleString().upper() == in_ddl
    else:
        with pytest.raises(SchemaError, match=r"'n' has the type .* cast it"):
            as_in_ddl(rows, options.table)
