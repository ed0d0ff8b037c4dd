"""Avro schemas from their JSON, by the rules of the Avro specification 1.12.

Apache's package parses them. Checked here is what it does not look at: names of fields, symbols and their
default, aliases, the size of a fixed, unions that are empty or name a type twice.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from avro import schema as apache
from avro.errors import SchemaParseException

from pyspark_upsert_kafka.core.errors import SchemaError
from pyspark_upsert_kafka.formats.avro.apache_parser import (
    DECLARED,
    DEEPEST,
    LONGEST_NAME,
    TOO_DEEP,
    Json,
    parsed_by_apache,
)
from pyspark_upsert_kafka.formats.avro.leaf_types.table import is_known
from pyspark_upsert_kafka.formats.avro.model import (
    NO_DEFAULT,
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

_LARGEST_SIZE = (1 << 31) - 1  # of a fixed: an int for Java
# Java does not look at namespaces; those with a dash are common.
_IN_NAMESPACE = re.compile(r"[\w-]+")

Source = str | Mapping[str, Any] | list[Any]


def logical_type(declared: Mapping[str, Any], plain: str, size: int = 0) -> Logical | None:
    """The logical type of a declaration; None = it has none, or one that is unknown or ill-formed.

    As the specification says, readers ignore such a one and use the type that it is declared of.

    Args:
        declared: The declaration.
        plain: The type that it is declared of.
        size: Number of bytes, of a fixed.
    """
    name = declared.get("logicalType")
    if not isinstance(name, str) or not is_known(name, plain):
        return None
    if name == "uuid" and plain == "fixed" and size != 16:
        return None
    if name != "decimal":
        return Logical(name)
    precision, scale = declared.get("precision"), declared.get("scale", 0)
    if type(precision) is not int or type(scale) is not int or not 0 <= scale <= precision:
        return None
    if precision < 1 or (plain == "fixed" and precision > largest_precision(size)):
        return None
    return Logical(name, precision, scale)


def largest_precision(size: int) -> int:
    """How many decimal digits always fit into a number of bytes of two's complement."""
    return math.floor((8 * size - 1) * math.log10(2)) if size else 0


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
        raise SchemaError(f"{origin} is wrong: {TOO_DEEP}.") from None
    except ValueError as error:  # also of a number of thousands of digits
        raise SchemaError(f"{origin} is not JSON: {error}.") from None
    model = _Model()
    try:
        whole = model.type(parsed_by_apache(declared))
        _check_depth(whole)
    except SchemaParseException as error:
        raise SchemaError(f"{origin} is wrong: {str(error).removesuffix('.')}.") from None
    return Schema(whole, model.records)


class _Model:
    """Makes our types of the parser's: each definition once, and a record within itself by reference."""

    def __init__(self) -> None:
        self.known: dict[str, AvroType] = {}
        self.records: dict[str, Record] = {}

    def type(self, parsed: apache.Schema) -> AvroType:
        if isinstance(parsed, apache.UnionSchema):
            return self._union(parsed)
        if isinstance(parsed, apache.ArraySchema):
            return Array(self.type(parsed.items))
        if isinstance(parsed, apache.MapSchema):
            return Map(self.type(parsed.values))
        if isinstance(parsed, apache.NamedSchema):
            if parsed.fullname not in self.known:
                self.known[parsed.fullname] = self._definition(parsed)
            return self.known[parsed.fullname]
        return Primitive(parsed.type, logical_type(_declared(parsed), parsed.type))

    def _union(self, parsed: apache.UnionSchema) -> Union:
        if not parsed.schemas:
            raise SchemaParseException("a union needs a branch")
        names = (getattr(branch, "fullname", branch.type) for branch in parsed.schemas)
        _check_distinct(names, "branch", "of a union")
        return Union(tuple(map(self.type, parsed.schemas)))

    def _definition(self, parsed: apache.NamedSchema) -> AvroType:
        name, declared = parsed.fullname, _declared(parsed)
        *space, last = name.split(".")
        where = f"part of the name {name!r}"
        for part in space:
            if not _IN_NAMESPACE.fullmatch(part):
                _check_name(part, where)
        _check_name(last, where)
        aliases = tuple(
            alias if "." in alias or not parsed.namespace else f"{parsed.namespace}.{alias}"
            for alias in _strings(declared, "aliases", f"of {name!r}")
        )
        if isinstance(parsed, apache.EnumSchema):
            return _enum(declared, name, aliases)
        if isinstance(parsed, apache.FixedSchema):
            return _fixed(declared, name, aliases)
        return self._record(parsed, name, aliases)

    def _record(self, parsed: Any, name: str, aliases: tuple[str, ...]) -> Record:
        self.known[name] = Reference(name)
        fields = tuple(self._field(field, name) for field in parsed.fields)
        self.records[name] = Record(name, fields, aliases)
        return self.records[name]

    def _field(self, parsed: apache.Field, record: str) -> Field:
        declared = _declared(parsed)
        _check_name(parsed.name, f"a field of {record!r}")
        aliases = _strings(declared, "aliases", f"of the field {parsed.name!r} of {record!r}")
        return Field(
            parsed.name, self.type(parsed.type), declared.get("default", NO_DEFAULT), aliases
        )


def _declared(parsed: apache.Schema | apache.Field) -> Mapping[str, Json]:
    """The declaration of a type; that of a bare name is empty."""
    declared: Any = parsed.get_prop(DECLARED)
    return declared or {}


def _enum(declared: Mapping[str, Json], name: str, aliases: tuple[str, ...]) -> Enum:
    symbols = _strings(declared, "symbols", f"of the enum {name!r}")
    for symbol in symbols:
        _check_name(symbol, f"a symbol of the enum {name!r}")
    _check_distinct(symbols, "symbol", f"of the enum {name!r}")
    default = declared.get("default")
    if default is not None and default not in symbols:
        raise SchemaParseException(
            f"the default {default!r} is none of the symbols of the enum {name!r}"
        )
    return Enum(name, symbols, default, aliases)


def _fixed(declared: Mapping[str, Json], name: str, aliases: tuple[str, ...]) -> Fixed:
    size = declared["size"]
    if type(size) is not int or size > _LARGEST_SIZE:
        raise SchemaParseException(f"'size' of {name!r} is no number of bytes: {json.dumps(size)}")
    return Fixed(name, size, logical_type(declared, "fixed", size), aliases)


def _strings(declared: Mapping[str, Json], name: str, whose: str) -> tuple[str, ...]:
    listed = declared.get(name, [])
    if not isinstance(listed, list) or not all(isinstance(item, str) for item in listed):
        raise SchemaParseException(f"{name!r} {whose} must be a list of strings")
    if any(len(item) > LONGEST_NAME for item in listed):
        raise SchemaParseException(
            f"{name!r} {whose} have one of more than {LONGEST_NAME:,} characters"
        )
    return tuple(listed)


def _check_name(name: str, where: str) -> None:
    """Letters, digits and underscores, as Java's ``NameValidator.UTF_VALIDATOR`` demands."""
    if not name.isidentifier():
        raise SchemaParseException(
            f"{name!r}, {where}, is no name: only letters, digits and '_' may be in it"
        )


def _check_distinct(names: Iterable[str], what: str, whose: str) -> None:
    for name, times in Counter(names).items():
        if times > 1:
            raise SchemaParseException(f"the {what} {name!r} {whose} occurs {times} times")


def _check_depth(avro: AvroType) -> None:
    """Definitions may stand side by side in the text and name each other too deep."""
    if _depth(avro, {}) > DEEPEST:
        raise SchemaParseException(TOO_DEEP)


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
