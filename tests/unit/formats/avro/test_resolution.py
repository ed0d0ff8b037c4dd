"""One schema's data read by another one's columns: promotions, names, aliases, defaults, refusals."""

from __future__ import annotations

import io
from decimal import Decimal

import fastavro
import pytest
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
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

from pyspark_upsert_kafka.core.errors import SchemaError
from tests.unit.formats.avro.codecs import datum_decoder
from tests.unit.formats.avro.corpus import written
from tests.unit.formats.avro.peers import read_by_apache

ENOUGH = 64  # messages that make a batch take the vectorised path
LONG, TEXT = LongType(), StringType()


def record(name="R", /, **fields):
    """A record; a field is a type, or a field's declaration without its name."""
    declared = [
        {
            "name": field,
            **(kind if "default" in kind and "symbols" not in kind else {"type": kind}),
        }
        for field, kind in fields.items()
    ]
    return {"type": "record", "name": name, "fields": declared}


def columns(**kinds):
    """Nullable columns."""
    return StructType([StructField(name, kind) for name, kind in kinds.items()])


def row(writer, value, schema, **options):
    """The row of a value that fastavro writes, by both paths; or the error."""
    decode = datum_decoder(writer, schema, **options).decode
    message = written(writer, value)
    one, many = decode([message]), decode([message] * ENOUGH)
    if one.errors:
        assert many.errors == dict.fromkeys(range(ENOUGH), one.errors[0])
        return one.errors[0]
    assert many.rows.to_pylist() == one.rows.to_pylist() * ENOUGH
    return one.rows.to_pylist()[0]


def enum(*symbols, name="E", **more):
    """An enum's declaration."""
    return {"type": "enum", "name": name, "symbols": list(symbols), **more}


def fixed(size, name="F", **more):
    """A fixed's declaration."""
    return {"type": "fixed", "name": name, "size": size, **more}


def array(items):
    """An array's declaration."""
    return {"type": "array", "items": items}


def mapping(values):
    """A map's declaration."""
    return {"type": "map", "values": values}


RESOLVED = [
    ("int", "long", LONG, 7),
    ("int", "float", FloatType(), 2**24),
    ("int", "float", DoubleType(), 2**24),
    ("int", "double", DoubleType(), 7),
    ("long", "float", DoubleType(), 2**60),
    ("long", "double", DoubleType(), 2**60),
    ("float", "double", DoubleType(), 0.5),
    ("string", "bytes", BinaryType(), "é"),
    ("bytes", "string", TEXT, b"abc"),
    ("int", ["null", "long"], LONG, 7),
    ("int", ["null", "float", "int"], LONG, 7),
    (["null", "int"], ["long", "null"], LONG, None),
    (["null", "int"], ["long", "null"], LONG, 7),
    (["null", "int"], "long", LONG, 7),
    (["int", "string"], ["string", "double"], TEXT, "x"),
    (enum("A", "B"), enum("B", "A"), TEXT, "B"),
    (enum("A", "B", "C"), enum("A", "Z", default="Z"), TEXT, "C"),
    (enum("A", name="x.E"), enum("A", name="y.E"), TEXT, "A"),
    (fixed(2, name="Old"), fixed(2, name="New", aliases=["Old"]), BinaryType(), b"ab"),
    (array("int"), array("double"), ArrayType(DoubleType()), [1, 2]),
    (array(["null", "int"]), ["null", array("long")], ArrayType(LONG), [1, 2]),
    (record("In", x="int"), record("Other", x="long"), columns(x=LONG), {"x": 1}),
    (
        record("In", x="int", y="string"),
        record("In", z={"type": "long", "default": 5}, x="long"),
        columns(x=LONG, z=LONG),
        {"x": 1, "y": "gone"},
    ),
]


@pytest.mark.parametrize(
    ("writer", "reader", "kind", "value"), RESOLVED, ids=lambda case: str(case)[:30]
)
def test_data_are_resolved_as_by_a_peer(writer, reader, kind, value):
    """The value is the one that fastavro reads with the same two schemas."""
    wrote, reads = record(c=writer), record(c=reader)
    data = io.BytesIO(written(wrote, {"c": value}))
    if not isinstance(writer, dict) or writer["type"] not in ("enum", "fixed", "record"):
        peer = fastavro.schemaless_reader(data, wrote, reads)
    else:  # fastavro compares the whole names
        peer = {"c": {"B": "B", "C": "Z", "A": "A"}.get(value, value) if kind == TEXT else value}
        if isinstance(value, dict):
            peer = {"c": {"x": 1} | ({"z": 5} if "y" in value else {})}
    assert row(wrote, {"c": value}, columns(c=kind), reader=reads) == peer


