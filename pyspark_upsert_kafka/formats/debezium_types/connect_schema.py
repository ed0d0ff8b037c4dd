"""Connect's schemas, as Connect's JSON converter writes them.

Source: ``JsonConverter.asConnectSchema`` of Apache Kafka.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pyspark_upsert_kafka.formats.decoding import UnreadableError
from pyspark_upsert_kafka.formats.json.document import parse_object

PLAIN_TYPES = frozenset(
    {"int8", "int16", "int32", "int64", "float", "double", "boolean", "string", "bytes"}
)
"""The types that have no parts, by their names in JSON."""


@dataclass(frozen=True)
class ConnectSchema:
    """A schema, or that of a field in it.

    Args:
        type: One of PLAIN_TYPES, or ``array``, ``map``, ``struct``; another one is unknown.
        name: The semantic type, or the name of a struct.
        parameters: What the semantic type is declared with, such as ``scale``.
        optional: Whether it may be null.
        fields: Of a struct, by their names.
        items: Of an array; of a map the schema of its values.
        keys: Of a map.
    """

    type: str
    name: str | None = None
    parameters: Mapping[str, str] = field(default_factory=dict, hash=False)
    optional: bool = False
    fields: Mapping[str, ConnectSchema] = field(default_factory=dict, hash=False)
    items: ConnectSchema | None = None
    keys: ConnectSchema | None = None

    def shown(self) -> str:
        """The schema in an error: ``io.debezium.time.Date (int32)``."""
        return f"{self.name} ({self.type})" if self.name else self.type


def parse_connect_schema(text: bytes) -> ConnectSchema | None:
    """The schema that a JSON text declares; None = the text is ``null``.

    Raises:
        UnreadableError: It declares none.
    """
    return None if text == b"null" else connect_schema(parse_object(text))


def connect_schema(declared: Any, path: str = "schema") -> ConnectSchema:
    """The schema that parsed JSON declares.

    Args:
        declared: The JSON.
        path: Where it stands in the message, for errors.

    Raises:
        UnreadableError: It declares none.
    """
    kind = declared.get("type") if isinstance(declared, dict) else None
    if not isinstance(kind, str):
        raise UnreadableError(f"'{path}' is no Connect schema: it has no 'type'")
    name, parameters = declared.get("name"), declared.get("parameters")
    return ConnectSchema(
        kind,
        name if isinstance(name, str) else None,
        texts(parameters),
        declared.get("optional") is True,
        _fields(declared, path) if kind == "struct" else {},
        _part(declared, {"array": "items", "map": "values"}.get(kind), path),
        _part(declared, "keys" if kind == "map" else None, path),
    )


def texts(parameters: Any) -> Mapping[str, str]:
    """The parameters of a semantic type, those that are texts."""
    if not isinstance(parameters, dict):
        return {}
    return {name: value for name, value in parameters.items() if type(value) is str}


def _fields(declared: Mapping[str, Any], path: str) -> Mapping[str, ConnectSchema]:
    listed = declared.get("fields")
    if not isinstance(listed, list):
        raise UnreadableError(f"'{path}' is no Connect schema: 'fields' of a struct is no array")
    return dict(_field(each, f"{path}.fields[{at}]") for at, each in enumerate(listed))


def _field(declared: Any, path: str) -> tuple[str, ConnectSchema]:
    name = declared.get("field") if isinstance(declared, dict) else None
    if not isinstance(name, str):
        raise UnreadableError(f"'{path}' is no Connect schema: a field of a struct has no 'field'")
    return name, connect_schema(declared, path)


def _part(declared: Mapping[str, Any], name: str | None, path: str) -> ConnectSchema | None:
    return None if name is None else connect_schema(declared.get(name), f"{path}.{name}")
