"""Laws of writing Avro, for any columns and any rows."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from pyspark.sql.types import (
    ArrayType,
    DataType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
)

from pyspark_upsert_kafka.core.errors import EncodeError
from pyspark_upsert_kafka.formats.avro.avro_columns import derived_schema
from pyspark_upsert_kafka.formats.avro.avro_encoder import longs
from pyspark_upsert_kafka.formats.binary_values import joined
from tests.laws import law
from tests.unit.formats.avro.codecs import datum_decoder, datum_encoder
from tests.unit.formats.avro.peers import known_to_apache, read_by_apache
from tests.unit.formats.avro.writing import by_fastavro, read_by_fastavro
from tests.unit.formats.json.codecs import batch
from tests.unit.formats.json.codecs import values as shown
from tests.unit.formats.json.corpus import NATIVE, extremes, nested, structs, values

EPOCH = dt.datetime(1970, 1, 1)  # noqa: DTZ001


@cache
def kinds() -> st.SearchStrategy[DataType]:
    """Every type that Avro has a mapping for, nested at will."""

    def nested(inner: st.SearchStrategy[DataType]) -> st.SearchStrategy[DataType]:
        maps = st.builds(MapType, st.just(StringType()), inner, st.booleans())
        return st.builds(ArrayType, inner, st.booleans()) | maps | structs(inner)

    return st.recursive(st.sampled_from(NATIVE), nested, max_leaves=5)


@st.composite
def tables(draw: st.DrawFn) -> tuple[StructType, pa.RecordBatch]:
    """Columns and a batch of rows for them."""
    fields = draw(st.lists(st.tuples(kinds(), st.booleans()), max_size=4))
    schema = StructType([StructField(f"c{i}", *field) for i, field in enumerate(fields)])
    row = st.tuples(*(values(f.dataType, nullable=f.nullable) for f in schema.fields))
    return schema, batch(schema, *draw(st.lists(row, max_size=6)))


def derived(schema: StructType, *, legacy: bool = True) -> dict[str, Any]:
    """The schema of columns of which none is a key."""
    return derived_schema(schema, frozenset(), legacy_timestamps=legacy)


def plain(value: Any) -> Any:
    """A value as fastavro takes it: numbers for times, a dict for a map."""
    if isinstance(value, dt.datetime):
        return round((value.replace(tzinfo=None) - EPOCH) / dt.timedelta(microseconds=1))
    if isinstance(value, dt.date):
        return (value - EPOCH.date()).days
    if isinstance(value, dt.timedelta):
        return value // dt.timedelta(microseconds=1)
    if isinstance(value, dict):
        return {name: plain(each) for name, each in value.items()}
    if isinstance(value, list):
        entries = bool(value) and all(isinstance(each, tuple) for each in value)
        return dict(plain(list(map(list, value)))) if entries else [plain(v) for v in value]
    return value


def takes_more_by_fastavro(value: Any) -> bool:
    """Whether a decimal is in it that fastavro writes with a byte too many: -128, -32768, ..."""
    if isinstance(value, Decimal):
        unscaled = int(f"{value:f}".replace(".", ""))
        return unscaled in {-(1 << bits) for bits in range(7, 128, 8)}
    parts = value.values() if isinstance(value, dict) else value
    return isinstance(value, dict | list | tuple) and any(map(takes_more_by_fastavro, parts))


@law(150)
@given(table=tables(), legacy=st.booleans())
def test_the_peer_reads_the_rows(table, legacy):
    """What is written, another reader reads to the last byte, and writes it again as it was."""
    schema, rows = table
    assume(not takes_more_by_fastavro(rows.to_pylist()))
    avro = derived(schema, legacy=legacy)

    written = datum_encoder(avro, schema).encode(rows)

    assert by_fastavro(avro, *read_by_fastavro(avro, written)) == written


@law(100)
@given(table=tables(), legacy=st.booleans())
def test_apaches_reader_reads_what_fastavro_reads(table, legacy):
    """Both peers read the same values from what is written, each message to its last byte."""
    schema, rows = table
    avro = known_to_apache(derived(schema, legacy=legacy))

    written = datum_encoder(derived(schema, legacy=legacy), schema).encode(rows)

    seen = [plain(read_by_apache(avro, message)) for message in written]
    assert repr(seen) == repr(plain(read_by_fastavro(avro, written)))


@law(150)
@given(table=tables(), legacy=st.booleans())
def test_what_is_written_reads_back(table, legacy):
    """decode(encode(rows)) is rows, if a row has any bytes; a timestamp too fine for it is refused."""
    reads_back(*table, legacy=legacy)


def reads_back(schema: StructType, rows: pa.RecordBatch, *, legacy: bool) -> None:
    """Asserts the law; but for rows without a byte, which is no message."""
    avro = derived(schema, legacy=legacy)
    encode = datum_encoder(avro, schema, legacy_timestamps=legacy, remedy="cut it").encode

    try:
        written = encode(rows)
    except EncodeError as why:
        assert str(why).endswith("is finer than milliseconds; cut it")  # noqa: PT017
        return
    if not all(written):
        return
    decoded = datum_decoder(avro, schema, legacy_timestamps=legacy).decode(written)

    assert not decoded.errors
    assert decoded.rows.schema.equals(rows.schema)
    assert shown(decoded.rows) == shown(rows)


@pytest.mark.parametrize("kind", NATIVE, ids=DataType.simpleString)
def test_extreme_values_are_written_likewise(kind):
    """The laws, for the values of each type that are likely to go wrong, alone and inside of other types."""
    for each in nested(kind):
        schema = StructType([StructField("c", each), StructField("n", LongType())])
        rows = batch(schema, *((value, at) for at, value in enumerate([None, *extremes(each)])))
        for legacy in (False, True):
            reads_back(schema, rows, legacy=legacy)
            for at in range(rows.num_rows):
                reads_back(schema, rows.slice(at, 1), legacy=legacy)
        reads_back(schema, pa.concat_batches([rows] * 10), legacy=False)
        encode = datum_encoder(derived(schema, legacy=False), schema).encode
        written = encode(rows)
        assert [encode(rows.slice(at, 1))[0] for at in range(rows.num_rows)] == written
        assert encode(rows.slice(rows.num_rows // 2)) == written[rows.num_rows // 2 :]
        if not takes_more_by_fastavro(rows.to_pylist()):
            avro = derived(schema, legacy=False)
            assert by_fastavro(avro, *read_by_fastavro(avro, written)) == written


@law(100)
@given(table=tables(), order=st.randoms(use_true_random=False))
def test_a_row_has_its_bytes_wherever_it_stands(table, order):
    """A row's bytes depend neither on the batch around it nor on how Arrow lays it out."""
    schema, rows = table
    encode = datum_encoder(derived(schema), schema).encode
    written = encode(rows)
    at = [order.randrange(rows.num_rows) for _ in range(12)] if rows.num_rows else []

    assert encode(rows.take(pa.array(at, pa.int64()))) == [written[i] for i in at]
    for i in range(rows.num_rows):
        assert encode(rows.slice(i, 1)) == written[i : i + 1]


@example([])
@example(
    [
        0,
        -1,
        63,
        64,
        -64,
        -65,
        8191,
        8192,
        -8192,
        -8193,
        2**31,
        -(2**31),
        2**62,
        -(2**62),
        2**63 - 1,
        -(2**63),
    ]
)
@law(200)
@given(st.lists(st.integers(-(2**63), 2**63 - 1) | st.integers(-70, 70)))
def test_numbers(numbers):
    """A whole number has the bytes that the peer gives it, whichever numbers stand beside it."""
    part = longs(np.array(numbers, np.int64))

    assert joined([part], len(numbers)).to_pylist() == by_fastavro("long", *numbers)
