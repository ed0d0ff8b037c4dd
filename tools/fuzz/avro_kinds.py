"""Random Avro types of readers and matching types of writers, with values of both."""

from __future__ import annotations

from random import Random
from typing import Any

from pyspark.sql.types import ArrayType, MapType, StringType, StructField, StructType

from tools.fuzz.avro_leaves import Kind, Pair, Writer, leaf


def anything(rng: Random, depth: int, *, given: bool = True) -> tuple[Kind, bool]:
    """A type, and whether its column may be NULL."""
    shape = rng.random()
    if depth <= 0 or shape < 0.6:
        kind = leaf(rng, given=given)
    elif shape < 0.75:
        kind = _array(*anything(rng, depth - 1, given=given))
    elif shape < 0.87:
        kind = _map(*anything(rng, depth - 1, given=given))
    else:
        kind = record(rng, depth - 1, given=given)
    if isinstance(kind.schema, list) or rng.random() < 0.5:
        return kind, rng.random() < 0.5
    return _nullable(rng, kind), True


def _nullable(rng: Random, kind: Kind) -> Kind:
    first = rng.random() < 0.7

    def writer(rng: Random) -> Writer:
        inner = kind.writer(rng)
        if rng.random() < 0.3 or isinstance(inner.schema, list):
            return inner
        branches = ["null", inner.schema] if rng.random() < 0.6 else [inner.schema, "null"]
        return Writer(
            branches, lambda rng: (None, None) if rng.random() < 0.15 else inner.value(rng)
        )

    schema = ["null", kind.schema] if first else [kind.schema, "null"]
    return Kind(schema, kind.column, writer, (None, None) if first else kind.default)


def _array(kind: Kind, nullable: bool) -> Kind:
    def writer(rng: Random) -> Writer:
        inner = kind.writer(rng)

        def value(rng: Random) -> Pair:
            pairs = [inner.value(rng) for _ in range(rng.randrange(4))]
            return [written for written, _ in pairs], [read for _, read in pairs]

        return Writer({"type": "array", "items": inner.schema}, value)

    return Kind(
        {"type": "array", "items": kind.schema}, ArrayType(kind.column, nullable), writer, ([], [])
    )


def _map(kind: Kind, nullable: bool) -> Kind:
    def writer(rng: Random) -> Writer:
        inner = kind.writer(rng)

        def value(rng: Random) -> Pair:
            pairs = {
                name: inner.value(rng)
                for name in rng.sample(["", "a", "é", "k" * 80, "b"], rng.randrange(4))
            }
            return {n: written for n, (written, _) in pairs.items()}, [
                (n, read) for n, (_, read) in pairs.items()
            ]

        return Writer({"type": "map", "values": inner.schema}, value)

    return Kind(
        {"type": "map", "values": kind.schema}, MapType(StringType(), kind.column, nullable), writer
    )


def record(rng: Random, depth: int, *, given: bool = True) -> Kind:
    """A record, whose writer may have other fields, in another order and under another name.

    Args:
        rng: Decides.
        depth: How deep types may nest.
        given: Whether there is a reader's schema, with defaults and aliases; else what is not written is NULL.
    """
    name = f"R{rng.getrandbits(48)}"
    fields = {
        field: anything(rng, depth, given=given)
        for field in rng.sample("abcdefgh", rng.randint(1, 4))
    }
    wanted = rng.sample([*fields], rng.randint(1, len(fields)))
    column = StructType(
        [StructField(field, fields[field][0].column, fields[field][1]) for field in wanted]
    )
    aliased = {field for field in fields if given and rng.random() < 0.2}
    declared = [_field(field, kind, field in aliased) for field, (kind, _) in fields.items()]

    def absent(name: str) -> Pair | None:
        """What a field is that was not written; None = it must be."""
        kind, nullable = fields[name]
        if given:
            return kind.default
        return (None, None) if nullable else None

    def writer(rng: Random) -> Writer:
        left_out = {f: found for f in fields if (found := absent(f)) and rng.random() < 0.2}
        names = {
            f: f"old_{f}" if f in aliased and rng.random() < 0.5 else f
            for f in fields
            if f not in left_out
        }
        inner = {f: fields[f][0].writer(rng) for f in names}
        extra = {
            f"x{at}": anything(rng, 1)[0].writer(rng) for at in range(rng.choice([0, 0, 1, 2]))
        }
        parts = [*((names[f], one) for f, one in inner.items()), *extra.items()]
        rng.shuffle(parts)

        def value(rng: Random) -> Pair:
            drawn = {f: one.value(rng) for f, one in inner.items()}
            written = {names[f]: each for f, (each, _) in drawn.items()}
            written |= {f: one.value(rng)[0] for f, one in extra.items()}
            return written, {f: (drawn.get(f) or left_out[f])[1] for f in wanted}

        schema = {
            "type": "record",
            "name": name,
            "fields": [{"name": n, "type": one.schema} for n, one in parts],
        }
        return Writer(schema, value)

    return Kind({"type": "record", "name": name, "fields": declared}, column, writer)


def _field(name: str, kind: Kind, aliased: bool) -> dict[str, Any]:
    field = {"name": name, "type": kind.schema}
    if aliased:
        field["aliases"] = [f"old_{name}"]
    if kind.default is not None:
        field["default"] = kind.default[0]
    return field
