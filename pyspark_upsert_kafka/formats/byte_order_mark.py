"""The byte order mark that some programs write before a text in UTF-8: it is no part of the text, as for Flink's parsers."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark_upsert_kafka.core.bytes_column import BytesColumn, column_of

BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def without_marks(messages: Sequence[bytes]) -> BytesColumn:
    r"""The messages, each without the mark that it begins with.

    >>> list(without_marks([b"\xef\xbb\xbfa", b"b"]))
    [b'a', b'b']
    """
    import pyarrow.compute as pc

    column = column_of(messages)
    marked = pc.starts_with(column, BYTE_ORDER_MARK)
    rest = pc.binary_slice(column, len(BYTE_ORDER_MARK), 1 << 40)
    return BytesColumn(pc.if_else(marked, rest, column))
