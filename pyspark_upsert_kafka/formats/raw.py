"""The bytes themselves, as Flink's ``raw`` format reads and writes them: one column, no frame."""

from __future__ import annotations

import codecs
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
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
)

from pyspark_upsert_kafka.core.arrow import arrow_schema
from pyspark_upsert_kafka.core.bytes_column import column_of
from pyspark_upsert_kafka.core.errors import EncodeError, SchemaError
from pyspark_upsert_kafka.core.options.catalog import Option
from pyspark_upsert_kafka.core.options.parsers import one_of
from pyspark_upsert_kafka.formats.codec import CodecSpec, Decoder, Encoder, Format
from pyspark_upsert_kafka.formats.decoding import PathsDecoder, RowPath, UnreadableError

_MARKS = {
    "utf-16": (codecs.BOM_UTF16_BE, codecs.BOM_UTF16_LE),
    "utf-32": (codecs.BOM_UTF32_BE, codecs.BOM_UTF32_LE),
}

# Codecs of text that are no charsets: IDNA makes one text of two that differ in case only.
_PYTHONS_OWN = frozenset({"idna", "punycode", "raw-unicode-escape", "unicode-escape"})


@dataclass(frozen=True)
class Charset:
    """How text becomes bytes.

    Args:
        name: Name of the Python codec.
        write: Name of the Python codec that writes, when it is another.
        mark: What stands before a text that is written.
    """

    name: str
    write: str = ""
    mark: bytes = b""

    def bytes_of(self, text: str) -> bytes:
        """The bytes of a text. Raises ValueError for a character that the charset lacks.

        Java would write a question mark. A text is refused too that would be read as another one, or as none: some
        charsets have the same bytes for two characters, or take a mark away that nobody wrote.
        """
        data = self.mark + text.encode(self.write or self.name)
        if self._read(data) != text:
            raise ValueError(f"{self.name!r} has no bytes that are read as {text!r} again")
        return data

    def _read(self, data: bytes) -> str | None:
        try:
            return self.text_of(data)
        except ValueError:
            return None

    def text_of(self, data: bytes) -> str:
        """The text of bytes. Raises ValueError when they are none; Java would make some up."""
        marks = _MARKS.get(self.name)
        text = data.decode(self.name if marks is None or data.startswith(marks) else self.write)
        text.encode()  # Python's UTF-7 lets halves of surrogate pairs pass, which no column can hold
        return text


UTF_8 = Charset("utf-8")

# Without a byte order mark Java takes big-endian, Python what the machine has. Java writes a mark for
# the first and none for the second.
_JAVAS_OWN = {
    "utf-16": Charset("utf-16", "utf-16-be", codecs.BOM_UTF16_BE),
    "utf-32": Charset("utf-32", "utf-32-be"),
}


def charset(name: str) -> Charset:
    """The charset of that name. Raises ValueError."""
    try:
        codec = codecs.lookup(name.strip()).name
        "".encode(codec)  # LookupError for a codec that is not one of text, such as zlib
    except LookupError:
        codec = ""
    if not codec or codec in _PYTHONS_OWN:
        raise ValueError("expected the name of a charset")
    return _JAVAS_OWN.get(codec, Charset(codec))


OPTIONS = (
    Option(
        "charset",
        charset,
        UTF_8,
        "The character set of a STRING.",
        shown_default="UTF-8",
        complaint="Unsupported '{name}' name: {seen}.",
    ),
    Option(
        "endianness",
        one_of("big-endian", "little-endian"),
        "big-endian",
        "The byte order of numbers.",
        complaint=(
            "Unsupported endianness name: {seen}. Valid values of '{name}' option are 'big-endian' "
            "and 'little-endian'."
        ),
    ),
)


_Value = Callable[[bytes], Any]
"""The row path: a message to its value; raises ValueError."""

_Values = Callable[[Sequence[bytes]], pa.Array]
"""The vectorised path: messages to a column; raises ValueError when one of them is bad."""

_Messages = Callable[[pa.Array], pa.LargeBinaryArray]
"""A column without nulls to its messages; raises ValueError."""


@dataclass(frozen=True)
class _FixedSize:
    """A type whose values all have one size.

    Args:
        sql: Its name in SQL.
        code: Its NumPy type without the byte order.
        kind: Its Arrow type.
    """

    sql: str
    code: str
    kind: pa.DataType

    def order(self, *, big_endian: bool) -> np.dtype[Any]:
        """The NumPy type with the byte order."""
        return np.dtype((">" if big_endian else "<") + self.code)


_FIXED: dict[type[DataType], _FixedSize] = {
    BooleanType: _FixedSize("BOOLEAN", "u1", pa.bool_()),
    ByteType: _FixedSize("TINYINT", "i1", pa.int8()),
    ShortType: _FixedSize("SMALLINT", "i2", pa.int16()),
    IntegerType: _FixedSize("INT", "i4", pa.int32()),
    LongType: _FixedSize("BIGINT", "i8", pa.int64()),
    FloatType: _FixedSize("FLOAT", "f4", pa.float32()),
    DoubleType: _FixedSize("DOUBLE", "f8", pa.float64()),
}

_TYPES = {*_FIXED, StringType, BinaryType}


