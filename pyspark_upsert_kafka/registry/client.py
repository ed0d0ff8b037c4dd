"""What a schema registry is asked for: the schema of an id, the id of a schema, the newest schema.

Answers that never change are kept as long as the process lives. That it does not know an id is kept for a short time.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import lru_cache, partial
from typing import Any, NamedTuple
from urllib.parse import quote
from uuid import UUID

from pyspark_upsert_kafka.core.errors import BrokerError, SchemaError
from pyspark_upsert_kafka.core.masking import is_unicode, outside_text
from pyspark_upsert_kafka.formats.registry_format import (
    NoSchemaError,
    Reference,
    RegisteredSchema,
    UnknownSchemaError,
)
from pyspark_upsert_kafka.http_request import MOST_BYTES
from pyspark_upsert_kafka.registry.access import Access
from pyspark_upsert_kafka.registry.rest import PATIENCE, Patience, request
from pyspark_upsert_kafka.registry.unknown_ids import UnknownIds

SchemaId = int | UUID
"""What a message names its schema by: an id, which one registry has given to it, or a GUID, which it has in all of them."""

_DEFAULT_TYPE = "AVRO"
"""A registry leaves the type of such a schema out, or says null, and some know no other."""

_CONTEXT = re.compile(r":\.[^:]*:")

_MOST_ID = 2**31 - 1

_MOST_REFERRED = 1_000
"""A schema may refer to so many others, all together."""

_VERSION = re.compile("-?[0-9]{1,10}")
_SHOWN = 100


_UNKNOWN = UnknownIds()

_highest_known: dict[tuple[Access, str], int] = {}
"""The highest id that a registry is known to have, by registry and context."""

NEW_IDS = 10_000
"""An id above the highest one that a registry names may be one of so many that were given since, as its node may lag behind others."""

_PATIENCE = (PATIENCE, Patience(silent_s=2.0, all_s=2.0))
"""For the first request for an id, and for the second, without which the query goes on."""

_LATELY_S = 30.0
"""So long the highest id tells which ones are far above it, in seconds."""

_FIRST_IDS = (1, 100_001)
"""What registries begin with: most with the first, Confluent Cloud with the second."""

_GUIDS = "GUIDs"
"""Remembered among unknown ids of a registry that knows no GUIDs at all."""


def context_of(subject: str | None) -> str:
    """The context that a subject is in, with colons as its name begins; empty = the default one.

    >>> context_of(":.staging:orders-value"), context_of("orders-value")
    (':.staging:', '')
    """
    found = _CONTEXT.match(subject or "")
    return found.group() if found else ""


@lru_cache(maxsize=10_000)
def schema_of_id(
    access: Access,
    schema_id: SchemaId,
    type_: str,
    unknown: UnknownIds = _UNKNOWN,
    *,
    context: str = "",
) -> RegisteredSchema:
    """The schema that has this id or GUID.

    Args:
        access: The registry.
        schema_id: The id, or the GUID.
        type_: The type of schema that the format reads: of another the references are not looked up.
        unknown: The ids that the registry did not know a moment ago.
        context: The context whose id it is: each has its own. A GUID is that of all; what its schema refers to is in this one.

    Raises:
        UnknownSchemaError: There is none.
        SchemaError: It is malformed, or one that it refers to is not there.
        BrokerError: The registry does not answer, or refuses.
    """
    if isinstance(schema_id, UUID):
        return _schema_of_guid(access, schema_id, type_, unknown, context)
    origin = f"Schema id {schema_id}"
    if context:
        origin += f" of the context {context!r}"
    missing = f"{origin} is not in the schema registry"
    ask = partial(_asked, access, _path_of_id(schema_id, context), missing, None)

    def may_be_new() -> bool:
        highest = _highest_lately(access, context, int(unknown.clock.monotonic() / _LATELY_S))
        return highest is None or schema_id <= highest + NEW_IDS

    answer = unknown.asked(access, (schema_id, context), origin, ask, may_be_new)
    _note_known(access, context, schema_id)
    return _registered(access, answer, origin, type_, context)


def _schema_of_guid(
    access: Access, guid: UUID, type_: str, unknown: UnknownIds, context: str
) -> RegisteredSchema:
    origin = f"The schema with the GUID {guid}"
    missing = f"{origin} is not in the schema registry"
    if (said := unknown.said(access, _GUIDS)) is not None:
        raise UnknownSchemaError(f"{missing}, {said}")
    ask = partial(_asked, access, f"/schemas/guids/{guid}", missing, _NoPathError)
    try:
        answer = unknown.asked(access, guid, origin, ask)
    except _NoPathError as error:
        # Perhaps a server before the registry has answered, while that is away: then it does so for any path.
        with suppress(UnknownSchemaError):
            its_own = dict.fromkeys((400, 403, 404, 422), "")
            request(access, _path_of_id(_MOST_ID), its_own, refused=UnknownSchemaError)
        said = f"which knows no schemas by GUIDs, as Confluent's does from 8.0 on ({error})."
        unknown.add(access, _GUIDS, said)
        raise UnknownSchemaError(f"{missing}, {said}") from None
    return _registered(access, answer, origin, type_, context)


def _asked(
    access: Access, path: str, missing: str, no_path: type[Exception] | None, turn: int
) -> dict[str, Any]:
    """The answer to a request for a schema, the first one (0) or the second."""
    return request(
        access, path, {404: missing}, refused=UnknownSchemaError, no_path=no_path,
        turn=turn, patience=_PATIENCE[turn],
    )  # fmt: skip


class _NoPathError(BrokerError):
    """A registry does not have a path."""


def highest_id(access: Access, context: str = "") -> int | None:
    """The highest id that a registry has given until now in a context; None = it does not say.

    Confluent's registry says it beside a schema that it knows, if it is asked to (``fetchMaxId``). Others leave it out. Where no
    schema of ours is known, one of others is asked for, which may be refused: that is no error.
    """
    known = _highest_known.get((access, context))
    for schema_id in _FIRST_IDS if known is None else (known,):
        path = _path_of_id(schema_id, context, "fetchMaxId=true")
        with suppress(UnknownSchemaError, BrokerError):
            said = request(access, path, {404: ""}, refused=UnknownSchemaError).get("maxId")
            _note_known(access, context, schema_id)
            # It knows those that it knows, whatever it says.
            highest = _highest_known[access, context]
            return max(said, highest) if type(said) is int else None
    return None


@lru_cache(maxsize=100)
def _highest_lately(access: Access, context: str, lately: int) -> int | None:  # noqa: ARG001 - a part of the time: asked once in each
    return highest_id(access, context)


def _note_known(access: Access, context: str, schema_id: int) -> None:
    _highest_known[access, context] = max(schema_id, _highest_known.get((access, context), 0))


def _path_of_id(schema_id: int, context: str = "", *query: str) -> str:
    if context:
        query = (*query, f"subject={quote(context, safe='')}")
    return f"/schemas/ids/{schema_id}{'?' if query else ''}{'&'.join(query)}"


class SchemaNames(NamedTuple):
    """What a registry calls a schema.

    Args:
        id: Its id.
        guid: Its GUID; None = the registry has none.
    """

    id: int
    guid: UUID | None


@lru_cache(maxsize=1_000)
def registered_schema(
    access: Access, subject: str, type_: str, text: str, *, register: bool
) -> SchemaNames:
    """The id and the GUID of a schema under a subject.

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
            return _names(access, f"{path}/versions", refusals, body)
        except SchemaError:
            # Of two tasks that register a schema at the same time, some registries refuse one.
            with suppress(SchemaError):
                return _names(access, path, refusals, body)
            raise
    return _names(access, path, refusals, body)


def _names(
    access: Access, path: str, refusals: Mapping[int, str], body: Mapping[str, Any]
) -> SchemaNames:
    answer = request(access, path, refusals, body)
    found, guid = answer.get("id"), answer.get("guid")
    if type(found) is not int or not 0 <= found <= _MOST_ID:
        raise _wrong_name(access, f"the schema id {_seen(found)}, which is no number of 31 bits")
    if guid is None:
        return SchemaNames(found, None)
    try:
        return SchemaNames(found, UUID(guid))
    except (AttributeError, TypeError, ValueError):
        raise _wrong_name(access, f"the GUID {_seen(guid)} of a schema, which is none") from None


def _seen(found: object) -> str:
    return outside_text(repr(found), _SHOWN)


def _wrong_name(access: Access, what: str) -> BrokerError:
    return BrokerError(
        f"The schema registry at {', '.join(access.urls)} answers with {what}. "
        f"Is '{access.option_prefix}url' the address of a schema registry, with its path?"
    )


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
    origin = f"The newest schema of the subject {subject!r}"
    return _registered(access, answer, origin, type_, context_of(subject))


_MOST_BACK = 20
"""So many versions before the newest one are looked at for one of a certain record type."""


def older_schemas(access: Access, subject: str, type_: str) -> Iterator[RegisteredSchema]:
    """The schemas before the newest one of a subject that has one, the newer ones first. Raises as `latest_schema` does."""
    path = f"{_path(subject)}/versions"
    newest = request(access, f"{path}/latest", {404: ""}, refused=NoSchemaError).get("version")
    if not isinstance(newest, int):
        return
    for version in range(newest - 1, max(0, newest - 1 - _MOST_BACK), -1):
        with suppress(NoSchemaError):
            answer = request(access, f"{path}/{version}", {404: ""}, refused=NoSchemaError)
            origin = f"Version {version} of the subject {subject!r}"
            yield _registered(access, answer, origin, type_, context_of(subject))


