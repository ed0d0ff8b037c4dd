"""Connect's schemas, as Confluent's and Apicurio's Avro converters write them: in properties that begin with ``connect.``.

Source: ``io.confluent.connect.avro.AvroData``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pyspark_upsert_kafka.formats.avro.model import PRIMITIVES
from pyspark_upsert_kafka.formats.debezium_types.connect_schema import ConnectSchema, texts

_TYPES = {
    "int": "int32",
    "long": "int64",
    "fixed": "bytes",
    "enum": "string",
    "record": "struct",
    "error": "struct",
}
_NULLS = ("null", {"type": "null"})
_UNKNOWN = ConnectSchema("unknown")


def connect_schema_of_avro(declared: Any) -> ConnectSchema:
    """The Connect schema that an Avro schema stands for.

    What no Connect schema has, such as a union of several types, is of type ``unknown``, and so is a record within
    itself: they have no semantic type. A named type that says nothing of Connect has its own name, as in the converter.

    Args:
        declared: The JSON of a valid Avro schema.
    """
    return _AvroSchemas().schema(declared, "")


class _AvroSchemas:
    """The schemas of named types, which stand in the text once and are named after that."""

    def __init__(self) -> None:
        self.known: dict[str, ConnectSchema] = {}

    def schema(self, declared: Any, space: str) -> ConnectSchema:
        if isinstance(declared, list):
            return self._union(declared, space)
        if isinstance(declared, str):
            return self._named(declared, space)
        if isinstance(declared["type"], list | dict):
            return self.schema(declared["type"], space)
        if declared["type"] in ("record", "error", "enum", "fixed"):
            return self._definition(declared, space)
        return self._plain(declared, space)

    def _union(self, branches: list[Any], space: str) -> ConnectSchema:
        others = [branch for branch in branches if branch not in _NULLS]
        if len(others) != 1:
            return _UNKNOWN
        return replace(self.schema(others[0], space), optional=len(branches) > 1)

    def _named(self, name: str, space: str) -> ConnectSchema:
        full = name if "." in name or not space else f"{space}.{name}"
        known = self.known.get(full) or self.known.get(name)
        return known or ConnectSchema(_TYPES.get(name, name))

    def _definition(self, declared: Mapping[str, Any], space: str) -> ConnectSchema:
        name = declared["name"]
        space = name.rpartition(".")[0] if "." in name else declared.get("namespace", space)
        full = f"{space}.{name.rpartition('.')[2]}" if space else name
        self.known[full] = _UNKNOWN
        fields = {
            field["name"]: self.schema(field["type"], space) for field in declared.get("fields", [])
        }
        self.known[full] = _schema(declared, full, fields=fields)
        return self.known[full]

    def _plain(self, declared: Mapping[str, Any], space: str) -> ConnectSchema:
        if declared["type"] == "array":
            return _schema(declared, items=self.schema(declared["items"], space))
        if declared["type"] == "map":
            values = self.schema(declared["values"], space)
            return _schema(declared, items=values, keys=ConnectSchema("string"))
        if declared["type"] in PRIMITIVES:
            return _schema(declared)
        return self._named(declared["type"], space)


def _schema(
    declared: Mapping[str, Any], full_name: str | None = None, **parts: Any
) -> ConnectSchema:
    kind, name = declared.get("connect.type"), declared.get("connect.name")
    return ConnectSchema(
        kind if isinstance(kind, str) else _TYPES.get(declared["type"], declared["type"]),
        name if isinstance(name, str) else full_name,
        texts(declared.get("connect.parameters")),
        **parts,
    )
