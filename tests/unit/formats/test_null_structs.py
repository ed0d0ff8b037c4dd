"""A NULL struct of NOT NULL fields, wherever it stands: nothing is wrong with it.

Spark's columns hold NULL under such a struct, which Arrow's own cast of a map refuses.
"""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.types import ArrayType, LongType, MapType, StringType

from pyspark_upsert_kafka.connector.format_catalog import format_named
from pyspark_upsert_kafka.core.arrow import arrow_schema
from pyspark_upsert_kafka.formats.avro.avro_columns import derived_schema
from pyspark_upsert_kafka.formats.batches import as_lists, with_type
from pyspark_upsert_kafka.formats.codec import CodecSpec
from tests.unit.formats.listed import Listed
from tests.unit.formats.protobuf.codecs import Proto, columns, required
from tests.unit.spark_arrow import spark_array

PART = required(c=StringType())
SCHEMA = columns(m=MapType(StringType(), PART), a=ArrayType(PART), s=PART)
KINDS = arrow_schema(SCHEMA)

ROWS: list[dict[str, Any]] = [
    {"m": [("x", None)], "a": [None], "s": None},
    {"m": [("x", {"c": "1"}), ("y", None), ("z", {"c": "2"})], "a": [None, {"c": "1"}], "s": {"c": "3"}},
    {"m": [], "a": [], "s": None},
    {"m": None, "a": None, "s": None},
    {"m": [("x", {"c": ""})], "a": [{"c": ""}], "s": {"c": ""}},
]  # fmt: skip


def batch(rows: list[dict[str, Any]]) -> pa.RecordBatch:
    """The rows as Spark hands them over."""
    arrays = [spark_array([row[field.name] for row in rows], field.type) for field in KINDS]
    return pa.RecordBatch.from_arrays(arrays, schema=KINDS)


_MESSAGE = """
message P { string c = 1; }
message M { map<string, P> m = 1; repeated P a = 2; P s = 3; }
"""


@pytest.fixture(params=["json", "avro", "protobuf"])
def codec(request: pytest.FixtureRequest) -> tuple[Any, Any]:
    """The encoder and the decoder of a format that has maps."""
    if request.param == "protobuf":
        proto = Proto(f'syntax = "proto3"; {_MESSAGE}', "M")
        return proto.encoder(SCHEMA).encode, proto.decoder(SCHEMA).decode
    return codec_of(request.param)


def codec_of(name: str) -> tuple[Any, Any]:
    """The encoder and the decoder of json or avro; an Avro reader must be told of NOT NULL."""
    format_ = format_named(name, "value")
    given = {option.name: option.default for option in format_.options}
    if name == "avro":
        given["schema"] = json.dumps(derived_schema(SCHEMA, frozenset(), legacy_timestamps=True))
    spec = CodecSpec(SCHEMA, "value", given)
    return Listed(format_.encoder(spec)).encode, format_.decoder(spec).decode


def test_every_format_writes_null_structs(codec):
    """Under a map, an array and by itself; each row as if it stood alone, in slices too."""
    encode, decode = codec
    rows = batch(ROWS)
    written = encode(rows)
    for at in range(len(ROWS)):
        assert encode(batch(ROWS[at : at + 1])) == encode(rows.slice(at, 1)) == [written[at]]
    decoded = decode(written * 100)  # so many take the vectorised path
    assert not decoded.errors
    decoded.rows.validate(full=True)
    assert decoded.rows.slice(0, len(ROWS)).to_pylist() == decode(written).rows.to_pylist()


@pytest.mark.parametrize("name", ["json", "avro"])
def test_null_structs_read_back(name):
    """As what they were; protobuf has no NULL inside a map or an array."""
    encode, decode = codec_of(name)
    decoded = decode(encode(batch(ROWS)))
    assert decoded.rows.to_pylist() == ROWS


_NESTED = arrow_schema(
    columns(
        x=MapType(
            LongType(),
            required(a=ArrayType(PART), m=MapType(StringType(), PART)).add("n", PART),
        )
    )
).field(0)
_PARTS = st.none() | st.fixed_dictionaries({"c": st.text(max_size=2)})
_TEXTS = st.text(max_size=2)
_STRUCTS = st.fixed_dictionaries(
    {
        "a": st.lists(_PARTS, max_size=3),
        "m": st.dictionaries(_TEXTS, _PARTS, max_size=3).map(lambda found: list(found.items())),
        "n": _PARTS,
    }
)
_MAPS = st.dictionaries(st.integers(0, 9), st.none() | _STRUCTS, max_size=3)
COLUMNS = st.lists(st.none() | _MAPS.map(lambda found: list(found.items())), max_size=8)
"""Columns of maps with nulls wherever they may be."""


@given(values=COLUMNS, data=st.data())
def test_maps_as_lists_have_the_same_entries(values, data):
    """Those that Arrow gives to Python, in slices and slices of slices too."""
    maps = spark_array(values, _NESTED.type)
    for _ in range(2):
        start = data.draw(st.integers(0, len(values)))
        maps, values = maps.slice(start), values[start:]
        lists = as_lists(maps)
        lists.validate(full=True)
        pairs = [each and [(e["key"], e["value"]) for e in each] for each in lists.to_pylist()]
        assert pairs == maps.to_pylist() == values
        entries = lists.flatten()
        assert entries.field(0).to_pylist() == [
            key for each in values or () for key, _ in each or ()
        ]
        assert pc.list_parent_indices(lists).to_pylist() == [
            at for at, each in enumerate(values) for _ in each or ()
        ]


@given(values=COLUMNS, data=st.data())
def test_another_type_has_the_same_values(values, data):
    """Nullability and the types of leaves change at any depth, the values do not; and back again."""
    other = _renamed(_NESTED.type)
    start = data.draw(st.integers(0, len(values)))
    array = spark_array(values, _NESTED.type).slice(start)
    changed = with_type(array, other)
    changed.validate(full=True)
    assert changed.type.equals(other, check_metadata=True)
    assert changed.to_pylist() == values[start:]
    assert with_type(changed, _NESTED.type).equals(array)


def _renamed(kind: pa.DataType) -> pa.DataType:
    """The type with nullable fields and large texts."""
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(field.name, _renamed(field.type)) for field in kind])
    if pa.types.is_list(kind):
        return pa.list_(_renamed(kind.value_type))
    if pa.types.is_map(kind):
        return pa.map_(_renamed(kind.key_type), _renamed(kind.item_type))
    return pa.large_string() if pa.types.is_string(kind) else kind
