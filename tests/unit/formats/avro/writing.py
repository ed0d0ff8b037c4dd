"""Short ways to write rows as Avro, by this package and by its peer, fastavro."""

from __future__ import annotations

import io
import json
from typing import Any

import fastavro
from pyspark.sql.types import DataType, StructType

from tests.unit.formats.avro.codecs import datum_encoder
from tests.unit.formats.json.codecs import batch, columns


def record(*fields: dict[str, Any], name: str = "r") -> dict[str, Any]:
    """The schema of a record."""
    return {"type": "record", "name": name, "fields": list(fields)}


def field(name: str, kind: Any, **more: Any) -> dict[str, Any]:
    """A field of a record: ``field("a", "int", default=1)``."""
    return {"name": name, "type": kind, **more}


def decimal(precision: int, scale: int, kind: str = "bytes", **more: Any) -> dict[str, Any]:
    """A decimal."""
    number = {"logicalType": "decimal", "precision": precision, "scale": scale}
    return {"type": kind, **number, **more}


def logical(kind: str, name: str) -> dict[str, Any]:
    """A logical type."""
    return {"type": kind, "logicalType": name}


def written(schema: Any, kinds: StructType, *rows: tuple[Any, ...], **options: Any) -> list[bytes]:
    """Rows as messages."""
    return datum_encoder(json.dumps(schema), kinds, **options).encode(batch(kinds, *rows))


def column(avro: Any, kind: DataType, *values: Any, **options: Any) -> list[bytes]:
    """The values of a column ``c``, each as it stands in its message."""
    schema = record(field("c", avro))
    return written(schema, columns(c=kind), *[(value,) for value in values], **options)


def by_fastavro(schema: Any, *rows: Any) -> list[bytes]:
    """Data as fastavro writes them."""
    parsed = fastavro.parse_schema(json.loads(json.dumps(schema)))
    data = []
    for row in rows:
        out = io.BytesIO()
        fastavro.schemaless_writer(out, parsed, row)
        data.append(out.getvalue())
    return data


def read_by_fastavro(schema: Any, messages: list[bytes]) -> list[Any]:
    """What fastavro reads, every message to its end."""
    parsed = fastavro.parse_schema(json.loads(json.dumps(schema)))
    data = []
    for message in messages:
        source = io.BytesIO(message)
        data.append(fastavro.schemaless_reader(source, parsed))
        assert source.read() == b""
    return data
