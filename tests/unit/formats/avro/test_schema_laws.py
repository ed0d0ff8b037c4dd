"""Which schemas are read, and as what: beside Apache's parser, and where the two differ."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator
from typing import Any

import avro.schema as apache
import pytest
from avro.errors import AvroException
from hypothesis import event, given
from hypothesis import strategies as st

from pyspark_upsert_kafka.core.errors import SchemaError
from pyspark_upsert_kafka.formats.avro.avro_schema import parse_schema
from pyspark_upsert_kafka.formats.avro.avro_types import (
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
from tests.laws import law

Json = Any


class OfApache:
    """Our types of those that Apache's parser makes."""

    def __init__(self) -> None:
        self.known: dict[str, AvroType] = {}
        self.records: dict[str, Record] = {}

    def type(self, parsed: Any) -> AvroType:
        """A type, each definition once, and a record within itself by reference."""
        if isinstance(parsed, apache.UnionSchema):
            return Union(tuple(map(self.type, parsed.schemas)))
        if isinstance(parsed, apache.ArraySchema):
            return Array(self.type(parsed.items))
        if isinstance(parsed, apache.MapSchema):
            return Map(self.type(parsed.values))
        if not isinstance(parsed, apache.NamedSchema):
            return Primitive(parsed.type, logical(parsed))
        if parsed.fullname not in self.known:
            self.known[parsed.fullname] = self.definition(parsed, parsed.fullname)
        return self.known[parsed.fullname]

    def definition(self, parsed: Any, name: str) -> AvroType:
        """A type that has a name."""
        space = parsed.namespace
        aliases = tuple(
            alias if "." in alias or not space else f"{space}.{alias}"
            for alias in parsed.props.get("aliases", [])
        )
        if isinstance(parsed, apache.EnumSchema):
            return Enum(name, tuple(parsed.symbols), parsed.default, aliases)
        if isinstance(parsed, apache.FixedSchema):
            return Fixed(name, parsed.size, logical(parsed), aliases)
        self.known[name] = Reference(name)
        fields = tuple(
            Field(
                field.name,
                self.type(field.type),
                field.default if field.has_default else NO_DEFAULT,
                tuple(field.props.get("aliases", [])),
            )
            for field in parsed.fields
        )
        self.records[name] = Record(name, fields, aliases)
        return self.records[name]


def logical(parsed: Any) -> Logical | None:
    """The logical type that Apache's parser has understood."""
    if not isinstance(parsed, apache.LogicalSchema):
        return None
    decimal = isinstance(parsed, apache.DecimalLogicalSchema)
    return Logical(parsed.logical_type, *((parsed.precision, parsed.scale) if decimal else ()))


