"""Apache's own reader and writer of Avro, as a second peer beside fastavro.

Of the logical types it lacks those of local timestamps and of nanoseconds, which are plain numbers here, and a uuid of
sixteen bytes, which is a plain fixed.
"""

from __future__ import annotations

import datetime as dt
import io
import json
from typing import Any
from uuid import UUID

import avro.schema
from avro.io import BinaryDecoder, BinaryEncoder, DatumReader, DatumWriter

EPOCH = dt.datetime(1970, 1, 1)  # noqa: DTZ001 - a local one
_MICROS = {"local-timestamp-micros": 1, "local-timestamp-millis": 1000}


def apache_schema(schema: Any) -> Any:
    """A schema as Apache's package has it, without what it would warn of."""
    return avro.schema.parse(json.dumps(known_to_apache(schema)))


def written_by_apache(schema: Any, value: Any) -> bytes:
    """A datum as Apache's package writes it; the value is as fastavro takes it."""
    out = io.BytesIO()
    DatumWriter(apache_schema(schema)).write(_plain(schema, value), BinaryEncoder(out))
    return out.getvalue()


def read_by_apache(schema: Any, message: bytes, reader: Any = None) -> Any:
    """What Apache's package reads, the message to its end; it may be resolved to a reader's schema."""
    source = io.BytesIO(message)
    read = DatumReader(apache_schema(schema), apache_schema(schema if reader is None else reader))
    value = read.read(BinaryDecoder(source))
    assert source.read() == b""
    return value


def known_to_apache(schema: Any) -> Any:
    """A schema without the logical types that Apache's package would warn of."""
    if isinstance(schema, list):
        return [known_to_apache(branch) for branch in schema]
    if not isinstance(schema, dict):
        return schema
    parts = {
        key: known_to_apache(schema[key]) for key in ("items", "values", "type") if key in schema
    }
    if "fields" in schema:
        parts["fields"] = [known_to_apache(field) for field in schema["fields"]]
    without = {"logicalType"} if _is_unknown(schema) else set()
    return {key: schema[key] for key in schema if key not in without} | parts


def _is_unknown(schema: dict[str, Any]) -> bool:
    logical = schema.get("logicalType", "")
    return (
        logical in _MICROS or logical.endswith("-nanos") or (logical == "uuid" and "size" in schema)
    )


def _plain(schema: Any, value: Any) -> Any:
    """A value as Apache's package takes it: no local moments, no UUID."""
    if isinstance(value, UUID):
        return str(value)
    if isinstance(schema, list) and value is not None:
        return _plain(next(branch for branch in schema if branch != "null"), value)
    if not isinstance(schema, dict):
        return value
    if schema.get("logicalType") in _MICROS and isinstance(value, dt.datetime):
        micros = (value - EPOCH) // dt.timedelta(microseconds=1)
        return micros // _MICROS[schema["logicalType"]]
    return _plain_parts(schema, value)


def _plain_parts(schema: dict[str, Any], value: Any) -> Any:
    if isinstance(value, list):
        return [_plain(schema["items"], item) for item in value]
    if isinstance(value, dict) and "values" in schema:
        return {key: _plain(schema["values"], item) for key, item in value.items()}
    if isinstance(value, dict):
        return {f["name"]: _plain(f["type"], value[f["name"]]) for f in schema["fields"]}
    return value
