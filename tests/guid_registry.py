"""A schema registry on this machine that knows GUIDs: Confluent's own ``MockSchemaRegistryClient``, asked over HTTP."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote, urlsplit

from confluent_kafka.schema_registry import (
    Schema,
    SchemaRegistryClient,
    SchemaRegistryError,
    header_schema_id_serializer,
    prefix_schema_id_serializer,
)
from confluent_kafka.schema_registry.avro import AvroSerializer
from confluent_kafka.serialization import MessageField, SerializationContext

from tests.http_server import Answer, Asked, http_server

AVRO_KEY = '{"type":"record","name":"k","fields":[{"name":"id","type":"long"}]}'
AVRO_VALUE = (
    '{"type":"record","name":"v","fields":[{"name":"id","type":"long"},'
    '{"name":"name","type":["null","string"],"default":null}]}'
)

Message = tuple[bytes | None, bytes | None, list[tuple[str, bytes | None]]]
"""Key, value and headers."""

_SUBJECT = re.compile(r"/subjects/([^/]+)(?:/versions(?:/([^/]+))?)?")


@dataclass
class GuidRegistry:
    """A registry that runs.

    Args:
        url: Its address.
        client: What Confluent's serializers ask.
        asked: The requests that came, each as a method and a path.
    """

    url: str
    client: Any
    asked: list[tuple[str, str]] = field(default_factory=list)

    def guid(self, subject: str) -> str:
        """The GUID of the newest schema of a subject."""
        return str(self.client.get_latest_version(subject).guid)

    def answer(self, method: str, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """What it says. Raises SchemaRegistryError."""
        kind, _, name = path.removeprefix("/schemas/").partition("/")
        if path.startswith("/schemas/"):
            by_id = kind == "ids"
            found = self.client.get_schema(int(name)) if by_id else self.client.get_schema_by_guid(name)  # fmt: skip
            return dict(found.to_dict())
        parts = _SUBJECT.fullmatch(path)
        if parts is None:
            raise SchemaRegistryError(404, 404, "HTTP 404 Not Found")
        subject, version = unquote(parts[1]), parts[2]
        if method == "GET":
            is_newest = version == "latest"
            found = self.client.get_latest_version(subject) if is_newest else self.client.get_version(subject, int(version))  # fmt: skip
        else:
            schema = Schema(body["schema"], body.get("schemaType", "AVRO"))
            ask = (
                self.client.register_schema_full_response
                if path.endswith("/versions")
                else self.client.lookup_schema
            )
            found = ask(subject, schema)
        return {"id": found.schema_id, "guid": found.guid, **found.schema.to_dict()}


@contextmanager
def guid_registry() -> Iterator[GuidRegistry]:
    """The registry, as long as the context lasts; it is empty at first."""
    # Confluent's client for such an address asks no server: it is the mock.
    registry = GuidRegistry("", SchemaRegistryClient.new_client({"url": "mock://"}))

    def answer(asked: Asked) -> Answer:
        path = urlsplit(asked.path).path
        registry.asked.append((asked.method, path))
        try:
            return Answer(200, registry.answer(asked.method, path, asked.body or {}))
        except SchemaRegistryError as error:
            code = 40403 if error.error_code == 40400 else error.error_code
            said = {"error_code": code, "message": error.error_message}
            return Answer(error.http_status_code, said)

    with http_server(answer) as registry.url:
        yield registry


def theirs(
    serializer: Any,
    side: str,
    datum: Any,
    headers: list[tuple[str, bytes | None]],
    topic: str = "orders",
) -> bytes:
    """The bytes that one of Confluent's serializers makes; it adds its header."""
    context = SerializationContext(
        topic, MessageField.KEY if side == "key" else MessageField.VALUE, headers
    )
    return bytes(serializer(datum, context))


def avro_pair(registry: GuidRegistry, in_header: bool = True) -> tuple[Any, Any]:
    """Confluent's serializers for key and value."""
    naming = header_schema_id_serializer if in_header else prefix_schema_id_serializer
    return (
        AvroSerializer(registry.client, AVRO_KEY, conf={"schema.id.serializer": naming}),
        AvroSerializer(registry.client, AVRO_VALUE, conf={"schema.id.serializer": naming}),
    )


def avro_message(
    registry: GuidRegistry,
    datum: dict[str, Any] | None,
    key: int,
    in_header: bool = True,
    topic: str = "orders",
) -> Message:
    """A message as Confluent's serializers write it."""
    key_serializer, value_serializer = avro_pair(registry, in_header)
    headers: list[tuple[str, bytes | None]] = []
    key_bytes = theirs(key_serializer, "key", {"id": key}, headers, topic)
    value = None if datum is None else theirs(value_serializer, "value", datum, headers, topic)
    return key_bytes, value, headers
