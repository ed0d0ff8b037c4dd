"""One JSON document, read exactly, and values written as compact JSON; messages that are Kafka Connect's envelope of a document.

Python's own scanner is used because it lets numbers keep their digits. Control characters in strings are read, as Flink's
formats of JSON do. What else the scanner is lenient about is refused here: NaN and Infinity, another encoding than UTF-8.
Half of a surrogate pair, which no column can hold, is a `Half`.

Variants are any JSON value, in the two binary halves that Spark keeps. PySpark's own ``VariantVal`` builds and takes them
apart. Its ``toJson`` is not used: it escapes what is not ASCII, rounds decimals to 28 digits and writes ``inf``.

Kafka Connect's JSON converter writes ``{"schema":...,"payload":...}``, with the schema around the row, unless it is told not to.
"""

from __future__ import annotations

import json
import math
import re
from base64 import b64encode
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Context, Decimal, localcontext
from json.encoder import encode_basestring
from typing import Any, Literal, NoReturn, cast

import numpy as np
import orjson
from pyspark.sql.types import VariantVal

from pyspark_upsert_kafka.core.errors import printable
from pyspark_upsert_kafka.core.masking import is_unicode
from pyspark_upsert_kafka.formats.codec import Decoded, Decoder
from pyspark_upsert_kafka.formats.decoding import Mask, UnreadableError
from pyspark_upsert_kafka.formats.text_values import BYTE_ORDER_MARK

DEEPEST = 250
"""How deep arrays and objects may nest; more is refused the same way on every Python."""

DEEPEST_WRITTEN = 200
"""How deep a VARIANT may nest to be written, on every Python: PySpark takes up to four calls for each level, of a thousand."""

_EXACT = Context(prec=100)
_TOO_DEEP = (
    f"a VARIANT is nested too deep to be written as JSON: more than {DEEPEST_WRITTEN} levels"
)
_MINUS_ZERO = re.compile(rb"[:,\[][ \t\r\n]*-0(?![.0-9eE])")
_SHOWN = 100
# An escaped surrogate without its other half, where no backslash is escaped itself.
_HALF = re.compile(
    r"\\u[dD][89abAB][0-9a-fA-F]{2}(?!\\u[dD][c-fC-F])"
    r"|(?<!\\u[dD][89abAB][0-9a-fA-F]{2})\\u[dD][c-fC-F]"
)
_QUOTE = ord('"')


class Number(str):
    """The digits of a JSON number, as they stand in the message."""

    __slots__ = ()


class Half(str):
    r"""A string that holds half of a surrogate pair, as JSON without its quotes: ``\ud800``. It equals no other string."""

    __slots__ = ()

    __eq__ = object.__eq__
    __hash__ = object.__hash__


HALF = "a string holds half of a surrogate pair"


def _refuse_constant(name: str) -> NoReturn:
    raise UnreadableError(f"not JSON: {name} is no JSON value")


_DECODER = json.JSONDecoder(
    parse_int=Number, parse_float=Number, parse_constant=_refuse_constant, strict=False
)


def parse_object(message: bytes, deepest: int = DEEPEST) -> dict[str, Any]:
    """The object that a message is: numbers as Number, of duplicate names the last.

    Args:
        message: The message.
        deepest: How deep arrays and objects may nest.

    Raises:
        UnreadableError: It is not exactly one JSON object in UTF-8.
    """
    value = parse(message, deepest)
    if type(value) is not dict:
        raise UnreadableError(f"expected a JSON object, got {shown(value)}")
    return value


def parse(message: bytes, deepest: int = DEEPEST) -> Any:
    """The value that a message is, behind a byte order mark or without one.

    Raises:
        UnreadableError: It is not exactly one JSON value in UTF-8.
    """
    message = message.removeprefix(BYTE_ORDER_MARK)
    if not message:
        raise UnreadableError("not JSON: the message is empty")
    if too_deep(message, deepest):
        raise UnreadableError(_nested_too_deep())
    try:
        text = message.decode()
        value = _DECODER.decode(text)
    except UnicodeDecodeError as error:
        raise UnreadableError(f"not UTF-8: {error.reason} at byte {error.start}") from None
    except json.JSONDecodeError as error:
        what = f"{error.msg} at character {error.pos}"
        raise UnreadableError(f"not JSON: {what}, in {_cut(text)}") from None
    except RecursionError:
        raise UnreadableError(_nested_too_deep()) from None
    return _with_halves(value) if holds_half(text) else value