def by_apache(declared: Json) -> Schema | str:
    """What Apache's parser reads, or what it says against it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            parsed = apache.parse(json.dumps(declared))
        except AvroException as error:
            return str(error)
    model = OfApache()
    return Schema(model.type(parsed), model.records)


def by_us(declared: Json) -> Schema | str:
    """What is read here, or what is said against it."""
    try:
        return parse_schema(declared)
    except SchemaError as error:
        return str(error)


PRIMITIVES = ("null", "boolean", "int", "long", "float", "double", "bytes", "string")
LOGICAL = ("date", "time-millis", "time-micros", "timestamp-millis", "timestamp-micros")
SPACES = ("a", "a.b", "c")


class Drawn:
    """Draws a schema: definitions with and without a namespace, and names of what was defined before."""

    def __init__(self, draw: Any) -> None:
        self.draw = draw
        self.names: list[str] = []

    def one_of(self, *values: Any) -> Any:
        """One of some values."""
        return self.draw(st.sampled_from(values))

    def wrong(self, value: Any, otherwise: Any) -> Any:
        """A value that is wrong, once in a while."""
        return value if self.draw(st.integers(0, 30)) == 30 else otherwise

    def type(self, space: str, depth: int) -> Json:
        """A type within a namespace."""
        makers = [self.primitive, self.primitive, self.named, self.fixed, self.enum]
        if depth < 4:
            makers += [self.array, self.map, self.union, self.record, self.record]
        return self.one_of(*makers)(space, depth)

    def primitive(self, _: str, __: int) -> Json:
        """A primitive type, or a declaration of one."""
        plain = self.one_of(*PRIMITIVES)
        return self.one_of(plain, {"type": plain} | self.logical(), {"type": plain, "x": 1})

    def logical(self) -> Json:
        """A logical type, which may not fit what it is declared of."""
        name = self.one_of(*LOGICAL, "decimal", "unheard-of")
        if name != "decimal":
            return {"logicalType": name}
        numbers = st.integers(-1, 12)
        scale = self.one_of({}, {"scale": self.draw(numbers)})
        return {"logicalType": name, "precision": self.draw(numbers)} | scale

    def named(self, space: str, _: int) -> Json:
        """A name, of a type that was defined or not."""
        if not self.names:
            return "string"
        full = self.one_of(*self.names)
        outer, _, simple = full.rpartition(".")
        return self.wrong("Nowhere", self.one_of(full, simple if outer == space else full))

    def name(self, space: str) -> tuple[str, Json]:
        """The namespace of a definition, and how its name is declared. Few names are taken twice."""
        simple = self.one_of("N", "_n") + str(self.draw(st.integers(0, 300)))
        own = self.one_of(*SPACES)
        within, declared = self.one_of(
            (space, {"name": simple}),
            (own, {"name": simple, "namespace": own}),
            (own, {"name": f"{own}.{simple}"}),
            (own, {"name": f"{own}.{simple}", "namespace": "ignored"}),
        )
        self.names.append(f"{within}.{simple}" if within else simple)
        aliases = self.one_of({}, {"aliases": ["Old", "x.Old"]})
        return within, declared | aliases

    def fixed(self, space: str, _: int) -> Json:
        """A fixed, which may be a decimal."""
        size = self.wrong(-1, self.draw(st.integers(0, 9)))
        return (
            {"type": "fixed", "size": size} | self.name(space)[1] | self.one_of({}, self.logical())
        )

    def enum(self, space: str, _: int) -> Json:
        """An enum."""
        symbols = ["A", *self.draw(st.lists(st.sampled_from(["B", "_c", "D1"]), unique=True))]
        symbols = self.wrong(["A", "A"], self.wrong(["A", "b-"], symbols))
        default = self.one_of({}, {"default": self.wrong("X", self.one_of(*symbols))})
        return {"type": "enum", "symbols": symbols} | self.name(space)[1] | default

    def array(self, space: str, depth: int) -> Json:
        """An array."""
        return {"type": "array", "items": self.type(space, depth + 1)}

    def map(self, space: str, depth: int) -> Json:
        """A map."""
        return {"type": "map", "values": self.type(space, depth + 1)}

    def union(self, space: str, depth: int) -> Json:
        """Some branches, of which one at most has a name."""
        kinds = st.lists(st.sampled_from(PRIMITIVES), min_size=1, max_size=3, unique=True)
        makers = (self.named, self.fixed, self.enum, self.record, self.array, self.map)
        branch = self.wrong(self.primitive, self.one_of(*makers))(space, depth + 1)
        return [*self.draw(kinds), *self.one_of([], [branch])]

    def record(self, space: str, depth: int) -> Json:
        """A record, which may hold itself; fields may be of one name."""
        within, name = self.name(space)
        fields = [self.field(within, depth) for _ in range(self.draw(st.integers(0, 4)))]
        return {"type": "record", "fields": fields} | name

    def field(self, space: str, depth: int) -> Json:
        """A field."""
        name = "f" + str(self.draw(st.integers(0, 1_000)))
        more = self.one_of({}, {"default": None}, {"default": [1]}, {"aliases": ["old"]})
        order = self.one_of({}, {"order": self.one_of("ignore", "descending")})
        return {"name": name, "type": self.type(space, depth + 1)} | more | order


@st.composite
def schemas(draw: Any) -> Json:
    """A schema, of which a few lack a property that they need."""
    drawn = Drawn(draw)
    schema = drawn.record("", 0)
    if draw(st.integers(0, 7)) == 0:
        part = draw(st.sampled_from([*objects(schema)]))
        part.pop(draw(st.sampled_from([*part])))
    return schema


def objects(declared: Json) -> Iterator[dict[str, Json]]:
    """All objects in a schema."""
    if isinstance(declared, list):
        for each in declared:
            yield from objects(each)
    elif isinstance(declared, dict):
        yield declared
        for each in declared.values():
            yield from objects(each)


@law(300)
@given(declared=schemas())
def test_a_schema_is_read_as_by_apache(declared):
    """What Apache's parser takes means the same here, and what it refuses is refused."""
    theirs, ours = by_apache(declared), by_us(declared)
    event(f"read: {isinstance(theirs, Schema)}")
    if isinstance(theirs, Schema):
        assert ours == theirs
    else:
        assert isinstance(ours, str), theirs


def record(*fields: Json, **more: Json) -> Json:
    """A record's declaration."""
    return {"type": "record", "name": "R", "fields": [*fields], **more}


def with_field(kind: Json) -> Json:
    """A record in the namespace ``org`` with a field of this type."""
    return record({"name": "f", "type": kind, "order": "ignore"}, namespace="org")


ENUM = {"type": "enum", "name": "E", "symbols": ["A"]}
FIXED = {"type": "fixed", "name": "F", "size": 16}
E = Enum("org.E", ("A",))

