"""Laws of reading one schema's data by another one, beside fastavro and Apache's own package."""

from __future__ import annotations

import io
from typing import Any

import fastavro
import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.types import (
    BinaryType,
    BooleanType,
    DataType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
)

from tests.laws import law
from tests.unit.formats.avro.codecs import datum_decoder
from tests.unit.formats.avro.corpus import FLOATS, written
from tests.unit.formats.avro.peers import read_by_apache

ENOUGH = 64  # messages that make a batch take the vectorised path
NAMES = ("a", "b", "c", "d")
PROMOTED = {
    "boolean": ["boolean"],
    "int": ["int", "long", "float", "double"],
    "long": ["long", "float", "double"],
    "float": ["float", "double"],
    "double": ["double"],
    "string": ["string", "bytes"],
    "bytes": ["bytes", "string"],
}
"""The types of a reader's schema for each of the writer's (Avro specification 1.12)."""

COLUMNS: dict[str, DataType] = {
    "boolean": BooleanType(),
    "int": IntegerType(),
    "long": LongType(),
    "float": FloatType(),
    "double": DoubleType(),
    "string": StringType(),
    "bytes": BinaryType(),
}
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "boolean": st.booleans(),
    "int": st.integers(-(2**31), 2**31 - 1),
    "long": st.integers(-(2**63), 2**63 - 1),
    "float": FLOATS,
    "double": st.floats(allow_nan=False),
    "string": st.text(),
    "bytes": st.text().map(str.encode),
}
ADDED = [("int", 5), ("long", -65), ("double", 0.5), ("boolean", True), ("string", "é")]
"""Fields that only a reader's schema has, and defaults that no peer takes wrongly."""


def record(fields: dict[str, Any]) -> dict[str, Any]:
    """A record of these fields; one with a default is a pair."""
    declared = [
        {"name": name, "type": kind[0], "default": kind[1]}
        if isinstance(kind, tuple)
        else {"name": name, "type": kind}
        for name, kind in fields.items()
    ]
    return {"type": "record", "name": "R", "fields": declared}


@st.composite
def resolutions(draw: st.DrawFn) -> tuple[dict[str, str], dict[str, str], Any, Any, Any]:
    """The simple types of the writer's fields and of the reader's, both schemas, and a value."""
    writer = draw(st.dictionaries(st.sampled_from(NAMES), st.sampled_from([*PROMOTED]), min_size=1))
    kept = draw(st.permutations([name for name in writer if draw(st.booleans())]))
    reader = {name: draw(st.sampled_from(PROMOTED[writer[name]])) for name in kept}
    nullable = {name for name in writer if draw(st.booleans())}
    value = {
        name: draw(VALUES[kind] | st.none() if name in nullable else VALUES[kind])
        for name, kind in writer.items()
    }
    added = {f"new_{at}": field for at, field in enumerate(draw(st.lists(st.sampled_from(ADDED), max_size=2)))}  # fmt: skip

    def declared(kinds: dict[str, str]) -> dict[str, Any]:
        return {n: ["null", kind] if n in nullable else kind for n, kind in kinds.items()}

    wrote, reads = record(declared(writer)), record(added | declared(reader))
    return writer, {n: kind for n, (kind, _) in added.items()} | reader, wrote, reads, value


@law(150)
@given(case=resolutions())
def test_data_are_resolved_as_by_both_peers(case):
    """Fields dropped, added, reordered and promoted: both paths read what fastavro and Apache's package read."""
    writer, reader, wrote, reads, value = case
    message = written(wrote, value)
    columns = StructType([StructField(name, COLUMNS[kind]) for name, kind in reader.items()])
    if not columns or not message:
        return
    decode = datum_decoder(wrote, columns, reader=reads).decode
    few, many = decode([message]), decode([message] * ENOUGH)
    assert (few.errors, many.errors) == ({}, {})
    rows = few.rows.to_pylist()
    assert many.rows.to_pylist() == rows * ENOUGH
    assert rows == [as_columns(reader, fastavro.schemaless_reader(io.BytesIO(message), wrote, reads))]  # fmt: skip
    if all(
        {kind, reader.get(name, kind)} != {"string", "bytes"} for name, kind in writer.items()
    ):  # which Apache's package does not promote
        assert rows == [as_columns(reader, read_by_apache(wrote, message, reads))]


def as_columns(reader: dict[str, str], value: Any) -> dict[str, Any]:
    """A peer's record in the reader's types: peers leave a number as it was written."""
    return {name: _promoted(kind, value[name]) for name, kind in reader.items()}


def _promoted(kind: str, value: Any) -> Any:
    if value is None or kind not in ("float", "double"):
        return value
    number = np.int64(value) if isinstance(value, int) else np.float64(value)
    return number.astype(np.float32 if kind == "float" else np.float64).item()
