"""Short ways to compile ``.proto`` texts and the protobuf codecs, and to see what comes out."""

from __future__ import annotations

import atexit
from collections.abc import Sequence
from functools import cache
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import grpc_tools
import numpy as np
import pyarrow as pa
from google.protobuf.descriptor_pb2 import FileDescriptorSet
from grpc_tools import protoc
from pyspark.sql.types import DataType, StructField, StructType

from pyspark_upsert_kafka.core.arrow import arrow_schema
from pyspark_upsert_kafka.formats.batches import batch_of
from pyspark_upsert_kafka.formats.codec import CodecSpec, Decoded, Decoder
from pyspark_upsert_kafka.formats.decoding import RowPath
from pyspark_upsert_kafka.formats.protobuf import FORMAT
from pyspark_upsert_kafka.formats.protobuf.descriptors import message_class, message_descriptor
from pyspark_upsert_kafka.formats.protobuf.field_types import columns_of
from pyspark_upsert_kafka.formats.protobuf.row_path import row_reader
from pyspark_upsert_kafka.formats.protobuf.vectorised_path import compile_vectorised_path
from tests.unit.formats.codec_specs import codec_spec
from tests.unit.formats.listed import Listed, good_rows

_FOLDER = TemporaryDirectory()
atexit.register(_FOLDER.cleanup)
_NUMBERS = count()

WELL_KNOWN = Path(grpc_tools.__file__).parent / "_proto"


@cache
def descriptor_file(text: str, *options: str) -> Path:
    """What protoc makes of a ``.proto`` text."""
    folder = Path(_FOLDER.name, str(next(_NUMBERS)))
    folder.mkdir()
    target = folder / "test.desc"
    (folder / "test.proto").write_text(text)
    arguments = [f"-I{folder}", f"-I{WELL_KNOWN}", f"--descriptor_set_out={target}"]
    assert protoc.main(["protoc", *arguments, *options, "test.proto"]) == 0
    return target


def descriptor_set(text: str) -> FileDescriptorSet:
    """The files that protoc makes of a ``.proto`` text, those that it imports first."""
    return FileDescriptorSet.FromString(descriptor_file(text, "--include_imports").read_bytes())


class Proto:
    """A message of a ``.proto`` text, its codecs and its class in the runtime."""

    def __init__(self, text: str, name: str) -> None:
        self._given = {
            "descriptor-file": str(descriptor_file(text, "--include_imports")),
            "message-name": name,
        }
        self.descriptor = message_descriptor(self.spec(StructType()))
        self.message = message_class(self.descriptor)

    def spec(self, schema: StructType, **options: Any) -> CodecSpec:
        """A spec with options by their Python names: ``read_default_values=True``."""
        more = {name.replace("_", "-"): value for name, value in options.items()}
        return codec_spec(FORMAT, schema, "value", self._given | more)

    def decoder(self, schema: StructType, **options: Any) -> Decoder:
        """The decoder of the format, as a query has it."""
        return FORMAT.decoder(self.spec(schema, **options))

    def encoder(self, schema: StructType, **options: Any) -> Listed:
        """The encoder of the format, as a query has it."""
        return Listed(FORMAT.encoder(self.spec(schema, **options)))

    def exactly(self, schema: StructType, **options: Any) -> Decoder:
        """The row path alone."""
        given = self.spec(schema, **options).options
        columns = columns_of(self.descriptor, schema, defaults=given["read-default-values"])
        row = row_reader(self.descriptor, columns)
        return RowPath(row, arrow_schema(schema), skip_bad=given["ignore-parse-errors"])

    def vectorised(
        self, schema: StructType, messages: Sequence[bytes], *, defaults: bool = False
    ) -> tuple[pa.RecordBatch, list[int]]:
        """The vectorised path alone: its rows, and the messages that it leaves to the row path."""
        columns = columns_of(self.descriptor, schema, defaults=defaults)
        target = arrow_schema(schema)
        read = compile_vectorised_path(self.descriptor, columns, target.types)(messages)
        assert read is not None
        arrays, fallback = read
        return batch_of(arrays, target, len(messages)), np.flatnonzero(fallback).tolist()


def columns(**kinds: DataType) -> StructType:
    """A schema of nullable columns."""
    return StructType([StructField(name, kind) for name, kind in kinds.items()])


def required(**kinds: DataType) -> StructType:
    """A schema of NOT NULL columns."""
    return StructType([StructField(name, kind, nullable=False) for name, kind in kinds.items()])


def batch(schema: StructType, *rows: tuple[Any, ...]) -> pa.RecordBatch:
    """Rows as Spark hands them over."""
    target = arrow_schema(schema)
    values = list(zip(*rows, strict=True)) or [()] * len(target)
    arrays = [pa.array(v, field.type) for v, field in zip(values, target, strict=True)]
    return batch_of(arrays, target, len(rows))


def rows(decoded: Decoded) -> list[tuple[Any, ...]]:
    """The rows of a result, all of whose messages could be read."""
    assert not decoded.errors
    return [tuple(row.values()) for row in good_rows(decoded).to_pylist()]


def shown(rows: pa.RecordBatch) -> list[str]:
    """Each row in a form that compares well: NaN equals itself, -0.0 differs from 0.0."""
    return [repr(row) for row in rows.to_pylist()] or [""] * rows.num_rows


def seen(decoded: Decoded) -> tuple[Any, ...]:
    """All of a result in a form that compares well."""
    return shown(decoded.rows), decoded.rows.num_rows, dict(decoded.errors), decoded.skipped
