"""Laws of the JSON format, for any schema, any row and any message."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import event, given
from hypothesis import strategies as st
from pyspark.sql.types import DataType, LongType, StringType, StructType, VariantType

from pyspark_upsert_kafka.core.table.arrow import arrow_schema
from pyspark_upsert_kafka.formats.json.column_path import compile_column_path
from pyspark_upsert_kafka.formats.json.settings import settings_of
from pyspark_upsert_kafka.formats.json.vectorised_path import compile_vectorised_path
from tests.laws import law
from tests.unit.formats.json.codecs import batch, columns, decoder, encoder, exactly, seen, spec
from tests.unit.formats.json.codecs import values as shown
from tests.unit.formats.json.corpus import TOKENS, messages, schemas, texts, values

GOOD = b'{"c":7}'


OPTIONS = st.fixed_dictionaries(
    {
        "timestamp_format_standard": st.sampled_from(["SQL", "ISO-8601"]),
        "encode_decimal_as_plain_number": st.booleans(),
        "encode_ignore_null_fields": st.booleans(),
    }
)


@st.composite
def tables(draw: st.DrawFn) -> tuple[StructType, pa.RecordBatch]:
    """A schema and a batch of rows for it."""
    schema = draw(schemas())
    row = st.tuples(*(values(f.dataType, nullable=f.nullable) for f in schema.fields))
    rows = draw(st.lists(row, min_size=1, max_size=4))
    copies = draw(st.sampled_from([1, 64]))
    return schema, batch(schema, *rows * copies)


def holds_variants(kind: DataType) -> bool:
    """Whether a variant is in there: equal ones may differ in their bytes."""
    return VariantType().simpleString() in kind.simpleString()


@law(120)
@given(table=tables(), options=OPTIONS)
def test_what_is_written_reads_back(table, options):
    """decode(encode(rows)) is rows, for every type and every spelling."""
    schema, rows = table
    written = encoder(schema, **options).encode(rows)
    decoded = decoder(schema, **options).decode(written)
    assert not decoded.errors
    assert decoded.rows.schema.equals(rows.schema)
    if not holds_variants(schema):
        assert shown(decoded.rows) == shown(rows)
    assert encoder(schema, **options).encode(decoded.rows) == written


@law(60)
@given(table=tables(), options=OPTIONS, side=st.sampled_from(["key", "value"]))
def test_a_row_has_its_bytes_wherever_it_stands(table, options, side):
    """A row's bytes do not depend on the batch around it, and hold no line break."""
    schema, rows = table
    encode = encoder(schema, side, **options).encode
    written = encode(rows)
    assert len(written) == rows.num_rows
    assert not any(b"\n" in message for message in written)
    at = rows.num_rows // 2
    assert encode(rows.slice(at, 1)) == [written[at]]
    assert encode(rows.slice(at)) == written[at:]


@law(500)
@given(data=st.data(), schema=schemas(everything=False))
def test_vectorised_path_equals_row_path(data, schema):
    """What the vectorised path does not refuse is what the row path reads, without an error."""
    many = data.draw(st.lists(messages(schema), min_size=1, max_size=4))
    standard = data.draw(st.sampled_from(["SQL", "ISO-8601"]))
    target = arrow_schema(schema)
    chosen = settings_of(spec(schema, timestamp_format_standard=standard))
    vectorised = compile_vectorised_path(schema, target, chosen)
    rows = vectorised(many)
    event("refused" if rows is None else "accepted")
    if rows is not None:
        rows.validate(full=True)
        exact = exactly(schema, timestamp_format_standard=standard).decode(many)
        assert (shown(rows), rows.num_rows, {}, frozenset()) == seen(exact)


@law(300)
@given(data=st.data(), schema=schemas(), missing=st.booleans())
def test_column_path_equals_row_path(data, schema, missing):
    """The messages that the column path does not leave are those it reads, as the row path does."""
    many = data.draw(st.lists(messages(schema), min_size=1, max_size=4))
    options = {"fail_on_missing_field": missing}
    chosen = settings_of(spec(schema, **options))
    rows, left = compile_column_path(schema, arrow_schema(schema), chosen)(many)
    rows.validate(full=True)
    kept = [message for message, is_left in zip(many, left, strict=True) if not is_left]
    exact = exactly(schema, **options).decode(kept)
    event(f"{len(kept)} of {len(many)}")
    assert (shown(rows), rows.num_rows, {}, frozenset()) == seen(exact)


@law(150)
@given(data=st.data(), schema=schemas(), ignore=st.booleans(), size=st.sampled_from([64, 300]))
def test_a_batch_reads_as_its_messages_do(data, schema, ignore, size):
    """Whatever way each message goes: the same rows, the same errors at the same places."""
    drawn = data.draw(st.lists(messages(schema), min_size=1, max_size=3))
    odd = data.draw(st.lists(messages(schema), max_size=2))
    many = (drawn * size)[:size] + odd + drawn * 30
    options = {"ignore_parse_errors": ignore}
    assert seen(decoder(schema, **options).decode(many)) == seen(
        exactly(schema, **options).decode(many)
    )


@law(100)
@given(data=st.data(), schema=schemas(everything=False))
def test_missing_fields_are_found_by_both_ways(data, schema):
    """With fail-on-missing-field the vectorised path refuses what the row path blames."""
    many = data.draw(st.lists(messages(schema), min_size=1, max_size=3)) * 64
    options = {"fail_on_missing_field": True}
    assert seen(decoder(schema, **options).decode(many)) == seen(
        exactly(schema, **options).decode(many)
    )


BRACES = st.tuples(st.just(b"{"), st.binary(max_size=6), st.just(b"}")).map(b"".join)
ANYTHING = st.one_of(st.binary(max_size=8), BRACES, st.sampled_from(TOKENS))


@law(150)
@given(bad=st.lists(ANYTHING, min_size=1, max_size=3), at=st.integers(0, 64))
def test_any_bytes_leave_their_neighbours_as_they_are(bad, at):
    """Whatever stands among good messages: they are read, and it is a row or an error."""
    many = [GOOD] * at + bad + [GOOD] * (100 - at)
    decoded = decoder(columns(c=LongType())).decode(many)
    assert decoded.rows.num_rows + len(decoded.errors) == len(many)
    assert set(decoded.errors) <= set(range(at, at + len(bad)))
    rows = decoded.rows.column(0).to_pylist()
    assert rows[:at] == [7] * at
    assert rows[len(rows) - (100 - at) :] == [7] * (100 - at)


SHORT = {"\b": r"\b", "\t": r"\t", "\n": r"\n", "\f": r"\f", "\r": r"\r", '"': r"\"", "\\": r"\\"}


def by_jackson(character):
    """A character of a string as Jackson writes it."""
    units = character.encode("utf-16-be").hex().upper()
    if character >= " " and len(units) == 4:
        return SHORT.get(character, character)
    return SHORT.get(character) or "".join(
        f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4)
    )


@law(100)
@given(text=texts())
def test_strings_are_escaped_as_by_jackson(text):
    """Quotes, backslashes, controls, and characters of two UTF-16 units; names like values."""
    schema = columns(**{text: StringType()})
    (message,) = encoder(schema).encode(batch(schema, (text,)))
    spelled = "".join(map(by_jackson, text))
    assert message.decode() == f'{{"{spelled}":"{spelled}"}}'
