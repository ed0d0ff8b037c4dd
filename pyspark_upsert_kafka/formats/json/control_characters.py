"""Control characters in the strings of messages, which the fast parsers refuse, as escapes, which they read.

Messages that are JSON mean the same then. Others stay what they are: what stands outside of strings is not touched, or only
where a quote is missing, and such a message is refused in either form.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from pyspark_upsert_kafka.core.bytes_column import BytesColumn, column_of, offsets_of

_FIRST_PRINTABLE, _QUOTE, _BACKSLASH = 0x20, ord('"'), ord("\\")
_ESCAPES = [rf"\u{code:04x}".encode() for code in range(_FIRST_PRINTABLE)]
_ADDED = len(_ESCAPES[0]) - 1
_MOST = 4
"""Where more than one byte of so many is to be escaped, the messages are left as they are: each takes six times its memory."""


def with_escapes(messages: Sequence[bytes]) -> BytesColumn | None:
    r"""The messages with escapes; None = there is nothing to escape, or very much.

    >>> with_escapes([b'{"a":"b\tc, d"}', b'{\t}'])
    [b'{"a":"b\\u0009c, d"}', b'{\t}']
    """
    column = column_of(messages)
    offsets, data = offsets_of(column), column.buffers()[2]
    if data is None or not len(column):
        return None
    text = memoryview(data)[offsets[0] : offsets[-1]].tobytes()
    low = np.frombuffer(text, np.uint8) < _FIRST_PRINTABLE
    if not low.any():
        return None
    bare = text.replace(b"\\\\", b"  ").replace(b'\\"', b"  ") if b"\\" in text else text
    characters = np.frombuffer(bare, np.uint8)
    inside = np.logical_xor.accumulate(characters == _QUOTE)
    places = np.flatnonzero(low & inside)
    # Behind a backslash it makes an escape that there is not, and with its own escape it would make another one.
    places = places[characters[places - 1] != _BACKSLASH]
    if not 0 < len(places) <= len(text) // _MOST:
        return None
    parts, at = [], 0
    for place in places.tolist():
        parts += [text[at:place], _ESCAPES[text[place]]]
        at = place + 1
    moved = offsets - offsets[0]
    moved = moved + _ADDED * np.searchsorted(places, moved)
    buffers = [None, pa.py_buffer(moved), pa.py_buffer(b"".join([*parts, text[at:]]))]
    return BytesColumn(pa.Array.from_buffers(pa.large_binary(), len(column), buffers))
