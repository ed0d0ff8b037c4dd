"""What stands in the JSON of a schema, each piece checked; ``at`` is its place, for errors."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from pyspark_upsert_kafka.core.errors import SchemaError

Json = Any


def attribute(declared: Mapping[str, Json], name: str, at: str) -> Json:
    """An attribute that must be there."""
    if name not in declared:
        raise wrong(at, f"{name!r} is missing")
    return declared[name]


def strings(declared: Mapping[str, Json], name: str, at: str) -> tuple[str, ...]:
    """A list of strings; empty when it is not there."""
    listed = declared.get(name, [])
    if not isinstance(listed, list) or not all(isinstance(item, str) for item in listed):
        raise wrong(at, f"{name!r} must be a list of strings")
    return tuple(listed)


def full_name(declared: Mapping[str, Json], space: str, at: str) -> tuple[str, str]:
    """The full name of a definition, and the namespace that holds within it."""
    name = attribute(declared, "name", at)
    if isinstance(name, str) and "." in name:
        space, _, name = name.rpartition(".")
    else:
        space = declared.get("namespace", space)
        if not isinstance(space, str):
            raise wrong(at, f"'namespace' must be a string, got {json.dumps(space)}")
    for part in space.split(".") if space else ():
        checked_name(part, at)
    return joined(space, checked_name(name, at)), space


def joined(space: str, name: str) -> str:
    """A name in its namespace, which may be the empty one."""
    return f"{space}.{name}" if space else name


def checked_name(name: Json, at: str) -> str:
    """Letters, digits and underscores, as Java's ``NameValidator.UTF_VALIDATOR`` has them."""
    if not isinstance(name, str) or not name.isidentifier():
        raise wrong(at, f"{json.dumps(name)} is no name: only letters, digits and '_' may be in it")
    return name


def check_distinct(names: Iterable[str], at: str, what: str) -> None:
    """Raises SchemaError for a name that occurs twice."""
    for name, times in Counter(names).items():
        if times > 1:
            raise wrong(at, f"the {what} {name!r} occurs {times} times")


def wrong(at: str, what: str) -> SchemaError:
    """The error of a schema."""
    return SchemaError(f"The Avro schema is wrong at {at}: {what}.")
