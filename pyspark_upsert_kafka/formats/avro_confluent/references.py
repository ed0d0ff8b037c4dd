"""One Avro schema made of several: each type is defined where it is used first.

A registry keeps the schemas that a schema refers to under subjects of their own; Avro knows no schema
that is spread over several texts.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from pyspark_upsert_kafka.core.errors import SchemaError

_NAMED = ("record", "error", "enum", "fixed")
_INNER = {"array": "items", "map": "values"}


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
            _Walk(definitions, collecting=True).of(_parsed(other), "")
        return json.dumps(_Walk(definitions).of(_parsed(schema), ""))
    except RecursionError:
        raise SchemaError("The Avro schema is nested too deep.") from None


def _parsed(schema: str) -> Any:
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
