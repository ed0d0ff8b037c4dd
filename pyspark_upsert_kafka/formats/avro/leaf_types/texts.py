"""bytes, string and fixed, and uuid in the latter two."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any
from uuid import UUID

import numpy as np
import pyarrow as pa
from pyspark.sql.types import BinaryType, StringType

from pyspark_upsert_kafka.formats.avro.cursors import Cursor, Cursors
from pyspark_upsert_kafka.formats.avro.errors import unreadable
from pyspark_upsert_kafka.formats.avro.leaf_types import (
    ColumnReader,
    Leaf,
    ReadField,
    ValueReader,
    Writer,
    WrittenField,
    from_columns,
)
from pyspark_upsert_kafka.formats.avro.leaf_types.numbers import longs
from pyspark_upsert_kafka.formats.avro.model import Fixed, LeafSchema
from pyspark_upsert_kafka.formats.binary.byte_parts import ByteParts
from pyspark_upsert_kafka.formats.binary.numbers import Numbers

_UUID = "^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$"
_HEX = np.frombuffer(bytes(range(256)).hex().encode(), "S2")
_DASHES = np.array([4, 6, 8, 10])


@dataclass(frozen=True)
class Bytes(Leaf):
    """Bytes with their length before them, or the bytes of a fixed ``size``."""

    path: str
    size: int | None
    arrow: pa.DataType | None = None

    @property
    def least_bytes(self) -> int:
        """Those of a fixed; else one, for the number."""
        return 1 if self.size is None else self.size

    def column_reader(self) -> ColumnReader:
        """Leaves messages that end within the bytes to the row path."""
        size, column_of = self.size, self.column_of
        if self.arrow is None:

            def skip(cursors: Cursors) -> None:
                _skip_bytes(cursors, size)

            return skip
        return lambda cursors: column_of(cursors, _skip_bytes(cursors, size))

    def column_of(self, cursors: Cursors, start: Numbers) -> pa.Array:
        """The bytes from there to where the cursors are now."""
        return cursors.buffer.slices(start, cursors.at)

    def value_reader(self) -> ValueReader:
        """Refuses a message that ends within the bytes, and bytes that are no value."""
        path, size, convert = self.path, self.size, self.value_of()
        what = "text" if isinstance(self, Text) else "value"

        def read(cursor: Cursor) -> Any:
            data = cursor.take(cursor.long(path) if size is None else size, path, what)
            try:
                return convert(data)
            except ValueError as why:
                raise unreadable(path, str(why)) from None

        return read

    def value_of(self) -> Callable[[bytes], Any]:
        """From the bytes to the value; raises ValueError."""
        return bytes


def _skip_bytes(cursors: Cursors, size: int | None) -> Numbers:
    """Where the bytes begin that end where the cursors are afterwards."""
    if size is not None:
        start = cursors.at.copy()
        cursors.move(size)
        return start
    lengths = cursors.longs()
    wrong = (lengths < 0) | (lengths > cursors.end - cursors.at)
    if wrong.any():
        cursors.leave(wrong)
        lengths[wrong] = 0
    start = cursors.at.copy()
    cursors.at += lengths
    return start


class Text(Bytes):
    """UTF-8."""

    def column_of(self, cursors: Cursors, start: Numbers) -> pa.Array:
        """The texts; messages with what is not UTF-8 are left to the row path."""
        column, wrong = cursors.buffer.texts(start, cursors.at)
        cursors.leave(wrong)
        return column

    def value_of(self) -> Callable[[bytes], str]:
        """The text, or where it is not UTF-8."""

        def text(data: bytes) -> str:
            try:
                return data.decode()
            except UnicodeDecodeError as error:
                raise ValueError(f"not UTF-8: {error.reason} at byte {error.start}") from None

        return text


class Uuid(Bytes):
    """Sixteen bytes; as text they are hexadecimal digits with dashes."""

    def column_of(self, cursors: Cursors, start: Numbers) -> pa.Array:
        """The texts."""
        data = cursors.buffer.data[start[:, np.newaxis] + np.arange(16)]
        pairs = [_HEX[data[:, at]] for at in range(16)]
        dash = np.full(start.size, b"-", "S1")
        for at in reversed(_DASHES):
            pairs.insert(at, dash)
        text = np.rec.fromarrays(pairs).tobytes()
        offsets = np.arange(start.size + 1, dtype=np.int32) * 36
        buffers = [None, pa.py_buffer(offsets), pa.py_buffer(text)]
        return pa.Array.from_buffers(pa.string(), start.size, buffers)

    def value_of(self) -> Callable[[bytes], str]:
        """The text."""
        return lambda data: str(UUID(bytes=data))


def size_of(leaf: LeafSchema) -> int | None:
    """How many bytes a fixed has; None = their number stands before them."""
    return leaf.size if isinstance(leaf, Fixed) else None


def read_bytes(field: ReadField) -> Leaf | None:
    """Into a BINARY."""
    if not pa.types.is_binary(field.column):
        return None
    return Bytes(field.path, size_of(field.written), field.column)


def read_text(field: ReadField) -> Leaf | None:
    """Bytes or a string into a STRING."""
    if not pa.types.is_string(field.column) or isinstance(field.written, Fixed):
        return None
    return Text(field.path, None, field.column)


def read_uuid(field: ReadField) -> Leaf | None:
    """A uuid in a fixed into a STRING; in a string it is the text itself."""
    if not pa.types.is_string(field.column) or not isinstance(field.written, Fixed):
        return None
    return Uuid(field.path, field.written.size, field.column)


def _lengths(data: pa.Array) -> Numbers:
    import pyarrow.compute as pc

    return np.asarray(pc.binary_length(data))


def byte_strings(array: pa.Array) -> ByteParts:
    """``string`` and ``bytes``."""
    data = array.cast(pa.large_binary())
    return [longs(_lengths(data)), data]


def _fixed_bytes(size: int, array: pa.Array) -> ByteParts:
    for seen in np.unique(_lengths(array)):
        if seen != size:
            raise ValueError(
                f"a value of {seen} bytes; the type in the Avro schema is fixed({size})"
            )
    return [array.cast(pa.large_binary())]


def _uuids(array: pa.Array) -> ByteParts:
    import polars as pl

    texts = pl.Series(array)
    wrong = texts.filter(~texts.str.contains(_UUID))
    if len(wrong):
        raise ValueError(f"{wrong[0]!r} is no UUID")
    data = texts.str.replace_all("-", "", literal=True).str.decode("hex")
    return [data.to_arrow().cast(pa.large_binary())]


write_bytes = from_columns({BinaryType: byte_strings})
write_text = from_columns({StringType: byte_strings})


def write_fixed(field: WrittenField) -> Writer | None:
    """A BINARY of exactly this length."""
    size = size_of(field.written)
    if size is None or not isinstance(field.column, BinaryType):
        return None
    return partial(_fixed_bytes, size)


def write_uuid(field: WrittenField) -> Writer | None:
    """A STRING: in a fixed as its sixteen bytes, in a string as it is."""
    if not isinstance(field.column, StringType):
        return None
    return _uuids if isinstance(field.written, Fixed) else byte_strings
