"""Laws of reading Avro, for any schema, any data and any bytes."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import event, given
from hypothesis import strategies as st
from pyspark.sql.types import LongType, StringType, StructField, StructType

from pyspark_upsert_kafka.core.arrow import arrow_schema
from pyspark_upsert_kafka.formats.avro.avro_decoder import vectorised_reader
from pyspark_upsert_kafka.formats.avro.avro_schema import parse_schema
from pyspark_upsert_kafka.formats.avro.schema_resolution import resolve
from tests.laws import FULL, each_of, law
from tests.unit.formats.avro.codecs import datum_decoder
from tests.unit.formats.avro.corpus import (
    ANYTHING,
    LEAVES,
    PIECES,
    Kind,
    array_of,
    map_of,
    nullable,
    odd_data,
    record,
    records,
    spoilt,
    written,
)
from tests.unit.formats.avro.peers import written_by_apache

ENOUGH = 64  # messages that make a batch take the vectorised path


@law(100)
@given(data=st.data(), kind=records())
def test_what_a_peer_writes_is_read(data, kind):
    """Rows of a peer's data are its values, by both paths; a reader's schema that is the writer's own changes nothing."""
    values = data.draw(st.lists(kind.values, min_size=1, max_size=4))
    peer = data.draw(st.sampled_from([written, written_by_apache]))
    messages = [peer(kind.schema, value) for value in values]
    expected = [kind.expected(value) for value in values]
    if b"" in messages:
        return
    reader = data.draw(st.sampled_from([None, kind.schema]))
    decode = datum_decoder(kind.schema, kind.column, reader=reader).decode
    few, many = decode(messages), decode(messages * ENOUGH)
    assert (few.errors, many.errors) == ({}, {})
    assert few.rows.to_pylist() == expected
    assert many.rows.to_pylist() == expected * ENOUGH
    assert many.rows.schema.equals(arrow_schema(kind.column), check_metadata=True)
    many.rows.validate(full=True)


@law(100)
@given(data=st.data(), kind=records())
def test_the_vectorised_path_defers_no_good_message(data, kind):
    """The row path has nothing to do for data that are well-formed."""
    values = data.draw(st.lists(kind.values, min_size=1, max_size=3))
    messages = [written(kind.schema, value) for value in values] * ENOUGH
    if b"" in messages or holds_long_decimals(kind.schema):
        return
    target = arrow_schema(kind.column)
    plan = resolve(parse_schema(kind.schema), None, target, strict_zones=False)
    rows, left = vectorised_reader(plan, pa.struct(list(target)), 0)(messages)
    assert not left.any()
    assert len(rows) == len(messages)


def holds_long_decimals(schema: Any) -> bool:
    """Whether decimals of more than sixteen bytes are in there: the row path reads them."""
    return "'size': 20" in str(schema)


@law(150)
@given(data=st.data(), kind=records())
def test_a_batch_reads_as_its_messages_do(data, kind):
    """Spoilt messages among good ones: the same rows and the same errors as one by one."""
    good = [written(kind.schema, data.draw(kind.values)) for _ in range(3)]
    bad = data.draw(
        st.lists(st.sampled_from(good).flatmap(spoilt) | ANYTHING, min_size=1, max_size=6)
    )
    at = data.draw(st.integers(0, ENOUGH))
    unreadable = reads_as_its_messages_do(kind, ((good * ENOUGH)[:at] + bad + good * ENOUGH) + bad)
    event(f"{unreadable} messages cannot be read")


def reads_as_its_messages_do(kind: Kind, batch: list[bytes]) -> int:
    """Asserts the law, and says how many different messages cannot be read."""
    decode = datum_decoder(kind.schema, kind.column).decode
    alone = {message: decode([message]) for message in {*batch}}
    decoded = decode(batch)
    decoded.rows.validate(full=True)
    assert decoded.errors == {i: alone[m].errors[0] for i, m in enumerate(batch) if alone[m].errors}
    expected = [row for m in batch for row in shown(alone[m].rows)]
    assert shown(decoded.rows) == expected
    return sum(bool(each.errors) for each in alone.values())


@pytest.mark.parametrize("leaf", LEAVES)
def test_odd_data_are_read_among_others_as_alone(leaf):
    """Each odd piece of data as a field of each type, in a union, an array and a map of it, and where no column wants it."""
    kinds = {
        "field": leaf,
        "union": nullable(leaf, first=True),
        "array": array_of(leaf),
        "map": map_of(leaf),
    }
    for place, kind in kinds.items():
        pieces = PIECES if place == "field" else PIECES[:: 1 if FULL else 3]
        many = [data for piece in pieces for data in odd_data(piece, place)]
        reads_as_its_messages_do(record([kind], ["a"]), many * 2)
        if place != "field":
            unread = record([kind, LEAVES[0]], ["b"])
            reads_as_its_messages_do(unread, [data + b"\1" for data in many[::2]])
    last = record([nullable(leaf, first=False)], ["a"])
    reads_as_its_messages_do(
        last, [data for piece in PIECES[::5] for data in odd_data(piece, "union")]
    )


def shown(rows: Any) -> list[str]:
    """Rows in a form that compares well: NaN equals itself; moments as numbers."""
    return [repr(row) for row in plain(rows).to_pylist()]


def plain(rows: Any) -> Any:
    """Dates and moments may be out of Python's range."""

    def numbers(kind: Any) -> Any:
        if pa.types.is_date32(kind):
            return pa.int32()
        if pa.types.is_timestamp(kind):
            return pa.int64()
        if pa.types.is_struct(kind):
            return pa.struct([f.with_type(numbers(f.type)) for f in kind])
        if pa.types.is_map(kind):
            return pa.map_(kind.key_type, kind.item_field.with_type(numbers(kind.item_type)))
        if pa.types.is_list(kind):
            return pa.list_(kind.value_field.with_type(numbers(kind.value_type)))
        return kind

    columns = [c.cast(numbers(c.type)) for c in rows.columns]
    return pa.RecordBatch.from_arrays(columns, rows.schema.names)


ONE = StructType([StructField("c", LongType()), StructField("s", StringType())])
ONE_SCHEMA = {
    "type": "record",
    "name": "R",
    "fields": [{"name": "c", "type": "long"}, {"name": "s", "type": ["null", "string"]}],
}
GOOD = written(ONE_SCHEMA, {"c": 7, "s": "seven"})


@each_of("bad", [*PIECES, *(GOOD[:at] for at in range(len(GOOD))), GOOD + b"\0"], at=30)
@law(150)
@given(bad=st.lists(ANYTHING | spoilt(GOOD), min_size=1, max_size=3), at=st.integers(0, 64))
def test_any_bytes_leave_their_neighbours_as_they_are(bad, at):
    """Whatever stands among good messages: they are read, and it is a row or an error."""
    decoded = datum_decoder(ONE_SCHEMA, ONE).decode([GOOD] * at + bad + [GOOD] * (100 - at))
    assert decoded.rows.num_rows == 100 + len(bad)
    assert set(decoded.errors) <= set(range(at, at + len(bad)))
    rows = decoded.rows.to_pylist()
    expected = {"c": 7, "s": "seven"}
    assert rows[:at] == [expected] * at
    assert rows[len(rows) - (100 - at) :] == [expected] * (100 - at)
