"""Laws of the JSON format, for any schema, any row and any message."""

from __future__ import annotations

from itertools import product
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import event, example, given
from hypothesis import strategies as st
from pyspark.sql.types import (
    ArrayType,
    DataType,
    DecimalType,
    DoubleType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    VariantType,
)

from pyspark_upsert_kafka.core.arrow import arrow_schema
from pyspark_upsert_kafka.formats.json import settings_of
from pyspark_upsert_kafka.formats.json.column_paths import (
    compile_column_path,
    compile_vectorised_path,
)
from tests.laws import FULL, each_of, law, share
from tests.unit.formats.json.codecs import batch, columns, decoder, encoder, exactly, seen, spec
from tests.unit.formats.json.codecs import values as shown
from tests.unit.formats.json.corpus import (
    NATIVE,
    TOKENS,
    extremes,
    messages,
    nested,
    schemas,
    texts,
    values,
)

GOOD = b'{"c":7}'
KINDS = [*NATIVE, VariantType()]


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
    reads_back(*table, options)


def reads_back(schema: StructType, rows: pa.RecordBatch, options: dict[str, Any]) -> None:
    """Asserts the law."""
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
    has_its_bytes(*table, options, side)


def has_its_bytes(
    schema: StructType, rows: pa.RecordBatch, options: dict[str, Any], side: str
) -> None:
    """Asserts the law."""
    encode = encoder(schema, side, **options).encode
    written = encode(rows)
    assert len(written) == rows.num_rows
    assert not any(b"\n" in message for message in written)
    at = rows.num_rows // 2
    assert encode(rows.slice(at, 1)) == [written[at]]
    assert encode(rows.slice(at)) == written[at:]


@pytest.mark.parametrize("kind", KINDS, ids=DataType.simpleString)
def test_extreme_values_are_written_likewise(kind):
    """Both laws, for the values of each type that are likely to go wrong, alone and inside of other types."""
    spellings = [
        {},
        {"timestamp_format_standard": "ISO-8601", "encode_ignore_null_fields": True},
        {"encode_decimal_as_plain_number": True},
    ]
    for each in nested(kind):
        schema = columns(c=each)
        some = [(value,) for value in [None, *extremes(each)]]
        # The spelling of a value is that of its leaves; which fields are left out, that of structs.
        shown_in_all = FULL or each is kind or isinstance(each, StructType)
        for options in spellings if shown_in_all else spellings[:1]:
            reads_back(schema, batch(schema, *some), options)
        reads_back(schema, batch(schema, *some * 64), {})
        has_its_bytes(schema, batch(schema, *some), {}, "key")
        has_its_bytes(schema, batch(schema, *some), {}, "value")


@law(500)
@given(data=st.data(), schema=schemas(everything=False))
def test_vectorised_path_equals_row_path(data, schema):
    """What the vectorised path does not refuse is what the row path reads, without an error."""
    many = data.draw(st.lists(messages(schema), min_size=1, max_size=4))
    standard = data.draw(st.sampled_from(["SQL", "ISO-8601"]))
    is_read = VectorisedLaw(schema, timestamp_format_standard=standard).holds(many)
    event("accepted" if is_read else "refused")


class VectorisedLaw:
    """The vectorised path of a table, or its column path, beside the row path."""

    def __init__(self, schema: StructType, **options: Any) -> None:
        chosen, target = settings_of(spec(schema, **options)), arrow_schema(schema)
        self._vectorised = compile_vectorised_path(schema, target, chosen)
        self._by_columns = compile_column_path(schema, target, chosen)
        self._exact = exactly(schema, **options)

    def holds(self, many: list[bytes]) -> bool:
        """Asserts the law of the vectorised path, and says whether it reads these messages."""
        read = self._vectorised(many) if self._vectorised else None
        return self._are_exact(read, many) == len(many)

    def holds_by_columns(self, many: list[bytes]) -> int:
        """Asserts the law of the column path, and says how many of these messages it reads."""
        return self._are_exact(self._by_columns(many), many)

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


