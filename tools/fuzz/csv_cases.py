"""Cases of CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from random import Random
from typing import Any

from pyspark.sql.types import (
    ArrayType,
    DataType,
    StringType,
    StructField,
    StructType,
)

from tests.unit.formats.csv.corpus import BAD_BYTES, FIELDS, PIECES, contradicts
from tools.fuzz.case import UNKNOWN, Case, Table, share_of_bad, spoiled, written
from tools.fuzz.codecs import decoder_of, encoder_of
from tools.fuzz.reading import writable
from tools.fuzz.values import SIMPLE, Values, has_floats

_LITERAL = "no value at all"
_BASE64 = [b"QQ===", b"QQ====", b"QUJD====", b"QUI==", b"QUI===", b"Q", b"QUJDR"]
_ODD = [*map(str.encode, FIELDS), *BAD_BYTES, *_BASE64]


def case(rng: Random, count: int) -> Case:
    """Messages of random columns in a random dialect: ours, those of Python's csv, and spoiled ones."""
    schema, options = _columns(rng), _options(rng)
    # Without a literal of its own NULL looks as an empty text, or as a text that equals the literal.
    exact = rng.random() < 0.6 and not {*_LITERAL} & {*options.get("field-delimiter", ",")}
    if exact:
        options["null-literal"] = _LITERAL
    if rng.random() < 0.25:
        options["ignore-parse-errors"] = "true"
    table = Table("csv", schema, rng.choice(["key", "value", "value"]), options)
    values = Values(rng, nulls=rng.choice([0.0, 0.1, 0.5]), negative_zero=table.side == "value")
    rows, messages = writable(encoder_of(table), values.batch(schema, count))
    if rng.random() < 0.4:
        messages = _by_pythons_writer(rng, table, messages)
    delimiter = options.get("field-delimiter", ",").encode()
    messages, kept = spoiled(rng, messages, share_of_bad(rng), partial(_mutate, delimiter))
    again = exact and (table.side == "value" or not has_floats(schema))
    return written(table, messages, rows, kept if exact else [], again=again, peer=_peer_of(table))


def _columns(rng: Random) -> StructType:
    """Columns of simple types, and of arrays and structs of these."""

    def one() -> DataType:
        shape = rng.random()
        if shape < 0.7:
            return rng.choice(SIMPLE)
        if shape < 0.85:
            return ArrayType(rng.choice(SIMPLE), rng.random() < 0.8)
        return StructType(
            [
                StructField(name, rng.choice(SIMPLE), rng.random() < 0.8)
                for name in rng.sample("xyz", rng.randint(1, 3))
            ]
        )

    if rng.random() < 0.2:
        return StructType(
            [
                StructField(f"c{at}", StringType(), rng.random() < 0.8)
                for at in range(rng.randint(1, 4))
            ]
        )
    return StructType(
        [StructField(f"c{at}", one(), rng.random() < 0.8) for at in range(rng.randint(1, 5))]
    )


def _options(rng: Random) -> dict[str, str]:
    choices: dict[str, Sequence[str]] = {
        "field-delimiter": [*",;|\t 0x.e", "§"],
        "escape-character": ["*", "\\", '"', "5"],
        "array-element-delimiter": [";", ",", ":", "-", '"'],
        "null-literal": ["", "null", "\\N", "1", "n,a", "#", " ", 'a"b'],
        "allow-comments": ["true"],
        "write-bigdecimal-in-scientific-notation": ["true"],
    }
    while True:
        given = {name: rng.choice(some) for name, some in choices.items() if rng.random() < 0.2}
        quotes = [
            {},
            {},
            {},
            {"quote-character": "'"},
            {"quote-character": "\x01"},
            {"disable-quote-character": "true"},
        ]
        given |= rng.choice(quotes)
        names = {
            name.replace("-", "_"): True if text == "true" else text for name, text in given.items()
        }
        if not contradicts(names):
            return given


def _by_pythons_writer(rng: Random, table: Table, messages: list[bytes]) -> list[bytes]:
    """The same fields as Python's csv quotes them, where it knows the dialect."""
    options = table.options
    if {"escape-character", "disable-quote-character", "allow-comments"} & {
        *options
    } or not messages:
        return messages
    texts = StructType([StructField(field.name, StringType()) for field in table.schema.fields])
    plain = {
        name: text
        for name, text in options.items()
        if name in ("field-delimiter", "quote-character")
    }
    fields = decoder_of(
        replace(table, schema=texts, options=plain | {"null-literal": "\ue000"})
    ).decode(messages)
    if fields.errors:
        return messages
    out = io.StringIO()
    writer = csv.writer(
        out,
        delimiter=options.get("field-delimiter", ","),
        quotechar=options.get("quote-character", '"'),
        quoting=rng.choice([csv.QUOTE_ALL, csv.QUOTE_MINIMAL, csv.QUOTE_NONNUMERIC]),
        lineterminator=(end := "\ue001\r\n"),  # what has one of these is quoted
    )
    writer.writerows(zip(*(column.to_pylist() for column in fields.rows.columns), strict=True))
    parts = out.getvalue().split(end)
    last = rng.choice(["", "\n", "\r\n"])
    # It does not quote a text that begins with the mark, which then is no part of the first field.
    return [
        message if part.startswith("\ufeff") else (part + last).encode()
        for message, part in zip(messages, parts[:-1], strict=True)
    ]


def _mutate(delimiter: bytes, rng: Random, message: bytes) -> bytes:
    """A message with another field, one more or one fewer, or an odd piece in it."""
    fields = message.split(delimiter)
    at, how = rng.randrange(len(fields)), rng.randrange(6)
    if how < 3:
        fields[at] = rng.choice(_ODD)
    elif how == 3:
        fields.insert(at, rng.choice([b"", b"x", rng.choice(_ODD)]))
    elif how == 4:
        del fields[at]
    else:
        place = rng.randrange(len(fields[at]) + 1)
        fields[at] = (
            fields[at][:place] + rng.choice(PIECES) + fields[at][place + rng.randrange(2) :]
        )
    return delimiter.join(fields)


def _peer_of(table: Table) -> Any:
    """Python's csv, for texts in a dialect that it has: quotes, and no escapes or literals."""
    plain = all(
        type(field.dataType) is StringType and field.nullable for field in table.schema.fields
    )
    if not plain or {*table.options} - {
        "field-delimiter",
        "array-element-delimiter",
        "write-bigdecimal-in-scientific-notation",
    }:
        return None
    return partial(_peer, table)


def _peer(table: Table, messages: Sequence[bytes]) -> list[Any]:
    names, delimiter = table.schema.names, table.options.get("field-delimiter", ",")
    return [_read(names, delimiter, message) for message in messages]


def _read(names: list[str], delimiter: str, message: bytes) -> Any:
    """It takes quotes and line breaks in a plain field otherwise, and blanks behind a quoted one."""
    try:
        text = message.removeprefix(b"\xef\xbb\xbf").decode()
    except UnicodeDecodeError:
        return UNKNOWN
    quotes = text.replace(f'{delimiter}"', delimiter).replace(f'"{delimiter}', delimiter).strip('"')
    if not text or '"' in quotes or "\n" in text or "\r" in text:
        return UNKNOWN
    try:
        rows = [*csv.reader([text], delimiter=delimiter, strict=True)]
    except csv.Error:
        return UNKNOWN
    return (
        dict(zip(names, rows[0], strict=True))
        if len(rows) == 1 and len(rows[0]) == len(names)
        else UNKNOWN
    )
