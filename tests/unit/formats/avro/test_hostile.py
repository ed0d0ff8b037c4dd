"""Avro schemas and data made to hurt: what they cost is bounded, and what is bad is blamed alone."""

from __future__ import annotations

import json
import sys
import tracemalloc
from collections.abc import Callable
from typing import Any

import pytest
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
)

from pyspark_upsert_kafka.connector.reading.task_reading import in_parts
from pyspark_upsert_kafka.core.arrow import MAX_HELD_BYTES
from pyspark_upsert_kafka.core.bytes_column import BytesColumn
from pyspark_upsert_kafka.core.errors import SchemaError
from pyspark_upsert_kafka.formats.avro import schema_resolution
from pyspark_upsert_kafka.formats.avro.avro_defaults import long
from pyspark_upsert_kafka.formats.avro.avro_row_path import MOST_EMPTY
from pyspark_upsert_kafka.formats.avro.avro_schema import DEEPEST, parse_schema
from pyspark_upsert_kafka.formats.avro_confluent import with_definitions
from pyspark_upsert_kafka.formats.codec import TooManyMessagesError
from pyspark_upsert_kafka.formats.decoded_size import MAX_ROW_BYTES
from pyspark_upsert_kafka.kafka.raw_batch import RawBatch
from tests.unit.formats.avro.codecs import columns_of, datum_decoder, datum_encoder
from tests.unit.formats.avro.corpus import written
from tests.unit.formats.json.codecs import batch
from tests.unit.formats.listed import good_rows

ENOUGH = 64  # messages that make a batch take the vectorised path
A = StructType([StructField("a", LongType())])


def record(name: str, **fields: Any) -> dict[str, Any]:
    """A record; a field is its type, or its declaration without the name."""
    declared = [
        {
            "name": field,
            **(kind if isinstance(kind, dict) and "default" in kind else {"type": kind}),
        }
        for field, kind in fields.items()
    ]
    return {"type": "record", "name": name, "fields": declared}


def doubling(levels: int, innermost: Any, **more: Any) -> dict[str, Any]:
    """``a`` and a record of two records of the same kind, each of two, and so on."""

    def field(kind: Any) -> Any:
        return {"type": kind, **more} if more else kind

    inner: Any = record("R0", x=innermost)
    for level in range(1, levels + 1):
        inner = record(f"R{level}", a=field(inner), b=field(f"R{level - 1}"))
    return record("Top", a="long", r=field(inner))


