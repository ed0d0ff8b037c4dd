"""One request by HTTP, such as to a schema registry: its answer may neither be endless nor take for ever, and it is not redirected.

Python bounds the time of each read from a connection only, so that a server which sends one byte at a time is never waited for in vain.
"""

from __future__ import annotations

import io
import socket
import ssl
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection, IncompleteRead
from pathlib import Path
from typing import Any, cast
from urllib.error import HTTPError
from urllib.request import (
    HTTPHandler,
    HTTPRedirectHandler,
    HTTPSHandler,
    ProxyHandler,
    Request,
    build_opener,
)

MOST_BYTES = 16 * 1024 * 1024
"""So large may an answer be: far larger than any schema or token."""


class AnswerTooLargeError(HTTPException):
    """An answer has more than `MOST_BYTES`: it may have no end."""

    def __init__(self) -> None:
        super().__init__(f"the answer has more than {MOST_BYTES // 1024 // 1024} MB")


@dataclass(frozen=True)
class Answer:
    """What a server answers.

    Args:
        status: Its status, of an error or a redirect too.
        reason: The words behind the status.
        content: What it sends.
        headers: Its headers; the case of names does not matter.
    """

    status: int
    reason: str
    content: bytes
    headers: Mapping[str, str]


@dataclass(frozen=True)
class Deadline:
    """Until when an answer is waited for.

    Args:
        at_s: The end, in seconds of the clock.
        silence_s: How long nothing may come before that, in seconds.
        clock: Gives the time in seconds.
    """

    at_s: float
    silence_s: float
    clock: Callable[[], float] = time.monotonic

    def timeout_s(self) -> float:
        """How long to wait for the next byte, in seconds.

        Raises:
            TimeoutError: The time is over.
        """
        left_s = self.at_s - self.clock()
        if left_s <= 0:
            raise TimeoutError("timed out")
        return min(left_s, self.silence_s)


@lru_cache(maxsize=10)
def trusting(authorities: str) -> ssl.SSLContext:
    """Trusts the certificates of a file, or of a folder as OpenSSL has it. To make one takes some milliseconds."""
    folder = authorities if Path(authorities).is_dir() else None
    return ssl.create_default_context(cafile=None if folder else authorities, capath=folder)


def answer_to(
    request: Request, tls: ssl.SSLContext, deadline: Deadline, *, by_proxy: bool = True
) -> Answer:
    """Sends a request and gives the answer, whatever its status is.

    Args:
        request: The request, to an address of ``http`` or ``https``.
        tls: Whom to trust.
        deadline: Until when the answer must be here.
        by_proxy: Whether it is sent by the proxy of the environment, if that names one.

    Raises:
        OSError: No connection, none that is trusted, or the time is over.
        HTTPException: What comes is no answer by HTTP, or it is not whole.
        AnswerTooLargeError: It has more than `MOST_BYTES`.
    """
    proxies = ProxyHandler(None if by_proxy else {})
    opener = build_opener(_Http(deadline), _Https(deadline, tls), _NoRedirects, proxies)
    try:
        response = opener.open(request, timeout=deadline.timeout_s())
    except HTTPError as error:
        with error:
            return _answer(cast("HTTPResponse", error.fp))
    with response:
        return _answer(response)


def _answer(response: HTTPResponse) -> Answer:
    headers = cast("Mapping[str, str]", response.headers)
    return Answer(response.status, response.reason, _content(response), headers)


def _content(response: HTTPResponse) -> bytes:
    content = response.read(MOST_BYTES + 1)
    if len(content) > MOST_BYTES:
        raise AnswerTooLargeError
    if response.length:  # what is still to come; to read a number of bytes does not raise for it
        raise IncompleteRead(content, response.length)
    return content


class _NoRedirects(HTTPRedirectHandler):
    """A redirect would take the credentials to another server."""

    def redirect_request(self, *_: object) -> None:
        """None: the redirect is the answer."""


class _Http(HTTPHandler):
    def __init__(self, deadline: Deadline) -> None:
        super().__init__()
        self._deadline = deadline

    def http_open(self, req: Request) -> Any:
        return self.do_open(partial(_bounded, HTTPConnection, self._deadline), req)


class _Https(HTTPSHandler):
    def __init__(self, deadline: Deadline, tls: ssl.SSLContext) -> None:
        super().__init__(context=tls)
        self._deadline, self._tls = deadline, tls

    def https_open(self, req: Request) -> Any:
        connection = partial(_bounded, HTTPSConnection, self._deadline, context=self._tls)
        return self.do_open(connection, req)


def _bounded(
    kind: Callable[..., HTTPConnection], deadline: Deadline, *arguments: Any, **more: Any
) -> HTTPConnection:
    """A connection whose answers are read until the deadline."""
    connection = kind(*arguments, **more)
    connection.response_class = partial(_Response, deadline)  # type: ignore[assignment]
    return connection


class _Response(HTTPResponse):
    def __init__(self, deadline: Deadline, sock: socket.socket, *args: Any, **more: Any) -> None:
        super().__init__(sock, *args, **more)
        self.fp = io.BufferedReader(ReadInTime(self.fp, sock.settimeout, deadline))


class ReadInTime(io.RawIOBase):
    """Bytes as they come, until a deadline.

    Args:
        stream: Where they come from.
        set_timeout: Sets how long the stream waits for the next one, in seconds.
        deadline: The deadline.
    """

    def __init__(
        self, stream: io.BufferedReader, set_timeout: Callable[[float], object], deadline: Deadline
    ) -> None:
        self._stream, self._set_timeout, self._deadline = stream, set_timeout, deadline

    def readable(self) -> bool:
        """True."""
        return True

    def readinto(self, buffer: Any) -> int:
        """What has come of the next bytes; raises TimeoutError when the time is over."""
        self._set_timeout(self._deadline.timeout_s())
        return self._stream.readinto1(buffer)

    def close(self) -> None:
        """Closes the stream."""
        self._stream.close()
        super().close()
