"""Laws of the CSV format, for any dialect, any schema, any row and any message."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import product
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import assume, event, given
from hypothesis import strategies as st
from pyspark.sql.types import ArrayType, DataType, LongType, StringType, StructField, StructType

from pyspark_upsert_kafka.core.arrow import arrow_schema
from pyspark_upsert_kafka.core.errors import EncodeError
from pyspark_upsert_kafka.formats.csv import dialect_of
from pyspark_upsert_kafka.formats.csv.column_paths import (
    compile_column_path,
    compile_vectorised_path,
)
from tests.laws import each_of, law, share
from tests.unit.formats.csv.codecs import decoder, encoder, exactly, spec
from tests.unit.formats.csv.corpus import BAD_BYTES, FIELDS, SIMPLE, dialects, messages, schemas
from tests.unit.formats.json.codecs import batch, columns, seen
from tests.unit.formats.json.codecs import values as shown
from tests.unit.formats.json.corpus import extremes, values


@st.composite
def tables(draw: st.DrawFn) -> tuple[Any, Any]:
    """A schema and a batch of rows for it."""
    schema = draw(schemas())
    row = st.tuples(*(values(f.dataType, nullable=f.nullable) for f in schema.fields))
    rows = draw(st.lists(row, min_size=1, max_size=4))
    return schema, batch(schema, *rows * draw(st.sampled_from([1, 64])))


@contextmanager
def carried() -> Iterator[None]:
    """Passes over rows that the dialect cannot carry."""
    try:
        yield
    except EncodeError as why:
        event(f"refused: {why.reason.partition(';')[0]}")
        assume(False)


LITERAL = "no value at all"


@law(200)
@given(table=tables(), options=dialects())
def test_what_is_written_reads_back(table, options):
    """decode(encode(rows)) is rows, for every type, with a null literal that no text equals."""
    assume(not set(LITERAL) & set(options.get("field_delimiter", ",")))
    with carried():
        reads_back(*table, options)


def reads_back(schema: StructType, rows: pa.RecordBatch, options: dict[str, Any]) -> None:
    """Asserts the law."""
    options = {**options, "null_literal": LITERAL}
    messages_ = encoder(schema, **options).encode(rows)
    decoded = decoder(schema, **options).decode(messages_)
    assert not decoded.errors
    assert shown(decoded.rows) == shown(rows)
    assert decoded.rows.schema.equals(rows.schema)


@law(150)
@given(table=tables(), options=dialects(), side=st.sampled_from(["key", "value"]))
def test_what_is_written_can_be_read(table, options, side):
    """Whatever the null literal: each message is a record of that many fields, and writes the same."""
    with carried():
        can_be_read(*table, options, side)


def can_be_read(
    schema: StructType, rows: pa.RecordBatch, options: dict[str, Any], side: str
) -> None:
    """Asserts the law."""
    written = encoder(schema, side, **options).encode(rows)
    text = columns(**{field.name: StringType() for field in schema.fields})
    plain = {k: v for k, v in options.items() if k != "null_literal"}
    assert not decoder(text, **plain).decode(written).errors
    at = rows.num_rows // 2
    encode = encoder(schema, side, **options).encode
    assert encode(rows.slice(at, 1)) == [written[at]]
    assert encode(rows.slice(at)) == written[at:]


def writable(schema: StructType, some: list[Any], options: dict[str, Any]) -> list[tuple[Any]]:
    """The rows of those values that a dialect has a spelling of, as a key and as a value."""
    encoders = [encoder(schema, side, **options) for side in ("key", "value")]

    def are_writable(*values: Any) -> bool:
        try:
            for each in encoders:
                each.encode(batch(schema, *((value,) for value in values)))
        except EncodeError:
            return False
        return True

    if are_writable(*some):
        return [(value,) for value in some]
    return [(value,) for value in some if are_writable(value)]


WRITING: list[dict[str, Any]] = [
    {}, {"quote_character": "'", "escape_character": "\\"}, {"field_delimiter": "|", "disable_quote_character": True, "null_literal": "null"},
    {"field_delimiter": "\t", "write_bigdecimal_in_scientific_notation": False},
]  # fmt: skip


@pytest.mark.parametrize("kind", SIMPLE, ids=DataType.simpleString)
def test_extreme_values_are_written_likewise(kind):
    """Both laws, for the values of each type that are likely to go wrong, in arrays and structs too."""
    struct = StructType([StructField("x", kind), StructField("y", kind)])
    for each in (kind, ArrayType(kind), struct):
        schema, some = columns(c=each), [None, *extremes(each)]
        for options in WRITING if each is kind else WRITING[:1]:
            rows = writable(schema, some, {**options, "null_literal": LITERAL})
            reads_back(schema, batch(schema, *rows), options)
            reads_back(schema, batch(schema, *rows * 64), options)
            rows = writable(schema, some, options)
            can_be_read(schema, batch(schema, *rows), options, "value")
            can_be_read(schema, batch(schema, *rows), options, "key")


@law(600)
@given(data=st.data(), schema=schemas(), options=dialects())
def test_vectorised_path_equals_row_path(data, schema, options):
    """What the vectorised path does not refuse is what the row path reads, without an error."""
    delimiter = options.get("field_delimiter", ",")
    many = data.draw(st.lists(messages(schema, delimiter), min_size=1, max_size=4))
    is_read = Paths(schema, options).hold(many)
    event("accepted" if is_read else "refused")


class Paths:
    """The vectorised path and the column path of a table, beside the row path."""

    def __init__(self, schema: StructType, options: dict[str, Any]) -> None:
        dialect, target = dialect_of(spec(schema, **options)), arrow_schema(schema)
        self._vectorised = compile_vectorised_path(schema, target, dialect)
        self._by_columns = compile_column_path(schema, target, dialect)
        self._exact = exactly(schema, **options)

    def hold(self, many: list[bytes]) -> bool:
        """Asserts the law of the vectorised path, and says whether it reads these messages."""
        read = self._vectorised(many) if self._vectorised else None
        return self._are_exact(read, many) == len(many)

    def hold_by_columns(self, many: list[bytes]) -> bool:
        """Asserts the law of the column path, and says whether it reads these messages."""
        read = self._by_columns(many)
        self._are_exact(read, many)
        return read is not None

    def _are_exact(self, read: tuple[pa.RecordBatch, Any] | None, many: list[bytes]) -> int:
        """Asserts that rows are those of the row path, but for those of messages that are left; says how many are not left."""
        if read is None:
            return 0
        rows, left = read
        rows.validate(full=True)
        kept = [message for message, is_left in zip(many, left, strict=True) if not is_left]
        found = rows.filter(pa.array(~left)) if left.any() else rows
        assert (shown(found), len(kept), {}, frozenset()) == seen(self._exact.decode(kept)), kept
        return len(kept)


ODD_FIELDS = [*(field.encode() for field in FIELDS), *BAD_BYTES]


@pytest.mark.parametrize("kind", SIMPLE, ids=DataType.simpleString)
@pytest.mark.parametrize("literal", [{}, {"null_literal": "null"}], ids=str)
def test_odd_fields_are_read_alike_by_all_paths(kind, literal):
    """The laws of paths, for each odd field in a column of each type, alone and among others; for all of them in arrays and structs.

    In `make test` a field stands alone in one of the two paths.
    """
    struct = StructType([StructField("x", kind), StructField("y", kind)])
    for each in (kind, ArrayType(kind), struct):
        schema = columns(c=each, d=LongType())
        paths, many = Paths(schema, literal), [field + b",7" for field in ODD_FIELDS]
        number = SIMPLE.index(kind)
        if each is kind:
            for message in share(many, number, 8 if literal else 2):
                paths.hold([message])
        if each is kind and not literal:
            for message in share(many, number + 1, 2):
                paths.hold_by_columns([message])
        reads_as_its_messages_do(schema, [b",7"] * 64 + many, literal)


ODD_DIALECTS: list[dict[str, Any]] = [
    {}, {"quote_character": "'"}, {"disable_quote_character": True}, {"escape_character": "\\"}, {"escape_character": '"'},
    {"escape_character": "*"}, {"allow_comments": True}, {"null_literal": "null"}, {"null_literal": ""}, {"field_delimiter": ";"},
    {"field_delimiter": "§"}, {"field_delimiter": "\t"}, {"field_delimiter": " "}, {"disable_quote_character": True, "escape_character": "\\"},
]  # fmt: skip
HALVES = [
    b'"a',
    b'a"',
    b'"',
    b'""',
    b'"a"',
    b'x,"a',
    b'b",y',
    b"#",
    b"\r",
    b"a\n",
    b"a\r",
    b"a\r\n",
    b"\n",
    b"a\nb",
    b"",
    b"\xef\xbb\xbfa",
    b"a",
    b"null",
]


@pytest.mark.parametrize("options", ODD_DIALECTS, ids=str)
def test_odd_messages_are_read_alike_by_all_paths(options):
    """In each dialect: each odd field at the begin and at the end of a message, and two messages that may run into each other."""
    delimiter, number = options.get("field_delimiter", ",").encode(), ODD_DIALECTS.index(options)
    for schema in (columns(c=StringType()), columns(c=StringType(), d=StringType())):
        paths = Paths(schema, options)
        many = [text.replace(b",", delimiter) for text in ODD_FIELDS + HALVES]
        if len(schema) > 1:
            many = [
                *(text + delimiter for text in many),
                *(b"a" + delimiter + text for text in many),
            ]
        for message in share(many, number, 2 if len(schema) == 1 else 4):
            paths.hold([message])
        for message in share(many, number + 1, 2) if len(schema) == 1 else []:
            paths.hold_by_columns([message])
        pairs = [*product([text.replace(b",", delimiter) for text in HALVES[:13]], repeat=2)]
        for pair in share(pairs, number, 2 if len(schema) == 1 else 8):
            paths.hold([*pair])
        good = [b"a" + delimiter] * 64
        reads_as_its_messages_do(schema, good + many, options)
        for half in share(HALVES, number, 3):
            reads_as_its_messages_do(schema, [*good, half], options)


@law(300)
@given(data=st.data(), schema=schemas(), options=dialects())
def test_column_path_equals_row_path(data, schema, options):
    """The messages that the column path does not leave are those it reads, as the row path does."""
    delimiter = options.get("field_delimiter", ",")
    many = data.draw(st.lists(messages(schema, delimiter), min_size=1, max_size=4))
    is_read = Paths(schema, options).hold_by_columns(many)
    event("accepted" if is_read else "refused")


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
    reads_as_its_messages_do(schema, many, {**options, "ignore_parse_errors": ignore})


def reads_as_its_messages_do(
    schema: StructType, many: list[bytes], options: dict[str, Any]
) -> None:
    """Asserts the law."""
    assert seen(decoder(schema, **options).decode(many)) == seen(
        exactly(schema, **options).decode(many)
    )


ANYTHING = st.one_of(
    st.binary(max_size=8),
    st.text('a,"\n\r 1', max_size=8).map(str.encode),
    st.sampled_from(FIELDS).map(str.encode),
)
GOOD = b'7,"x,y"'


@each_of("bad", ODD_FIELDS + HALVES, at=50)
@law(250)
@given(bad=st.lists(ANYTHING, min_size=1, max_size=3), at=st.integers(0, 64))
def test_any_bytes_leave_their_neighbours_as_they_are(bad, at):
    """Whatever stands among good messages: they are read, and it is a row or an error."""
    many = [GOOD] * at + bad + [GOOD] * (100 - at)
    decoded = decoder(columns(c=LongType(), d=StringType())).decode(many)
    assert decoded.rows.num_rows == len(many)
    assert set(decoded.errors) <= set(range(at, at + len(bad)))
    rows = list(zip(*(column.to_pylist() for column in decoded.rows.columns), strict=True))
    assert rows[:at] == [(7, "x,y")] * at
    assert rows[len(rows) - (100 - at) :] == [(7, "x,y")] * (100 - at)
