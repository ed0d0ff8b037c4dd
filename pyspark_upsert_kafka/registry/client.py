"""What a schema registry is asked for: the schema of an id, the id of a schema, the newest schema.

Answers that never change are kept as long as the process lives.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from functools import lru_cache
from typing import Any
from urllib.parse import quote

from pyspark_upsert_kafka.core.errors import SchemaError
from pyspark_upsert_kafka.formats.registry_format import (
    NoSchemaError,
    Reference,
    RegisteredSchema,
)
from pyspark_upsert_kafka.registry.access import Access
from pyspark_upsert_kafka.registry.rest import request

_DEFAULT_TYPE = "AVRO"
"""A registry leaves the type of such a schema out, and some know no other."""


@lru_cache(maxsize=10_000)
def schema_of_id(access: Access, schema_id: int, type_: str) -> RegisteredSchema:
    """The schema that has this id.

    Args:
        access: The registry.
        schema_id: The id.
        type_: The type of schema that the format reads: of another the references are not looked up.

    Raises:
        SchemaError: There is none, or one that it refers to is not there.
        BrokerError: The registry does not answer, or refuses.
    """
    origin = f"Schema id {schema_id}"
    missing = f"{origin} is not in the schema registry"
    answer = request(access, f"/schemas/ids/{schema_id}", {404: missing})
    return _registered(access, answer, origin, type_)


@lru_cache(maxsize=1_000)
def id_of_schema(access: Access, subject: str, type_: str, text: str, *, register: bool) -> int:
    """The id of a schema under a subject.

    Args:
        access: The registry.
        subject: The subject.
        type_: What a registry calls this kind of schema.
        text: The schema.
        register: Register it, if it is not; else it must be there.

    Raises:
        SchemaError: It is not there, or the subject cannot take it.
        BrokerError: The registry does not answer, or refuses.
    """
    refusals = {
        404: f"The schema to write is not registered under the subject {subject!r}. Register it, or "
        f"let it be registered with '{access.option_prefix}auto.register.schemas' = 'true'",
        409: f"The schema to write is not compatible with those under the subject {subject!r}",
        422: f"The schema registry cannot take the schema to write under the subject {subject!r}",
    }
    path, body = _path(subject), {"schema": text}
    if type_ != _DEFAULT_TYPE:
        body["schemaType"] = type_
    if register:
        try:
            return int(request(access, f"{path}/versions", refusals, body)["id"])
        except SchemaError:
            # Of two tasks that register a schema at the same time, some registries refuse one.
            with suppress(SchemaError):
                return int(request(access, path, refusals, body)["id"])
            raise
    return int(request(access, path, refusals, body)["id"])


def latest_schema(access: Access, subject: str, type_: str) -> RegisteredSchema:
    """The newest schema under a subject.

    Args:
        access: The registry.
        subject: The subject.
        type_: The type of schema that the format reads: of another the references are not looked up.

    Raises:
        NoSchemaError: There is none.
        SchemaError: One that it refers to is not there.
        BrokerError: The registry does not answer, or refuses.
    """
    missing = (
        f"The columns of the table are not known: the schema registry has no subject {subject!r}. "
        f"Give the columns by .schema(...), or another subject by '{access.option_prefix}subject'"
    )
    path = f"{_path(subject)}/versions/latest"
    answer = request(access, path, {404: missing}, refused=NoSchemaError)
    return _registered(access, answer, f"The newest schema of the subject {subject!r}", type_)


def _path(subject: str) -> str:
    return f"/subjects/{quote(subject, safe='')}"


def _registered(
    access: Access, answer: Mapping[str, Any], origin: str, wanted: str
) -> RegisteredSchema:
    found: dict[str, Reference] = {}
    type_ = answer.get("schemaType", _DEFAULT_TYPE)
    if type_ == wanted:
        _collect(access, answer, origin, found)
    return RegisteredSchema(origin, type_, answer["schema"], tuple(found.values()))


def _collect(
    access: Access, answer: Mapping[str, Any], origin: str, found: dict[str, Reference]
) -> None:
    """The schemas that a schema refers to, and those that they refer to, by where they are."""
    for reference in answer.get("references") or ():
        subject, version = reference["subject"], reference["version"]
        path = f"{_path(subject)}/versions/{version}"
        if path not in found:
            missing = f"{origin} refers to version {version} of the subject {subject!r}, which is not there"
            referred = request(access, path, {404: missing})
            found[path] = Reference(reference["name"], referred["schema"])
            _collect(access, referred, origin, found)
