"""What is asked of a schema registry: the schema of an id, the id of a schema, the newest schema.

Answers that never change are kept as long as the process lives.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from functools import lru_cache
from typing import Any
from urllib.parse import quote

from pyspark_upsert_kafka.core.errors import SchemaError
from pyspark_upsert_kafka.formats.avro_confluent.access import Access
from pyspark_upsert_kafka.formats.avro_confluent.references import with_definitions
from pyspark_upsert_kafka.formats.avro_confluent.rest import ask


@lru_cache(maxsize=10_000)
def schema_of_id(access: Access, schema_id: int) -> str:
    """The Avro schema that has this id, as JSON that needs no other schema.

    Raises:
        SchemaError: There is none, or it is not Avro's.
        BrokerError: The registry does not answer, or refuses.
    """
    name = f"Schema id {schema_id}"
    missing = f"{name} is not in the schema registry"
    return _avro(access, ask(access, f"/schemas/ids/{schema_id}", {404: missing}), name)


@lru_cache(maxsize=1_000)
def id_of_schema(access: Access, subject: str, schema: str, *, register: bool) -> int:
    """The id of a schema under a subject.

    Args:
        access: The registry.
        subject: The subject.
        schema: The schema, as JSON.
        register: Register it, if it is not; else it must be there.

    Raises:
        SchemaError: It is not there, or the subject cannot take it.
        BrokerError: The registry does not answer, or refuses.
    """
    refusals = {
        404: f"The schema to write is not registered under the subject {subject!r}. Register it, or "
        f"let it be registered with '{access.prefix}auto.register.schemas' = 'true'",
        409: f"The schema to write is not compatible with those under the subject {subject!r}",
        422: f"The schema registry cannot take the schema to write under the subject {subject!r}",
    }
    path, asked = _path(subject), {"schema": schema}
    if register:
        try:
            return int(ask(access, f"{path}/versions", refusals, asked)["id"])
        except SchemaError:
            # Of two tasks that register a schema at the same time, some registries refuse one.
            with suppress(SchemaError):
                return int(ask(access, path, refusals, asked)["id"])
            raise
    return int(ask(access, path, refusals, asked)["id"])


def latest_schema(access: Access, subject: str) -> str:
    """The newest Avro schema under a subject, as JSON that needs no other schema.

    Raises:
        SchemaError: There is none, or it is not Avro's.
        BrokerError: The registry does not answer, or refuses.
    """
    missing = (
        f"The columns of the table are not known: the schema registry has no subject {subject!r}. "
        f"Give the columns by .schema(...), or another subject by '{access.prefix}subject'"
    )
    answer = ask(access, f"{_path(subject)}/versions/latest", {404: missing})
    return _avro(access, answer, f"The newest schema of the subject {subject!r}")


def _path(subject: str) -> str:
    return f"/subjects/{quote(subject, safe='')}"


def _avro(access: Access, answer: Mapping[str, Any], name: str) -> str:
    kind = answer.get("schemaType", "AVRO")
    if kind != "AVRO":
        raise SchemaError(f"{name} is of the type {kind}, not an Avro schema.")
    schema: str = answer["schema"]
    needed: dict[str, str] = {}
    _collect(access, answer, name, needed)
    return with_definitions(schema, list(needed.values())) if needed else schema


def _collect(access: Access, answer: Mapping[str, Any], name: str, found: dict[str, str]) -> None:
    """The schemas that a schema refers to, and those that they refer to, by where they are."""
    for reference in answer.get("references") or ():
        subject, version = reference["subject"], reference["version"]
        path = f"{_path(subject)}/versions/{version}"
        if path not in found:
            missing = (
                f"{name} refers to version {version} of the subject {subject!r}, which is not there"
            )
            referred = ask(access, path, {404: missing})
            found[path] = referred["schema"]
            _collect(access, referred, name, found)
