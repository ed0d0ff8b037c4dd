"""Avro schemas from their JSON: declarations become types in one pass, which costs what the text is long.

The rules are those of the Avro specification 1.12, as Java has them, with what is in use besides: letters of any language
in names (in Java too), dashes in namespaces (in Java before 1.12.1), a type within a ``type`` (in fastavro).
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Mapping
from reprlib import repr as short_repr
from typing import Any

from pyspark_upsert_kafka.core.errors import SchemaError
from pyspark_upsert_kafka.formats.avro.avro_types import (
    LOGICAL_COLUMNS,
    NO_DEFAULT,
    PRIMITIVES,
    Array,
    AvroType,
    Enum,
    Field,
    Fixed,
    Logical,
    Map,
    Primitive,
    Record,
    Reference,
    Schema,
    Union,
)

DEEPEST = 100
"""How deep types may stand within each other, whether defined there or named."""

_LONGEST_NAME = 1_000
"""How many characters a full name, the name of a field or an alias may have: a record's is part of what errors say of each field."""

_MOST_FIELDS = 10_000
"""How many fields a record may have. No table has as many, and the name of the record is kept for each of them."""

_LARGEST_SIZE = (1 << 31) - 1  # of a fixed: an int for Java
_LONGEST_TEXT = 300  # of what is wrong, which may hold a part of the schema
_TOO_DEEP = f"it is nested too deep: more than {DEEPEST} levels"
# Java does not look at namespaces; those with a dash are common.
_IN_NAMESPACE = re.compile(r"[\w-]+")

Json = Any
Source = str | Mapping[str, Json] | list[Json]


class _WrongSchemaError(Exception):
    """What is wrong, to be said together with where the schema comes from."""


def parse_schema(source: Source, origin: str = "The Avro schema") -> Schema:
    """The schema that JSON declares.

    Args:
        source: The JSON, as text or parsed.
        origin: Where it comes from, for errors: "The schema in 'value.avro.schema'".

    Raises:
        SchemaError: It is no Avro schema.
    """
    try:
        declared = json.loads(source) if isinstance(source, str) else source
    except RecursionError:
        raise SchemaError(f"{origin} is wrong: {_TOO_DEEP}.") from None
    except ValueError as error:  # also of a number of thousands of digits
        raise SchemaError(f"{origin} is not JSON: {error}.") from None
    try:
        return _schema(declared)
    except RecursionError:
        raise SchemaError(f"{origin} is wrong: {_TOO_DEEP}.") from None
    except _WrongSchemaError as error:
        said = str(error)
        shown = f"{said}." if len(said) <= _LONGEST_TEXT else f"{said[:_LONGEST_TEXT]}..."
        raise SchemaError(f"{origin} is wrong: {shown}") from None


def _schema(declared: Json) -> Schema:
    declarations = _Declarations()
    whole = declarations.type(declared, "", 1)
    # Definitions may stand side by side in the text and name each other too deep.
    if _depth(whole, {}) > DEEPEST:
        raise _WrongSchemaError(_TOO_DEEP)
    return Schema(whole, declarations.records)