def decoder(spec: CodecSpec) -> Decoder:
    """Compiles the decoder of one side: Flink's ``RawFormatDeserializationSchema``.

    Raises:
        SchemaError: There is not exactly one column, or it has a type that this format lacks.
    """
    column, (chosen, big_endian) = _only_column(spec), _options(spec)
    target = arrow_schema(spec.schema)
    value = _value_reader(column.dataType, chosen, big_endian=big_endian)
    values = _column_reader(column.dataType, chosen, big_endian=big_endian)

    def row(message: bytes) -> tuple[Any]:
        try:
            return (value(message),)
        except ValueError as why:
            raise UnreadableError(f"field '{column.name}': {why}") from None

    def vectorised(messages: Sequence[bytes]) -> tuple[pa.RecordBatch, np.ndarray] | None:
        try:
            rows = pa.RecordBatch.from_arrays([values(messages)], schema=target)
        except ValueError:  # pyarrow's ArrowInvalid is one
            return None
        return rows, np.zeros(len(messages), np.bool_)

    return PathsDecoder(vectorised, RowPath(row, target))


def encoder(spec: CodecSpec) -> Encoder:
    """Compiles the encoder of one side: Flink's ``RawFormatSerializationSchema``.

    Flink writes NULL as a message without a value, which would delete the key.

    Raises:
        SchemaError: There is not exactly one column, or it has a type that this format lacks.
    """
    column, (chosen, big_endian) = _only_column(spec), _options(spec)
    write = _column_writer(column.dataType, chosen, big_endian=big_endian)
    return _RawEncoder(column.name, write)


@dataclass(frozen=True)
class _RawEncoder:
    """The only column of some rows to their messages.

    Args:
        column: Its name.
        write: Its values, none of which is null, to messages; it raises ValueError.
    """

    column: str
    write: _Messages

    def encode(self, rows: pa.RecordBatch) -> pa.LargeBinaryArray:
        """One message for each row. Raises EncodeError."""
        values = rows.column(0)
        if values.null_count:
            raise EncodeError(
                self.column, "NULL; the 'raw' format has no bytes for it, and no bytes are a delete"
            )
        try:
            return self.write(values)
        except ValueError as why:
            raise EncodeError(self.column, str(why)) from None


def _options(spec: CodecSpec) -> tuple[Charset, bool]:
    value = spec.options
    return value["charset"], value["endianness"] == "big-endian"


def _only_column(spec: CodecSpec) -> StructField:
    """The wording is that of Flink's ``RawFormatFactory``."""
    fields = spec.schema.fields
    if len(fields) != 1:
        listed = ", ".join(f"`{f.name}` {f.dataType.simpleString().upper()}" for f in fields)
        hint = " Set 'value.fields-include' to 'EXCEPT_KEY' to leave the key out of the value."
        raise SchemaError(
            "The 'raw' format only supports single physical column. However the defined schema "
            f"contains multiple physical columns: [{listed}]."
            + (hint if spec.side == "value" and fields else "")
        )
    if type(fields[0].dataType) not in _TYPES:
        kind = fields[0].dataType.simpleString().upper()
        raise SchemaError(
            f"The 'raw' format doesn't supports '{kind}' as column type "
            f"(column '{fields[0].name}')."
        )
    return fields[0]


def _value_reader(kind: DataType, charset: Charset, *, big_endian: bool) -> _Value:
    """The row path to read a type."""
    if type(kind) in _FIXED:
        fixed = _FIXED[type(kind)]
        return partial(_number, fixed, fixed.order(big_endian=big_endian))
    return bytes if isinstance(kind, BinaryType) else charset.text_of


def _column_reader(kind: DataType, charset: Charset, *, big_endian: bool) -> _Values:
    """The vectorised path to read a type."""
    if type(kind) in _FIXED:
        fixed = _FIXED[type(kind)]
        return partial(_numbers, fixed, fixed.order(big_endian=big_endian))
    if isinstance(kind, BinaryType):
        return lambda messages: column_of(messages).cast(pa.binary())
    if charset == UTF_8:
        return lambda messages: column_of(messages).cast(pa.string())
    return lambda messages: pa.array(map(charset.text_of, messages), pa.string())


def _column_writer(kind: DataType, charset: Charset, *, big_endian: bool) -> _Messages:
    """The way to write a type."""
    if type(kind) in _FIXED:
        order = _FIXED[type(kind)].order(big_endian=big_endian)
        return partial(_fixed_bytes, order)
    if isinstance(kind, BinaryType) or charset == UTF_8:
        return _bytes
    return lambda column: pa.array(map(charset.bytes_of, column.to_pylist()), pa.large_binary())


def _number(fixed: _FixedSize, order: np.dtype[Any], message: bytes) -> Any:
    if len(message) != order.itemsize:
        raise ValueError(
            f"Size of data received for deserializing {fixed.sql} type is not {order.itemsize}."
        )
    return _numbers(fixed, order, [message])[0].as_py()


def _numbers(fixed: _FixedSize, order: np.dtype[Any], messages: Sequence[bytes]) -> pa.Array:
    """_Messages cannot run into each other: Arrow takes no other size than that of the type."""
    sized = column_of(messages).cast(pa.binary(order.itemsize))
    values = np.frombuffer(sized.buffers()[1], order, len(sized))
    if pa.types.is_boolean(fixed.kind):
        return pa.array(values != 0)
    return pa.array(values.astype(order.newbyteorder("=")), fixed.kind)


def _bytes(column: pa.Array) -> pa.LargeBinaryArray:
    return column.cast(pa.large_binary())


def _fixed_bytes(order: np.dtype[Any], column: pa.Array) -> pa.LargeBinaryArray:
    values = column.to_numpy(zero_copy_only=False).astype(order)
    kind = pa.binary(order.itemsize)
    sized = pa.Array.from_buffers(kind, len(values), [None, pa.py_buffer(values)])
    return sized.cast(pa.large_binary())


FORMAT = Format("raw", OPTIONS, decoder, encoder)
