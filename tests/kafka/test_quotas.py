"""Quotas of a real broker: a client that uses one up is told of, and goes on."""

from __future__ import annotations

import socket
import struct
import uuid

import pytest

from pyspark_upsert_kafka import read_table
from pyspark_upsert_kafka.kafka.librdkafka import errors
from tests.conftest import Broker, options
from tests.kafka.conftest import Edge

_ALTER_CLIENT_QUOTAS, _VERSION = 49, 0
_BYTES_PER_S = 100_000.0


@pytest.mark.long("a broker holds answers back for some seconds")
@pytest.mark.parametrize("native", ["on", "off"])
def test_a_quota_that_is_used_up_is_told(
    broker: Broker, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, native: str
) -> None:
    """Whoever writes and reads too fast has one line for each client here (once a minute for a process), and all rows."""
    monkeypatch.setenv("PYSPARK_UPSERT_KAFKA_NATIVE", native)
    monkeypatch.setattr(errors, "_TOLD_EVERY_S", 0.0)
    topic, client = broker.topic(), f"quota-{uuid.uuid4().hex}"
    limit(broker.servers, client)
    edge = Edge("librdkafka", broker.servers, (("client.id", client),))
    value = b'{"id":%d,"name":"' + b"x" * 20_000 + b'"}'

    edge.send(topic, *((b'{"id":%d}' % n, value % n) for n in range(100)))
    written = [each.getMessage() for each in caplog.records if "throttles" in each.getMessage()]
    caplog.clear()
    given = options(broker, topic, **{"properties.client.id": client})
    table = read_table(given, schema="id BIGINT, name STRING").read_all()

    assert table.num_rows == 100
    for told in (written, [each.getMessage() for each in caplog.records]):
        assert any(f"throttles the client {client!r}" in text for text in told), told


def limit(servers: str, client: str) -> None:
    """Bounds how many bytes a client may write and read in a second (AlterClientQuotas v0 of Kafka's protocol)."""
    host, _, port = servers.rpartition(":")
    body = struct.pack(">hhih", _ALTER_CLIENT_QUOTAS, _VERSION, 1, -1)
    body += struct.pack(">ii", 1, 1) + _text("client-id") + _text(client)
    body += struct.pack(">i", 2)
    for quota in ("producer_byte_rate", "consumer_byte_rate"):
        body += _text(quota) + struct.pack(">d?", _BYTES_PER_S, False)
    body += struct.pack(">?", False)
    with socket.create_connection((host, int(port)), timeout=60) as broker:
        broker.sendall(struct.pack(">i", len(body)) + body)
        with broker.makefile("rb") as answer:
            (size,) = struct.unpack(">i", answer.read(4))
            (error,) = struct.unpack_from(">h", answer.read(size), 4 + 4 + 4)
    assert error == 0, f"Kafka's error code {error}"


def _text(value: str) -> bytes:
    return struct.pack(">h", len(value)) + value.encode()
