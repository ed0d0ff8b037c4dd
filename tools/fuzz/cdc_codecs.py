"""Decoders of CDC formats as the laws want them: each message is one row, which holds the rows that it changed.

The columns of such a table are what `columns_of_changes` makes of those of the rows. Beside the options of the format there are
``key`` (the columns of the primary key, as a JSON array; without it rows are shown before and after each change), ``reads-key`` and
``metadata`` (a JSON array of keys).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from pyspark.sql.types import (
    ArrayType,
    ByteType,
    StringType,
    StructField,
    StructType,
)

from pyspark_upsert_kafka.core.table.arrow import arrow_schema
from pyspark_upsert_kafka.core.table.cdc_formats import CDC_FORMATS
from pyspark_upsert_kafka.core.table.metadata import METADATA_OF_FORMATS
from pyspark_upsert_kafka.formats.batches import rows_at
from pyspark_upsert_kafka.formats.change_format import ChangeDecoder, ChangeSpec
from pyspark_upsert_kafka.formats.codec import CodecSpec, Decoded, Format
from pyspark_upsert_kafka.formats.exact_types import with_type

CHANGES, PASSED_OVER = "changes", "passed_over"
KIND, ROW, METADATA = "kind", "row", "metadata"


def columns_of_changes(rows: StructType, metadata: Sequence[str] = ()) -> StructType:
    """The columns of a table that shows the rows of each message.

    Args:
        rows: The columns of the rows.
        metadata: The keys of metadata that are shown with each row.
    """
    nullable = StructType([StructField(field.name, field.dataType) for field in rows])
    shown = StructType([StructField(key, METADATA_OF_FORMATS[key].types[0]) for key in metadata])
    fields = [StructField(KIND, ByteType(), False), StructField(ROW, nullable, False)]
    if metadata:
        fields.append(StructField(METADATA, shown, False))
    changes = ArrayType(StructType(fields), False)
    return StructType(
        [StructField(CHANGES, changes, False), StructField(PASSED_OVER, StringType())]
    )


@dataclass(frozen=True)
class MessagesAsRows:
    """Decodes messages, each as one row.

    Args:
        decoder: The decoder of the format.
        target: The columns.
    """

    decoder: ChangeDecoder
    target: pa.Schema

    def decode(self, messages: Sequence[bytes]) -> Decoded:
        """The rows of some messages."""
        found = self.decoder.decode(messages)
        bad = np.isin(np.arange(len(messages)), [*found.errors, *found.skipped])
        counts = np.bincount(found.places, minlength=len(messages))
        if counts[bad].any():
            raise ValueError("a message that cannot be decoded has rows")
        ends = np.concatenate([[0], counts.cumsum()])
        passed_over = pa.array(map(found.passed_over.get, range(len(messages))), pa.string())
        parts = [
            pa.array(found.kinds, pa.int8()),
            _struct(found.rows.schema.names, found.rows.columns),
        ]
        if found.metadata:
            parts.append(_struct([*found.metadata], [*found.metadata.values()]))
        changes = pa.StructArray.from_arrays(parts, [KIND, ROW, METADATA][: len(parts)])
        lists = pa.ListArray.from_arrays(pa.array(ends, pa.int32()), changes)
        columns = [with_type(lists, self.target.field(0).type), passed_over]
        rows = pa.RecordBatch.from_arrays(columns, schema=self.target)
        rows = rows_at(rows, pa.array(np.arange(len(messages)), mask=bad))
        return Decoded(rows, found.errors, found.skipped)


def _struct(names: Sequence[str], columns: Sequence[pa.Array]) -> pa.StructArray:
    return pa.StructArray.from_arrays(columns, names)


def is_cdc(name: str) -> bool:
    """Whether a format is a CDC format."""
    return name in CDC_FORMATS


def change_decoder(compiled: Format, spec: CodecSpec, given: dict[str, str]) -> MessagesAsRows:
    """Compiles the decoder of a CDC format.

    Args:
        compiled: The format.
        spec: The columns that show the changes, and the format's options; what is required is NOT NULL.
        given: The options of the table.
    """
    rows = spec.schema[CHANGES].dataType.elementType[ROW].dataType
    columns = StructType(
        [StructField(each.name, each.dataType, each.name not in spec.required) for each in rows]
    )
    key = json.loads(given.get("key", "null"))
    changes: Callable[[ChangeSpec], ChangeDecoder] | None = compiled.changes
    assert changes is not None
    value = CodecSpec(columns, "value", spec.options)
    decoder = changes(
        ChangeSpec(
            value,
            key is not None,
            tuple(key or ()),
            given.get("reads-key") == "true",
            tuple(json.loads(given.get("metadata", "[]"))),
        )
    )
    return MessagesAsRows(decoder, arrow_schema(spec.schema))
