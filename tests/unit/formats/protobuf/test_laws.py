"""Laws of the protobuf format, for any schema, any row and any message."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import assume, event, given
from hypothesis import strategies as st
from pyspark.sql.types import ArrayType, IntegerType, LongType, StructField, StructType

from tests.laws import FULL, each_of, law
from tests.unit.formats.listed import good_rows
from tests.unit.formats.protobuf.codecs import Proto, columns, seen, shown
from tests.unit.formats.protobuf.corpus import (
    EVERYTHING,
    PAYLOADS,
    WHOLE,
    extreme_messages,
    messages,
    odd_bytes,
    odd_fields,
    schemas,
    spoiled,
    varint,
)

SYNTAXES = st.sampled_from(sorted(EVERYTHING))
MANY = 130
"""So many messages take the vectorised path."""

MOMENT = columns(seconds=LongType(), nanos=IntegerType())
_EXACT = {"at": MOMENT, "took": MOMENT, "timestamps": ArrayType(MOMENT)}
LOSSLESS = StructType(
    [
        StructField(field.name, _EXACT.get(field.name, field.dataType))
        for field in WHOLE.fields
        if field.name != "inner"
    ]
)
"""Columns for all that a message can hold, but for messages without end."""

CODECS = {
    syntax: (proto.decoder(LOSSLESS).decode, proto.encoder(LOSSLESS).encode)
    for syntax, proto in EVERYTHING.items()
}


@law(200)
@given(data=st.data(), syntax=SYNTAXES, schema=schemas(), defaults=st.booleans())
def test_vectorised_path_equals_row_path(data, syntax, schema, defaults):
    """What the vectorised path does not leave to the row path, that reads alike and without an error."""
    proto = EVERYTHING[syntax]
    many = data.draw(st.lists(spoiled(proto) | odd_bytes(proto), min_size=1, max_size=6))
    event(paths_are_equal(proto, schema, many, defaults=defaults))


def paths_are_equal(proto: Proto, schema: StructType, many: list[bytes], *, defaults: bool) -> str:
    """Asserts the law, and says how many messages the vectorised path leaves."""
    exact = proto.exactly(schema, read_default_values=defaults).decode(many)
    rows, fallback = proto.vectorised(schema, many, defaults=defaults)
    rows.validate(full=True)
    assert set(exact.errors) <= set(fallback)
    for at, (row, wanted) in enumerate(zip(shown(rows), shown(exact.rows), strict=True)):
        assert row == wanted or at in fallback, many[at]
    return f"{len(fallback)} of {len(many)} fall back, {len(exact.errors)} bad"


def within(number: int, messages: list[bytes]) -> list[bytes]:
    """The messages, each as a field of another one."""
    return [varint(number << 3 | 2) + varint(len(each)) + each for each in messages]


@pytest.mark.parametrize("syntax", sorted(EVERYTHING))
def test_odd_fields_are_read_alike_by_both_paths(syntax):
    """Both laws of paths, for each field with each odd payload under each wire type: alone, before and behind a good one, and inside."""
    proto = EVERYTHING[syntax]
    odd = odd_fields(proto)
    good = b"\x08\x01\x10\x05\x38\x07\x72\x01a\xb2\x01\x02\x01\x02"
    some = odd[:: 7 if not FULL else 1]
    paths_are_equal(proto, WHOLE, odd, defaults=False)
    paths_are_equal(proto, WHOLE, [good + each for each in some], defaults=True)
    paths_are_equal(proto, WHOLE, [each + good for each in some], defaults=False)
    paths_are_equal(proto, WHOLE, [each + each for each in some], defaults=False)
    paths_are_equal(proto, WHOLE, within(18, some), defaults=True)
    paths_are_equal(proto, columns(int64=LongType()), some, defaults=False)
    for cut in (WHOLE, columns()):
        schema = StructType([StructField(f.name, f.dataType, nullable=False) for f in cut.fields])
        paths_are_equal(proto, schema, some, defaults=True)
    reads_as_its_messages_do(proto, WHOLE, [good] * MANY + some, {"read_default_values": True})


@pytest.mark.parametrize("syntax", sorted(EVERYTHING))
def test_extreme_values_are_read_and_written_likewise(syntax):
    """All laws of whole messages, for the values of each type that are likely to go wrong."""
    proto = EVERYTHING[syntax]
    many = extreme_messages(proto)
    assert len(many) > 150
    is_written_as_by_the_runtime(syntax, many)
    reads_back(proto, WHOLE, many, copies=1)
    written = [message.SerializeToString() for message in many]
    plain = [message for message in written if not proto.exactly(WHOLE).decode([message]).errors]
    assert proto.vectorised(WHOLE, plain)[1] == []
    paths_are_equal(proto, WHOLE, written, defaults=True)


@law(80)
@given(data=st.data(), syntax=SYNTAXES, schema=schemas(strict=False))
def test_plain_messages_take_the_vectorised_path(data, syntax, schema):
    """Nothing is odd about a message that the runtime wrote and the row path can read."""
    proto = EVERYTHING[syntax]
    message = data.draw(messages(proto))
    message.ClearField("inner")
    many = [message.SerializeToString()]
    assume(not proto.exactly(schema).decode(many).errors)
    assert proto.vectorised(schema, many)[1] == []


@law(80)
@given(
    data=st.data(), syntax=SYNTAXES, schema=schemas(), defaults=st.booleans(), ignore=st.booleans()
)
def test_a_batch_reads_as_its_messages_do(data, syntax, schema, defaults, ignore):
    """Whatever way each message goes: the same rows, the same errors at the same places."""
    proto = EVERYTHING[syntax]
    drawn = data.draw(st.lists(spoiled(proto) | odd_bytes(proto), min_size=1, max_size=4))
    good = data.draw(messages(proto)).SerializeToString()
    many = [good] * MANY + drawn + [good] * 3
    reads_as_its_messages_do(
        proto, schema, many, {"read_default_values": defaults, "ignore_parse_errors": ignore}
    )


def reads_as_its_messages_do(
    proto: Proto, schema: StructType, many: list[bytes], options: dict[str, bool]
) -> None:
    """Asserts the law."""
    assert seen(proto.decoder(schema, **options).decode(many)) == seen(
        proto.exactly(schema, **options).decode(many)
    )


@each_of("many", PAYLOADS, syntax="proto2")
@each_of("many", [b"\x38" + payload for payload in PAYLOADS], syntax="proto3")
@law(60)
@given(many=st.lists(st.binary(max_size=12), min_size=1, max_size=5), syntax=SYNTAXES)
def test_any_bytes_leave_their_neighbours_as_they_are(many, syntax):
    """Whatever stands among good messages: they are read, and it is a row or an error."""
    decoded = (
        EVERYTHING[syntax]
        .decoder(columns(int64=LongType()))
        .decode([b"\x38\x07"] * MANY + many + [b"\x38\x07"] * MANY)
    )
    assert decoded.rows.num_rows == 2 * MANY + len(many)
    assert set(decoded.errors) <= set(range(MANY, MANY + len(many)))
    values = decoded.rows.column(0).to_pylist()
    assert values[:MANY] == values[-MANY:] == [7] * MANY


@law(80)
@given(data=st.data(), syntax=SYNTAXES)
def test_what_is_written_is_what_the_runtime_writes(data, syntax):
    """A message read into columns for everything is written with the very bytes of the runtime."""
    proto = EVERYTHING[syntax]
    many = data.draw(st.lists(messages(proto), min_size=1, max_size=4))
    for message in many:
        message.ClearField("inner")
        # The runtime has an order of its own for the entries of a map.
        for entries in (message.by_name, message.by_number, message.by_truth, message.by_uint64):
            for key in sorted(entries)[1:]:
                del entries[key]
    is_written_as_by_the_runtime(syntax, many)


def is_written_as_by_the_runtime(syntax: str, many: list[Any]) -> None:
    """Asserts the law."""
    written = [message.SerializeToString() for message in many]
    read, encode = CODECS[syntax]
    decoded = read(written)
    assert not decoded.errors
    assert encode(decoded.rows) == written


@law(40)
@given(data=st.data(), syntax=SYNTAXES)
def test_maps_that_are_written_are_those_that_were_read(data, syntax):
    """Whatever the order of their entries, the runtime reads the same maps."""
    proto = EVERYTHING[syntax]
    message = data.draw(messages(proto))
    message.ClearField("inner")
    read, encode = CODECS[syntax]
    (written,) = encode(read([message.SerializeToString()]).rows)
    again = proto.message.FromString(written)
    for name in ("by_name", "by_number", "by_truth", "by_uint64"):
        assert dict(getattr(again, name)) == dict(getattr(message, name))


@law(80)
@given(data=st.data(), syntax=SYNTAXES, schema=schemas(), copies=st.sampled_from([1, MANY]))
def test_what_is_written_reads_back(data, syntax, schema, copies):
    """decode(encode(rows)) is rows, and a row's bytes do not depend on those beside it."""
    proto = EVERYTHING[syntax]
    reads_back(proto, schema, data.draw(st.lists(messages(proto), min_size=1, max_size=4)), copies)


def reads_back(proto: Proto, schema: StructType, many: list[Any], copies: int) -> None:
    """Asserts the law."""
    read, encode = proto.decoder(schema).decode, proto.encoder(schema).encode
    rows = good_rows(read([message.SerializeToString() for message in many] * copies))
    written = encode(rows)
    decoded = read(written)
    assert not decoded.errors
    assert decoded.rows.schema.equals(rows.schema)
    assert shown(decoded.rows) == shown(rows)
    at = rows.num_rows // 2
    assert encode(rows.slice(at)) == written[at:]
