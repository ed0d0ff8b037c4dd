"""``pyarrow.json``: it parses all messages of a batch together, as lines of one text.

Numbers, booleans and texts it reads itself. Other types it reads as texts, which are then converted as columns;
inside arrays and structs too.

Control characters in strings, which the fast parsers refuse, are made escapes, which they read. Messages that are JSON mean the
same then. Others stay what they are: what stands outside of strings is not touched, or only where a quote is missing, and such
a message is refused in either form.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json
from pyspark.sql.types import ArrayType, DataType, StructField, StructType

from pyspark_upsert_kafka.core.bytes_column import (
    BytesColumn,
    column_of,
    lines_of,
    not_utf8,
    offsets_of,
)
from pyspark_upsert_kafka.formats.decoding import MOST_LEFT, PROBE, Mask
from pyspark_upsert_kafka.formats.json import JsonSettings
from pyspark_upsert_kafka.formats.json.json_document import DEEPEST, too_deep
from pyspark_upsert_kafka.formats.json.row_path import field_reader, leaf
from pyspark_upsert_kafka.formats.parsed_columns import (
    Column,
    Conversion,
    one_chunk,
    with_stand_ins,
    without_marks,
)

# The parser keeps 32-bit positions; a batch beyond this is cut into pieces first.
_LARGEST_TEXT = 1 << 30
# Literals that rapidjson takes for numbers, wherever they could be one and not part of a text.
_NOT_FINITE = r"(?:NaN|Inf(?:inity)?)[ \t\r\n]*[,}\]]"
_LETTERS_OF_NOT_FINITE = (b"N", b"I")
# Decimals that the parser would scale by a power of ten beyond its table, which gives any value:
# with a large negative exponent, with a very long fraction, or either of them hidden in escapes.
_NOT_SCALABLE = r"[0-9.][eE]-[0-9]{2,}\"?[ \t\r\n]*[,}\]]|[0-9]{39}|\\u00(?:3[0-9]|[46]5|2[dD])"

_ARRAY_LEVEL, _OBJECT_LEVEL = len("[]"), len('{"":}')
"""The fewest bytes of a level of arrays or objects. The parser refuses braces without a name between them."""

# A message that is refused costs another attempt with those behind it. Where more than so many are, and more than one in so
# many of those that were looked at, the column path costs less.
_REFUSED, _ONE_IN = 8, 250
_WINDOW = 1024
_ROW = re.compile(r"in row ([0-9]+)$")
_CHANGED = re.compile(r"^JSON parse error: Column\(.*/(.*)\) changed from \w+ to (\w+) in row")
_OF_COLUMN = "Column("
"""What stands in an error that is about the values of a column, and not about what JSON is."""
_NO_COLUMN = pyarrow.json.ParseOptions(
    explicit_schema=pa.schema([]), unexpected_field_behavior="ignore"
)
_BEGINS = {"string": '"', "number": "[-0-9]", "boolean": "[tf]", "array": r"\[", "object": r"\{"}
"""How values of a kind begin."""

_FIRST_PRINTABLE, _QUOTE, _BACKSLASH = 0x20, ord('"'), ord("\\")
_ESCAPES = [rf"\u{code:04x}".encode() for code in range(_FIRST_PRINTABLE)]
_ADDED = len(_ESCAPES[0]) - 1
_MOST_ESCAPED = 4
"""Where more than one byte of so many is to be escaped, the messages are left as they are: each takes six times its memory."""

Columns = Callable[[Sequence[bytes]], "tuple[list[pa.Array], Mask]"]
"""Messages to some columns of their rows, and the mask of those that fall back to the row path: a parser cannot read them, or
may be wrong about them. It raises ValueError where it cannot say which those are, and where they are many."""


def line_parser(schema: pa.Schema) -> Columns:
    """Compiles a parser of those fields; other fields of a message are ignored."""
    has_decimals = _has_decimals(schema)
    parse_options = pyarrow.json.ParseOptions(
        explicit_schema=schema, unexpected_field_behavior="ignore"
    )

    def table(lines: pa.Buffer) -> pa.Table:
        return _table(lines, parse_options)

    def parse(messages: Sequence[bytes]) -> tuple[list[pa.Array], Mask]:
        plain, lines, left = _plain(column_of(messages), has_decimals=has_decimals)
        try:
            found = table(pa.py_buffer(lines))
        except pa.ArrowInvalid as why:
            escaped = with_escapes(plain) or plain
            stop = _row_of(why) if escaped is plain else None
            try:
                odd = _alike(why, escaped)
                if stop is not None and _OF_COLUMN not in str(why):
                    odd = _broken(escaped, lines, stop)
                if odd.any():
                    left |= odd
                    escaped, stop = with_stand_ins(escaped, left), None
                if escaped is not plain:
                    lines = lines_of(escaped)
                found, refused = _in_windows(escaped, lines, table, stop)
            except pa.ArrowInvalid:
                refused = _no_json(escaped)
                if not refused.any():
                    raise
                found = table(pa.py_buffer(lines_of(with_stand_ins(escaped, left | refused))))
            left |= refused
        if found.num_rows != len(messages):
            raise ValueError("a message is not exactly one document")
        return [one_chunk(column) for column in found.columns], left

    return parse


def _table(lines: pa.Buffer, options: Any) -> pa.Table:
    read_options = pyarrow.json.ReadOptions(use_threads=False, block_size=lines.size + 1)
    return pyarrow.json.read_json(pa.BufferReader(lines), read_options, options)


def _alike(error: pa.ArrowInvalid, messages: BytesColumn) -> Mask:
    """The messages that have a value of the kind at which the parser stopped under the same name; none = it stopped at another error."""
    changed = _CHANGED.search(str(error))
    if changed is None:
        return np.zeros(len(messages), np.bool_)
    name = re.escape(json.dumps(changed[1], ensure_ascii=False))
    pattern = rf"{name}[ \t\r\n]*:[ \t\r\n]*{_BEGINS[changed[2]]}"
    found: Mask = pc.match_substring_regex(messages.column, pattern).to_numpy(zero_copy_only=False)
    return found


def _broken(messages: BytesColumn, lines: bytes, first: int) -> Mask:
    """The messages that are no JSON to the parser. To read no column takes it half the time, and each message is read once.

    Args:
        messages: The messages.
        lines: The same as lines.
        first: The first one that may be none.

    Raises:
        ArrowInvalid: They are many, or the parser does not say where it stops.
    """
    count, begins, text = len(messages), _begins(messages), pa.py_buffer(lines)
    broken = np.zeros(count, np.bool_)
    at, many = first, 0
    while at < count:
        try:
            _table(text[int(begins[at]) :], _NO_COLUMN)
            break
        except pa.ArrowInvalid as why:
            at += _row_of(why)
            if many > _REFUSED + at // _ONE_IN:
                raise
        broken[at : at + 1] = True
        at, many = at + 1, many + 1
    return broken


def _begins(messages: BytesColumn) -> Any:
    """Where each message begins among lines, and where the last one ends."""
    ends = offsets_of(messages.column)
    return ends - ends[0] + np.arange(len(ends))


def _in_windows(
    messages: BytesColumn, lines: bytes, table: Callable[[pa.Buffer], pa.Table], stop: int | None
) -> tuple[pa.Table, Mask]:
    """Messages at some of which the parser stops, and which these are; copies of another row stand in their places.

    Args:
        messages: The messages.
        lines: The same as lines.
        table: Parses lines.
        stop: The message at which the parser stops first; None = that is not known.

    Raises:
        ValueError: They are many, or the parser does not say where it stops.
    """
    count, begins, text = len(messages), _begins(messages), pa.py_buffer(lines)
    tables: list[pa.Table | None] = []
    refused = np.zeros(count, np.bool_)

    def keep(begin: int, end: int) -> int:
        if begin < end:
            tables.append(table(text[int(begins[begin]) : int(begins[end])]))
        return end

    at, many = 0, 0
    while at < count:
        try:
            if stop is None:
                at = keep(at, min(at + _WINDOW, count) if many else count)
                continue
        except pa.ArrowInvalid as why:
            stop = at + _row_of(why)
            if many > _REFUSED + stop // _ONE_IN:
                raise
        if stop >= count:
            raise ValueError("a message is not exactly one document")
        keep(at, stop)
        tables.append(None)
        refused[stop : stop + 1] = True
        at, stop, many = stop + 1, None, many + 1
    stand_in = next((each.slice(0, 1) for each in tables if each is not None), None)
    if stand_in is None:
        raise ValueError("no message is left")
    return pa.concat_tables([stand_in if each is None else each for each in tables]), refused


def _no_json(messages: Sequence[bytes]) -> Mask:
    """The messages that are no JSON to orjson, which is quicker than to stop at each of many.

    Raises:
        ValueError: Most of the first are none.
    """
    refused = np.zeros(len(messages), np.bool_)
    for at, message in enumerate(messages):
        try:
            orjson.loads(message)
        except ValueError:
            refused[at] = True
            if at < PROBE and refused[:at].sum() > MOST_LEFT * PROBE:
                raise
    return refused


def _row_of(error: pa.ArrowInvalid) -> int:
    """The line of a text at which the parser stopped. Raises the error where it does not say it."""
    found = _ROW.search(str(error))
    if found is None:
        raise error
    return int(found[1])


def _has_decimals(fields: Iterable[pa.Field]) -> bool:
    return any(
        pa.types.is_decimal(field.type)
        or _has_decimals(field.type.field(i) for i in range(field.type.num_fields))
        for field in fields
    )


def _plain(values: pa.LargeBinaryArray, *, has_decimals: bool) -> tuple[BytesColumn, bytes, Mask]:
    """The messages, of which the parser reads each as it should be read, and as lines; and the mask of those that are stand-ins.

    Raises:
        ValueError: There is too much for one text, or no message is plain.
    """
    if values.nbytes > _LARGEST_TEXT:
        raise ValueError("too much for one text")
    messages, left = BytesColumn(values), ~_are_objects(values)
    if left.any():
        messages = without_marks(messages)
        left = ~_are_objects(messages.column)
    left |= not_utf8(messages.column)
    if left.any():
        messages = with_stand_ins(messages, left)
    lines = lines_of(messages)
    odd = _misread(messages.column, lines, has_decimals=has_decimals)
    if odd.any():
        left |= odd
        messages = with_stand_ins(messages, left)
        lines = lines_of(messages)
    return messages, lines, left


def _are_objects(values: pa.LargeBinaryArray) -> Mask:
    plain = pc.and_(pc.starts_with(values, "{"), pc.ends_with(values, "}"))
    return plain.to_numpy(zero_copy_only=False)


def _misread(messages: pa.LargeBinaryArray, lines: bytes, *, has_decimals: bool) -> Mask:
    """The mask of messages, which are texts, that the parser may get wrong."""
    odd = np.zeros(len(messages), np.bool_)
    # A byte is found in the whole text at a fiftieth of what the pattern takes.
    if has_decimals or any(letter in lines for letter in _LETTERS_OF_NOT_FINITE):
        import polars as pl  # most tasks need none of it, and it takes long to import

        forbidden = f"{_NOT_FINITE}|{_NOT_SCALABLE}" if has_decimals else _NOT_FINITE
        texts = pl.Series(messages.cast(pa.string()))
        odd |= texts.str.contains(forbidden).to_numpy()
    # What nests too deep has more than DEEPEST levels, each of at least two bytes, or five of an object: {"":}
    of_level = _ARRAY_LEVEL if b"[" in lines else _OBJECT_LEVEL
    long = pc.greater(pc.binary_length(messages), of_level * DEEPEST).to_numpy(zero_copy_only=False)
    for at in np.flatnonzero(long & ~odd).tolist():
        odd[at] = too_deep(messages[at].as_py())
    return odd


def pyarrow_columns(columns: StructType, target: list[pa.Field], settings: JsonSettings) -> Columns:
    """Compiles the reading of some columns."""
    conversions = [_conversion(column.dataType, settings) for column in columns.fields]
    demanded = _all_required(target) if settings.fail_on_missing_field else target
    readers = [
        Column(field, each.convert, _from_text(column, each.parsed, settings), required)
        for column, field, each, required in zip(
            columns, target, conversions, demanded, strict=True
        )
    ]
    parsed = [(f.name, each.parsed) for f, each in zip(target, conversions, strict=True)]
    parse = line_parser(pa.schema(parsed))

    def read(messages: Sequence[bytes]) -> tuple[list[pa.Array], Mask]:
        arrays, left = parse(messages)
        return [
            column.read(array, left) for column, array in zip(readers, arrays, strict=True)
        ], left

    return read


def _from_text(
    column: StructField, parsed: pa.DataType, settings: JsonSettings
) -> Callable[[Any], Any] | None:
    """How one value is read, of a column that is parsed as texts; None = only the message tells how it was written."""
    if not pa.types.is_string(parsed) or settings.fail_on_missing_field:
        return None
    return field_reader(column.dataType, settings, column.name, nullable=column.nullable)


def _conversion(kind: DataType, settings: JsonSettings) -> Conversion:
    """How a column of that type is read."""
    if isinstance(kind, StructType):
        return _struct(kind, settings)
    return _list(kind, settings) if isinstance(kind, ArrayType) else leaf(kind, settings).column


def _struct(columns: StructType, settings: JsonSettings) -> Conversion:
    inner = [_conversion(field.dataType, settings) for field in columns.fields]
    names = columns.names
    parsed = pa.struct([(name, each.parsed) for name, each in zip(names, inner, strict=True)])

    def convert(array: pa.Array) -> pa.Array:
        children = [each.convert(array.field(i)) for i, each in enumerate(inner)]
        fields = [(name, child.type) for name, child in zip(names, children, strict=True)]
        return _rebuilt(array, pa.struct(fields), own_buffers=1, children=children)

    return Conversion(parsed, convert)


def _list(kind: ArrayType, settings: JsonSettings) -> Conversion:
    inner = _conversion(kind.elementType, settings)

    def convert(array: pa.Array) -> pa.Array:
        values = inner.convert(array.values)
        return _rebuilt(array, pa.list_(values.type), own_buffers=2, children=[values])

    return Conversion(pa.list_(inner.parsed), convert)


def _rebuilt(
    array: pa.Array, kind: pa.DataType, own_buffers: int, children: list[pa.Array]
) -> pa.Array:
    own = array.buffers()[:own_buffers]
    return pa.Array.from_buffers(kind, len(array), own, array.null_count, children=children)


def _all_required(target: Iterable[pa.Field]) -> list[pa.Field]:
    """The fields as if all were NOT NULL: the parser does not tell a missing field from a null."""
    return [field.with_nullable(False).with_type(_required(field.type)) for field in target]


def _required(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_struct(kind):
        return pa.struct(_all_required(kind))
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(_required(kind.value_type)))
    return kind


def with_escapes(messages: Sequence[bytes]) -> BytesColumn | None:
    r"""The messages with escapes; None = there is nothing to escape, or very much.

    >>> with_escapes([b'{"a":"b\tc, d"}', b'{\t}'])
    [b'{"a":"b\\u0009c, d"}', b'{\t}']
    """
    column = column_of(messages)
    offsets, data = offsets_of(column), column.buffers()[2]
    if data is None or not len(column):
        return None
    low = np.frombuffer(data, np.uint8)[offsets[0] : offsets[-1]] < _FIRST_PRINTABLE
    if not low.any():
        return None
    text = memoryview(data)[offsets[0] : offsets[-1]].tobytes()
    bare = text.replace(b"\\\\", b"  ").replace(b'\\"', b"  ") if b"\\" in text else text
    characters = np.frombuffer(bare, np.uint8)
    inside = np.logical_xor.accumulate(characters == _QUOTE)
    places = np.flatnonzero(low & inside)
    # Behind a backslash it makes an escape that there is not, and with its own escape it would make another one.
    places = places[characters[places - 1] != _BACKSLASH]
    if not 0 < len(places) <= len(text) // _MOST_ESCAPED:
        return None
    parts, at = [], 0
    for place in places.tolist():
        parts += [text[at:place], _ESCAPES[text[place]]]
        at = place + 1
    moved = offsets - offsets[0]
    moved = moved + _ADDED * np.searchsorted(places, moved)
    buffers = [None, pa.py_buffer(moved), pa.py_buffer(b"".join([*parts, text[at:]]))]
    return BytesColumn(pa.Array.from_buffers(pa.large_binary(), len(column), buffers))
