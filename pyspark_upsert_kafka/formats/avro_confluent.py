"""Avro with a schema registry, as Flink's ``avro-confluent`` format reads and writes it.

After its prefix a message is one datum of the schema that the prefix names. A registry keeps the schemas that a schema
refers to under subjects of their own; Avro knows no schema that is spread over several texts, so they are made one.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from pyspark.sql.types import StructType

from pyspark_upsert_kafka.core.errors import SchemaError
from pyspark_upsert_kafka.formats.avro.avro_columns import DERIVED, columns_of, derived_schema
from pyspark_upsert_kafka.formats.avro.avro_decoder import datum_decoder, resolve_columns
from pyspark_upsert_kafka.formats.avro.avro_schema import parse_schema
from pyspark_upsert_kafka.formats.avro.avro_types import (
    NO_DEFAULT,
    AvroType,
    Primitive,
    Record,
    Schema,
    Union,
)
from pyspark_upsert_kafka.formats.codec import (
    CodecSpec,
    Decoder,
    Encoder,
    Records,
    RecordType,
)
from pyspark_upsert_kafka.formats.record_names import RecordNames
from pyspark_upsert_kafka.formats.registry_format import (
    LackedColumns,
    RegisteredSchema,
    RegistryFormat,
    SchemaDecoder,
    SchemaEncoder,
    SeenRecords,
    of_newest_schema,
)

_NAMED = ("record", "error", "enum", "fixed")
_INNER = {"array": "items", "map": "values"}
_LONGEST_NUMBER = 10  # bytes of a varint


def decoder(spec: CodecSpec, given: RegisteredSchema | None) -> SchemaDecoder:
    """What reads one side, resolving each message's schema to the given one.

    Raises:
        SchemaError: The given schema is wrong, or Avro cannot carry a column.
    """
    schema = _parsed(given, spec)
    resolve_columns(schema, spec.schema)
    reader, seen = schema if given else None, SeenRecords(spec)
    lacked = LackedColumns(spec, str.lower)

    def of_schema(registered: RegisteredSchema, prefix_length: int) -> Decoder:
        writer = parse_schema(whole_text(registered), registered.origin)
        seen.add(*record_names(writer))
        look_at_fields(lacked, given or registered, reader or writer)
        return datum_decoder(writer, spec.schema, reader=reader, prefix_length=prefix_length)

    return of_schema


def record_names(schema: Schema) -> list[str]:
    """The full names of the records that messages of a schema may be."""
    return [record.name for record in _records(schema)]


def _records(schema: Schema) -> list[Record]:
    branches = schema.type.branches if isinstance(schema.type, Union) else (schema.type,)
    return [branch for branch in branches if isinstance(branch, Record)]


def look_at_fields(lacked: LackedColumns, registered: RegisteredSchema, writer: Schema) -> None:
    """Has it said which columns have no field in a schema.

    Args:
        lacked: What says it.
        registered: The schema.
        writer: The same, parsed.
    """
    records = _records(writer)
    fields = [field.name for record in records for field in record.fields]
    names = ", ".join(repr(record.name) for record in records)
    lacked.look(f"{registered.origin}, the record {names},", fields, partial(columns_of, writer))


def encoder(name: str, spec: CodecSpec, given: RegisteredSchema | None) -> SchemaEncoder:
    """What writes one side with the given schema, or the one derived from the columns.

    Raises:
        SchemaError: The schema is wrong, or a column does not fit it.
    """
    from pyspark_upsert_kafka.formats.avro.avro_encoder import datum_encoder

    schema = _parsed(given, spec)
    remedy = None if given else _remedy(f"{spec.side}.{name}.")
    datum_encoder(schema, spec.schema)

    def with_prefix(prefix: bytes) -> Encoder:
        return datum_encoder(schema, spec.schema, prefix=prefix, remedy=remedy)

    return SchemaEncoder(given.text if given else _derived(spec), with_prefix)


def columns(schema: RegisteredSchema, spec: CodecSpec, only: str | None) -> StructType:
    """The columns that an Avro schema gives; of a union of records those of the one that is read.

    Raises:
        SchemaError: It is wrong, or Spark has no type for a field.
    """
    parsed = parse_schema(whole_text(schema), schema.origin)
    if isinstance(parsed.type, Union) and spec.record_names:
        names = RecordNames(spec.record_names)
        wanted = [each for each in parsed.type.branches if names.has(_record_type(each).name)]
        parsed = replace(parsed, type=wanted[0]) if len(wanted) == 1 else parsed
    found = columns_of(parsed, only)
    if schema.given:
        return found
    fields = parsed.type.fields if isinstance(parsed.type, Record) else ()
    with_default = [field.name for field in fields if field.default is not NO_DEFAULT]
    return of_newest_schema(found, with_default, spec.required)


def records(schema: RegisteredSchema) -> Records:
    """The record of a schema; of a union those of its branches, with whose number a message begins.

    Raises:
        SchemaError: The schema is wrong.
    """
    top = parse_schema(whole_text(schema), schema.origin).type
    if not isinstance(top, Union):
        return Records((_record_type(top),))
    branches = tuple(map(_record_type, top.branches))
    return Records(branches, partial(_of_branch, branches))


def _record_type(top: AvroType) -> RecordType:
    if isinstance(top, Record):
        return RecordType(top.name, frozenset(field.name for field in top.fields))
    name = top.type if isinstance(top, Primitive) else getattr(top, "name", type(top).__name__)
    return RecordType(name)


def _of_branch(
    branches: Sequence[RecordType], beginning: bytes, is_whole: bool
) -> RecordType | int | None:
    number = 0
    for place, byte in enumerate(beginning[:_LONGEST_NUMBER]):
        number |= (byte & 0x7F) << 7 * place
        if byte < 0x80:
            return branches[number >> 1] if not number & 1 and number >> 1 < len(branches) else None
    return None if is_whole or len(beginning) >= _LONGEST_NUMBER else len(beginning) + 1


def whole_text(schema: RegisteredSchema) -> str:
    """A schema as JSON that needs no other schema."""
    if not schema.references:
        return schema.text
    return with_definitions(schema.text, [reference.text for reference in schema.references])


def _parsed(given: RegisteredSchema | None, spec: CodecSpec) -> Schema:
    """The given schema, else the one derived from the columns."""
    if given:
        return parse_schema(given.text, given.origin)
    return parse_schema(_derived(spec), DERIVED)


def _derived(spec: CodecSpec) -> str:
    """As text that equals Flink's: some registries give each text an id of its own."""
    schema = derived_schema(spec.schema, spec.required, legacy_timestamps=True)
    return json.dumps(schema, separators=(",", ":"))