def holds_half(text: str) -> bool:
    """Whether a string in a text of JSON holds half of a surrogate pair."""
    return "\\u" in text and _HALF.search(text.replace("\\\\", "  ")) is not None


def _with_halves(value: Any) -> Any:
    """A parsed value, with each string that holds half of a surrogate pair as such."""
    kind = type(value)
    if kind is dict:
        return {_with_halves(name): _with_halves(item) for name, item in value.items()}
    if kind is list:
        return [_with_halves(item) for item in value]
    if kind is str and not is_unicode(value):
        return Half(json.dumps(value)[1:-1])
    return value


def too_deep(message: bytes, deepest: int = DEEPEST) -> bool:
    """Whether arrays and objects nest deeper than that; cheap for what is plainly flat."""
    if message.count(b"[") + message.count(b"{") <= deepest:
        return False
    # As arrays of bytes: a regular expression keeps too much for each character of a long string.
    bare = message.replace(b"\\\\", b"").replace(b'\\"', b"") if b"\\" in message else message
    characters = np.frombuffer(bare, np.uint8)
    outside = ~np.logical_xor.accumulate(characters == _QUOTE)
    opening, closing = (
        ((characters == ord(square)) | (characters == ord(curly))) & outside
        for square, curly in ("[{", "]}")
    )
    steps = opening.view(np.int8) - closing.view(np.int8)
    depths = np.cumsum(steps[steps != 0], dtype=np.int32)
    return bool(depths.max(initial=0) > deepest)


def _nested_too_deep() -> str:
    return f"nested deeper than {DEEPEST} levels"


def compact(value: Any) -> str:
    """A value as JSON without spaces. Non-finite floats become strings, as with Jackson."""
    kind = type(value)
    if kind is dict:
        pairs = (f"{_name(name)}:{compact(item)}" for name, item in value.items())
        return f"{{{','.join(pairs)}}}"
    if kind is list:
        return f"[{','.join([compact(item) for item in value])}]"
    return cast("str", _SCALARS.get(kind, _quoted)(value))


def _name(name: str) -> str:
    return _quoted(name) if type(name) is Half else encode_basestring(name)


def _float(value: float) -> str:
    if math.isfinite(value):
        return repr(value)
    return '"NaN"' if math.isnan(value) else '"Infinity"' if value > 0 else '"-Infinity"'


def _quoted(value: object) -> str:
    return f'"{value}"'


_SCALARS: dict[type, Any] = {
    type(None): lambda _: "null",
    bool: lambda value: "true" if value else "false",
    Number: str,
    str: encode_basestring,
    int: str,
    float: _float,
    Decimal: lambda value: f"{value:f}",
    bytes: lambda value: f'"{b64encode(value).decode()}"',
}


def shown(value: Any) -> str:
    """A value as it appears in an error: JSON, cut when long; printable."""
    return _cut(compact(value))


def _cut(text: str) -> str:
    begin = printable(text[:_SHOWN])
    return begin if len(text) <= _SHOWN else f"{begin}… ({len(text)} characters)"


def plain_object(message: bytes) -> dict[str, Any]:
    """The object that a message is, with numbers as orjson reads them; ValueError = only `parse_object` can tell."""
    if not message.startswith(b"{"):
        message = message.removeprefix(BYTE_ORDER_MARK)
        if not message.startswith(b"{"):
            raise ValueError("the message is not plainly an object")
    if len(message) > 2 * DEEPEST and too_deep(message):
        raise ValueError("the message is nested too deep")
    if b"-0" in message and _MINUS_ZERO.search(message):
        raise ValueError("a number may be -0")
    read: dict[str, Any] = orjson.loads(message)
    return read


def variant(value: Any) -> dict[str, bytes]:
    """A parsed JSON value as a variant's two halves. Raises ValueError."""
    if any(math.isinf(float(number)) for number in _numbers(value)):
        raise ValueError("expected numbers within the range of DOUBLE")
    text = compact(value)
    if holds_half(text):
        raise ValueError(HALF)
    try:
        built = VariantVal.parseJson(text)
    except RecursionError:
        raise ValueError("nested too deep for a VARIANT") from None
    return {"value": built.value, "metadata": built.metadata}


def variant_text(halves: dict[str, bytes]) -> str:
    """A variant as compact JSON. Raises ValueError when it is malformed, or nests too deep."""
    try:
        with localcontext(_EXACT):
            text = compact(VariantVal(halves["value"], halves["metadata"]).toPython())
    except RecursionError:
        raise ValueError(_TOO_DEEP) from None
    if too_deep(text.encode(), DEEPEST_WRITTEN):
        raise ValueError(_TOO_DEEP)
    return text