def calls(work: Any) -> int:
    """How many functions are called meanwhile."""
    count = 0

    def called(_: Any, event: str, __: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(called)
    try:
        work()
    finally:
        sys.setprofile(None)
    return count


@pytest.mark.parametrize("innermost", ["long", "null"])
def test_a_schema_that_doubles_at_each_level_compiles_in_linear_work(innermost):
    """A record that stands in many places is compiled once: twenty more levels cost what twenty did."""
    half, whole = (
        calls(lambda levels=levels: datum_decoder(json.dumps(doubling(levels, innermost)), A))
        for levels in (20, 40)
    )
    assert whole < 3 * half < 100_000


def test_records_of_nothing_take_no_time_to_pass():
    """However many records without any bytes a message holds: they are not walked through."""
    decode = datum_decoder(doubling(40, "null"), A).decode
    assert calls(lambda: decode([long(7)])) < 10_000
    assert decode([long(7)] * ENOUGH).rows.column(0).to_pylist() == [7] * ENOUGH


def test_data_of_a_doubling_schema_are_read():
    """What a record that is compiled once passes over is found in each of its places."""
    schema = doubling(3, "string")

    def value(level: int) -> Any:
        return {"x": "é" * level} if not level else {"a": value(level - 1), "b": value(level - 1)}

    message = written(schema, {"a": 7, "r": value(3)})
    for many in (1, ENOUGH):
        assert (
            datum_decoder(schema, A).decode([message] * many).rows.column(0).to_pylist()
            == [7] * many
        )
    assert datum_decoder(schema, A).decode([message[:-1]]).errors


def test_columns_of_a_doubling_schema_are_refused():
    """A schema that means a trillion columns cannot give those of a table."""
    with pytest.raises(SchemaError, match="more than 100000 fields"):
        columns_of(doubling(40, "long"))


def test_a_default_that_doubles_at_each_level_is_refused():
    """Writing and reading, a default is made of so many values at most."""
    schema = doubling(39, {"type": "long", "default": 1}, default={})
    with pytest.raises(SchemaError, match="more than 100000 values"):
        datum_encoder(schema, A)
    table = StructType([*A, StructField("r", StructType([StructField("a", StructType())]))])
    with pytest.raises(SchemaError, match="more than 100000 values"):
        datum_decoder(record("Top", a="long"), table, reader=schema)


def chain(levels: int, declare: Any) -> Any:
    """A type within a type, so often."""
    kind: Any = "long"
    for level in range(levels):
        kind = declare(level, kind)
    return kind


CHAINS = {
    "arrays": lambda _, kind: {"type": "array", "items": kind},
    "records": lambda level, kind: record(f"C{level}", f=kind),
    "unions": lambda level, kind: ["null", record(f"C{level}", f=kind)],
    "maps": lambda _, kind: {"type": "map", "values": kind},
}


@pytest.mark.parametrize("shape", CHAINS)
def test_a_schema_nested_too_deep_is_refused(shape):
    """One of 150, of 400 and of 10,000 levels is refused in words; one of 45 is read."""
    for levels in (150, 400, 10_000):
        with pytest.raises(SchemaError, match="nested too deep"):
            datum_decoder(record("Top", a="long", f=chain(levels, CHAINS[shape])), A)
    datum_decoder(record("Top", a="long", f=chain(45, CHAINS[shape])), A)


def test_records_that_only_name_each_other_too_deep_are_refused():
    """The text is flat, and the type is not."""
    fields = [{"name": "r0", "type": record("R0", x="long")}]
    fields += [
        {"name": f"r{i}", "type": record(f"R{i}", x=f"R{i - 1}")} for i in range(1, 2 * DEEPEST)
    ]
    with pytest.raises(SchemaError, match=f"nested too deep: more than {DEEPEST} levels"):
        parse_schema({"type": "record", "name": "Top", "fields": fields})
    parse_schema({"type": "record", "name": "Top", "fields": fields[: DEEPEST // 2]})


def unions(levels: int) -> Any:
    """A union of ten records, of each of which the field is such a union, and so on."""
    if not levels:
        return "long"
    first, *others = (f"R{levels}_{at}" for at in range(10))
    again = [f"R{levels - 1}_{at}" for at in range(10)] if levels > 1 else ["long"]
    declared = [record(name, f=["null", *again]) for name in others]
    return ["null", record(first, f=unions(levels - 1)), *declared]


def test_unions_that_multiply_at_each_level_of_the_columns_are_refused(monkeypatch):
    """A schema of 10 KB that means a hundred million ways to read a column is refused in words."""
    monkeypatch.setattr(schema_resolution, "_MOST_STEPS", 1_000)

    def decoder(levels: int) -> Any:
        column: Any = LongType()
        for _ in range(levels):
            column = StructType([StructField("f", column)])
        schema = record("Top", a="long", c=unions(levels))
        return datum_decoder(schema, StructType([*A, StructField("c", column)]))

    assert decoder(2).decode([long(7) + long(0)]).rows.num_rows == 1
    with pytest.raises(SchemaError, match="can be read from in more than 1000 ways"):
        decoder(8)


def test_data_that_stand_within_themselves_too_often_are_bad():
    """A list of 100,000 records, one within the other, is a bad message among good ones."""
    schema = record("Top", a="long", next=["null", record("N", next=["null", "N"])])
    good, deep = long(7) + b"\0", long(7) + b"\2" * 100_000 + b"\0"
    decoded = datum_decoder(schema, A).decode([good] * ENOUGH + [deep] + [good] * ENOUGH)
    assert list(decoded.errors) == [ENOUGH]
    assert good_rows(decoded).num_rows == 2 * ENOUGH


def array(items: Any) -> Any:
    """An array."""
    return {"type": "array", "items": items}


NOTHING = {
    "null": "null",
    "empty record": record("E"),
    "record of nothing": record("E", n="null", e=record("F")),
    "fixed of no bytes": {"type": "fixed", "name": "X", "size": 0},
}
BLOCK = long(MOST_EMPTY) + long(0)
ARRAYS = {
    "many arrays": long(4_000) + BLOCK * 4_000 + long(0),
    "one array": long(1) + long(1 << 60) + long(0) + long(0),
    "many blocks": long(1) + long(MOST_EMPTY) * 4_000 + long(0) + long(0),
    "negative counts": long(4_000) + (long(-MOST_EMPTY) + long(0) + long(0)) * 4_000 + long(0),
}


@pytest.mark.parametrize(
    "asserts_memory",
    [False, pytest.param(True, marks=pytest.mark.alone("asserts how much memory is taken"))],
)
@pytest.mark.parametrize("data", ARRAYS)
@pytest.mark.parametrize("items", NOTHING)
@pytest.mark.parametrize("is_read", [False, True])
def test_items_without_bytes_are_few(items, data, is_read, asserts_memory):
    """A message may hold so many in all, and each message for itself; the others are read."""
    schema = record("Top", a="long", c=array(array(NOTHING[items])))
    inner = {"null": StringType(), "fixed of no bytes": BinaryType()}.get(items, StructType())
    column = StructField("c", ArrayType(ArrayType(inner)))
    decode = datum_decoder(schema, StructType([*A, column]) if is_read else A).decode
    good, bad = long(7) + long(1) + long(3) + long(0) + long(0), long(7) + ARRAYS[data]
    if asserts_memory:
        tracemalloc.start()
    decoded = decode([good] * ENOUGH + [bad] + [good] * ENOUGH)
    if asserts_memory:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 10_000_000
    passed_by_size = data == "negative counts" and not is_read
    assert list(decoded.errors) == ([] if passed_by_size else [ENOUGH])
    assert good_rows(decoded).num_rows == 2 * ENOUGH + passed_by_size


def test_many_records_within_themselves_are_no_items_without_bytes():
    """A tree of more nodes than that is skipped."""
    schema = record("Top", a="long", t=record("N", children=array("N")))
    wide = long(7) + long(3 * MOST_EMPTY) + long(0) * 3 * MOST_EMPTY + long(0)
    assert datum_decoder(schema, A).decode([wide]).rows.column(0).to_pylist() == [7]


def test_a_record_with_a_field_named_as_a_branch():
    """The struct of a record with a field ``member0`` is that record, in a union with null too."""
    inner = StructType([StructField("member0", LongType())])
    schema = record("Top", c=["null", record("R", member0="long")])
    table = StructType([StructField("c", inner)])
    message = written(schema, {"c": {"member0": 5}})
    for many in (1, ENOUGH):
        rows = datum_decoder(schema, table).decode([message] * many).rows.to_pylist()
        assert rows == [{"c": {"member0": 5}}] * many
        rows = datum_decoder(schema, table, reader=schema).decode([message] * many).rows.to_pylist()
        assert rows == [{"c": {"member0": 5}}] * many
    assert datum_encoder(schema, table).encode(batch(table, ({"member0": 5},))) == [message]


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("{", "The Avro schema is not JSON: Expecting property name"),
        ("5", "The Avro schema is wrong: no type '5' was defined before"),
        ('{"type": "record"}', "The Avro schema is wrong: 'name' of a type 'record' is missing"),
    ],
)
def test_what_is_wrong_with_a_schema_is_said_once(source, said):
    """A text that is no JSON is told from one that is JSON and no schema."""
    with pytest.raises(SchemaError) as error:
        parse_schema(source)
    assert str(error.value).startswith(said)


@pytest.mark.parametrize("shape", CHAINS)
def test_a_wrong_schema_is_told_of_in_few_words(shape):
    """Also what is wrong deep in a large schema."""
    kind: Any = record("Large", **{f"f{at}": "long" for at in range(1_000)}, last="nowhere")
    for level in range(40):
        kind = CHAINS[shape](level, kind)

    with pytest.raises(SchemaError, match=r"^.{,200}$"):
        parse_schema(kind)


@pytest.mark.alone("asserts how much memory is taken")
@pytest.mark.parametrize("shape", CHAINS)
def test_a_wrong_schema_costs_what_a_right_one_does(shape):
    """What is wrong deep in a large schema is found without repeating the rest."""
    fields = {f"f{at}": "long" for at in range(1_000)}
    seen: dict[bool, int] = {}
    for wrong in (False, True):
        kind: Any = record("Large", **fields, last="nowhere" if wrong else "long")
        for level in range(40):
            kind = CHAINS[shape](level, kind)
        tracemalloc.start()
        if wrong:
            with pytest.raises(SchemaError):
                parse_schema(kind)
        else:
            parse_schema(kind)
        seen[wrong] = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert seen[True] < 3 * seen[False]


def test_references_nested_too_deep_are_refused():
    """A schema put together of many is refused as a whole one is."""
    with pytest.raises(SchemaError, match="nested too deep"):
        with_definitions("[" * 100_000, ['"long"'])


def test_long_defaults_limit_how_many_rows_are_decoded_at_once():
    """30,000 rows of a default of 100 KB are 3 GB: their messages are decoded in parts, by their bytes."""
    reader = record("Top", a="long", d={"type": "string", "default": "x" * 100_000})
    table = StructType([*A, StructField("d", StringType())])
    decode = datum_decoder(record("Top", a="long"), table, reader=reader).decode
    with pytest.raises(TooManyMessagesError) as error:
        decode([long(7)] * 30_000)
    rows = decode([long(7)] * error.value.most).rows
    assert error.value.most > 500
    assert rows.nbytes < 80_000_000
    assert rows.slice(rows.num_rows - 1).to_pylist() == [{"a": 7, "d": "x" * 100_000}]


ITEM = StructType([StructField("x", LongType()), StructField("d", StringType())])
ITEMS = {
    "array": (array, ArrayType(ITEM), b""),
    "map": (
        lambda items: {"type": "map", "values": items},
        MapType(StringType(), ITEM),
        long(1) + b"k",
    ),
    "array in a union": (lambda items: ["null", array(items)], ArrayType(ITEM), b""),
}


@pytest.mark.parametrize("shape", ITEMS)
def test_long_defaults_of_items_are_counted(shape):
    """A few bytes for each item do not become 10 KB each without end, in one message or in many."""
    around, kind, name = ITEMS[shape]
    branch = long(1) if "union" in shape else b""
    default = {"type": "string", "default": "x" * 10_000}
    writer = record("Top", a="long", c=around(record("I", x="long")))
    reader = record("Top", a="long", c=around(record("I", x="long", d=default)))
    decode = datum_decoder(writer, StructType([*A, StructField("c", kind)]), reader=reader).decode

    def message(count: int) -> bytes:
        return long(7) + branch + long(count) + (name + long(1)) * count + long(0)

    small, large = message(20), message(MAX_ROW_BYTES // 10_000 + 1)
    with pytest.raises(TooManyMessagesError) as error:
        decode([small] * 5_000)
    assert 100 < error.value.most < 1_000
    assert decode([small] * error.value.most).rows.nbytes < 2 * MAX_HELD_BYTES
    assert decode([small]).rows.num_rows == 1
    assert "it would take more than 128 MiB of memory" in decode([large]).errors[0]


def test_a_batch_is_read_in_parts_where_its_rows_are_too_large():
    """Each part has its own messages, and what is known of them."""
    batch_ = RawBatch(
        "t",
        0,
        BytesColumn.of([None] * 5),
        BytesColumn.of([b"v"] * 5),
        [3, 4, 6, 7, 9],
        bad_headers={4: "bad"},
    )

    class TwoAtOnce:
        def decode(self, part: RawBatch) -> Any:
            if len(part) > 2:
                raise TooManyMessagesError(2)
            return part.offsets, part.bad_headers

    seen = [rows for _, rows in in_parts(batch_, TwoAtOnce().decode)]
    assert seen == [([3, 4], {}), ([6, 7], {}), ([9], {0: "bad"})]


def calls_of(work: Callable[[], object]) -> int:
    """How many functions are called, those of the interpreter too."""
    calls = 0

    def count(_frame: Any, event: str, _arg: Any) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        work()
    finally:
        sys.setprofile(before)
    return calls


def union_of_records(count: int) -> list[Any]:
    """A union of records of different names."""
    return ["null", *(record(f"R{number}", a="long") for number in range(count))]


def wide(count: int) -> dict[str, Any]:
    """A record of many fields."""
    return record("Wide", **{f"f{number}": "long" for number in range(count)})


@pytest.mark.parametrize("with_reader", [False, True])
@pytest.mark.parametrize(
    ("schema_of", "columns"),
    [
        (union_of_records, lambda _: A),
        (lambda count: record("R", u=union_of_records(count), a="long"), lambda _: A),
        (
            lambda count: record("R", u=union_of_records(count)),
            lambda _: StructType([StructField("u", A)]),
        ),
        (
            wide,
            lambda count: StructType([StructField(f"f{at}", LongType()) for at in range(count)]),
        ),
    ],
    ids=["union", "union that is skipped", "union in a field", "fields"],
)
def test_a_schema_costs_as_much_as_it_is_long(
    schema_of: Callable[[int], Any], columns: Callable[[int], StructType], with_reader: bool
) -> None:
    """A union of thousands of records, or a record of thousands of fields, is compiled in time of its length, not of the square."""

    def cost(count: int) -> int:
        schema = schema_of(count)
        reader = {"reader": schema} if with_reader else {}
        return calls_of(lambda: datum_decoder(schema, columns(count), **reader))

    cost(10)  # what is imported or cached counts no more
    small = cost(100)
    assert cost(400) < 6 * small


def test_a_union_of_many_branches_is_read_by_those_that_occur() -> None:
    """Each message by its branch, with branches that no message has between them."""
    schema = union_of_records(300)
    values = [(f"R{7 * at % 300}", {"a": at}) for at in range(100)]
    messages = [written(schema, value) for value in values]
    rows = datum_decoder(schema, A).decode(messages).rows
    assert rows.column("a").to_pylist() == [*range(100)]


LONG_NAMES = {
    "record": record("R" * 1_001, a="long"),
    "namespace": {**record("R", a="long"), "namespace": "n." * 500},
    "field": record("R", **{"f" * 1_001: "long"}),
    "enum": {"type": "enum", "name": "E" * 1_001, "symbols": ["A"]},
    "fixed": {"type": "fixed", "name": "F" * 1_001, "size": 1},
    "alias": {**record("R", a="long"), "aliases": ["A", "B" * 1_001]},
}


@pytest.mark.parametrize("where", LONG_NAMES)
def test_names_without_an_end_are_refused(where):
    """A name is kept for each field, symbol or alias: one of a megabyte would fill the memory."""
    with pytest.raises(SchemaError, match="characters") as error:
        parse_schema(LONG_NAMES[where])
    assert len(str(error.value)) < 200


def test_names_of_a_thousand_characters_are_read():
    """Longer ones than anybody gives."""
    parse_schema({**record("R" * 500, **{"f" * 1_000: "long"}), "namespace": "n" * 500})


def test_records_of_more_fields_than_any_table_has_are_refused():
    """Its name, which may be long, is kept for each of them."""
    with pytest.raises(SchemaError, match="'R' has 10,001 fields, which are more than 10,000"):
        parse_schema(record("R", **{f"f{at}": "long" for at in range(10_001)}))