APACHE_REFUSES = [
    ("string", "bytes"),  # knows no promotion between the two
    ("bytes", "string"),
    (["null", "int"], "long"),  # wants a union for a union
    (
        enum("A", "B", "C"),
        enum("A", "Z", default="Z"),
    ),  # looks for the default in the writer's schema
    (enum("A", name="x.E"), enum("A", name="y.E")),  # compares whole names
    (fixed(2, name="Old"), fixed(2, name="New", aliases=["Old"])),  # knows no aliases
    (array("int"), array("double")),  # promotes nothing within arrays and maps
    (array(["null", "int"]), ["null", array("long")]),
    (record("In", x="int"), record("Other", x="long")),  # compares the records' names
]
"""What Apache's package 1.12.2 does not resolve, though the specification has it so."""


@pytest.mark.parametrize(
    ("writer", "reader", "kind", "value"),
    [case for case in RESOLVED if case[:2] not in APACHE_REFUSES],
    ids=lambda case: str(case)[:30],
)
def test_data_are_resolved_as_by_apache(writer, reader, kind, value):
    """The value is the one that Apache's reader reads with the same two schemas."""
    wrote, reads = record(c=writer), record(c=reader)
    peer = read_by_apache(wrote, written(wrote, {"c": value}), reads)
    assert row(wrote, {"c": value}, columns(c=kind), reader=reads) == peer


@pytest.mark.parametrize(
    ("reader", "column", "value"),
    [
        ("float", FloatType(), 16777216.0),
        ("float", DoubleType(), 16777216.0),
        ("double", DoubleType(), 16777217.0),
        ("double", FloatType(), None),
        ("long", FloatType(), 16777216.0),
        (["float", "int"], DoubleType(), 16777217.0),
        (["float", "double"], DoubleType(), 16777216.0),
    ],
)
def test_a_number_goes_through_the_readers_type(reader, column, value):
    """What a FLOAT in the reader's schema loses is lost, even for a DOUBLE column."""
    schemas = columns(c=column), {"reader": record(c=reader)}
    if value is None:
        with pytest.raises(SchemaError, match="is FLOAT, which cannot hold Avro's double"):
            datum_decoder(record(c="int"), schemas[0], **schemas[1])
    else:
        assert row(record(c="int"), {"c": 2**24 + 1}, schemas[0], **schemas[1]) == {"c": value}


