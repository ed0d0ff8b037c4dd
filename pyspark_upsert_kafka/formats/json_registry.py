"""JSON with a schema registry: after its prefix a message is what the format ``json`` reads and writes.

A schema is registered for what is written. Reading needs none: a message is read by its columns, once it is
sure that its id is that of a JSON Schema.
"""

from __future__ import annotations

import json
from dataclasses import replace

from pyspark.sql.types import StructType

from pyspark_upsert_kafka.core.errors import SchemaError
from pyspark_upsert_kafka.formats import json as json_format
from pyspark_upsert_kafka.formats.codec import CodecSpec, Decoder, Encoder
from pyspark_upsert_kafka.formats.json import OPTIONS
from pyspark_upsert_kafka.formats.json.json_schema import (
    columns_of,
    derived_schema,
    with_default,
)
from pyspark_upsert_kafka.formats.prefixes import PrefixedDecoder, PrefixedEncoder
from pyspark_upsert_kafka.formats.registry_format import (
    RegisteredSchema,
    RegistryFormat,
    SchemaDecoder,
    SchemaEncoder,
    of_newest_schema,
)


def decoder(spec: CodecSpec, _: RegisteredSchema | None) -> SchemaDecoder:
    """What reads one side.

    Raises:
        SchemaError: JSON cannot carry a column.
        OptionError: Two options contradict each other.
    """
    json_format.check(spec)

    def of_schema(_: RegisteredSchema, prefix_length: int) -> Decoder:
        return PrefixedDecoder(json_format.decoder(spec), prefix_length)

    return of_schema


def encoder(spec: CodecSpec, given: RegisteredSchema | None) -> SchemaEncoder:
    """What writes one side; the given schema is registered as it stands, and not compared with the columns.

    Raises:
        SchemaError: JSON cannot carry a column, or the given schema is no JSON.
        OptionError: Two options contradict each other.
    """
    json_format.check(spec)
    if given:
        _parsed(given)

    def with_prefix(prefix: bytes) -> Encoder:
        return PrefixedEncoder(json_format.encoder(spec), prefix)

    return SchemaEncoder(given.text if given else _derived(spec), with_prefix)


def columns(schema: RegisteredSchema, spec: CodecSpec, _: str | None) -> StructType:
    """The columns that a JSON Schema gives.

    Raises:
        SchemaError: It is no JSON Schema, or does not say for each property which type it has.
    """
    parsed = _parsed(schema)
    found = columns_of(parsed, schema.origin)
    return of_newest_schema(found, with_default(parsed), spec.required)


def _parsed(schema: RegisteredSchema) -> object:
    try:
        return json.loads(schema.text)
    except (ValueError, RecursionError) as error:
        raise SchemaError(f"{schema.origin} is not JSON: {error}.") from None


def _derived(spec: CodecSpec) -> str:
    """Always in the same words: some registries give each text an id of its own."""
    return json.dumps(derived_schema(spec.schema, spec.required), separators=(",", ":"))


FORMAT = RegistryFormat(
    "json-registry",
    "JSON",
    "a JSON Schema",
    decoder,
    encoder,
    columns,
    OPTIONS,
    fields=json_format.fields,
)

JSON_GLUE = replace(FORMAT, name="json-glue", registry="glue")
"""The same with a registry of AWS Glue."""