@pytest.mark.parametrize("kind", KINDS, ids=DataType.simpleString)
def test_odd_values_are_read_alike_by_all_paths(kind):
    """The laws of paths, for each odd value in a column of each type and in a map of it, and for all of them in other types.

    In `make test` a value stands alone in one of the two paths, and in some of the maps.
    """
    texts_of = b"%b", b"[%b]", b'{"x":%b}', b'[{"y":%b}]', b'{"k":%b}'
    for each, text in zip(nested(kind), texts_of, strict=True):
        schema, paths = columns(c=each), VectorisedLaw(columns(c=each))
        many = [b'{"c":%b}' % (text % token) for token in TOKENS]
        if each is kind or isinstance(each, MapType):
            number, of = KINDS.index(kind), 2 if each is kind else 6
            for message in share(many, number, of):
                paths.holds([message])
            for message in share(many, number + 1, of):
                paths.holds_by_columns([message])
        paths.holds_by_columns(many)
        reads_as_its_messages_do(schema, [b"{}"] * 64 + many, {})


DEEP = [
    b'{"d":%b%b%b}' % (opening * levels, inner, closing * levels)
    for opening, closing in ((b"[", b"]"), (b'{"":', b"}"))
    for inner in (b"1", rb'"\""', rb'"\\"')
    for levels in (249, 250)
]
ODD_MESSAGES = [
    *DEEP, b"", b" ", b"{", b"}", b"{}", b"[]", b"null", b"1", b"{}{}", b"{} {}", b"{}\n{}", b"{},{}", b"}{", b'{"c":1}\n', b' {"c":1}',
    b'\n{"c":1}', b'\xef\xbb\xbf{"c":1}', b'\xef\xbb\xbf\xef\xbb\xbf{"c":1}', b"\xef\xbb\xbf", b'{"s":"\x01\t"}', b'{"\x01":1,"s":"a"}', b'{"s":"\\ud800"}', b'{"c":1}\0', b'{"c":\n1}', b'{"c":1\r}', b'{"c":1,}', b'{"c":1,"c":2}', b'{"c":1,"c":null}',
    b'{"c":null,"c":1}', rb'{"\u0063":1}', rb'{"c\u0000":1}', b'{"C":1}', b'{"":1}', b'{"c":1', b'{"c"}', b'{"c":}', b'{"s":"}{"}',
    b'{"s":"\n"}', b'{"s":"{\n}"}', b'{"z":"\xff"}', b'{"\xff":1}', b'{"z":NaN}', b'{"z":NaN }', b'{"z":[Infinity]}', b'{"z":-Infinity\t}',
    b'{"s":"NaN}"}', b'{"s":"Infinity,"}', b'{"z":-0}', b'{"z":[ -0]}', b'{"z":-0.0}', b'{"z":1e400}', b'{"c":-0}', b'{"f":-0}', b'{"f":-0.0}',
    b'{"z":tru}', b'{"z":01}', b'{"z":+1}', b'{"z":1.}', b'{"z":"\\ud800"}', b'{"z":"\\x"}', b"{'c':1}", b"{c:1}", b'{"c":1/*x*/}', b'{"c":1}//',
    b'{"c":1.0}', b'{"c":1e2}', b'{"c":"1"}', b'{"c":9223372036854775808}', b'{"c":true}', b'{"s":1.50}', b'{"s":1e2}', b'{"s":{"b":1 , "a":2.0}}', b'{"s":true}',
    b'{"d":"5e-40"}', b'{"d":5e-40}', b'{"d":"\\u0035e-40"}', b'{"d":0.%b1}' % (b"0" * 40), b'{"z":%b}' % (b"1" * 500), b'{"s":"%b"}' % (b"x" * 70_000),
]  # fmt: skip
"""Messages by which a parser of several could be misled, or that parsers take for what they are not."""

ODD_TABLE = columns(
    c=LongType(), s=StringType(), f=DoubleType(), d=DecimalType(38, 38), m=MapType(StringType(), LongType())
)  # fmt: skip


@pytest.mark.parametrize("names", ["c", "c s f", "c s f d", "c m"])
def test_odd_messages_are_read_alike_by_all_paths(names):
    """Alone, in the middle of others, and each pair of those that begin and end as a message does."""
    schema = StructType([ODD_TABLE[name] for name in names.split()])
    good = b'{"c":7}'
    for options in ({}, {"fail_on_missing_field": True}):
        paths = VectorisedLaw(schema, **options)
        for message in ODD_MESSAGES:
            for many in ([message], [good, message, good]):
                paths.holds(many)
                paths.holds_by_columns(many)
        reads_as_its_messages_do(schema, [good] * 64 + ODD_MESSAGES, options)
    halves = [b'{"s":"}', b'{"}', b'{"c":1},{}', b'{"c":[{}', b"{}]}", b'{"c":1}\n{}', b"{}"]
    paths = VectorisedLaw(schema)
    for pair in product(halves, repeat=2):
        paths.holds([*pair])
        paths.holds_by_columns([*pair])