UNRESOLVED = [
    ("long", "int", IntegerType(), "field 'c' is written as Avro's long, which the reader's schema cannot take as int"),
    ("double", "float", FloatType(), "field 'c' is written as Avro's double"),
    ("int", "string", TEXT, "field 'c' is written as Avro's int, which the reader's schema cannot take as string"),
    ("boolean", "int", IntegerType(), "cannot take as int"),
    (enum("A"), enum("A", name="Other"), TEXT, "written as Avro's enum, which the reader's schema cannot take as enum"),
    (fixed(2), fixed(3), BinaryType(), "written as Avro's fixed(2), which the reader's schema cannot take as fixed(3)"),
    (array("int"), mapping("int"), ArrayType(LONG), "written as Avro's array, which the reader's schema cannot take as map"),
    (array("string"), array("int"), ArrayType(IntegerType()), "field 'c[]' is written as Avro's string"),
    ("string", ["null", "int"], IntegerType(), "field 'c' is written as Avro's string"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("writer", "reader", "kind", "why"), UNRESOLVED, ids=lambda case: str(case)[:30]
)
def test_schemas_that_disagree_are_refused(writer, reader, kind, why):
    """What Avro has no rule for is refused when the decoder is compiled, with the field."""
    with pytest.raises(SchemaError) as error:
        datum_decoder(record(c=writer), columns(c=kind), reader=record(c=reader))
    assert why in str(error.value)


MISFITS = [
    ("long", IntegerType(), "field 'c' is INT, which cannot hold Avro's long"),
    ("long", ShortType(), "field 'c' is SMALLINT, which cannot hold Avro's long"),
    ("double", FloatType(), "field 'c' is FLOAT, which cannot hold Avro's double"),
    ("double", LONG, "field 'c' is BIGINT, which cannot hold Avro's double"),
    ("string", LONG, "field 'c' is BIGINT, which cannot hold Avro's string"),
    ("int", TEXT, "field 'c' is STRING, which cannot hold Avro's int"),
    ("int", BooleanType(), "field 'c' is BOOLEAN, which cannot hold Avro's int"),
    ("boolean", LONG, "field 'c' is BIGINT, which cannot hold Avro's boolean"),
    ("boolean", DoubleType(), "field 'c' is DOUBLE, which cannot hold Avro's boolean"),
    ("int", TimestampType(), "field 'c' is TIMESTAMP, which cannot hold Avro's int"),
    ("bytes", DecimalType(5, 2), "field 'c' is DECIMAL(5,2), which cannot hold Avro's bytes"),
    (
        {"type": "bytes", "logicalType": "decimal", "precision": 5, "scale": 3},
        DecimalType(5, 2),
        "field 'c' is DECIMAL(5,2), which cannot hold Avro's bytes (decimal(5,3))",
    ),
    (
        {"type": "bytes", "logicalType": "decimal", "precision": 5, "scale": 3},
        TEXT,
        "field 'c' is STRING, which cannot hold Avro's bytes (decimal(5,3))",
    ),
    (fixed(3), TEXT, "field 'c' is STRING, which cannot hold Avro's fixed(3)"),
    (enum("A"), BinaryType(), "field 'c' is BINARY, which cannot hold Avro's enum"),
    (
        {"type": "int", "logicalType": "time-millis"},
        DateType(),
        "field 'c' is DATE, which cannot hold Avro's int (time-millis)",
    ),
    (
        {"type": "long", "logicalType": "time-micros"},
        TimestampType(),
        "field 'c' is TIMESTAMP, which cannot hold Avro's long (time-micros)",
    ),
    (
        {"type": "long", "logicalType": "timestamp-micros"},
        DayTimeIntervalType(),
        "field 'c' is INTERVAL DAY TO SECOND, which cannot hold Avro's long (timestamp-micros)",
    ),
    (array("int"), LONG, "field 'c' is BIGINT, which cannot hold Avro's array"),
    ("int", ArrayType(LONG), "field 'c' is ARRAY<BIGINT>, which cannot hold Avro's int"),
    (array("string"), ArrayType(LONG), "field 'c[]' is BIGINT, which cannot hold Avro's string"),
    (
        mapping("int"),
        MapType(LONG, LONG),
        "Avro format doesn't support non-string as key type of map. The key type is: BIGINT (column 'c').",
    ),
    (record("In", x="int"), LONG, "field 'c' is BIGINT, which cannot hold Avro's record"),
    (record("In", x="int"), columns(x=TEXT), "field 'c.x' is STRING, which cannot hold Avro's int"),
    (["null", "string"], LONG, "field 'c' is BIGINT, which cannot hold Avro's string"),
    ("string", columns(x=TEXT), "field 'c' is STRUCT<X:STRING>, which cannot hold Avro's string"),
]  # fmt: skip


@pytest.mark.parametrize(("writer", "kind", "why"), MISFITS, ids=lambda case: str(case)[:40])
def test_columns_that_do_not_fit_are_refused(writer, kind, why):
    """A column that can hold no datum of the field's type is refused when the decoder is compiled."""
    with pytest.raises(SchemaError) as error:
        datum_decoder(record(c=writer), columns(c=kind))
    assert str(error.value) == why


def test_columns_find_their_fields_by_name():
    """Exactly, or else regardless of case when only one other field has the name."""
    writer = record(B="int", a="int", A="int", skipped="string", C="int", cC="int", CC="int")
    value = {"B": 1, "a": 2, "A": 3, "skipped": "x", "C": 4, "cC": 5, "CC": 6}
    seen = row(writer, value, columns(b=LONG, A=LONG, a=LONG, c=LONG, cc=LONG))
    assert seen == {"b": 1, "A": 3, "a": 2, "c": 4, "cc": None}
    assert row(record(x="int"), {"x": 1}, columns(X=LONG, x=LONG)) == {"X": None, "x": 1}


def test_a_column_that_nobody_wrote_is_null():
    """It may have been added to the table later; but NOT NULL it cannot be."""
    assert row(record(a="int"), {"a": 1}, columns(new=TEXT, a=LONG)) == {"new": None, "a": 1}
    required = StructType([StructField("new", LONG, nullable=False)])
    with pytest.raises(SchemaError, match="field 'new' is NOT NULL, but the schema that the data"):
        datum_decoder(record(a="int"), required)


DEFAULTS = [
    ("long", -65, LONG, -65),
    ("double", 1, DoubleType(), 1.0),
    ("float", 0.1, DoubleType(), 0.10000000149011612),
    ("boolean", True, BooleanType(), True),
    ("string", "é", TEXT, "é"),
    ("bytes", "\u00ff\u0000", BinaryType(), b"\xff\x00"),
    (fixed(2), "ab", BinaryType(), b"ab"),
    (enum("A", "B"), "B", TEXT, "B"),
    ({"type": "bytes", "logicalType": "decimal", "precision": 5, "scale": 2}, "\u0001\u0000", DecimalType(5, 2), Decimal("2.56")),
    (array("long"), [1, 200], ArrayType(LONG), [1, 200]),
    (array("long"), [], ArrayType(LONG), []),
    (mapping(["null", "string"]), {"k": None, "l": "v"}, MapType(TEXT, TEXT), [("k", None), ("l", "v")]),
    (["null", "long"], None, LONG, None),
    (["null", "long"], 3, LONG, 3),
    (["string", "null"], "x", TEXT, "x"),
    (
        record("In", x="long", y={"type": "string", "default": "why"}),
        {"x": 1},
        columns(y=TEXT, x=LONG),
        {"y": "why", "x": 1},
    ),
]  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "default", "column", "value"), DEFAULTS, ids=lambda c: str(c)[:30]
)
def test_defaults_stand_for_what_nobody_wrote(kind, default, column, value):
    """A field that only the reader's schema has gives its default, of any type."""
    reader = record(a="int", c={"type": kind, "default": default})
    seen = row(record(a="int"), {"a": 1}, columns(c=column, a=LONG), reader=reader)
    assert seen == {"c": value, "a": 1}


