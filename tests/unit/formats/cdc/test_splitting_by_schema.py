"""Messages ``{"schema":...,"payload":...}`` are taken apart exactly, however they are written."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyspark_upsert_kafka.core.bytes_column import BytesColumn
from pyspark_upsert_kafka.formats.cdc import connect_json as module
from pyspark_upsert_kafka.formats.cdc.connect_json import Splitter, exactly
from pyspark_upsert_kafka.formats.decoding import UnreadableError


def message(schema: object, payload: object) -> bytes:
    """A message as Connect's converter writes it."""
    whole = {"schema": schema, "payload": payload}
    return json.dumps(whole, separators=(",", ":"), ensure_ascii=False).encode()


def split(
    messages: list[bytes], splitter: Splitter | None = None
) -> dict[int, tuple[bytes, bytes]]:
    """The schema and the payload of each message by its place."""
    parts, errors = (splitter or Splitter()).split(BytesColumn.of(messages))
    found = {
        int(place): (part.schema, payload)
        for part in parts
        for place, payload in zip(part.places, part.payloads, strict=True)
    }
    assert found.keys() | errors.keys() == {*range(len(messages))}
    return found


A, B = {"type": "int32", "optional": False}, {"type": "string", "doc": '"},"payload":{'}


def compact(value: object) -> bytes:
    """JSON without spaces."""
    return json.dumps(value, separators=(",", ":")).encode()


def test_messages_are_put_together_by_their_schema():
    """Each schema makes a part, which says where its messages stand."""
    given_ = [message(A, 1), message(B, {"x": "}"}), message(A, 2), message(None, [3])]

    parts, errors = Splitter().split(BytesColumn.of(given_))

    assert errors == {}
    assert {part.schema: (part.places.tolist(), list(part.payloads)) for part in parts} == {
        compact(A): ([0, 2], [b"1", b"2"]),
        compact(B): ([1], [b'{"x":"}"}']),
        b"null": ([3], [b"[3]"]),
    }


def test_what_was_learned_of_a_batch_serves_the_next(monkeypatch):
    """A message that begins as earlier ones did is not parsed."""
    splitter = Splitter()
    split([message(A, 1)], splitter)
    monkeypatch.setattr(module, "_beginning", None)

    assert split([message(A, 2)], splitter) == {0: (compact(A), b"2")}


@pytest.mark.parametrize(
    "written",
    [
        b'{"schema": {"type": "int32"}, "payload": {"a": 1.50}}',
        b'{"payload":{"a":1.50},"schema":{"type":"int32"}}',
        b' {"schema":{"type":"int32"},"payload":{"a":1.50}}\n',
        b'{"schema":{"type":"x"},"schema":{"type":"int32"},"payload":{"a":1.50}}',
        b'{"schema":{"type":"int32"},"payload":{"a":1.50},"more":"}"}',
        b'{"schema":{"type":"int32"},"payload":{"a":0},"payload":{"a":1.50}}',
    ],
)
def test_a_message_that_is_written_otherwise_is_parsed(written):
    """Spaces, other orders, other members: of those with the same name the last counts, and no digit is lost."""
    assert exactly(written) == (b'{"type":"int32"}', b'{"a":1.50}')
    (found,) = split([written]).values()
    assert found == (b'{"type":"int32"}', b'{"a":1.50}') or not is_json(found[1])


def is_json(text: bytes) -> bool:
    """Whether a text is one JSON value."""
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


@pytest.mark.parametrize(
    ("written", "why"),
    [
        (b'{"schema":null}', "field 'payload' is null or missing"),
        (
            b'{"before":null,"op":"c"}',
            "; it has no schema around it, which 'value.debezium-json.schema-include' = 'false' reads",
        ),
        (b"", "the message is empty"),
        (b"[]", "expected a JSON object"),
        (b'{"schema":{"type":"int32"},"payload"', "not JSON"),
        (b'{"schema":{"a":"\xff"},"payload":1}', "not UTF-8"),
        (b'{"schema":' + b"[" * 300 + b"]" * 300 + b',"payload":1}', "nested deeper than"),
    ],
)
def test_what_has_no_payload_is_an_error(written, why):
    """The other messages are taken apart."""
    parts, errors = Splitter().split([written, message(A, 1)])

    assert [list(part.payloads) for part in parts] == [[b"1"]]
    assert [*errors] == [0]
    assert why in errors[0]


def test_very_many_schemas_do_not_cost_a_comparison_each(monkeypatch):
    """After some new beginnings the others are parsed one by one."""
    begun = []
    real = module._taken
    monkeypatch.setattr(module, "_taken", lambda *args: begun.append(1) or real(*args))
    many = [message({"type": f"t{at}"}, at) for at in range(200)]

    found = split(many)

    assert len(begun) <= 16
    assert found == {at: (compact({"type": f"t{at}"}), str(at).encode()) for at in range(200)}


def test_a_part_of_a_column_is_taken_apart_as_itself():
    """The messages of a slice are at its places."""
    column = BytesColumn.of([message(A, at) for at in range(6)])

    (part,), _ = Splitter().split(column[2:5])

    assert (part.places.tolist(), list(part.payloads)) == ([0, 1, 2], [b"2", b"3", b"4"])


values = st.recursive(
    st.none() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=9), inner, max_size=2)
    ),
    max_leaves=5,
)
tails = st.sampled_from([b"", b" ", b"}", b',"payload":1}', b',"schema":null}', b"\n{}", b"//"])


@given(st.lists(st.tuples(st.sampled_from([A, B, None]), values, tails), max_size=6))
def test_what_is_cut_out_is_exact_or_no_json(cases):
    """A payload that is cut out is that of the whole message, or whoever decodes it finds that it is none."""
    written = [message(schema, payload) + tail for schema, payload, tail in cases]
    # Some end in brackets that close something else.
    written += [each[:-1] for each in written if each]
    parts, errors = Splitter().split(written)

    for part in parts:
        for place, payload in zip(part.places, part.payloads, strict=True):
            if is_json(payload) and json.loads(payload) is not None:
                schema, whole = exactly(written[place])
                assert json.loads(schema) == json.loads(part.schema)
                assert json.loads(whole) == json.loads(payload)
    for place in errors:
        with pytest.raises(UnreadableError):
            exactly(written[place])
