"""Avro schemas from their JSON, by the rules of the Avro specification 1.12.

What a schema may get wrong is said with the place where it stands: ``record.field``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pyspark_upsert_kafka.core.errors import SchemaError
from pyspark_upsert_kafka.formats.avro.declarations import (
    Json,
    attribute,
    check_distinct,
    checked_name,
    full_name,
    joined,
    strings,
    wrong,
)
from pyspark_upsert_kafka.formats.avro.logical import logical_type
from pyspark_upsert_kafka.formats.avro.model import (
    NO_DEFAULT,
    PRIMITIVES,
    Array,
    AvroType,
    Enum,
    Field,
    Fixed,
    Map,
    Primitive,
    Record,
    Reference,
    Schema,
    Union,
)

DEEPEST = 100
"""How deep types may stand within each other, whether defined there or named."""

_TOP = "the top level"
_SHOWN = 60
_LARGEST_SIZE = (1 << 31) - 1  # of a fixed: an int for Java
Source = str | Mapping[str, Any] | list[Any]


def parse_schema(source: Source) -> Schema:
    """The schema that a JSON text, or what such a text was parsed to, declares.

    Raises:
        SchemaError: It is no Avro schema.
    """
    parser = _Parser()
    try:
        declared = _from_json(source) if isinstance(source, str) else source
        return Schema(parser.type(declared, "", _TOP), parser.records)
    except RecursionError:
        raise SchemaError("The Avro schema is nested too deep.") from None


def _from_json(source: str) -> Json:
    try:
        return json.loads(source)
    except ValueError as error:  # also of a number of thousands of digits
        raise SchemaError(f"The Avro schema is not JSON: {error}.") from None


class _Parser:
    """The names known so far; a record is under way while its own fields are parsed."""

    def __init__(self) -> None:
        self.known: dict[str, AvroType] = {}
        self.records: dict[str, Record] = {}
        self.depths: dict[str, int] = {}
        self.depth = self.deepest = 0

    def type(self, declared: Json, space: str, at: str) -> AvroType:
        """A type; ``deepest`` is how deep the types in it go, those that it only names included."""
        self.depth += 1
        self._check_depth(self.depth, at)
        kind = self._type(declared, space, at)
        self.depth -= 1
        return kind

    def _check_depth(self, depth: int, at: str) -> None:
        self.deepest = max(self.deepest, depth)
        if depth > DEEPEST:
            raise SchemaError(
                f"The Avro schema is nested too deep: more than {DEEPEST} levels at {at[:_SHOWN]}."
            )

    def _type(self, declared: Json, space: str, at: str) -> AvroType:
        if isinstance(declared, str):
            return self._named(declared, space, at)
        if isinstance(declared, list):
            return self._union(declared, space, at)
        if not isinstance(declared, Mapping):
            raise wrong(at, f"expected a type, got {json.dumps(declared)}")
        return self._declared(declared, space, at)

    def _declared(self, declared: Mapping[str, Json], space: str, at: str) -> AvroType:
        kind = attribute(declared, "type", at)
        if not isinstance(kind, str):
            return self.type(kind, space, at)
        if kind in PRIMITIVES:
            return Primitive(kind, logical_type(declared, kind))
        if kind == "array":
            return Array(self.type(attribute(declared, "items", at), space, f"{at}[]"))
        if kind == "map":
            return Map(self.type(attribute(declared, "values", at), space, f"{at}{{}}"))
        if kind in ("record", "error", "enum", "fixed"):
            return self._definition(kind, declared, space, at)
        return self._named(kind, space, at)

    def _named(self, name: str, space: str, at: str) -> AvroType:
        if name in PRIMITIVES:
            return Primitive(name)
        full = name if "." in name else joined(space, name)
        if full not in self.known:
            raise wrong(at, f"no type {full!r} was defined before")
        self._check_depth(self.depth + self.depths.get(full, 0), at)
        return self.known[full]

    def _union(self, declared: list[Json], space: str, at: str) -> Union:
        branches = tuple(self.type(branch, space, at) for branch in declared)
        if not branches:
            raise wrong(at, "a union needs a branch")
        if any(isinstance(branch, Union) for branch in branches):
            raise wrong(at, "a union stands directly in a union")
        check_distinct((_branch_name(branch) for branch in branches), at, "branch")
        return Union(branches)

    def _definition(self, kind: str, declared: Mapping[str, Json], space: str, at: str) -> AvroType:
        name, space = full_name(declared, space, at)
        if name in self.known:
            raise wrong(at, f"the name {name!r} is defined twice")
        aliases = tuple(
            alias if "." in alias else joined(space, alias)
            for alias in strings(declared, "aliases", at)
        )
        if kind == "enum":
            self.known[name] = _enum(declared, name, aliases, at)
        elif kind == "fixed":
            self.known[name] = _fixed(declared, name, aliases, at)
        else:
            self.known[name] = Reference(name)
            around, self.deepest = self.deepest, self.depth
            record = Record(name, self._fields(declared, space, at), aliases)
            self.depths[name] = self.deepest - self.depth
            self.deepest = max(around, self.deepest)
            self.known[name] = self.records[name] = record
        return self.known[name]

    def _fields(self, declared: Mapping[str, Json], space: str, at: str) -> tuple[Field, ...]:
        listed = attribute(declared, "fields", at)
        if not isinstance(listed, list) or not all(isinstance(f, Mapping) for f in listed):
            raise wrong(at, "'fields' must be a list of objects")
        prefix = "" if at == _TOP else f"{at}."
        fields = tuple(self._field(field, space, at, prefix) for field in listed)
        check_distinct((field.name for field in fields), at, "field")
        return fields

    def _field(self, declared: Mapping[str, Json], space: str, at: str, prefix: str) -> Field:
        name = checked_name(attribute(declared, "name", at), at)
        return Field(
            name,
            self.type(attribute(declared, "type", f"{prefix}{name}"), space, f"{prefix}{name}"),
            declared.get("default", NO_DEFAULT),
            strings(declared, "aliases", f"{prefix}{name}"),
        )


def _enum(declared: Mapping[str, Json], name: str, aliases: tuple[str, ...], at: str) -> Enum:
    symbols = strings(declared, "symbols", at)
    for symbol in symbols:
        checked_name(symbol, at)
    check_distinct(symbols, at, "symbol")
    default = declared.get("default")
    if default is not None and default not in symbols:
        raise wrong(at, f"the default {default!r} is none of the symbols")
    return Enum(name, symbols, default, aliases)


def _fixed(declared: Mapping[str, Json], name: str, aliases: tuple[str, ...], at: str) -> Fixed:
    size = attribute(declared, "size", at)
    if type(size) is not int or not 0 <= size <= _LARGEST_SIZE:
        raise wrong(at, f"'size' must be a number of bytes, got {json.dumps(size)}")
    return Fixed(name, size, logical_type(declared, "fixed", size), aliases)


def _branch_name(branch: AvroType) -> str:
    if isinstance(branch, Primitive):
        return branch.kind
    if isinstance(branch, Array | Map | Union):
        return type(branch).__name__.lower()
    return branch.name