APACHES_DEFAULTS_WRONG = [
    ("double", 1),  # no whole number for a floating-point one
    ("float", 0.1),  # not rounded to 32 bits
    ("bytes", "\u00ff\u0000"),  # as UTF-8, where each character is a byte
    (
        {"type": "bytes", "logicalType": "decimal", "precision": 5, "scale": 2},
        "\u0001\u0000",
    ),  # the bytes
    (mapping(["null", "string"]), {"k": None, "l": "v"}),  # by a union's first branch only
    (["null", "long"], 3),
]
"""What Apache's package 1.12.2 takes otherwise than the specification has it."""


@pytest.mark.parametrize(
    ("kind", "default", "value"),
    [(*case[:2], case[3]) for case in DEFAULTS if case[:2] not in APACHES_DEFAULTS_WRONG],
    ids=lambda c: str(c)[:30],
)
def test_defaults_are_those_of_apache(kind, default, value):
    """The values in the table above are those that Apache's reader gives."""
    reader = record(a="int", c={"type": kind, "default": default})
    message = written(record(a="int"), {"a": 1})
    assert read_by_apache(record(a="int"), message, reader) == {"a": 1, "c": value}


@pytest.mark.parametrize(
    ("kind", "default"),
    [("int", "x"), ("int", 2**31), ("string", 1), ("boolean", 1), (fixed(2), "abc"), (["int", "null"], "x"), (enum("A"), "B"), ("null", 0)],
)  # fmt: skip
def test_a_default_of_another_type_is_refused(kind, default):
    """A default that is no value of its field is found when it is needed."""
    reader = record(c={"type": kind, "default": default})
    any_kind = {"int": IntegerType(), "boolean": BooleanType(), "null": TEXT}.get(str(kind), TEXT)
    any_kind = BinaryType() if "fixed" in str(kind) else any_kind
    any_kind = IntegerType() if kind == ["int", "null"] else any_kind
    with pytest.raises(SchemaError, match="The default of field 'c' cannot be read"):
        datum_decoder(record(a="int"), columns(c=any_kind), reader=reader)


def test_a_field_without_a_default_must_be_written():
    """Though its column could be NULL: the reader's schema says that it has a value."""
    with pytest.raises(SchemaError, match="'b' has no default in the reader's schema"):
        datum_decoder(record(a="int"), columns(b=TEXT), reader=record(a="int", b="string"))


def test_aliases_lead_to_a_writers_field():
    """A field of the reader's schema is the writer's field of its name, or else of an alias."""
    reader = {
        "type": "record",
        "name": "R",
        "fields": [
            {"name": "new", "type": "long", "aliases": ["older", "old"]},
            {"name": "kept", "type": "long", "aliases": ["old"]},
        ],
    }
    writer = record(old="int", kept="int")
    assert row(writer, {"old": 1, "kept": 2}, columns(new=LONG, kept=LONG), reader=reader) == {
        "new": 1,
        "kept": 2,
    }


