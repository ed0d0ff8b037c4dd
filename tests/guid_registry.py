"""A schema registry on this machine that knows GUIDs: Confluent's own ``MockSchemaRegistryClient``, asked over HTTP."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
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

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            body = json.loads(self.rfile.read(length) or b"{}")
            path = urlsplit(self.path).path
            registry.asked.append((self.command, path))
            try:
                status, said = 200, registry.answer(self.command, path, body)
            except SchemaRegistryError as error:
                code = 40403 if error.error_code == 40400 else error.error_code
                status = error.http_status_code
                said = {"error_code": code, "message": error.error_message}
            self.send_response(status)
            self.end_headers()
            self.wfile.write(json.dumps(said).encode())

        do_POST = do_GET  # noqa: N815

        def log_message(self, *args: object) -> None:
            """Keep the test's output clean."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        url = f"http://127.0.0.1:{server.server_address[1]}"
        # Confluent's client for such an address asks no server: it is the mock.
        registry = GuidRegistry(url, SchemaRegistryClient.new_client({"url": "mock://"}))
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield registry
        finally:
            server.shutdown()
            thread.join()


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
