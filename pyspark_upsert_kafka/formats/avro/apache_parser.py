"""Apache's parser of Avro schemas, given declarations that it does not take wrongly.

Tried with avro 1.12.2: by itself it would

- refuse ``{"type": "a.Name"}`` and a type wrapped in another ``type``, which Java and fastavro take;
- put a definition with ``"namespace": ""`` into the namespace around it, and leave what is defined in an
  ``error`` out of the error's namespace;
- read ``int`` as the type ``a.int`` within the namespace ``a``;
- refuse letters beyond ASCII in the names of types and symbols, which Java takes;
- warn of every logical type that it does not know, and fail on one that is no text;
- need a stack as deep as the schema, and write the whole schema into its complaint once for each level.
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

TOO_DEEP = f"it is nested too deep: more than {DEEPEST} levels"

_PRIMITIVES = tuple(PRIMITIVES)  # what JSON holds may not be hashable
_KINDS = PRIMITIVES | {"array", "map", "record", "error", "enum", "fixed"}
_INNER = {"array": "items", "map": "values"}
_KEPT = ("type", "name", "namespace", "size")
_LONGEST = 300  # characters of a complaint: it may hold the whole schema


def parsed_by_apache(declared: Json) -> Schema:
    """What Apache's parser makes of a declaration.

    Raises:
        SchemaParseException: It is no Avro schema; the text is the innermost complaint.
    """
    taken = _taken(declared, 1)
    try:
        return make_avsc_object(taken, _Names(validate_names=False), validate_names=False)
    except AvroException as error:
        raise SchemaParseException(_innermost(error)) from None


def _taken(declared: Json, depth: int) -> Json:
    """A type as the parser takes it; what it needs not know of is in the property ``declared``."""
    if depth > DEEPEST:
        raise SchemaParseException(TOO_DEEP)
    if isinstance(declared, list):
        return [_taken(branch, depth + 1) for branch in declared]
    if not isinstance(declared, Mapping) or "type" not in declared:
        return {"type": declared} if declared in _PRIMITIVES else declared
    kind = declared["type"]
    if not isinstance(kind, str) or kind not in _KINDS:
        return _taken(kind, depth + 1)
    kept = {name: declared[name] for name in _KEPT if declared.get(name) is not None}
    return _Taken(kept | _taken_parts(kind, declared, depth) | {DECLARED: declared})


def _taken_parts(kind: str, declared: Mapping[str, Json], depth: int) -> dict[str, Json]:
    """What stands within a type, and what it is called there."""
    if kind in _INNER:
        return {_INNER[kind]: _taken(declared.get(_INNER[kind]), depth + 1)}
    if kind == "enum":
        return {"symbols": []}
    if kind not in ("record", "error"):
        return {}
    fields = declared.get("fields")
    if isinstance(fields, list):
        fields = [_taken_field(field, depth) for field in fields]
    return {"type": "record", "fields": fields}


def _taken_field(declared: Json, depth: int) -> Json:
    if not isinstance(declared, Mapping):
        return declared
    kind = _taken(declared.get("type"), depth + 1)
    return _Taken({"name": declared.get("name"), "type": kind, DECLARED: declared})


class _Taken(dict[str, Json]):
    """A declaration that a complaint does not show: the parser would, once for each level above."""

    def __repr__(self) -> str:
        return "..."


class _Names(Names):
    """The names known so far."""

    def add_name(self, name_attr: str, space_attr: str | None, new_schema: Any) -> Any:
        """Adds a definition; the parser has put in the namespace around it where it names none."""
        return super().add_name(name_attr, space_attr or "", new_schema)


def _innermost(error: BaseException) -> str:
    """Each level of the parser puts words of its own around those of the one below."""
    while isinstance(error.__context__, AvroException | RecursionError):
        error = error.__context__
    said = TOO_DEEP if isinstance(error, RecursionError) else str(error)
    return said if len(said) <= _LONGEST else f"{said[:_LONGEST]}..."
