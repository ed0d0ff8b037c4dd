"""Which release of Kafka a broker is: the clients do not tell, and a broker answers it without a login.

The answer to ApiVersions has the newest version of the feature ``metadata.version`` that a broker supports, which each release
from 3.3 on raises. Brokers before that are told apart by the requests that they know.
Source: https://kafka.apache.org/protocol, and Kafka's ``MetadataVersion``.
"""

from __future__ import annotations

import re
import socket
import ssl
import struct
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field

_TIMEOUT_S = 3.0
_MOST_BROKERS = 20
"""More brokers than these are not asked."""

_LARGEST = 2**20
"""Bytes; an answer has some hundred."""

_API_VERSIONS, _VERSION = 18, 3
_UNSUPPORTED = 35
_FEATURE = "metadata.version"

_RELEASES = (
    (30, "4.3"), (28, "4.2"), (26, "4.1"), (22, "4.0"), (21, "3.9"), (20, "3.8"), (15, "3.7"), (12, "3.6"), (9, "3.5"),
    (8, "3.4"), (4, "3.3"),
)  # fmt: skip
"""Releases by the first version of the feature that each has brought."""

_REQUESTS = ((66, "3.0"), (60, "2.8"), (57, "2.7"), (48, "2.6"), (46, "2.4"))
"""Releases by the number of a request that each has brought: ListTransactions, DescribeCluster and so on."""

_ADDRESS = re.compile(r"(?:[A-Z_]+://)?\[?([^\],]+?)\]?:(\d+)")


@dataclass(frozen=True)
class ApiVersions:
    """What a broker says of itself.

    Args:
        error: Kafka's error code; 0 = none.
        requests: The numbers of the requests that it knows.
        features: The newest version of each feature that it supports.
    """

    error: int
    requests: frozenset[int] = frozenset()
    features: dict[str, int] = field(default_factory=dict)


def oldest_release(
    addresses: Sequence[str], security_protocol: str, timeout_s: float = _TIMEOUT_S
) -> str | None:
    """The release of the oldest broker, as in ``4.1``; None = it is not told.

    Args:
        addresses: The brokers.
        security_protocol: How they are spoken to; empty = PLAINTEXT.
        timeout_s: For each step of asking one, in seconds.
    """
    found = set()
    for address in addresses[:_MOST_BROKERS]:
        place = _ADDRESS.fullmatch(address)
        tls = "SSL" in security_protocol.upper()
        told = place and _asked(place[1], int(place[2]), timeout_s, tls=tls)
        if not told:
            return None
        found.add(release_of(told))
    return min(found, key=_order) if found else None


def _order(release: str) -> tuple[bool, list[int]]:
    """By which releases are compared; one that is older than all that are known comes first."""
    return not release.startswith("before"), [int(each) for each in re.findall(r"\d+", release)]


def release_of(told: ApiVersions) -> str:
    """The release of a broker.

    >>> release_of(ApiVersions(0, frozenset({66}), {"metadata.version": 27}))
    '4.1'
    >>> release_of(ApiVersions(0, frozenset({60})))
    '2.8'
    """
    if told.error == _UNSUPPORTED:
        return "before 2.4"
    level = told.features.get(_FEATURE, 0)
    for first, release in _RELEASES:
        if level >= first:
            return release
    for request, release in _REQUESTS:
        if request in told.requests:
            return release
    return "before 2.4"


def _asked(host: str, port: int, timeout_s: float, *, tls: bool) -> ApiVersions | None:
    """What a broker says of itself; None = it does not answer, or not without the client's certificate."""
    try:
        with ExitStack() as stack:
            connection: socket.socket = stack.enter_context(
                socket.create_connection((host, port), timeout_s)
            )
            if tls:
                connection = stack.enter_context(_in_tls(connection, host))
            connection.sendall(_request())
            return parsed(_answer(connection))
    except (OSError, struct.error, IndexError, UnicodeDecodeError):
        return None


def _in_tls(plain: socket.socket, host: str) -> ssl.SSLSocket:
    context = ssl.create_default_context()
    # Nothing is sent that is secret.
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context.wrap_socket(plain, server_hostname=host)


def _request() -> bytes:
    name = b"pyspark-upsert-kafka"
    header = struct.pack(">hhih", _API_VERSIONS, _VERSION, 1, -1) + b"\0"
    body = bytes([len(name) + 1]) + name + b"\2" + b"1" + b"\0"
    return struct.pack(">i", len(header) + len(body)) + header + body


def _answer(connection: socket.socket) -> bytes:
    """The answer without its length and its header."""
    with connection.makefile("rb") as stream:
        (size,) = struct.unpack(">i", stream.read(4))
        return stream.read(min(size, _LARGEST))[4:]


def parsed(data: bytes) -> ApiVersions:
    """The body of an answer to ApiVersions, version 3, or of one that says that this version is not known.

    Raises:
        struct.error: It is no such answer; or IndexError, or UnicodeDecodeError.
    """
    (error,) = struct.unpack_from(">h", data)
    if error == _UNSUPPORTED:  # the rest is in the oldest layout
        return ApiVersions(error)
    reader = _Reader(data, 2)
    requests = set()
    for _ in range(reader.varint() - 1):
        requests.add(reader.int16())
        reader.skip(4)
        reader.skip_tags()
    reader.skip(4)  # throttle_time_ms
    features = {}
    for _ in range(reader.varint()):
        tag, size = reader.varint(), reader.varint()
        end = reader.at + size
        if tag == 0:
            features = _features(reader)
        reader.at = end
    return ApiVersions(error, frozenset(requests), features)


def _features(reader: _Reader) -> dict[str, int]:
    found = {}
    for _ in range(reader.varint() - 1):
        name = reader.text(reader.varint() - 1)
        reader.skip(2)  # its oldest version
        found[name] = reader.int16()
        reader.skip_tags()
    return found


class _Reader:
    """Reads Kafka's compact layout.

    Args:
        data: All of it.
        at: Where reading begins.
    """

    def __init__(self, data: bytes, at: int) -> None:
        self._data, self.at = data, at

    def skip(self, size: int) -> None:
        """Passes over some bytes."""
        self.at += size

    def int16(self) -> int:
        """A number of 16 bits."""
        (number,) = struct.unpack_from(">h", self._data, self.at)
        self.at += 2
        return int(number)

    def varint(self) -> int:
        """An unsigned number of any length."""
        number = shift = 0
        while True:
            byte = self._data[self.at]
            self.at += 1
            number |= (byte & 0x7F) << shift
            if byte < 0x80:
                return number
            shift += 7

    def text(self, size: int) -> str:
        """A text of so many bytes."""
        found = self._data[self.at : self.at + size].decode()
        self.at += size
        return found

    def skip_tags(self) -> None:
        """Passes over fields that later versions have added."""
        for _ in range(self.varint()):
            self.varint()
            self.skip(self.varint())
