"""Messages that no Kafka client for Python would send: header keys of any bytes, by Kafka's own protocol.

Sources: https://kafka.apache.org/protocol (Produce v3) and .../documentation/#recordbatch.
"""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Sequence

_PRODUCE, _VERSION = 0, 3
_NONE = -1

_NOT_YET = (3, 5, 6)
"""A broker's answers about a topic that is new: unknown, without a leader, led by another."""


def produce_raw(
    servers: str,
    topic: str,
    key: bytes | None,
    value: bytes | None,
    headers: Sequence[tuple[bytes, bytes | None]],
) -> None:
    """Appends a message to partition 0 at the only broker there is, and waits until it is there."""
    host, _, port = servers.rpartition(":")
    batch = _batch(_record(key, value, headers))
    body = struct.pack(">hhih", _PRODUCE, _VERSION, 1, _NONE)  # nameless client
    body += struct.pack(
        ">hhii", _NONE, _NONE, 30_000, 1
    )  # no transaction; every replica acknowledges
    body += struct.pack(">h", len(topic)) + topic.encode()
    body += struct.pack(">iii", 1, 0, len(batch)) + batch
    deadline = time.monotonic() + 120
    with socket.create_connection((host, int(port)), timeout=60) as broker:
        while (error := _answer(broker, body, topic)) in _NOT_YET and time.monotonic() < deadline:
            time.sleep(0.1)
    assert error == 0, f"Kafka's error code {error}"


def _answer(broker: socket.socket, body: bytes, topic: str) -> int:
    broker.sendall(struct.pack(">i", len(body)) + body)
    with broker.makefile("rb") as answer:
        (size,) = struct.unpack(">i", answer.read(4))
        data = answer.read(size)
    (error,) = struct.unpack_from(">h", data, 4 + 4 + 2 + len(topic) + 4 + 4)
    return int(error)


def _record(
    key: bytes | None, value: bytes | None, headers: Sequence[tuple[bytes, bytes | None]]
) -> bytes:
    # Attributes, and no distance from the batch's timestamp and offset.
    body = b"\0" + _varint(0) + _varint(0) + _sized(key) + _sized(value) + _varint(len(headers))
    body += b"".join(_sized(name) + _sized(content) for name, content in headers)
    return _varint(len(body)) + body


def _batch(record: bytes) -> bytes:
    now = time.time_ns() // 1_000_000  # an older message is one that retention takes away
    checked = struct.pack(">hiqqqhii", 0, 0, now, now, _NONE, _NONE, _NONE, 1) + record
    behind = struct.pack(">ibI", _NONE, 2, _crc32c(checked)) + checked
    return struct.pack(">qi", 0, len(behind)) + behind


def _sized(data: bytes | None) -> bytes:
    return _varint(_NONE) if data is None else _varint(len(data)) + data


def _varint(number: int) -> bytes:
    rest, written = (number << 1) ^ (number >> 63), bytearray()
    while rest > 0x7F:
        written.append(rest & 0x7F | 0x80)
        rest >>= 7
    return bytes([*written, rest])


def _crc32c(data: bytes) -> int:
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = (crc >> 1) ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF
