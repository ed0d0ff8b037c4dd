"""What a registry of AWS Glue is asked for: the schema of a version, the version of a schema, the newest version.

A schema there has a name and versions, and messages name a version by its UUID. Answers that never change are kept as long as
the process lives. That Glue does not know a version is kept for a short time.
Source: https://docs.aws.amazon.com/glue/latest/webapi/API_GetSchemaVersion.html and the pages of the other actions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import Any
from uuid import UUID

from pyspark_upsert_kafka.core.clock import SYSTEM_CLOCK, Backoff, Clock
from pyspark_upsert_kafka.core.errors import BrokerError, RetriableBrokerError, SchemaError
from pyspark_upsert_kafka.core.masking import is_unicode, outside_text
from pyspark_upsert_kafka.formats.registry_format import (
    NoSchemaError,
    RegisteredSchema,
    UnknownSchemaError,
)
from pyspark_upsert_kafka.registry.glue_request import GlueAccess, Refusals, call
from pyspark_upsert_kafka.registry.unknown_ids import UnknownIds

_NOT_THERE, _INVALID = "EntityNotFoundException", "InvalidInputException"
_THERE, _TOO_MANY = "AlreadyExistsException", "ResourceNumberLimitExceededException"

_MOST_BACK = 20
"""So many versions before the newest one are looked at for one that passed Glue's checks."""

_CHECKED_S = 60.0
"""For how long Glue's check of a new version is waited for, in seconds. It mostly takes a few."""

_PAUSES = Backoff(0.25, 4.0)
_SHOWN = 100
_ANY = "all resources (version ids belong to no schema that a policy can name)"

_UNKNOWN = UnknownIds()


@dataclass(frozen=True)
class GlueSchema:
    """A schema, which has versions.

    Args:
        access: How to get at Glue.
        registry: The name of its registry.
        name: Its name.
        clock: Tells the time, for the wait until Glue has checked a version.
    """

    access: GlueAccess
    registry: str
    name: str
    clock: Clock = field(default=SYSTEM_CLOCK, compare=False)

    @property
    def key(self) -> dict[str, str]:
        """What it is in a request."""
        return {"RegistryName": self.registry, "SchemaName": self.name}

    def __str__(self) -> str:
        return f"{self.name!r} of the registry {self.registry!r}"

    def ask(self, action: str, refusals: Refusals, **asked: Any) -> Mapping[str, Any]:
        """Glue's answer to a request about it. Raises as `call` does."""
        arn = f"arn:aws:glue:{self.access.found_region()}:<account>:"
        on = f"'{arn}registry/{self.registry}' and '{arn}schema/{self.registry}/{self.name}'"
        return call(self.access, action, asked, refusals, on=on)

    def newest_version(self) -> RegisteredSchema:
        """The newest version that passed Glue's checks.

        Raises:
            NoSchemaError: There is none.
            SchemaError: Glue's answer is malformed.
            BrokerError: Glue does not answer, or refuses.
        """
        found = next(self.versions(), None)
        if found is None:
            raise _no_version(self, "none of the last versions passed Glue's checks")
        return found

    def versions(self) -> Iterator[RegisteredSchema]:
        """The last versions that passed Glue's checks, the newest one first; raises as `newest_version` does."""
        number: dict[str, Any] = {"LatestVersion": True}
        none = partial(_no_version, self)
        for back in range(_MOST_BACK):
            asked = {"SchemaId": self.key, "SchemaVersionNumber": number}
            answer = self.ask("GetSchemaVersion", {_NOT_THERE: none, _INVALID: none}, **asked)
            if answer.get("Status", "AVAILABLE") == "AVAILABLE":
                which = f"Version {answer.get('VersionNumber')}" if back else "The newest version"
                yield _registered(answer, f"{which} of the schema {self}")
            before = answer.get("VersionNumber", 1) - 1
            if before < 1:
                return
            number = {"VersionNumber": before}

    def version(self, type_: str, text: str, create: str | None) -> UUID:
        """The id of the version that is this text, once Glue has checked it.

        Args:
            type_: The kind of schema, by Glue's name.
            text: The text.
            create: Register it if it is not there, and create the schema, with this compatibility, if that is not there;
                None = it must be there.

        Raises:
            SchemaError: It is not there, or Glue cannot take it.
            BrokerError: Glue does not answer, or refuses.
        """
        return _version(self, type_, text, create)


@lru_cache(maxsize=10_000)
def schema_of_version(
    access: GlueAccess, version: UUID, unknown: UnknownIds = _UNKNOWN
) -> RegisteredSchema:
    """The schema that is this version of one.

    Args:
        access: How to get at Glue.
        version: The id of the version.
        unknown: The ids that Glue did not know a moment ago.

    Raises:
        UnknownSchemaError: There is none.
        SchemaError: Glue's answer is malformed.
        BrokerError: Glue does not answer, or refuses.
    """
    origin = f"The schema version {version}"

    def not_there(said: str) -> UnknownSchemaError:
        return UnknownSchemaError(f"{origin} is not in the registries of {access} ({said}).")

    refusals = {_NOT_THERE: not_there, _INVALID: not_there}
    asked = {"SchemaVersionId": str(version)}

    def ask(_: int) -> Mapping[str, Any]:
        return call(access, "GetSchemaVersion", asked, refusals, on=_ANY)

    return _registered(unknown.asked(access, version, origin, ask), origin)


@lru_cache(maxsize=1_000)
def _version(schema: GlueSchema, type_: str, text: str, create: str | None) -> UUID:
    try:
        answer = schema.ask(
            "GetSchemaByDefinition",
            {_NOT_THERE: _NotThereError, _INVALID: partial(_unfit, schema)},
            SchemaId=schema.key,
            SchemaDefinition=text,
        )
    except _NotThereError as error:
        if create is None:
            raise SchemaError(
                f"The schema to write is no version of the schema {schema} in {schema.access} ({error}). Register it, or let it "
                f"be registered with '{schema.access.option_prefix}auto.register.schemas' = 'true'."
            ) from None
        answer = _registering(schema, type_, text, create)
    return _checked(schema, answer)


def _registering(schema: GlueSchema, type_: str, text: str, create: str) -> Mapping[str, Any]:
    """A new version, or a new schema with it; of two tasks that create a schema at the same time one is too late."""
    refusals: Refusals = {
        _INVALID: partial(_unfit, schema),
        _TOO_MANY: partial(_unfit, schema),
        _NOT_THERE: _NotThereError,
    }
    version = partial(
        schema.ask, "RegisterSchemaVersion", SchemaId=schema.key, SchemaDefinition=text
    )
    try:
        return version(refusals)
    except _NotThereError:
        pass
    try:
        answer = schema.ask(
            "CreateSchema",
            {**refusals, _NOT_THERE: partial(_no_registry, schema), _THERE: _ThereError},
            RegistryId={"RegistryName": schema.registry},
            SchemaName=schema.name,
            DataFormat=type_,
            Compatibility=create,
            SchemaDefinition=text,
        )
    except _ThereError:
        return version({**refusals, _NOT_THERE: partial(_unfit, schema)})
    return {**answer, "Status": answer.get("SchemaVersionStatus")}


def _no_version(schema: GlueSchema, said: str) -> NoSchemaError:
    return NoSchemaError(
        f"The columns of the table are not known: {schema.access} has no version of the schema {schema} ({said}). Give the "
        f"columns by .schema(...), or another schema by '{schema.access.option_prefix}schema.name'"
    )


class _NotThereError(Exception):
    """Glue does not know the schema, or not this version."""


class _ThereError(Exception):
    """The schema has come to be meanwhile."""


def _unfit(schema: GlueSchema, said: str) -> SchemaError:
    return SchemaError(
        f"{schema.access} cannot take the schema to write as a version of the schema {schema} ({said})."
    )


def _no_registry(schema: GlueSchema, said: str) -> SchemaError:
    return SchemaError(
        f"{schema.access} has no registry {schema.registry!r} to create the schema {schema.name!r} in ({said}). Create it, or "
        f"name another one by '{schema.access.option_prefix}registry.name'."
    )


def _checked(schema: GlueSchema, answer: Mapping[str, Any]) -> UUID:
    """The id of a version, when Glue has checked whether it is compatible with those before it."""
    version, status = _id(schema, answer), answer.get("Status")
    clock = schema.clock
    until, attempt = clock.monotonic() + _CHECKED_S, 0
    while status == "PENDING":
        pause_s = _PAUSES.pause_s(attempt)
        if clock.monotonic() + pause_s > until:
            raise RetriableBrokerError(
                f"{schema.access} still checks, after {_CHECKED_S:.0f} s, whether the schema to write is compatible with the "
                f"versions of the schema {schema}: its version {version} is PENDING."
            )
        clock.sleep(pause_s)
        attempt += 1
        status = schema.ask("GetSchemaVersion", {}, SchemaVersionId=str(version)).get("Status")
    if status != "AVAILABLE":
        raise SchemaError(
            f"The schema to write is not compatible with the versions of the schema {schema} in {schema.access}"
            f"{_compatibility(schema)}: its version {version} has the status {outside_text(str(status), _SHOWN)}. Write columns "
            f"that are compatible, or name another schema by '{schema.access.option_prefix}schema.name'."
        )
    return version


def _compatibility(schema: GlueSchema) -> str:
    """What compatibility is demanded, for an error; empty when Glue does not say that here."""
    try:
        answer = schema.ask("GetSchema", {_NOT_THERE: _NotThereError}, SchemaId=schema.key)
    except (_NotThereError, BrokerError):
        return ""
    return f", whose compatibility is {outside_text(str(answer.get('Compatibility')), _SHOWN)}"


def _id(schema: GlueSchema, answer: Mapping[str, Any]) -> UUID:
    try:
        return UUID(answer.get("SchemaVersionId"))
    except (TypeError, ValueError, AttributeError):
        raise BrokerError(
            f"{schema.access} does not say the id of a version. Is "
            f"'{schema.access.option_prefix}endpoint' an address of Glue?"
        ) from None


def _registered(answer: Mapping[str, Any], origin: str) -> RegisteredSchema:
    for name in ("SchemaDefinition", "DataFormat"):
        if not isinstance(answer.get(name), str) or not is_unicode(answer[name]):
            raise SchemaError(f"{origin} is malformed in Glue's answer: {name!r} is no text.")
    return RegisteredSchema(
        origin, outside_text(answer["DataFormat"], _SHOWN), answer["SchemaDefinition"]
    )
