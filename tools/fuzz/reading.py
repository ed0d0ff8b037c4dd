"""Runs codecs. If a codec raises an error that it must not raise, a law is broken."""

from __future__ import annotations

import re
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress

import numpy as np
import pyarrow as pa

from pyspark_upsert_kafka.core.errors import EncodeError
from pyspark_upsert_kafka.formats.codec import Decoded, Encoder, TooManyMessagesError
from pyspark_upsert_kafka.formats.decoding import merge_by_position

Decode = Callable[[Sequence[bytes]], Decoded]


class BrokenLawError(Exception):
    """A law does not hold.

    Args:
        law: Its name.
        text: What was seen.
        places: Messages that are probably at fault.
    """

    def __init__(self, law: str, text: str, places: Sequence[int] = ()) -> None:
        super().__init__(law, text, places)
        self.law, self.text, self.places = law, text, [*places]

    def __str__(self) -> str:
        return f"{self.law}: {self.text}"

    def kind(self) -> str:
        """What finds of one cause have in common: no values, and no numbers."""
        return f"{self.law}: {re.sub(r'[0-9]+', '0', self.text.splitlines()[-1])[:90]}"


def decoded(decode: Decode, messages: Sequence[bytes], sizes: Sequence[int]) -> Decoded:
    """What messages give, read in batches of these sizes. Raises BrokenLawError for an exception."""
    parts, start = [], 0
    for size in sizes:
        found = _decoded(decode, messages, start, size)
        parts += [(np.arange(start + at, start + at + n), each) for at, n, each in found]
        start += size
    return parts[0][1] if len(parts) == 1 else merge_by_position(parts)


def _decoded(
    decode: Decode, messages: Sequence[bytes], start: int, size: int
) -> Iterator[tuple[int, int, Decoded]]:
    some = messages[start : start + size]
    try:
        yield 0, size, decode(some)
    except TooManyMessagesError as why:
        if not 0 < why.most < size:
            raise BrokenLawError("a smaller batch can be decoded", str(why)) from None
        for at in range(0, size, why.most):
            for inner, count, each in _decoded(
                decode, messages, start + at, min(why.most, size - at)
            ):
                yield at + inner, count, each
    except Exception:  # noqa: BLE001 - whatever it is, it is a find
        raise BrokenLawError(
            "no message makes decode raise", trace(), range(start, start + size)
        ) from None


def trace() -> str:
    """What is just being raised, and where."""
    return traceback.format_exc(limit=-8)


def encoded(encoder: Encoder, rows: pa.RecordBatch) -> list[bytes]:
    """The messages of rows. Raises EncodeError, and BrokenLawError for any other exception."""
    try:
        column = encoder.encode(rows)
    except EncodeError:
        raise
    except Exception:  # noqa: BLE001
        raise BrokenLawError("encode raises only EncodeError", trace()) from None
    if column.type != pa.large_binary() or len(column) != rows.num_rows or column.null_count:
        raise BrokenLawError("each row is one message", f"{len(column)} messages of {column.type}")
    return column.to_pylist()


def writable(encoder: Encoder, rows: pa.RecordBatch) -> tuple[pa.RecordBatch, list[bytes]]:
    """Rows that can be written, and their messages.

    Where some cannot, parts that can are looked for, smaller ones where there is none; these are repeated.
    """
    try:
        return rows, encoded(encoder, rows)
    except EncodeError:
        pass
    for size in (max(1, rows.num_rows // 30), 1):
        found, texts = _parts(encoder, rows, range(0, min(rows.num_rows, 40 * size), size), size)
        if texts:
            places = np.resize(np.arange(len(texts)), max(rows.num_rows, len(texts)))
            return found.take(pa.array(places)), [texts[at] for at in places]
    return rows.slice(0, 0), []


def _parts(
    encoder: Encoder, rows: pa.RecordBatch, starts: Sequence[int], size: int
) -> tuple[pa.RecordBatch, list[bytes]]:
    kept, texts = [rows.slice(0, 0)], []
    for at in starts:
        with suppress(EncodeError):
            texts += encoded(encoder, rows.slice(at, size))
            kept.append(rows.slice(at, size))
    return pa.concat_batches(kept), texts
