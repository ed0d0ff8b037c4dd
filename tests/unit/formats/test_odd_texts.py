"""What Flink's parsers of JSON and CSV let pass: in every format made of them, of keys and of values, alone and in batches."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from pyspark.sql.types import ArrayType, DataType, IntegerType, LongType, StringType, StructType

from pyspark_upsert_kafka.core.errors import EncodeError
from pyspark_upsert_kafka.formats import csv, json, json_registry
from pyspark_upsert_kafka.formats.cdc import debezium_json
from tests.unit.formats.cdc.corpus import INSERTS
from tests.unit.formats.cdc.decoding import change_decoder
from tests.unit.formats.codec_specs import codec_spec
from tests.unit.formats.csv.codecs import decoder as csv_decoder
from tests.unit.formats.csv.codecs import encoder as csv_encoder
from tests.unit.formats.csv.codecs import exactly as csv_exactly
from tests.unit.formats.json.codecs import batch, columns, seen
from tests.unit.formats.registry_codecs import PREFIX, Codecs

TABLE = columns(id=LongType(), name=StringType())
MARK = b"\xef\xbb\xbf"
ROW = b'{"id":1,"name":%b}'
SCHEMA = b'{"schema":{"type":"struct","fields":[{"type":"int64","field":"id"}%b]},"payload":%b}'
WITHIN = b',{"type":"struct","field":"after","fields":[{"type":"int64","field":"id"},{"type":"string","field":"name"}]}'


def of_side(format_: Any, side: str, schema: StructType = TABLE) -> Any:
    """The decoder of a side."""
    return format_.decoder(codec_spec(format_, schema, side)).decode


def of_changes(name: str, **options: str) -> Callable[[list[bytes]], Any]:
    """The decoder of a CDC format."""
    return change_decoder(name, "id BIGINT, name STRING", **options).decode


def rows(decoded: Any) -> Any:
    """The rows of messages that are all good."""
    assert not decoded.errors
    return [(row["id"], row["name"]) for row in decoded.rows.to_pylist()]


FORMATS: dict[str, tuple[Any, Callable[[bytes], bytes], bytes]] = {
    "json value": (partial(of_side, json.FORMAT, "value"), lambda row: row, b""),
    "json key": (partial(of_side, json.FORMAT, "key"), lambda row: row, b""),
    "connect key": (partial(of_side, debezium_json.KEYS, "key"), lambda row: row, b""),
    "connect key with schema": (
        partial(of_side, debezium_json.KEYS, "key"),
        lambda row: SCHEMA % (b',{"type":"string","field":"name"}', row),
        b"",
    ),
    "json-registry": (
        lambda: Codecs(json_registry.FORMAT).decoder(TABLE, "{}").decode,
        lambda row: row,
        PREFIX,
    ),
    "debezium-json with schema": (
        partial(of_changes, "debezium-json", schema_include="true"),
        lambda row: SCHEMA % (WITHIN, INSERTS["debezium-json"] % row),
        b"",
    ),
    **{
        name: (partial(of_changes, name), envelope.__mod__, b"")
        for name, envelope in INSERTS.items()
    },
}
NAMES = pytest.mark.parametrize("name", FORMATS)


@NAMES
@pytest.mark.parametrize("character", ["\t", "\n", "\r", "\x01", "\0", "\x1f"])
def test_control_characters_in_strings(name: str, character: str) -> None:
    """They are read as they are, also where a batch has few of them, and in fields that are not read."""
    compiled, wrapped, prefix = FORMATS[name]
    raw = character.encode()
    odd = prefix + wrapped(ROW % b'"a%bb","x%b":"%b"' % (raw, raw, raw))
    plain = prefix + wrapped(ROW % b'"a"')
    assert rows(compiled()([odd])) == [(1, f"a{character}b")]
    many = rows(compiled()([plain] * 80 + [odd] + [plain] * 80))
    assert many == [(1, "a")] * 80 + [(1, f"a{character}b")] + [(1, "a")] * 80
    assert rows(compiled()([odd] * 80)) == [(1, f"a{character}b")] * 80


@NAMES
def test_byte_order_marks(name: str) -> None:
    """One before a message is skipped; one elsewhere, or a second one, is no JSON."""
    compiled, wrapped, prefix = FORMATS[name]
    plain = wrapped(ROW % b'"a"')
    for many in ([MARK], [MARK] * 80, [b""] * 80 + [MARK], [MARK] + [b""] * 80):
        assert rows(compiled()([prefix + each + plain for each in many])) == [(1, "a")] * len(many)
    assert 0 in compiled()([prefix + MARK + MARK + plain]).errors
    assert 80 in compiled()([prefix + plain] * 80 + [prefix + b" " + MARK + plain]).errors


@NAMES
def test_half_a_surrogate_pair(name: str) -> None:
    """Where no column wants it, it spoils no row; where one does, the error names the column."""
    compiled, wrapped, prefix = FORMATS[name]
    plain = prefix + wrapped(ROW % b'"a"')
    beside = prefix + wrapped(ROW % rb'"a","x\ud800":"\udc00"')
    wanted = prefix + wrapped(ROW % rb'"\ud800"')
    assert rows(compiled()([beside])) == [(1, "a")]
    assert rows(compiled()([plain] * 80 + [beside])) == [(1, "a")] * 81
    for many in ([wanted], [plain] * 80 + [wanted]):
        (why,) = compiled()(many).errors.values()
        assert "a string holds half of a surrogate pair" in why
        assert "name'" in why
        why.encode()


@pytest.mark.parametrize("side", ["key", "value"])
@pytest.mark.parametrize("text", [b"1,a", b'"1","a"', b"1,a\n", b"1,\xef\xbb\xbfa"])
def test_byte_order_marks_of_csv(side: str, text: bytes) -> None:
    """One before a message is no part of its first field, on every path, so a key is one key; elsewhere it is text."""
    decode = of_side(csv.FORMAT, side)
    ((wanted,),) = [{*rows(decode([text]))}]
    for many in ([MARK], [MARK] * 80, [b""] * 80 + [MARK], [MARK] + [b""] * 80, [b"", MARK] * 40):
        assert rows(decode([each + text for each in many])) == [wanted] * len(many)


def test_two_byte_order_marks_of_csv() -> None:
    """The second one is text, in whatever place of the batch it stands."""
    table = columns(name=StringType(), n=IntegerType())
    for many in ([b"a,1", MARK * 2 + b"a,1"] * 50, [MARK * 2 + b"a,1", b"a,1"] * 50, [MARK, MARK * 2, b"a,1"] * 50):  # fmt: skip
        found = csv_decoder(table).decode(many)
        assert seen(found) == seen(csv_exactly(table).decode(many))
    assert csv_decoder(table).decode([MARK]).errors[0] == "the message is empty; it holds no record"


@pytest.mark.parametrize("kind", [StringType(), ArrayType(StringType()), columns(a=StringType())])
def test_what_csv_writes_begins_with_no_byte_order_mark(kind: DataType) -> None:
    """A text that begins with that character is quoted at the beginning of a message, and reads back; elsewhere it is as in Flink."""
    text = "\ufeffa"
    value = {StringType: text, ArrayType: [text], StructType: {"a": text}}[type(kind)]
    table = columns(c=kind, name=StringType())
    row = batch(table, (value, text))
    (message,) = csv_encoder(table).encode(row)
    assert message.decode() == f'"{text}",{text}'
    assert csv_decoder(table).decode([message]).rows == row
    only = columns(name=StringType())
    assert csv_encoder(only).encode(batch(only, ("a",), (text,))) == [b"a", f'"{text}"'.encode()]
    with pytest.raises(EncodeError, match="needs quotes"):
        csv_encoder(only, disable_quote_character=True).encode(batch(only, (text,)))
