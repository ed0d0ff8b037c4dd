"""Cases of raw: one column, whose bytes are the message."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from functools import partial
from random import Random
from typing import Any

from pyspark.sql.types import (
    BinaryType,
    BooleanType,
    ByteType,
    DataType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    ShortType,
    StringType,
    StructField,
    StructType,
)

from tools.fuzz.case import UNKNOWN, Case, NoRow, Table, share_of_bad, spoiled, written
from tools.fuzz.codecs import encoder_of
from tools.fuzz.reading import writable
from tools.fuzz.values import Values, has_floats

_CODES = {
    ByteType(): "b",
    ShortType(): "h",
    IntegerType(): "i",
    LongType(): "q",
    FloatType(): "f",
    DoubleType(): "d",
}
_KINDS: list[DataType] = [
    *_CODES,
    BooleanType(),
    BinaryType(),
    StringType(),
    StringType(),
    StringType(),
]
_CHARSETS = [
    "UTF-8", "UTF-8", "UTF-8", "US-ASCII", "ISO-8859-1", "UTF-16", "UTF-16LE", "UTF-16BE", "UTF-32", "UTF-32LE",
    "windows-1252", "Shift_JIS", "GBK", "EUC-KR", "Big5", "cp037", "utf-7", "UTF-8-SIG", "ISO-2022-JP", "KOI8-R", "GB18030",
]  # fmt: skip


def case(rng: Random, count: int) -> Case:
    """Messages of a random column."""
    kind = rng.choice(_KINDS)
    schema = StructType([StructField("v", kind, rng.random() < 0.7)])
    options = {
        "charset": rng.choice(_CHARSETS),
        "endianness": rng.choice(["big-endian", "little-endian"]),
    }
    table = Table("raw", schema, rng.choice(["key", "value"]), options)
    values = Values(rng, nulls=0, negative_zero=table.side == "value")
    rows, messages = writable(encoder_of(table), values.batch(schema, count))
    messages, kept = spoiled(rng, messages, share_of_bad(rng))
    again = not has_floats(schema) or table.side == "value"
    return written(table, messages, rows, kept, again=again, peer=partial(_peer, kind, options))


def _peer(kind: DataType, options: dict[str, str], messages: Sequence[bytes]) -> list[Any]:
    return [_read(kind, options, message) for message in messages]


def _read(kind: DataType, options: dict[str, str], message: bytes) -> Any:
    """By Python's own codecs and ``struct``; charsets without a byte order are no business of theirs."""
    try:
        if kind == BinaryType():
            return {"v": message}
        if kind == StringType():
            return _text(options["charset"], message)
        if kind == BooleanType():
            return {"v": message != b"\0"} if len(message) == 1 else NoRow("size")
        order = ">" if options["endianness"] == "big-endian" else "<"
        return {"v": struct.unpack(order + _CODES[kind], message)[0]}
    except (ValueError, struct.error) as why:
        return NoRow(why)


def _text(charset: str, message: bytes) -> Any:
    if charset in ("UTF-16", "UTF-32"):
        return UNKNOWN
    text = message.decode(charset)
    text.encode()  # Python's UTF-7 lets halves of surrogate pairs pass
    return {"v": text}
