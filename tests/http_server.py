"""A server by HTTP on this machine, which answers what a function says, faults too."""

from __future__ import annotations

import json
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

SILENCE = None
"""In place of an answer: the connection stays open, and nothing comes."""


@dataclass(frozen=True)
class Endless:
    """In place of what is sent: the same again and again, until the other side has enough.

    Args:
        piece: What is sent each time.
        pause_s: The time between two, in seconds.
    """

    piece: bytes
    pause_s: float = 0.0


@dataclass(frozen=True)
class Asked:
    """A request that came; what was sent with it is parsed if it is JSON."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: Any = None


@dataclass(frozen=True)
class Answer:
    """What is answered.

    Args:
        status: The code.
        content: What is sent: bytes as they are, `Endless`, or else a value as JSON; of a redirect its address.
        headers: More headers.
        reason: What stands behind the code; None = as always.
    """

    status: int
    content: Any = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    reason: str | None = None


@contextmanager
def http_server(
    answer: Callable[[Asked], Answer | None], context: ssl.SSLContext | None = None
) -> Iterator[str]:
    """The address of a server that runs as long as the context lasts.

    Args:
        answer: From a request what is answered; None (`SILENCE`) = nothing.
        context: With it, it is asked by ``https``.
    """
    over = threading.Event()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            sent = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            is_json = sent and "json" in str(self.headers["Content-Type"])
            body = json.loads(sent) if is_json else sent or None
            found = answer(Asked(self.command, self.path, dict(self.headers), body))
            if found is SILENCE:
                over.wait(60)
                return
            self.send_response(found.status, found.reason)
            is_raw = isinstance(found.content, bytes | Endless)
            kind = "text/plain" if is_raw else "application/json"
            for header in {"Content-Type": kind, **found.headers}.items():
                self.send_header(*header)
            if 300 <= found.status < 400:
                self.send_header("Location", found.content)
            self.end_headers()
            for piece in _pieces(found.content, over):
                self.wfile.write(piece)
                self.wfile.flush()

        do_POST = do_PUT = do_GET  # noqa: N815

        def log_message(self, *args):
            """Keep the test's output clean."""

    class Server(ThreadingHTTPServer):
        def handle_error(self, *args):
            """A client that goes away is what some tests are about."""

    with Server(("127.0.0.1", 0), Handler) as server:
        if context is not None:
            server.socket = context.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield f"{'http' if context is None else 'https'}://127.0.0.1:{server.server_port}"
        finally:
            over.set()
            server.shutdown()
            thread.join()


def _pieces(content: Any, over: threading.Event) -> Iterator[bytes]:
    while isinstance(content, Endless) and not over.wait(content.pause_s):
        yield content.piece
    if not isinstance(content, Endless):
        yield content if isinstance(content, bytes) else json.dumps(content).encode()