@law(300)
@given(data=st.data(), schema=schemas(), missing=st.booleans())
def test_column_path_equals_row_path(data, schema, missing):
    """The messages that the column path does not leave are those it reads, as the row path does."""
    many = data.draw(st.lists(messages(schema), min_size=1, max_size=4))
    kept = VectorisedLaw(schema, fail_on_missing_field=missing).holds_by_columns(many)
    event(f"{kept} of {len(many)}")


@law(150)
@given(data=st.data(), schema=schemas(), ignore=st.booleans(), size=st.sampled_from([64, 300]))
def test_a_batch_reads_as_its_messages_do(data, schema, ignore, size):
    """Whatever way each message goes: the same rows, the same errors at the same places."""
    drawn = data.draw(st.lists(messages(schema), min_size=1, max_size=3))
    odd = data.draw(st.lists(messages(schema), max_size=2))
    many = (drawn * size)[:size] + odd + drawn * 30
    reads_as_its_messages_do(schema, many, {"ignore_parse_errors": ignore})


def reads_as_its_messages_do(
    schema: StructType, many: list[bytes], options: dict[str, Any]
) -> None:
    """Asserts the law."""
    assert seen(decoder(schema, **options).decode(many)) == seen(
        exactly(schema, **options).decode(many)
    )


@law(100)
@given(data=st.data(), schema=schemas(everything=False))
def test_missing_fields_are_found_by_both_ways(data, schema):
    """With fail-on-missing-field the vectorised path refuses what the row path blames."""
    many = data.draw(st.lists(messages(schema), min_size=1, max_size=3)) * 64
    reads_as_its_messages_do(schema, many, {"fail_on_missing_field": True})


@pytest.mark.parametrize("kind", nested(LongType()), ids=DataType.simpleString)
@pytest.mark.parametrize("nullable", [True, False])
def test_what_is_missing_or_null_is_found_by_both_ways(kind, nullable):
    """In a column, and inside of one."""
    if isinstance(kind, StructType):
        kind = StructType([StructField(f.name, f.dataType, nullable) for f in kind.fields])
    if isinstance(kind, ArrayType):
        kind = ArrayType(kind.elementType, nullable)
    schema = StructType([StructField("c", kind, nullable), StructField("d", LongType())])
    texts = ["null", "[]", "[null]", "{}", '{"x":1}', '{"x":1,"y":null}', '{"x":1,"y":1}', '[{"x":1}]', '[{"x":1,"y":1},{}]']  # fmt: skip
    many = [*(f'{{"c":{text},"d":1}}' for text in texts), '{"d":1}', '{"c":null}', '{"c":1}', "{}"]
    for options in ({"fail_on_missing_field": True}, {"ignore_parse_errors": True}, {}):
        for message in many:
            reads_as_its_messages_do(schema, [message.encode()] * 64, options)


BRACES = st.tuples(st.just(b"{"), st.binary(max_size=6), st.just(b"}")).map(b"".join)
ANYTHING = st.one_of(st.binary(max_size=8), BRACES, st.sampled_from(TOKENS))


@each_of("bad", ODD_MESSAGES, at=50)
@law(150)
@given(bad=st.lists(ANYTHING, min_size=1, max_size=3), at=st.integers(0, 64))
def test_any_bytes_leave_their_neighbours_as_they_are(bad, at):
    """Whatever stands among good messages: they are read, and it is a row or an error."""
    many = [GOOD] * at + bad + [GOOD] * (100 - at)
    decoded = decoder(columns(c=LongType())).decode(many)
    assert decoded.rows.num_rows == len(many)
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


@example(text='"\\/\b\f\n\r\t')
@example(text="\0\x1f\x7f\x80é\uffff")
@example(text="\U00010000😀\U0010ffff")
@example(text="")
@law(100)
@given(text=texts())
def test_strings_are_escaped_as_by_jackson(text):
    """Quotes, backslashes, controls, and characters of two UTF-16 units; names like values."""
    schema = columns(**{text: StringType()})
    (message,) = encoder(schema).encode(batch(schema, (text,)))
    spelled = "".join(map(by_jackson, text))
    assert message.decode() == f'{{"{spelled}":"{spelled}"}}'
