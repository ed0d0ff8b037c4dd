"""A server that asks for a token before it lets a client through to a real broker, as the brokers of a cloud do."""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from enum import IntEnum

from tests.kafka.fault_proxy import FaultProxy, end, frames


class _Api(IntEnum):
    SASL_HANDSHAKE = 17
    API_VERSIONS = 18
    SASL_AUTHENTICATE = 36


class RefusedError(Exception):
    """A token is refused, for a reason that the client is told."""


@dataclass
class _Session:
    """A connection's login: nobody is let through before one, nor after its end."""

    is_open: bool = False
    ends_at: float = float("inf")

    @property
    def lets_through(self) -> bool:
        return self.is_open and time.monotonic() < self.ends_at


class SaslServer(FaultProxy):
    """It speaks SaslHandshake and SaslAuthenticate of OAUTHBEARER, and passes on what comes after.

    Args:
        servers: The broker's host and port; nobody is asked for a login there.
        judge: Gets a token; gives for how many seconds the session lasts (0 = for ever), or raises a `RefusedError`.
    """

    def __init__(self, servers: str, judge: Callable[[str], float]) -> None:
        self.judge = judge
        self.tokens: list[str] = []
        """Those that it was shown, refused or not."""
        self.renewed = 0
        """How many logins went on over the connection of the one before (KIP-368)."""
        super().__init__(servers)

    def _pass_requests(
        self, client: socket.socket, broker: socket.socket, asked: dict[int, tuple[int, int]]
    ) -> None:
        session, is_bare = _Session(), False
        for frame in frames(client):
            if is_bare:  # after version 0 of SaslHandshake, what is said for the login comes without a header
                is_bare = False
                self._authenticated(session, frame)
                if not session.is_open:
                    break
                self._send(client, b"")
                continue
            api, version, correlation = struct.unpack_from(">hhi", frame)
            if api == _Api.SASL_HANDSHAKE:
                is_bare = version == 0
                self._send(client, struct.pack(">ihih11s", correlation, 0, 1, 11, b"OAUTHBEARER"))
            elif api == _Api.SASL_AUTHENTICATE:
                refusal, life_s = self._authenticated(session, _body(frame, version))
                answer = _answer(version, refusal, int(life_s * 1000))
                # Who is refused hangs up: as a broker does, which waits for that, so that the answer is read before the connection ends.
                self._send(client, struct.pack(">i", correlation) + answer)
            elif api == _Api.API_VERSIONS or session.lets_through:
                asked[correlation] = api, version
                with suppress(OSError):
                    broker.sendall(struct.pack(">i", len(frame)) + frame)
            else:
                break
        end(client, broker)

    def _send(self, client: socket.socket, frame: bytes) -> None:
        with self.sending, suppress(OSError):
            client.sendall(struct.pack(">i", len(frame)) + frame)

    def _authenticated(self, session: _Session, said: bytes) -> tuple[str | None, float]:
        """Why a token is refused, or how long the session lasts that begins with it."""
        token = said.partition(b"auth=Bearer ")[2].partition(b"\1")[0].decode()
        self.tokens.append(token)
        try:
            life_s = self.judge(token)
        except RefusedError as error:
            session.is_open = False
            return str(error), 0
        self.renewed += session.is_open
        session.is_open = True
        session.ends_at = time.monotonic() + life_s if life_s else float("inf")
        return None, life_s


def _body(frame: bytes, version: int) -> bytes:
    """What a SaslAuthenticate request has after its header, which ends with the client's id."""
    at = 8
    at += 2 + max(0, int.from_bytes(frame[at : at + 2], "big", signed=True))
    return frame[at + 4 :] if version < 2 else frame[at + 2 :]


def _answer(version: int, refusal: str | None, life_ms: int) -> bytes:
    """An answer to SaslAuthenticate; from version 2 on lengths are of a byte each, here."""
    code, said = (0, b"") if refusal is None else (58, refusal.encode())
    life = struct.pack(">q", life_ms)
    if version >= 2:
        shown = b"\0" if refusal is None else bytes([len(said) + 1])
        return b"\0" + struct.pack(">h", code) + shown + said + b"\1" + life + b"\0"
    size = -1 if refusal is None else len(said)
    return struct.pack(">hh", code, size) + said + bytes(4) + (life if version else b"")