class _Declarations:
    """Reads declarations in the order of the text, and knows what was defined so far.

    Each type is defined once; its name means the same object everywhere, and within a record a reference to it.
    """

    def __init__(self) -> None:
        self.records: dict[str, Record] = {}
        self._defined: dict[str, AvroType] = {}

    def type(self, declared: Json, space: str, depth: int) -> AvroType:
        """A type; ``space`` is the namespace around it."""
        if depth > DEEPEST:
            raise _WrongSchemaError(_TOO_DEEP)
        if isinstance(declared, list):
            return self._union(declared, space, depth)
        if isinstance(declared, Mapping):
            return self._declared(declared, space, depth)
        return self._named(declared, space)

    def _declared(self, declared: Mapping[str, Json], space: str, depth: int) -> AvroType:
        if "type" not in declared:
            raise _WrongSchemaError(f'No "type" property: {_shown(declared)}')
        kind = declared["type"]
        if kind == "array":
            return Array(self._inner("items", declared, space, depth))
        if kind == "map":
            return Map(self._inner("values", declared, space, depth))
        if kind in ("record", "error", "enum", "fixed"):
            return self._definition(declared, space, depth)
        if isinstance(kind, str) and kind in PRIMITIVES:
            return Primitive(kind, _logical_type(declared, kind))
        return self.type(kind, space, depth + 1)

    def _named(self, name: Json, space: str) -> AvroType:
        """A type by its name: a primitive one, whatever the namespace, or one that was defined before."""
        if isinstance(name, str):
            if name in PRIMITIVES:
                return Primitive(name)
            full = name if "." in name or not space else f"{space}.{name}"
            if full in self._defined:
                return self._defined[full]
        raise _WrongSchemaError(f"no type {_shown(name)!r} was defined before")

    def _inner(self, part: str, declared: Mapping[str, Json], space: str, depth: int) -> AvroType:
        if declared.get(part) is None:
            raise _WrongSchemaError(f"{part!r} of a type {declared['type']!r} is missing")
        return self.type(declared[part], space, depth + 1)

    def _union(self, declared: list[Json], space: str, depth: int) -> Union:
        branches = tuple(self.type(branch, space, depth + 1) for branch in declared)
        if not branches:
            raise _WrongSchemaError("a union needs a branch")
        if any(isinstance(branch, Union) for branch in branches):
            raise _WrongSchemaError("Unions cannot contain other unions")
        for name, times in Counter(map(_name_in_union, branches)).items():
            if times > 1:
                raise _WrongSchemaError(f"{name} type already in Union")
        return Union(branches)

    def _definition(self, declared: Mapping[str, Json], around: str, depth: int) -> AvroType:
        space, full = _full_name(declared, around)
        if full in self._defined:
            raise _WrongSchemaError(f'The name "{full}" is already in use')
        aliases = tuple(
            alias if "." in alias or not space else f"{space}.{alias}"
            for alias in _strings(declared.get("aliases", []), f"'aliases' of {full!r}")
        )
        if declared["type"] == "enum":
            self._defined[full] = _enum(declared, full, aliases)
        elif declared["type"] == "fixed":
            size = _size(declared, full)
            logical = _logical_type(declared, "fixed", size)
            self._defined[full] = Fixed(full, size, logical, aliases)
        else:
            self._defined[full] = Reference(full)
            fields = self._fields(declared, full, space, depth)
            self._defined[full] = self.records[full] = Record(full, fields, aliases)
        return self._defined[full]

    def _fields(
        self, declared: Mapping[str, Json], record: str, space: str, depth: int
    ) -> tuple[Field, ...]:
        listed = declared.get("fields")
        if not isinstance(listed, list):
            raise _WrongSchemaError(f"'fields' of {record!r} is missing, or is no list")
        if len(listed) > _MOST_FIELDS:
            raise _WrongSchemaError(
                f"{record!r} has {len(listed):,} fields, which are more than {_MOST_FIELDS:,}"
            )
        fields: dict[str, Field] = {}
        for each in listed:
            field = self._field(each, record, space, depth)
            if field.name in fields:
                raise _WrongSchemaError(f"Field name {field.name} already in use")
            fields[field.name] = field
        return tuple(fields.values())

    def _field(self, declared: Json, record: str, space: str, depth: int) -> Field:
        if not isinstance(declared, Mapping):
            raise _WrongSchemaError(f"Not a valid field: {_shown(declared)}")
        name = declared.get("name")
        if not isinstance(name, str) or not name:
            raise _WrongSchemaError("Fields must have a non-empty name")
        _check_length(name)
        _check_name(name, f"a field of {record!r}")
        if declared.get("type") is None:
            raise _WrongSchemaError(f"'type' of the field {name!r} is missing")
        aliases = _strings(
            declared.get("aliases", []), f"'aliases' of the field {name!r} of {record!r}"
        )
        kind = self.type(declared["type"], space, depth + 1)
        return Field(name, kind, declared.get("default", NO_DEFAULT), aliases)


def _full_name(declared: Mapping[str, Json], around: str) -> tuple[str, str]:
    """Namespace and full name of a definition: the namespace in its name wins, be it empty, then its own, then the one around it."""
    name, space = declared.get("name"), declared.get("namespace")
    if not isinstance(name, str):
        raise _WrongSchemaError(f"'name' of a type {declared['type']!r} is missing, or is no text")
    if "." in name:
        space, _, name = name.rpartition(".")
    if not isinstance(space, str | None):
        raise _WrongSchemaError("The namespace property must be a string")
    _check_length(name, space or "")
    space = around if space is None else space
    full = f"{space}.{name}" if space else name
    where = f"part of the name {full!r}"
    for part in space.split(".") if space else ():
        if not _IN_NAMESPACE.fullmatch(part):
            _check_name(part, where)
    _check_name(name, where)
    if full in PRIMITIVES:
        raise _WrongSchemaError(f"{full} is a reserved type name")
    return space, full


