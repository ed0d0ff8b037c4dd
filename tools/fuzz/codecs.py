"""The codecs of a table, compiled as in a query. The only difference: the registry is a dictionary."""

from __future__ import annotations

import tempfile
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

from pyspark_upsert_kafka.core.errors import SchemaError
from pyspark_upsert_kafka.core.table.arrow import arrow_schema
from pyspark_upsert_kafka.format_catalog import MODULES
from pyspark_upsert_kafka.formats.cdc.json_envelopes import refuse
from pyspark_upsert_kafka.formats.codec import CodecSpec, Decoder, Encoder, Format
from pyspark_upsert_kafka.formats.registry_format import RegisteredSchema, RegistryFormat
from pyspark_upsert_kafka.registry.framing import PREFIX_LENGTH, decoder_by_id, prefix_of
from tools.fuzz.case import Table
from tools.fuzz.cdc_codecs import change_decoder, is_cdc


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
        return writing.with_prefix(prefix_of(0))


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
    of_schema = declared.decoder(spec, given, PREFIX_LENGTH)
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
    return of_schema(RegisteredSchema(origin, declared.schema_type, table.schemas[schema_id]))