def _remedy(prefix: str) -> str:
    return (
        "Flink's Avro has milliseconds there. Cut the column with date_trunc('MILLISECOND', ...), or "
        f"give '{prefix}schema', with timestamp-micros for it"
    )


def with_definitions(schema: str, others: Sequence[str]) -> str:
    """The schema, with the types that it takes from the others in it.

    Raises:
        SchemaError: One of them is not JSON, or the whole is nested too deep.

    >>> fixed = '{"type": "fixed", "name": "a.Id", "size": 4}'
    >>> with_definitions('{"type": "array", "items": "a.Id"}', [fixed])
    '{"type": "array", "items": {"type": "fixed", "name": "Id", "size": 4, "namespace": "a"}}'
    """
    definitions: dict[str, Any] = {}
    try:
        for other in others:
            _Walk(definitions, collecting=True).of(_json(other), "")
        return json.dumps(_Walk(definitions).of(_json(schema), ""))
    except RecursionError:
        raise SchemaError("The Avro schema is nested too deep.") from None


def _json(schema: str) -> Any:
    try:
        return json.loads(schema)
    except ValueError as error:
        raise SchemaError(f"The Avro schema is not JSON: {error}.") from None


class _Walk:
    """Goes through a schema in the order of its text, and knows which types are defined so far."""

    def __init__(self, definitions: dict[str, Any], *, collecting: bool = False) -> None:
        self._definitions = definitions
        self._collecting = collecting
        self._defined: set[str] = set()

    def of(self, node: Any, space: str) -> Any:
        """The part of a schema as it stands in the whole one; ``space`` is the namespace there."""
        if isinstance(node, str):
            return self._named(node, space)
        if isinstance(node, list):
            return [self.of(branch, space) for branch in node]
        if not isinstance(node, dict):
            return node
        type_name = node.get("type")
        if isinstance(type_name, str) and type_name in _NAMED:
            return self._definition(node, space)
        inner = _INNER.get(type_name, "type") if isinstance(type_name, str) else "type"
        return {**node, inner: self.of(node.get(inner), space)}

    def _named(self, name: str, space: str) -> Any:
        full = name if "." in name or not space else f"{space}.{name}"
        if self._collecting or full not in self._definitions:
            return name
        return self.of(self._definitions[full], "")

    def _definition(self, node: dict[str, Any], space: str) -> Any:
        name = str(node.get("name"))
        if "." in name:
            space, _, name = name.rpartition(".")
        else:
            space = node.get("namespace", space)
        full = f"{space}.{name}" if space else name
        if full in self._defined:
            return full
        self._defined.add(full)
        whole = {**node, "name": name, "namespace": space}
        if self._collecting:
            self._definitions.setdefault(full, whole)
        fields = node.get("fields")
        if isinstance(fields, list):
            whole["fields"] = [self._field(part, space) for part in fields]
        return whole

    def _field(self, part: Any, space: str) -> Any:
        return part | {"type": self.of(part.get("type"), space)} if isinstance(part, dict) else part


def _format(name: str, registry: str = "confluent") -> RegistryFormat:
    """The format under one of its names, with which its options begin."""
    codecs = decoder, partial(encoder, name), columns
    return RegistryFormat(name, "AVRO", "an Avro schema", *codecs, records, registry=registry)


FORMAT = _format("avro-confluent")

AVRO_REGISTRY = _format("avro-registry")
"""The same format under the name that Confluent's Flink has for it."""

AVRO_GLUE = _format("avro-glue", "glue")
"""The same with a registry of AWS Glue, as in Flink."""
