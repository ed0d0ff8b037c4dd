"""Apache's parser of Avro schemas, and what is corrected before a schema goes into it.

Tried with avro 1.12.2, which without that would

- refuse ``{"type": "a.Name"}``, a name with nothing before its only dot, and a type wrapped in another ``type``, which Java or fastavro accept;
- put a definition with ``"namespace": ""`` into the namespace around it, and leave what is defined in an
  ``error`` out of the error's namespace;
- read ``int`` as the type ``a.int`` within the namespace ``a``;
- refuse letters beyond ASCII in the names of types and symbols, which Java accepts;
- warn of every logical type that it does not know, and fail on one that is not a string;
- need a stack as deep as the schema, and write the whole schema into its error message once for each level.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from avro.errors import AvroException, SchemaParseException
from avro.name import Names
from avro.schema import Schema, make_avsc_object

from pyspark_upsert_kafka.formats.avro.model import PRIMITIVES

Json = Any

DECLARED = "declared"
"""The property of what was parsed that holds its declaration as it stands in the schema."""

DEEPEST = 100
"""How deep types may stand within each other, whether defined there or named."""

LONGEST_NAME = 1_000
"""How many characters a full name, the name of a field or an alias may have: a record's is part of what errors say of each field."""

MOST_FIELDS = 10_000
"""How many fields a record may have: Apache's parser compares the name of each with those of all before it."""

TOO_DEEP = f"it is nested too deep: more than {DEEPEST} levels"

_PRIMITIVES = tuple(PRIMITIVES)  # what JSON holds may not be hashable
_TYPES = PRIMITIVES | {"array", "map", "record", "error", "enum", "fixed"}
_INNER = {"array": "items", "map": "values"}
_UNKNOWN_TYPE = "Could not make an Avro Schema object from "
_LONGEST = 300  # characters of an error message, which may hold the whole schema


def parsed_by_apache(declared: Json) -> Schema:
    """What Apache's parser makes of a declaration.

    Raises:
        SchemaParseException: It is no Avro schema; the text is that of the innermost error.
    """
    corrected = _corrected(declared, 1)
    try:
        return make_avsc_object(corrected, _Names(validate_names=False), validate_names=False)
    except (AvroException, RecursionError) as error:
        raise SchemaParseException(_innermost(error)) from None


def _corrected(declared: Json, depth: int) -> Json:
    """A type as the parser understands it; how it was declared is kept in a property."""
    if depth > DEEPEST:
        raise SchemaParseException(TOO_DEEP)
    if isinstance(declared, list):
        return [_corrected(branch, depth + 1) for branch in declared]
    if not isinstance(declared, Mapping) or "type" not in declared:
        return {"type": declared} if declared in _PRIMITIVES else declared
    type_name = declared["type"]
    if not isinstance(type_name, str) or type_name not in _TYPES:
        return _corrected(type_name, depth + 1)
    corrected = {"type": type_name, **_name(type_name, declared), DECLARED: declared}
    return _Declaration(corrected | _corrected_parts(type_name, declared, depth))


def _name(type_name: str, declared: Mapping[str, Json]) -> dict[str, Json]:
    """Name and namespace of a definition; one in the name wins, be it empty."""
    if type_name in PRIMITIVES or type_name in _INNER:
        return {}
    name, namespace = declared.get("name"), declared.get("namespace")
    if not isinstance(name, str):
        raise SchemaParseException(f"'name' of a type {type_name!r} is missing, or is no text")
    if "." in name:
        namespace, _, name = name.rpartition(".")
    _check_length(name, namespace)
    return {"name": name} if namespace is None else {"name": name, "namespace": namespace}


def _corrected_parts(type_name: str, declared: Mapping[str, Json], depth: int) -> dict[str, Json]:
    """The types within a type; symbols of enums and logical types are not shown to the parser."""
    if type_name in _INNER:
        inner = _INNER[type_name]
        if declared.get(inner) is None:
            raise SchemaParseException(f"'{inner}' of a type {type_name!r} is missing")
        return {inner: _corrected(declared[inner], depth + 1)}
    if type_name == "enum":
        return {"symbols": []}
    if type_name == "fixed":
        return {"size": _size(declared)}
    if type_name not in ("record", "error"):
        return {}
    fields = declared.get("fields")
    if not isinstance(fields, list):
        raise SchemaParseException(
            f"'fields' of {declared.get('name')!r} is missing, or is no list"
        )
    if len(fields) > MOST_FIELDS:
        raise SchemaParseException(
            f"{declared.get('name')!r} has {len(fields):,} fields, which are more than {MOST_FIELDS:,}"
        )
    return {"type": "record", "fields": [_corrected_field(field, depth) for field in fields]}


def _size(declared: Mapping[str, Json]) -> int:
    size = declared.get("size")
    if not isinstance(size, int):
        raise SchemaParseException(
            f"'size' of {declared.get('name')!r} must be a number of bytes, but is {size!r}"
        )
    return size


def _corrected_field(declared: Json, depth: int) -> Json:
    if not isinstance(declared, Mapping):
        return declared
    if declared.get("type") is None:
        raise SchemaParseException(f"'type' of the field {declared.get('name')!r} is missing")
    _check_length(declared.get("name"))
    corrected = _corrected(declared["type"], depth + 1)
    return _Declaration({"name": declared.get("name"), "type": corrected, DECLARED: declared})


def _check_length(*parts: Json) -> None:
    """Refuses a name that is longer than any that people or programs give."""
    length = sum(len(part) for part in parts if isinstance(part, str))
    if length > LONGEST_NAME:
        raise SchemaParseException(
            f"a name has {length:,} characters, which are more than {LONGEST_NAME:,}"
        )


class _Declaration(dict[str, Json]):
    """A declaration that error messages do not show: they would once for each level above it."""

    def __repr__(self) -> str:
        return "..."


class _Names(Names):
    """The names known so far."""

    def add_name(self, name_attr: str, space_attr: str | None, new_schema: Any) -> Any:
        """Adds a definition; where it declares no namespace, the parser has filled in the one around it."""
        return super().add_name(name_attr, space_attr or "", new_schema)


def _innermost(error: BaseException) -> str:
    """Each level of the parser puts words of its own around those of the one below."""
    while isinstance(error.__context__, AvroException | RecursionError):
        error = error.__context__
    said = TOO_DEEP if isinstance(error, RecursionError) else str(error)
    if said.startswith(_UNKNOWN_TYPE):
        said = f"no type {said.removeprefix(_UNKNOWN_TYPE)!r} was defined before"
    return said if len(said) <= _LONGEST else f"{said[:_LONGEST]}..."
