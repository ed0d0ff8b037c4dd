"""A whole batch of messages parsed as one text, line by line, by ``pyarrow.json``.

Of the vectorised parsers it is the one that refuses what it would get wrong: duplicate names,
overflow, text for numbers and numbers for text, lone surrogates. What it does let through is
checked before or after: bad UTF-8, NaN and Infinity, floats that became infinite, decimals whose
scale its arithmetic cannot hold.

Messages cannot run into each other. They are joined with a line break, and each starts with ``{``
and ends with ``}``. Take the parser at one of those line breaks. It is not inside a string: a
raw line break there is refused. It is not inside an object or array: between ``}`` and ``{`` there
must stand a comma or a closing bracket, and there is none. So it is between two documents, and
every message consists of whole documents, one at least. The parser makes one row of each document,
so if there are as many rows as messages, each message is exactly one document, and that an object,
since it starts with ``{``. The same holds when a message has line breaks of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json

from pyspark_upsert_kafka.formats.conversion import one_chunk
from pyspark_upsert_kafka.formats.json.document import DEEPEST, too_deep

# The parser keeps 32-bit positions; a batch beyond this is cut into pieces first.
_LARGEST_TEXT = 1 << 30
# Literals that rapidjson takes for numbers, wherever they could be one and not part of a text.
_NOT_FINITE = r"(?:NaN|Inf(?:inity)?)[ \t\r\n]*[,}\]]"
_LETTERS_OF_NOT_FINITE = (b"N", b"I")
# Decimals that the parser would scale by a power of ten beyond its table, which gives any value:
# with a large negative exponent, with a very long fraction, or either of them hidden in escapes.
_NOT_SCALABLE = r"[0-9.][eE]-[0-9]{2,}\"?[ \t\r\n]*[,}\]]|[0-9]{39}|\\u00(?:3[0-9]|[46]5|2[dD])"

Parser = Callable[[Sequence[bytes]], "list[pa.Array]"]
"""Messages to their columns; raises ValueError when it is not sure to be right about all of them."""


def line_parser(schema: pa.Schema) -> Parser:
    """Compiles a parser of those fields; other fields of a message are ignored."""
    has_decimals = _has_decimals(schema)
    parse_options = pyarrow.json.ParseOptions(
        explicit_schema=schema, unexpected_field_behavior="ignore"
    )

    def parse(messages: Sequence[bytes]) -> list[pa.Array]:
        text = _joined(messages, has_decimals=has_decimals)
        read_options = pyarrow.json.ReadOptions(use_threads=False, block_size=len(text) + 1)
        table = pyarrow.json.read_json(pa.BufferReader(text), read_options, parse_options)
        if table.num_rows != len(messages):
            raise ValueError("a message is not exactly one document")
        return [one_chunk(column) for column in table.columns]

    return parse


def _has_decimals(fields: Iterable[pa.Field]) -> bool:
    return any(
        pa.types.is_decimal(field.type)
        or _has_decimals(field.type.field(i) for i in range(field.type.num_fields))
        for field in fields
    )


def _joined(messages: Sequence[bytes], *, has_decimals: bool) -> bytes:
    """The messages as lines, once it is sure that the parser reads each as it should be read."""
    values = pa.array(messages, pa.binary())
    if isinstance(values, pa.ChunkedArray) or values.nbytes > _LARGEST_TEXT:
        raise ValueError("too much for one text")
    plain = pc.and_(pc.starts_with(values, "{"), pc.ends_with(values, "}"))
    if not pc.all(plain).as_py():
        raise ValueError("a message is not plain")
    texts = values.cast(pa.string())  # refuses what is not UTF-8
    joined = b"\n".join([*messages, b""])
    # A byte is found in the whole text at a fiftieth of what the pattern takes.
    if has_decimals or any(letter in joined for letter in _LETTERS_OF_NOT_FINITE):
        import polars as pl  # most tasks need none of it, and it takes long to import

        forbidden = f"{_NOT_FINITE}|{_NOT_SCALABLE}" if has_decimals else _NOT_FINITE
        if pl.Series(texts).str.contains(forbidden).any():
            raise ValueError("a number is one that the parser gets wrong")
    # What nests too deep has more than DEEPEST opening brackets and as many closing ones.
    longest = pc.max(pc.binary_length(values)).as_py()
    if longest > 2 * DEEPEST and any(too_deep(m) for m in messages if len(m) > 2 * DEEPEST):
        raise ValueError("a message is nested too deep")
    return joined
