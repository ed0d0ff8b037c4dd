"""Cases of JSON, and what Python's json reads from them, of values that need no conversion."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Sequence
from functools import partial
from random import Random
from typing import Any

import orjson
from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    DataType,
    DecimalType,
    DoubleType,
    FloatType,
    MapType,
    StringType,
    StructType,
)

from tests.unit.formats.json.corpus import BAD_BYTES, KEYS, TOKENS
from tools.fuzz.case import UNKNOWN, Case, NoRow, Table, share_of_bad, spoiled, written
from tools.fuzz.codecs import encoder_of
from tools.fuzz.reading import writable
from tools.fuzz.values import BITS, INTERVAL, SIMPLE, VARIANT, Values, columns, has_floats

_LEAVES = (*SIMPLE, INTERVAL, VARIANT)
_NATIVE = (*SIMPLE, INTERVAL)

_DEEP = [
    b"[" * 249 + b"]" * 249,
    b"[" * 260 + b"]" * 260,
    b'{"x":' * 300 + b"1" + b"}" * 300,
    b"[" * 100_000,
]
_BASE64 = [
    b'"QQ==="',
    b'"QQ===="',
    b'"QUJD===="',
    b'"QUI=="',
    b'"QUI==="',
    b'"QQ==\\n"',
    b'"Q"',
    b'"QUJDR"',
]
_TOKENS = [*TOKENS, *BAD_BYTES, *_DEEP, *_BASE64, b"null", b"null", b"null"]

_STRING = rb'"(?:[^"\\]|\\.)*"'
_TOKEN = re.compile(_STRING + rb"|-?[0-9][0-9.eE+-]*|true|false|null")
_MEMBER = re.compile(_STRING + rb":(?:" + _TOKEN.pattern + rb"),?")
_ANY = re.compile(rb"[{}\[\],:]|" + _TOKEN.pattern)


def case(rng: Random, count: int) -> Case:
    """Messages of random columns: ours, those of other writers, and spoiled ones."""
    leaves = _LEAVES if rng.random() < 0.3 else _NATIVE
    schema = columns(rng, leaves, depth=rng.choice([0, 0, 1, 2]), maps=rng.random() < 0.4)
    table = Table("json", schema, rng.choice(["key", "value", "value"]), _options(rng))
    values = Values(rng, nulls=rng.choice([0.0, 0.1, 0.5]), negative_zero=table.side == "value")
    rows, messages = writable(encoder_of(table), values.batch(schema, count))
    messages = [respelled(rng, each, schema) if rng.random() < 0.3 else each for each in messages]
    messages, kept = spoiled(rng, messages, share_of_bad(rng), mutated)
    # Equal variants may differ in their bytes; a field that was left out is then missing; keys have no -0.0.
    lacking = (
        table.options.get("encode.ignore-null-fields")
        == table.options.get("fail-on-missing-field")
        == "true"
    )
    same = "variant" not in schema.simpleString() and not lacking
    again = same and (table.side == "value" or not has_floats(schema))
    peer = partial(_json_peer, schema, table.options)
    return written(table, messages, rows, kept if same else [], again=again, peer=peer)


def _options(rng: Random) -> dict[str, str]:
    options = {"timestamp-format.standard": rng.choice(["SQL", "SQL", "ISO-8601"])}
    errors = rng.choice(["", "", "ignore-parse-errors", "fail-on-missing-field"])
    if errors:
        options[errors] = "true"
    for name in ("encode.decimal-as-plain-number", "encode.ignore-null-fields"):
        if rng.random() < 0.3:
            options[name] = "true"
    return options


def respelled(rng: Random, message: bytes, schema: StructType) -> bytes:
    """The same values as another writer spells them."""
    how = rng.randrange(5)
    if how == 0:
        return _ANY.sub(
            lambda found: found[0] + rng.choice([b"", b" ", b"\n", b"\t", b"\r\n "]), message
        )
    if how == 1:
        return _TOKEN.sub(lambda found: _escaped(rng, found[0]), message)
    if (
        how == 2
        and "decimal" not in schema.simpleString()
        and "variant" not in schema.simpleString()
    ):
        try:
            return orjson.dumps(orjson.loads(message), option=rng.choice([0, orjson.OPT_INDENT_2]))
        except (orjson.JSONDecodeError, TypeError):  # a number of more than 64 bits
            return message
    return _by_json(rng, message)


def _by_json(rng: Random, message: bytes) -> bytes:
    """By Python's json, with every number's digits kept."""
    value = json.loads(message, parse_float=lambda digits: f"\ue000{digits}")
    members = [*value.items()]
    rng.shuffle(members)
    text = json.dumps(
        dict(members),
        ensure_ascii=rng.random() < 0.5,
        indent=rng.choice([None, None, 1]),
        separators=rng.choice([None, (",", ":"), (" , ", " : ")]),
    )
    return re.sub(r'"(?:\ue000|\\ue000)([-+0-9.eE]+)"', r"\1", text).encode()


def _escaped(rng: Random, token: bytes) -> bytes:
    if not token.startswith(b'"') or b"\\" in token or rng.random() < 0.5:
        return token
    text = token[1:-1].decode()
    units = text.encode("utf-16-be")
    pairs = (units[at : at + 2].hex() for at in range(0, len(units), 2))
    return (
        b'"'
        + "".join("\\u" + (unit.upper() if rng.random() < 0.5 else unit) for unit in pairs).encode()
        + b'"'
    )


def mutated(rng: Random, message: bytes) -> bytes:
    """A message with a token changed, twice, or out of its place."""
    found = [*_TOKEN.finditer(message[:20_000])]
    if not found:
        return message
    one = rng.choice(found)
    before, token, after = message[: one.start()], one[0], message[one.end() :]
    how = rng.randrange(13)
    if how < 5:
        return before + rng.choice(_TOKENS) + after
    if how == 10:
        return _MEMBER.sub(lambda found: b"" if rng.random() < 0.3 else found[0], message)
    if how == 12 and (members := [*_MEMBER.finditer(message[:20_000])]):
        at, name = rng.choice(members).start(), rng.choice(members)[0].split(b":")[0]
        return (
            message[:at]
            + name
            + b":"
            + rng.choice([token, rng.choice(_TOKENS)])
            + b","
            + message[at:]
        )
    if how == 11:
        return before + (token.upper() if rng.random() < 0.5 else token[::-1]) + after
    if how == 5:
        return before + _as_other_type(rng, token) + after
    if how == 6:
        return message[:-1] + b"," + rng.choice(KEYS) + b":" + rng.choice(_TOKENS) + b"}"
    if how == 7 and message.startswith(b"{"):
        name = re.match(rb"\{(" + _STRING + rb"):", message)
        return (
            message[:-1]
            + b","
            + (name[1] if name else b'"a"')
            + b":"
            + rng.choice([token, rng.choice(_TOKENS)])
            + b"}"
        )
    if how == 8:
        return before + b"[" * (depth := rng.choice([1, 2, 251])) + token + b"]" * depth + after
    return before + after


def _as_other_type(rng: Random, token: bytes) -> bytes:
    if token.startswith(b'"'):
        return rng.choice([token[1:-1], b'" ' + token[1:], token[:-1] + b' "', b"[" + token + b"]"])
    return rng.choice(
        [
            b'"' + token + b'"',
            b'" ' + token + b'"',
            token + b".0",
            token + b"e0",
            token + b"00",
            b"-" + token,
            b"0" + token,
        ]
    )


def _json_peer(schema: StructType, options: Any, messages: Sequence[bytes]) -> list[Any]:
    """The answer to each message."""
    lenient = options.get("ignore-parse-errors") == "true"
    read = _row_reader(schema, fails=options.get("fail-on-missing-field") == "true")
    return [UNKNOWN if lenient else _read(read, message) for message in messages]


def _read(read: Callable[[Any], Any], message: bytes) -> Any:
    try:
        text = message.removeprefix(b"\xef\xbb\xbf").decode()
        value = json.loads(text, parse_constant=_no_constant, strict=False)
    except (ValueError, RecursionError) as why:
        return UNKNOWN if isinstance(why, RecursionError) else NoRow(why)
    if not isinstance(value, dict):
        return NoRow("no object")
    if message.count(b"[") + message.count(b"{") > 100 or b"\\ud" in message or b"\\uD" in message:
        return UNKNOWN
    return read(value)


def _no_constant(name: str) -> Any:
    raise ValueError(name)


def _row_reader(schema: StructType, *, fails: bool) -> Callable[[Any], Any]:
    fields = [(f.name, _reader(f.dataType, fails=fails), f.nullable) for f in schema.fields]

    def read(value: Any) -> Any:
        row = {}
        for name, one, nullable in fields:
            found = value.get(name)
            if found is None and (not nullable or (fails and name not in value)):
                row[name] = UNKNOWN
            else:
                row[name] = None if found is None else one(found)
        return row

    return read


def _reader(kind: DataType, *, fails: bool) -> Callable[[Any], Any]:
    """A value of JSON's own type; any other one is no business of the peer."""
    if isinstance(kind, StructType):
        return _of_type(dict, _row_reader(kind, fails=fails))
    if isinstance(kind, ArrayType):
        item = _or_none(_reader(kind.elementType, fails=fails), nullable=kind.containsNull)
        return _of_type(list, lambda value: [item(each) for each in value])
    if isinstance(kind, MapType):
        item = _or_none(_reader(kind.valueType, fails=fails), nullable=kind.valueContainsNull)
        return _of_type(dict, lambda value: [(name, item(each)) for name, each in value.items()])
    if type(kind) in BITS:
        half = 1 << (BITS[type(kind)] - 1)
        return _of_type(int, lambda value: value if -half <= value < half else _other())
    if isinstance(kind, StringType):
        return _of_type(str, lambda value: value)
    if isinstance(kind, BooleanType):
        return _of_type(bool, lambda value: value)
    if isinstance(kind, DoubleType):
        return _of_type(float, lambda value: value if math.isfinite(value) else _other())
    if isinstance(kind, FloatType | DecimalType):
        return lambda value: (
            UNKNOWN
            if isinstance(value, float) and abs(value) < 1e3 and kind == FloatType()
            else _other()
        )
    return lambda _: _other()


def _or_none(read: Callable[[Any], Any], *, nullable: bool) -> Callable[[Any], Any]:
    def one(value: Any) -> Any:
        if value is not None:
            return read(value)
        return None if nullable else _other()

    return one


def _of_type(kind: type, read: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda value: read(value) if type(value) is kind else _other()


def _other() -> Any:
    return UNKNOWN