def _numbers(value: Any) -> Iterator[str]:
    if type(value) is Number:
        yield value
    elif type(value) is list or type(value) is dict:
        for item in value.values() if type(value) is dict else value:
            yield from _numbers(item)


_BEGINNING = b'{"schema":{"type":"struct"'
"""How the converter begins a message of columns with its schema."""

_SCHEMA, _PAYLOAD = b'"schema"', b'"payload"'
_OTHER_NAME, _LETTERS = b'{"', [*b"sp\\"]
"""How a message begins whose first name stands at its beginning, and the letters that one of these names may begin with."""

PARTS = frozenset({"schema", "payload"})
"""The fields of such a message, and no others."""


def are_envelopes(messages: Sequence[bytes]) -> Mask:
    """The mask of messages that are a payload with its schema around it, however that is written."""
    import numpy as np
    import pyarrow.compute as pc

    from pyspark_upsert_kafka.core.bytes_column import column_of, offsets_of

    column = column_of(messages)
    offsets, data = offsets_of(column), column.buffers()[2]
    begins = offsets[:-1][np.diff(offsets) > len(_OTHER_NAME)]
    if data is None or not begins.size:
        return np.zeros(len(column), np.bool_)
    # The name with which a message begins is one of two. Its first letter mostly tells that it is another.
    brace, quote, letter = (np.frombuffer(data, np.uint8)[begins + at] for at in range(3))
    is_other = (brace == _OTHER_NAME[0]) & (quote == _OTHER_NAME[1]) & ~np.isin(letter, _LETTERS)
    if is_other.all() or _SCHEMA not in bytes(data[int(offsets[0]) : int(offsets[-1])]):
        return np.zeros(len(column), np.bool_)
    found: Mask = pc.starts_with(column, _BEGINNING).to_numpy(zero_copy_only=False)
    both = pc.and_(pc.match_substring(column, _SCHEMA), pc.match_substring(column, _PAYLOAD))
    may = both.to_numpy(zero_copy_only=False) & ~found
    for at in may.nonzero()[0].tolist():
        found[at] = is_envelope(messages[at])
    return found


def is_envelope(message: bytes) -> bool:
    """Whether a message is one, and not a row of columns with these names."""
    try:
        document = parse_object(message)
    except UnreadableError:
        return False
    return document.keys() == PARTS and _is_schema(document["schema"])


def _is_schema(value: Any) -> bool:
    return value is None or (type(value) is dict and type(value.get("type")) is str)


@dataclass(frozen=True)
class WithoutEnvelopes:
    """Decodes rows; of an envelope, in which none of their columns is, an error says what it is and what to set.

    Args:
        rows: Decodes rows.
        side: Whether they are keys or values.
    """

    rows: Decoder
    side: Literal["key", "value"]

    def decode(self, messages: Sequence[bytes]) -> Decoded:
        """All messages. Raises TooManyMessagesError."""
        import numpy as np

        from pyspark_upsert_kafka.core.bytes_column import some_of
        from pyspark_upsert_kafka.formats.decoding import Refusal, merge_by_position

        around = are_envelopes(messages)
        for at in np.flatnonzero(around).tolist():
            around[at] = is_envelope(messages[at])  # however it begins, it may be a row
        if not around.any():
            return self.rows.decode(messages)
        envelopes, others = np.flatnonzero(around), np.flatnonzero(~around)
        rows = self.rows.decode(some_of(messages, others))
        refusal = Refusal(_error(self.side), rows.rows.schema)
        bad = refusal.decode(some_of(messages, envelopes))
        return merge_by_position([(envelopes, bad), (others, rows)])


def _error(side: Literal["key", "value"]) -> str:
    also = (
        "Of Debezium's changes, 'value.format' = 'debezium-json' with 'value.debezium-json.schema-include' = 'true' reads it; of "
        "other connectors, columns schema and payload do, with the row in payload STRUCT<...>"
        if side == "value"
        else "Beside Debezium's values ('value.format' = 'debezium-json'), keys are read with their schema"
    )
    return (
        'it is the envelope of Kafka Connect\'s JSON converter, {"schema": ..., "payload": ...}, with the row in its payload. '
        f"Set '{side}.converter.schemas.enable' = 'false' in the connector, whose new messages are then the rows themselves. {also}"
    )