def _name_in_union(branch: AvroType) -> str:
    if isinstance(branch, Primitive):
        return branch.type
    if isinstance(branch, Array | Map | Union):
        return type(branch).__name__.lower()
    return branch.name


def _enum(declared: Mapping[str, Json], name: str, aliases: tuple[str, ...]) -> Enum:
    symbols = _strings(declared.get("symbols"), f"'symbols' of the enum {name!r}")
    for symbol, times in Counter(symbols).items():
        _check_name(symbol, f"a symbol of the enum {name!r}")
        if times > 1:
            raise _WrongSchemaError(
                f"the symbol {symbol!r} of the enum {name!r} occurs {times} times"
            )
    default = declared.get("default")
    if default is not None and default not in symbols:
        raise _WrongSchemaError(
            f"the default {default!r} is none of the symbols of the enum {name!r}"
        )
    return Enum(name, symbols, default, aliases)


def _size(declared: Mapping[str, Json], name: str) -> int:
    """The number of bytes of a fixed."""
    size = declared.get("size")
    if not isinstance(size, int):
        raise _WrongSchemaError(f"'size' of {name!r} must be a number of bytes, but is {size!r}")
    if size < 0:
        raise _WrongSchemaError("Fixed Schema requires a valid positive integer for size property")
    if isinstance(size, bool) or size > _LARGEST_SIZE:
        raise _WrongSchemaError(f"'size' of {name!r} is no number of bytes: {json.dumps(size)}")
    return size


def _logical_type(declared: Mapping[str, Json], plain: str, size: int = 0) -> Logical | None:
    """The logical type of a declaration; None = it has none, or one that is unknown or ill-formed.

    As the specification says, readers ignore such a one and use the type that it is declared of.

    Args:
        declared: The declaration.
        plain: The type that it is declared of.
        size: Number of bytes, of a fixed.
    """
    name = declared.get("logicalType")
    if not isinstance(name, str) or plain not in LOGICAL_COLUMNS.get(name, ()):
        return None
    if name == "uuid" and plain == "fixed" and size != 16:
        return None
    if name != "decimal":
        return Logical(name)
    precision, scale = declared.get("precision"), declared.get("scale", 0)
    if type(precision) is not int or type(scale) is not int or not 0 <= scale <= precision:
        return None
    if precision < 1 or (plain == "fixed" and precision > _largest_precision(size)):
        return None
    return Logical(name, precision, scale)


def _largest_precision(size: int) -> int:
    """How many decimal digits always fit into a number of bytes of two's complement."""
    return math.floor((8 * size - 1) * math.log10(2)) if size else 0


def _strings(listed: Json, what: str) -> tuple[str, ...]:
    if not isinstance(listed, list) or not all(isinstance(item, str) for item in listed):
        raise _WrongSchemaError(f"{what} must be a list of strings")
    if any(len(item) > _LONGEST_NAME for item in listed):
        raise _WrongSchemaError(f"{what} have one of more than {_LONGEST_NAME:,} characters")
    return tuple(listed)


def _check_name(name: str, where: str) -> None:
    """Letters, digits and underscores, as Java's ``NameValidator.UTF_VALIDATOR`` demands."""
    if not name.isidentifier():
        raise _WrongSchemaError(
            f"{name!r}, {where}, is no name: only letters, digits and '_' may be in it"
        )


def _check_length(*parts: str) -> None:
    """Refuses a name that is longer than any that people or programs give."""
    length = sum(map(len, parts))
    if length > _LONGEST_NAME:
        raise _WrongSchemaError(
            f"a name has {length:,} characters, which are more than {_LONGEST_NAME:,}"
        )


def _shown(declared: Json) -> str:
    """A part of the schema, which may be long, for an error."""
    return declared if isinstance(declared, str) else short_repr(declared)


def _depth(avro: AvroType, records: dict[str, int]) -> int:
    """How deep the types within a type stand; ``records`` are those looked at."""
    if isinstance(avro, Record):
        if avro.name not in records:
            records[avro.name] = 1 + max((_depth(f.type, records) for f in avro.fields), default=0)
        return records[avro.name]
    if isinstance(avro, Union):
        return 1 + max(_depth(branch, records) for branch in avro.branches)
    if isinstance(avro, Array | Map):
        return 1 + _depth(avro.items if isinstance(avro, Array) else avro.values, records)
    return 1
