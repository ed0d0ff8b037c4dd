"""Laws of the CSV format, for any dialect, any schema, any row and any message."""

from __future__ import annotations

from typing import Any

from hypothesis import assume, event, given
from hypothesis import strategies as st
from pyspark.sql.types import LongType, StringType

from pyspark_upsert_kafka.core.errors import EncodeError
from pyspark_upsert_kafka.core.table.arrow import arrow_schema
from pyspark_upsert_kafka.formats.csv.column_path import (
    compile_column_path,
    compile_vectorised_path,
)
from pyspark_upsert_kafka.formats.csv.dialect import dialect_of
from tests.laws import law
from tests.unit.formats.csv.codecs import decoder, encoder, exactly, spec
from tests.unit.formats.csv.corpus import FIELDS, dialects, messages, schemas
from tests.unit.formats.json.codecs import batch, columns, seen
from tests.unit.formats.json.codecs import values as shown
from tests.unit.formats.json.corpus import values


@st.composite
def tables(draw: st.DrawFn) -> tuple[Any, Any]:
    """A schema and a batch of rows for it."""
    schema = draw(schemas())
    row = st.tuples(*(values(f.dataType, nullable=f.nullable) for f in schema.fields))
    rows = draw(st.lists(row, min_size=1, max_size=4))
    return schema, batch(schema, *rows * draw(st.sampled_from([1, 64])))


def encoded(schema: Any, rows: Any, options: dict[str, Any], side: str = "value") -> list[bytes]:
    """The messages, when the dialect can carry the rows."""
    try:
        return encoder(schema, side, **options).encode(rows)
    except EncodeError as why:
        event(f"refused: {why.reason.partition(';')[0]}")
        assume(False)
        raise


LITERAL = "no value at all"


@law(200)
@given(table=tables(), options=dialects())
def test_what_is_written_reads_back(table, options):
    """decode(encode(rows)) is rows, for every type, with a null literal that no text equals."""
    schema, rows = table
    options = {**options, "null_literal": LITERAL}
    assume(not set(LITERAL) & set(options.get("field_delimiter", ",")))
    messages_ = encoded(schema, rows, options)
    decoded = decoder(schema, **options).decode(messages_)
    assert not decoded.errors
    assert shown(decoded.rows) == shown(rows)
    assert decoded.rows.schema.equals(rows.schema)


@law(150)
@given(table=tables(), options=dialects(), side=st.sampled_from(["key", "value"]))
def test_what_is_written_can_be_read(table, options, side):
    """Whatever the null literal: each message is a record of that many fields, and writes the same."""
    schema, rows = table
    written = encoded(schema, rows, options, side)
    text = columns(**{field.name: StringType() for field in schema.fields})
    plain = {k: v for k, v in options.items() if k != "null_literal"}
    assert not decoder(text, **plain).decode(written).errors
    at = rows.num_rows // 2
    encode = encoder(schema, side, **options).encode
    assert encode(rows.slice(at, 1)) == [written[at]]
    assert encode(rows.slice(at)) == written[at:]


@law(600)
@given(data=st.data(), schema=schemas(), options=dialects())
def test_vectorised_path_equals_row_path(data, schema, options):
    """What the vectorised path does not refuse is what the row path reads, without an error."""
    delimiter = options.get("field_delimiter", ",")
    many = data.draw(st.lists(messages(schema, delimiter), min_size=1, max_size=4))
    vectorised = compile_vectorised_path(
        schema, arrow_schema(schema), dialect_of(spec(schema, **options))
    )
    rows = vectorised(many) if vectorised else None
    event("refused" if rows is None else "accepted")
    if rows is not None:
        rows.validate(full=True)
        exact = exactly(schema, **options).decode(many)
        assert (shown(rows), rows.num_rows, {}, frozenset()) == seen(exact)


@law(300)
@given(data=st.data(), schema=schemas(), options=dialects())
def test_column_path_equals_row_path(data, schema, options):
    """The messages that the column path does not leave are those it reads, as the row path does."""
    delimiter = options.get("field_delimiter", ",")
    many = data.draw(st.lists(messages(schema, delimiter), min_size=1, max_size=4))
    dialect = dialect_of(spec(schema, **options))
    read = compile_column_path(schema, arrow_schema(schema), dialect)(many)
    event("refused" if read is None else "accepted")
    if read is not None:
        rows, left = read
        rows.validate(full=True)
        kept = [message for message, is_left in zip(many, left, strict=True) if not is_left]
        exact = exactly(schema, **options).decode(kept)
        assert (shown(rows), rows.num_rows, {}, frozenset()) == seen(exact)


@law(150)
@given(
    data=st.data(),
    schema=schemas(),
    options=dialects(),
    ignore=st.booleans(),
    size=st.sampled_from([64, 300]),
)
def test_a_batch_reads_as_its_messages_do(data, schema, options, ignore, size):
    """Whatever way each message goes: the same rows, the same errors at the same places."""
    one = messages(schema, options.get("field_delimiter", ","))
    drawn = data.draw(st.lists(one, min_size=1, max_size=3))
    many = (drawn * size)[:size] + data.draw(st.lists(one, max_size=2)) + drawn * 30
    options = {**options, "ignore_parse_errors": ignore}
    assert seen(decoder(schema, **options).decode(many)) == seen(
        exactly(schema, **options).decode(many)
    )


ANYTHING = st.one_of(
    st.binary(max_size=8),
    st.text('a,"\n\r 1', max_size=8).map(str.encode),
    st.sampled_from(FIELDS).map(str.encode),
)
GOOD = b'7,"x,y"'


@law(250)
@given(bad=st.lists(ANYTHING, min_size=1, max_size=3), at=st.integers(0, 64))
def test_any_bytes_leave_their_neighbours_as_they_are(bad, at):
    """Whatever stands among good messages: they are read, and it is a row or an error."""
    many = [GOOD] * at + bad + [GOOD] * (100 - at)
    decoded = decoder(columns(c=LongType(), d=StringType())).decode(many)
    assert decoded.rows.num_rows + len(decoded.errors) == len(many)
    assert set(decoded.errors) <= set(range(at, at + len(bad)))
    rows = list(zip(*(column.to_pylist() for column in decoded.rows.columns), strict=True))
    assert rows[:at] == [(7, "x,y")] * at
    assert rows[len(rows) - (100 - at) :] == [(7, "x,y")] * (100 - at)
