"""Which security protocol a broker's port speaks, for the error of a client that got no answer there.

Clients do not tell: a broker that is asked in another protocol closes the connection, just as one that restarts does.
"""

from __future__ import annotations

import re
import socket
import ssl
import struct

from pyspark_upsert_kafka.core.options.properties import PREFIX

_TIMEOUT_S = 2.0
"""For each step of asking a port."""

_PLAINTEXT = "PLAINTEXT"
_LOGINS = {33: True, 34: False}
"""By the error of a handshake for no mechanism: UNSUPPORTED_SASL_MECHANISM asks for a login, ILLEGAL_SASL_STATE for none."""

_HANDSHAKE = struct.pack(">hhihh", 17, 1, 1, -1, 0)
"""Kafka's SaslHandshake, version 1, without a client's id, for a mechanism without a name."""

_SERVER = re.compile(r"\s*(?:[A-Z_]+://)?\[?([^\],]+?)\]?:(\d+)\s*")

_WORDS = {
    _PLAINTEXT: "neither TLS nor SASL",
    "SASL_PLAINTEXT": "SASL without TLS",
    "SSL": "TLS",
    "SASL_SSL": "TLS and SASL",
}


def protocol_hint(servers: str, given: str, timeout_s: float = _TIMEOUT_S) -> str:
    """What to set when the first server that can be reached speaks another protocol, to append to a sentence; or nothing.

    Args:
        servers: The bootstrap servers.
        given: The security protocol that the client speaks; empty = none is given.
        timeout_s: For each step of asking a server, in seconds.
    """
    given = given.upper() or _PLAINTEXT
    for server in servers.split(","):
        place = _SERVER.fullmatch(server)
        spoken = place and spoken_protocol(place[1], int(place[2]), timeout_s)
        if spoken:
            return "" if spoken == given else _hint(server.strip(), spoken, given)
    return ""


def _hint(server: str, spoken: str, given: str) -> str:
    return (
        f" The port at {server} answers as one that expects {_WORDS[spoken]}, and not {given!r}: set "
        f"'{PREFIX}security.protocol' to {spoken!r}."
    )


def spoken_protocol(host: str, port: int, timeout_s: float = _TIMEOUT_S) -> str | None:
    """The security protocol of a Kafka broker's port; None = nobody answers, or something else does."""
    try:
        with socket.create_connection((host, port), timeout_s) as plain:
            login = _asks_for_login(plain)
    except OSError:
        return None
    if login is not None:
        return "SASL_PLAINTEXT" if login else _PLAINTEXT
    return _spoken_in_tls(host, port, timeout_s)


def _spoken_in_tls(host: str, port: int, timeout_s: float) -> str | None:
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = (
        False,
        ssl.CERT_NONE,
    )  # nothing is sent that is secret
    try:
        with (
            socket.create_connection((host, port), timeout_s) as plain,
            context.wrap_socket(plain, server_hostname=host) as secure,
        ):
            return "SASL_SSL" if _asks_for_login(secure) else "SSL"
    except ssl.SSLError as error:
        return "SSL" if "ALERT" in (error.reason or "") else None
    except OSError:
        return None


def _asks_for_login(connection: socket.socket) -> bool | None:
    """Whether a broker asks for a login; None = it does not answer as Kafka."""
    try:
        connection.sendall(struct.pack(">i", len(_HANDSHAKE)) + _HANDSHAKE)
        answer = b""
        while len(answer) < 10:
            part = connection.recv(1024)
            if not part:
                return None
            answer += part
    except OSError:
        return None
    _, correlation, code = struct.unpack(">iih", answer[:10])
    return _LOGINS.get(code) if correlation == 1 else None