def _path(subject: str) -> str:
    return f"/subjects/{quote(subject, safe='')}"


def _registered(
    access: Access, answer: Mapping[str, Any], origin: str, wanted: str, context: str
) -> RegisteredSchema:
    type_ = answer.get("schemaType") or _DEFAULT_TYPE
    text = _text(answer, "schema", origin)
    found = _referred(access, answer, origin, context) if type_ == wanted else []
    return RegisteredSchema(origin, type_, text, tuple(found))


def _referred(
    access: Access, answer: Mapping[str, Any], origin: str, context: str
) -> list[Reference]:
    """The schemas that a schema refers to, and those that they refer to, each once."""
    found: dict[str, Reference] = {}
    left, size = [_references(answer, origin, context)], 0
    while left:
        reference = next(left[-1], None)
        if reference is None:
            left.pop()
            continue
        name, subject, version = reference
        path = f"{_path(subject)}/versions/{version}"
        if path in found:
            continue
        of = f"version {version} of the subject {subject!r}"
        missing = f"{origin} refers to {of}, which is not there"
        referred = request(access, path, {404: missing})
        found[path] = Reference(name, _text(referred, "schema", f"{origin}, which refers to {of}"))
        size += len(found[path].text)
        if len(found) > _MOST_REFERRED or size > MOST_BYTES:
            raise SchemaError(
                f"{origin} refers to more than {_MOST_REFERRED:,} schemas, or to more than "
                f"{MOST_BYTES // 1024 // 1024} MB of them; those count to which they refer. Have its references no end?"
            )
        left.append(_references(referred, origin, context_of(subject)))
    return list(found.values())


def _references(
    answer: Mapping[str, Any], origin: str, context: str
) -> Iterator[tuple[str, str, str]]:
    """Name, subject and version of each schema that an answer refers to; a subject without a context is in that of the answer."""
    references = answer.get("references") or ()
    if not isinstance(references, (list, tuple)):
        raise _malformed(origin, "'references' is no list")
    for reference in references:
        if not isinstance(reference, dict):
            raise _malformed(origin, "one of its 'references' is no object")
        name, subject = (_text(reference, key, f"{origin}, a reference") for key in ("name", "subject"))  # fmt: skip
        version = str(reference.get("version"))
        if not _VERSION.fullmatch(version):
            seen = outside_text(version, _SHOWN)
            raise _malformed(origin, f"'version' of a reference is {seen!r}, and no number")
        yield name, subject if context_of(subject) else context + subject, version


def _text(answer: Mapping[str, Any], key: str, origin: str) -> str:
    found = answer.get(key)
    if not isinstance(found, str) or not is_unicode(found):
        raise _malformed(origin, f"{key!r} is no text")
    return found


def _malformed(origin: str, what: str) -> SchemaError:
    return SchemaError(f"{origin} is malformed in the answer of the schema registry: {what}.")
