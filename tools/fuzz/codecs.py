"""The codecs of a table, compiled as in a query.

Two differences: the registry is a dictionary, and of CDC formats each message is one row, which holds the rows that it changed.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql.types import (
    ArrayType,
    ByteType,
    StringType,
    StructField,
    StructType,
)

from pyspark_upsert_kafka.connector.format_catalog import MODULES
from pyspark_upsert_kafka.core.arrow import arrow_schema
from pyspark_upsert_kafka.core.errors import SchemaError
from pyspark_upsert_kafka.core.metadata import CDC_FORMATS, METADATA_OF_FORMATS
from pyspark_upsert_kafka.formats.batches import rows_at, with_type
from pyspark_upsert_kafka.formats.cdc.envelope_format import refuse
from pyspark_upsert_kafka.formats.codec import (
    ChangeDecoder,
    ChangeSpec,
    CodecSpec,
    Decoded,
    Decoder,
    Encoder,
    Format,
)
from pyspark_upsert_kafka.formats.registry_format import RegisteredSchema, RegistryFormat
from pyspark_upsert_kafka.registry.framing import decoder_by_id, id_bytes
from tools.fuzz.case import Table

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
class _MessagesAsRows:
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


def change_decoder(compiled: Format, spec: CodecSpec, given: dict[str, str]) -> _MessagesAsRows:
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
    return _MessagesAsRows(decoder, arrow_schema(spec.schema))


def decoder_of(table: Table) -> Decoder:
    """The decoder. Raises SchemaError or OptionError."""
    with tempfile.TemporaryDirectory() as folder:
        declared, spec = _declared(table, Path(folder))
        if is_cdc(table.format):
            format_ = declared if isinstance(declared, Format) else _completed(table, declared)
            return change_decoder(format_, spec, table.options)
        return (
            declared.decoder(spec)
            if isinstance(declared, Format)
            else _by_id(table, declared, spec)
        )


def encoder_of(table: Table) -> Encoder:
    """The encoder. Raises SchemaError or OptionError."""
    with tempfile.TemporaryDirectory() as folder:
        declared, spec = _declared(table, Path(folder))
        if is_cdc(table.format):
            return refuse(spec)
        if isinstance(declared, Format):
            return declared.encoder(spec)
        writing = declared.encoder(spec, declared.given(spec.side, table.options.get("schema")))
        return writing.with_prefix(id_bytes(0) + writing.after_id)


def _declared(table: Table, folder: Path) -> tuple[Format | RegistryFormat, CodecSpec]:
    module = import_module(f"pyspark_upsert_kafka.formats.{MODULES[table.format]}")
    declared = module.FORMAT
    paths = {name: str(folder / name) for name in table.files}
    for name, data in table.files.items():
        (folder / name).write_bytes(data)
    values: dict[str, Any] = {option.name: option.default for option in declared.options}
    parsers = {option.name: option.parse for option in declared.options}
    for name, text in table.options.items():
        if name in parsers:
            values[name] = parsers[name](paths.get(text, text))
    return declared, CodecSpec(table.schema, table.side, values, required=table.required)


def _by_id(table: Table, declared: RegistryFormat, spec: CodecSpec) -> Decoder:
    given = declared.given(spec.side, table.options.get("schema"))
    of_schema = declared.decoder(spec, given)
    return decoder_by_id(partial(_of_id, table, declared, of_schema), arrow_schema(spec.schema))


def _completed(table: Table, declared: RegistryFormat) -> Format:
    """The CDC format of one with a registry."""
    decoder = partial(_by_id, table, declared)
    assert declared.complete is not None
    return declared.complete(Format(declared.name, declared.options, decoder, refuse))


def _of_id(table: Table, declared: RegistryFormat, of_schema: Any, schema_id: int) -> Decoder:
    if schema_id not in table.schemas:
        raise SchemaError(f"No schema has the id {schema_id}.")
    origin = f"Schema id {schema_id}"
    registered = RegisteredSchema(origin, declared.schema_type, table.schemas[schema_id])
    return of_schema(registered, len(id_bytes(schema_id)))
