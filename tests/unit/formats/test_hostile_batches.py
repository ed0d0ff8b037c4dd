"""What a batch costs, whatever stands in it: work is counted, in calls and in bytes parsed at once."""

from __future__ import annotations

import sys
import tracemalloc
from collections.abc import Callable
from typing import Any

import pyarrow.csv
import pyarrow.json
import pytest
from pyspark.sql.types import IntegerType, StringType, StructField, StructType

from tests.unit.formats.csv import codecs as csv_codecs
from tests.unit.formats.json import codecs as json_codecs

CODECS = {"csv": csv_codecs, "json": json_codecs}
MESSAGES, COLUMNS = 300, 8
BAD, ODD = '"x"', '"+5"'  # no number; and one that the vectorised parsers refuse

Shape = Callable[[int, list[Any]], "list[Any] | bytes"]
"""The number of a message and its values to those that it shall have, or to all its bytes."""


def put(values: list[Any], at: int, value: str) -> list[Any]:
    """The values with another one at a place, counted around."""
    values[at % len(values)] = value
    return values


SHAPES: dict[str, Shape] = {
    "one bad": lambda i, v: put(v, 5, BAD) if i == MESSAGES // 2 else v,
    "first and last bad": lambda i, v: put(v, 5, BAD) if i in (0, MESSAGES - 1) else v,
    "half bad": lambda i, v: put(v, 5, BAD) if i < MESSAGES // 2 else v,
    "every second bad": lambda i, v: put(v, 5, BAD) if i % 2 else v,
    "all bad": lambda _, v: put(v, 5, BAD),
    "each bad in another column": lambda i, v: put(v, i, BAD),
    "every second in another column": lambda i, v: put(v, i, BAD) if i % 2 else v,
    "one column odd in every message": lambda _, v: put(v, 5, ODD),
    "each odd in another column": lambda i, v: put(v, i, ODD),
    "half of the columns odd": lambda _, v: [ODD if c % 2 else x for c, x in enumerate(v)],
    "every second no record": lambda i, v: b'{"' if i % 2 else v,
    "every second not UTF-8": lambda i, v: b"\xff\xfe" if i % 2 else v,
    "every second too long": lambda i, v: v * 2 if i % 2 else v,
}


def message(form: str, values: list[Any] | bytes) -> bytes:
    """A message of these values."""
    if isinstance(values, bytes):
        return values
    if form == "csv":
        return ",".join(map(str, values)).encode()
    fields = (f'"c{at}":{value}' for at, value in enumerate(values))
    return f"{{{','.join(fields)}}}".encode()


def work(form: str, shape: Shape, columns: int, count: int, patch: pytest.MonkeyPatch) -> int:
    """Calls of Python and C functions, and bytes that were given to a vectorised parser."""
    schema = StructType([StructField(f"c{at}", IntegerType()) for at in range(columns)])
    messages = [message(form, shape(i, list(range(columns)))) for i in range(count)]
    decode = CODECS[form].decoder(schema).decode
    done = 0

    def counting(parse: Callable[..., Any]) -> Callable[..., Any]:
        def counted(source: Any, *options: Any) -> Any:
            nonlocal done
            done += source.size()
            return parse(source, *options)

        return counted

    def called(_: Any, event: str, __: Any) -> None:
        nonlocal done
        done += event in ("call", "c_call")

    with patch.context() as patched:
        patched.setattr(pyarrow.csv, "read_csv", counting(pyarrow.csv.read_csv))
        patched.setattr(pyarrow.json, "read_json", counting(pyarrow.json.read_json))
        before = sys.getprofile()
        sys.setprofile(called)
        try:
            decode(messages)
        finally:
            sys.setprofile(before)
    return done


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("form", CODECS)
def test_odd_and_bad_values_cost_no_more_than_their_bytes(form, shape, monkeypatch):
    """Four times as many columns, or as many messages, are at most about four times as much work."""
    few = work(form, SHAPES[shape], COLUMNS, MESSAGES, monkeypatch)
    wide = work(form, SHAPES[shape], 4 * COLUMNS, MESSAGES, monkeypatch)
    many = work(form, SHAPES[shape], COLUMNS, 4 * MESSAGES, monkeypatch)
    assert wide <= 6 * few
    assert many <= 6 * few


def test_a_csv_message_of_too_many_fields_is_bad_soon():
    """Fields beyond those of the table are not looked at: one message of them costs what others do."""
    schema = StructType([StructField("a", IntegerType()), StructField("b", IntegerType())])
    calls = 0

    def called(_: Any, event: str, __: Any) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    decode = csv_codecs.decoder(schema).decode
    sys.setprofile(called)
    try:
        decoded = decode([b"1,2", b"," * 100_000])
    finally:
        sys.setprofile(None)
    assert dict(decoded.errors) == {1: "Too many entries: expected at most 2"}
    assert calls < 1_000