DIFFERENCES: list[tuple[str, Json, AvroType | str, AvroType | str, bool | None]] = [
    # Fastavro takes a type within a type; a name there is Java's own way for a record within itself.
    ("wrapped", {"type": {"type": "int"}}, Primitive("int"), "Undefined type", False),
    ("wrapped union", {"type": ["null", "int"]}, Union((Primitive("null"), Primitive("int"))), "Undefined type", False),
    ("wrapped name", {"type": "array", "items": {"type": "R"}}, Array(Reference("org.R")), "Undefined type", True),
    # Java tells an empty namespace from none, and a primitive type has no namespace.
    ("empty namespace", ENUM | {"namespace": ""}, Enum("E", ("A",)), E, True),
    ("dot", FIXED | {"name": ".F"}, Fixed("F", 16), "is not a valid Avro name", True),
    ("int", [FIXED | {"name": "int"}, "int"], Union((Fixed("org.int", 16), Primitive("int"))), Union((Fixed("org.int", 16), Fixed("org.int", 16))), True),
    ("error", record({"name": "e", "type": ENUM}, type="error", name="b.X"), Record("b.X", (Field("e", Enum("b.E", ("A",))),)), Record("b.X", (Field("e", E),)), True),
    # A property that does not count is not looked at.
    ("namespace beside one", FIXED | {"name": "a.F", "namespace": 5}, Fixed("a.F", 16), "must be a string", True),
    ("default null", ENUM | {"default": None}, E, "is not a valid member", True),
    ("logical type", {"type": "int", "logicalType": ["date"]}, Primitive("int"), "unhashable", True),
    ("order", record({"name": "f", "type": "int", "order": "up"}, name="S"), Record("org.S", (Field("f", Primitive("int")),)), "order property up is not valid", False),
    ("precision", {"type": "bytes", "logicalType": "decimal", "precision": True}, Primitive("bytes"), Primitive("bytes", Logical("decimal", True, 0)), True),
    # Letters of any language, and dashes in namespaces, are in schemas that are in use; Java takes the latter before 1.12.1.
    ("letters of symbols", ENUM | {"symbols": ["GRÖSSE"], "default": "GRÖSSE"}, Enum("org.E", ("GRÖSSE",), "GRÖSSE"), "must be a valid schema name", True),
    ("letters of names", ENUM | {"name": "Größe"}, Enum("org.Größe", ("A",)), "is not a valid Avro name", True),
    ("dash in a namespace", FIXED | {"namespace": "my-shop"}, Fixed("my-shop.F", 16), "is not a valid Avro name", None),
    # Logical types of the specification 1.12.
    ("nanoseconds", {"type": "long", "logicalType": "timestamp-nanos"}, Primitive("long", Logical("timestamp-nanos")), Primitive("long"), True),
    ("local", {"type": "long", "logicalType": "local-timestamp-millis"}, Primitive("long", Logical("local-timestamp-millis")), Primitive("long"), True),
    ("uuid", FIXED | {"logicalType": "uuid"}, Fixed("org.F", 16, Logical("uuid")), Fixed("org.F", 16), True),
    # Of these no value can be told from another, or no datum be read. A field's name is part of what columns are found by.
    ("name of a field", record({"name": "a-b", "type": "int"}, name="S"), "is no name", Record("org.S", (Field("a-b", Primitive("int")),)), False),
    ("no branch", [], "a union needs a branch", Union(()), True),
    ("branch twice", [ENUM, "E"], "org.E type already in Union", Union((E, E)), False),
    ("size", FIXED | {"size": 1 << 40}, "is no number of bytes", Fixed("org.F", 1 << 40), False),
    ("size true", FIXED | {"size": True}, "is no number of bytes: true", Fixed("org.F", True), False),
    ("aliases", ENUM | {"aliases": "F"}, "must be a list of strings", Enum("org.E", ("A",), None, ("org.F",)), False),
]  # fmt: skip
"""A name, a type, what it means here, what Apache's parser makes of it, and whether Java reads it: None = it depends on the version."""


@pytest.mark.parametrize(
    ("kind", "ours", "theirs"),
    [each[1:4] for each in DIFFERENCES],
    ids=[each[0] for each in DIFFERENCES],
)
def test_where_apaches_parser_differs(kind, ours, theirs):
    """A type is read, or refused, as it is because of what Java and schemas in use do."""
    for found, expected in (by_us(with_field(kind)), ours), (by_apache(with_field(kind)), theirs):
        if isinstance(expected, str):
            assert isinstance(found, str)
            assert expected in found
        else:
            assert isinstance(found, Schema)
            assert isinstance(found.type, Record)
            assert found.type.fields[0].type == expected
