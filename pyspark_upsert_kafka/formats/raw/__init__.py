"""The bytes themselves, as Flink's ``raw`` format reads and writes them: one column, no frame."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql.types import StructField

from pyspark_upsert_kafka.core.arrow import arrow_schema
from pyspark_upsert_kafka.core.errors import EncodeError, SchemaError
from pyspark_upsert_kafka.core.options.catalog import Option
from pyspark_upsert_kafka.core.options.parsers import one_of
from pyspark_upsert_kafka.formats.codec import CodecSpec, Decoder, Encoder, Format
from pyspark_upsert_kafka.formats.decoding import PathsDecoder, RowPath, UnreadableError
from pyspark_upsert_kafka.formats.raw.values import (
    TYPES,
    UTF_8,
    Charset,
    Messages,
    charset,
    column_reader,
    column_writer,
    value_reader,
)

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


def decoder(spec: CodecSpec) -> Decoder:
    """Compiles the decoder of one side: Flink's ``RawFormatDeserializationSchema``.

    Raises:
        SchemaError: There is not exactly one column, or it has a type that this format lacks.
    """
    column, (chosen, big_endian) = _only_column(spec), _options(spec)
    target = arrow_schema(spec.schema)
    value = value_reader(column.dataType, chosen, big_endian=big_endian)
    values = column_reader(column.dataType, chosen, big_endian=big_endian)

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
    is_key = spec.side == "key"
    write = column_writer(column.dataType, chosen, big_endian=big_endian, is_key=is_key)
    return RawEncoder(column.name, write)


@dataclass(frozen=True)
class RawEncoder:
    """The only column of some rows to their messages.

    Args:
        column: Its name.
        write: Its values, none of which is null, to messages; it raises ValueError.
    """

    column: str
    write: Messages

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
    if type(fields[0].dataType) not in TYPES:
        kind = fields[0].dataType.simpleString().upper()
        raise SchemaError(
            f"The 'raw' format doesn't supports '{kind}' as column type "
            f"(column '{fields[0].name}')."
        )
    return fields[0]


FORMAT = Format("raw", OPTIONS, decoder, encoder)