SIZE = 300_000
TEXTS = StructType([StructField("a", StringType()), StructField("b", StringType())])
ESCAPE = {"escape_character": "\\"}
PAIRS = SIZE // 2

NEIGHBOURS = {"csv": [b"1,2"] * MESSAGES, "json": [b'{"a":"1","b":"2"}'] * MESSAGES}

GIANTS: dict[str, tuple[str, bytes, dict[str, str]]] = {
    "quotes": ("csv", b'"' * SIZE, {}),
    "doubled quotes": ("csv", b'"' + b'""' * PAIRS + b'",b', {}),
    "a quote that never ends": ("csv", b'"' + b"a" * SIZE, {}),
    "blanks behind a quote": ("csv", b'"a"' + b" " * SIZE + b",b", {}),
    "delimiters": ("csv", b"," * SIZE, {}),
    "line breaks": ("csv", b"\n" * SIZE, {}),
    "escaped quotes": ("csv", b'"' + b'\\"' * PAIRS + b'",b', ESCAPE),
    "escaped escapes": ("csv", b"\\" * SIZE + b",b", ESCAPE),
    "doubled quotes beside escapes": ("csv", b'"' + b'""' * PAIRS + b'",b', ESCAPE),
    "an escape at the end": ("csv", b'"' + b"\\n" * PAIRS + b"\\", ESCAPE),
    "brackets": ("json", b'{"a":' + b"[" * SIZE, {}),
    "brackets in a text": ("json", b'{"a":"' + b"[{" * PAIRS + b'"}', {}),
    "brackets and quotes in a text": ("json", b'{"a":"' + b'{\\"' * (SIZE // 3) + b'"}', {}),
    "escapes": ("json", b'{"a":"' + b"\\\\" * PAIRS + b'"}', {}),
    "surrogates": ("json", b'{"a":"' + b"\\ud83d\\ude00" * (SIZE // 12) + b'"}', {}),
    "halves of surrogates": ("json", b'{"a":"' + b"\\ud800" * (SIZE // 6) + b'"}', {}),
    "blanks": ("json", b'{"a":' + b" " * SIZE + b"1}", {}),
    "digits": ("json", b'{"a":' + b"1" * SIZE + b"}", {}),
}


@pytest.mark.parametrize("giant", GIANTS)
def test_a_giant_text_leaves_its_neighbours_as_they_are(giant):
    """Whatever characters it consists of; it is read among others as it is alone."""
    form, text, options = GIANTS[giant]
    decode = CODECS[form].decoder(TEXTS, **options).decode
    alone = decode([text])
    decoded = decode([*NEIGHBOURS[form], text, *NEIGHBOURS[form]])
    assert [*decoded.errors.values()] == [*alone.errors.values()]
    first = decoded.rows.column(0).to_pylist()
    assert first[:MESSAGES] == first[len(first) - MESSAGES :] == ["1"] * MESSAGES
    assert first[MESSAGES : len(first) - MESSAGES] == alone.rows.column(0).to_pylist()


@pytest.mark.alone("asserts how much memory is taken")
@pytest.mark.parametrize("giant", GIANTS)
def test_a_giant_text_takes_few_times_its_size(giant):
    """Whatever characters it consists of, alone and among others."""
    form, text, options = GIANTS[giant]
    decode = CODECS[form].decoder(TEXTS, **options).decode
    for messages in ([text], [*NEIGHBOURS[form], text, *NEIGHBOURS[form]]):
        decode(messages)
        tracemalloc.start()
        decode(messages)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 25 * len(text)


@pytest.mark.parametrize("bad", [b"", b"x", b"\xff"], ids=["empty", "no record", "no UTF-8"])
@pytest.mark.parametrize("form", CODECS)
def test_a_giant_message_stands_in_for_no_others(form, bad, monkeypatch):
    """The parser gets no more than twice the bytes of a batch with one good message that is large: it got a copy for each bad one."""
    values = [1, f'"{"x" * 100_000}"']
    messages = [bad] * 300 + [message(form, values)] + [bad] * 300
    schema = StructType([StructField("c0", IntegerType()), StructField("c1", StringType())])
    decode = CODECS[form].decoder(schema).decode
    parsed = []

    def measured(parse: Callable[..., Any]) -> Callable[..., Any]:
        def counted(source: Any, *options: Any) -> Any:
            parsed.append(source.size())
            return parse(source, *options)

        return counted

    monkeypatch.setattr(pyarrow.csv, "read_csv", measured(pyarrow.csv.read_csv))
    monkeypatch.setattr(pyarrow.json, "read_json", measured(pyarrow.json.read_json))
    found = decode(messages)

    assert found.rows.column("c0")[300].as_py() == 1
    assert sum(parsed) <= 2 * sum(map(len, messages)) + 10_000
