"""Kafka Connect's Avro converter, for tests: schemas of Connect as Avro, and values as data.

Source: ``io.confluent.connect.avro.AvroData``.
"""

from __future__ import annotations

import io
from base64 import b64decode
from collections.abc import Mapping
from typing import Any

import fastavro

from pyspark_upsert_kafka.formats.cdc.connect_schema import ConnectSchema

_PLAIN = {
    "int8": "int",
    "int16": "int",
    "int32": "int",
    "int64": "long",
    "float": "float",
    "double": "double",
    "boolean": "boolean",
    "string": "string",
    "bytes": "bytes",
}
_LOGICAL = {
    "org.apache.kafka.connect.data.Date": "date",
    "org.apache.kafka.connect.data.Time": "time-millis",
    "org.apache.kafka.connect.data.Timestamp": "timestamp-millis",
    "org.apache.kafka.connect.data.Decimal": "decimal",
}
_NARROW = ("int8", "int16")


def avro_schema(schema: ConnectSchema) -> Any:
    """The Avro schema that the converter registers."""
    return _schema(schema, set())


def _schema(schema: ConnectSchema, known: set[str]) -> Any:
    declared = _declared(schema, known)
    return ["null", declared] if schema.optional else declared


def _declared(schema: ConnectSchema, known: set[str]) -> Any:
    if schema.type == "struct":
        return _record(schema, known)
    if schema.type in ("array", "map") and schema.items is not None:
        inner = {"array": "items", "map": "values"}[schema.type]
        return {"type": schema.type, inner: _schema(schema.items, known), **_of_connect(schema)}
    declared = {"type": _PLAIN[schema.type], **_of_connect(schema)}
    return declared if len(declared) > 1 else declared["type"]


def _record(schema: ConnectSchema, known: set[str]) -> Any:
    name = schema.name or "ConnectDefault"
    if name in known:
        return name
    known.add(name)
    space, _, last = name.rpartition(".")
    fields = [
        {
            "name": each,
            "type": _schema(part, known),
            **({"default": None} if part.optional else {}),
        }
        for each, part in schema.fields.items()
    ]
    named = {"type": "record", "name": last, "fields": fields, **_of_connect(schema)}
    return {**named, "namespace": space} if space else named


def _of_connect(schema: ConnectSchema) -> Mapping[str, Any]:
    found: dict[str, Any] = {"connect.type": schema.type} if schema.type in _NARROW else {}
    if schema.name is None:
        return found
    found |= {"connect.version": 1, "connect.name": schema.name}
    if schema.parameters:
        found["connect.parameters"] = dict(schema.parameters)
    scale = schema.parameters.get("scale")
    logical = _LOGICAL.get(schema.name)
    if logical == "decimal" and scale is not None:
        digits = int(schema.parameters.get("connect.decimal.precision", 64))
        return {**found, "scale": int(scale), "precision": digits, "logicalType": logical}
    return {**found, "logicalType": logical} if logical else found


def datum(schema: ConnectSchema, value: Any) -> Any:
    """A value of JSON, as Connect's JSON converter writes it, as a datum: bytes are no longer texts."""
    if value is None:
        return None
    if schema.type == "struct":
        return {name: datum(part, value.get(name)) for name, part in schema.fields.items()}
    if schema.type == "array" and schema.items is not None:
        items = schema.items
        return [datum(items, each) for each in value]
    return b64decode(value) if schema.type == "bytes" else value


def message(schema: Any, value: Any, prefix: bytes = b"\0\0\0\0\7") -> bytes:
    """A datum of an Avro schema after its prefix; numbers and bytes are written as they are."""
    written = io.BytesIO(prefix)
    written.seek(len(prefix))
    fastavro.schemaless_writer(written, fastavro.parse_schema(without_logical_types(schema)), value)
    return written.getvalue()


def without_logical_types(schema: Any) -> Any:
    """The schema without what makes fastavro convert values, and without Connect's properties."""
    if isinstance(schema, dict):
        kept = ("logicalType", "precision", "scale")
        return {
            name: without_logical_types(part)
            for name, part in schema.items()
            if name not in kept and not name.startswith("connect.")
        }
    return [without_logical_types(each) for each in schema] if isinstance(schema, list) else schema