def test_a_symbol_that_the_reader_does_not_know():
    """Without a default in the reader's schema, such a message cannot be read."""
    schemas = {"reader": record(c=enum("A", "C"))}
    seen = row(record(c=enum("A", "B")), {"c": "B"}, columns(c=TEXT), **schemas)
    assert seen == "field 'c': symbol 1 is none that the reader's schema knows"


def test_a_branch_that_does_not_fit():
    """It is refused message by message when another branch fits, and at once when none does."""
    writer = record(c=["null", "long", "string"])
    assert row(writer, {"c": 5}, columns(c=LONG)) == {"c": 5}
    assert row(writer, {"c": "x"}, columns(c=LONG)) == (
        "field 'c' is BIGINT, which cannot hold Avro's string"
    )
    reader = record(c=["null", "long"])
    assert row(writer, {"c": "x"}, columns(c=LONG), reader=reader) == (
        "field 'c' is written as Avro's string, which the reader's schema cannot take as union"
    )


ZONED, LOCAL = (
    {"type": "long", "logicalType": f"{kind}timestamp-micros"} for kind in ("", "local-")
)


@pytest.mark.parametrize(
    ("writer", "kind", "fits"),
    [
        (ZONED, TimestampType(), True),
        (ZONED, TimestampNTZType(), False),
        (LOCAL, TimestampType(), False),
        (LOCAL, TimestampNTZType(), True),
        ("long", TimestampType(), True),
    ],
)
def test_local_and_other_timestamps(writer, kind, fits):
    """The legacy mapping reads either into either; the other one refuses a mismatch."""
    assert datum_decoder(record(c=writer), columns(c=kind))
    if fits:
        assert datum_decoder(record(c=writer), columns(c=kind), legacy_timestamps=False)
    else:
        with pytest.raises(SchemaError, match="which cannot hold Avro's long"):
            datum_decoder(record(c=writer), columns(c=kind), legacy_timestamps=False)


def test_the_writers_unit_holds():
    """Java would take a writer's milliseconds for the microseconds of the reader's schema."""
    millis = {"type": "long", "logicalType": "timestamp-millis"}
    schema = columns(c=TimestampNTZType())
    both = row(record(c=millis), {"c": 1500}, schema, reader=record(c=ZONED))["c"]
    assert both.microsecond == 500_000
    plain = row(record(c="long"), {"c": 1500}, schema, reader=record(c=ZONED))["c"]
    assert plain.microsecond == 1500


def test_a_schema_that_is_no_record():
    """It stands for the only column; more columns than one are refused."""
    with pytest.raises(SchemaError, match="is a single long and no record"):
        datum_decoder('"long"', columns(a=LONG, b=LONG))
    nullable = ["null", record(a="int")]
    assert row(nullable, {"a": 1}, columns(a=LONG)) == {"a": 1}
    assert row(nullable, None, columns(a=LONG)) == (
        "the datum is NOT NULL, but Avro's null is written"
    )


@pytest.mark.parametrize(
    ("kind", "value"), [("float", 1e300), ("double", 10**400)], ids=["float", "double"]
)
def test_a_default_beyond_its_type(kind, value):
    """A number that the field's type cannot hold is the fault of the schema, and no other error."""
    reader = record(a="int", f={"type": kind, "default": value})
    with pytest.raises(SchemaError, match="The default of field 'f' cannot be read"):
        datum_decoder(record(a="int"), columns(a=LONG, f=DoubleType()), reader=reader)


VARIANT = record("V", value="bytes", metadata="bytes")


@pytest.mark.parametrize(
    ("writer", "kind", "what"),
    [
        (VARIANT, VariantType(), "VARIANT (column 'c')"),
        (array(VARIANT), ArrayType(VariantType()), "VARIANT (column 'c')"),
        (record("S", v=VARIANT), columns(v=VariantType()), "VARIANT (column 'c.v')"),
        ("int", YearMonthIntervalType(), "INTERVAL YEAR TO MONTH (column 'c')"),
        ("null", NullType(), "VOID (column 'c')"),
    ],
    ids=str,
)
def test_types_without_a_mapping_are_not_read(writer, kind, what):
    """Not even from data that look like what Spark keeps of such a value."""
    with pytest.raises(SchemaError) as error:
        datum_decoder(record(c=writer), columns(c=kind))
    assert str(error.value) == f"Unsupported to derive Schema for type: {what}."
