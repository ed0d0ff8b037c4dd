"""A schema registry on this machine that answers what a test tells it to, faults too."""

from __future__ import annotations

import json
import ssl
import threading
from collections.abc import Iterator
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
    """A request that came."""

    method: str
    path: str
    headers: dict[str, str]
    body: Any = None


@dataclass
class FakeRegistry:
    """What it answers, by path, and what it was asked.

    Args:
        url: Its address.
        answers: For each path what is answered, in turn, the last again and again: a status and
            what is sent with it.
        asked: The requests that came.
        headers: What it sends with each answer.
    """

    url: str = ""
    answers: dict[str, list[tuple[int, Any] | None]] = field(default_factory=dict)
    asked: list[Asked] = field(default_factory=list)
    headers: dict[str, str] = field(default_factory=dict)

    def schema(self, number: int | str, schema: Any, **more: Any) -> None:
        """It has this schema, parsed or text, under this id."""
        text = schema if isinstance(schema, str) else json.dumps(schema)
        self.answers[f"/schemas/ids/{number}"] = [(200, {"schema": text, **more})]

    def version(self, subject: str, version: int | str, schema: Any, **more: Any) -> None:
        """It has this schema under this subject."""
        text = schema if isinstance(schema, str) else json.dumps(schema)
        answer = {"id": 1, "subject": subject, "schema": text, **more}
        self.answers[f"/subjects/{subject}/versions/{version}"] = [(200, answer)]

    def paths(self) -> list[str]:
        """What was asked for."""
        return [asked.path for asked in self.asked]

    def next(self, path: str) -> tuple[int, Any] | None:
        """What it says now to a path; what is said whatever the query is stands under the path with ``?`` behind it."""
        answers = self.answers.get(path)
        if answers is None and "?" in path:
            answers = self.answers.get(f"{path.partition('?')[0]}?")
        if answers is None:
            return 404, {"error_code": 40403, "message": "Schema not found"}
        return answers[0] if len(answers) == 1 else answers.pop(0)


def _kind(content: Any) -> dict[str, str]:
    is_raw = isinstance(content, bytes | Endless)
    return {"Content-Type": "text/plain" if is_raw else "application/json"}


def _pieces(content: Any, over: threading.Event) -> Iterator[bytes]:
    while isinstance(content, Endless) and not over.wait(content.pause_s):
        yield content.piece
    if not isinstance(content, Endless):
        yield content if isinstance(content, bytes) else json.dumps(content).encode()


@contextmanager
def serving(context: ssl.SSLContext | None = None) -> Iterator[FakeRegistry]:
    """A registry that runs; with a context by ``https``."""
    registry = FakeRegistry()
    over = threading.Event()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            length = int(self.headers.get("Content-Length") or 0)
            sent = self.rfile.read(length)
            is_json = length and "json" in str(self.headers["Content-Type"])
            body = json.loads(sent) if is_json else sent or None
            registry.asked.append(Asked(self.command, self.path, dict(self.headers), body))
            answer = registry.next(self.path)
            if answer is SILENCE:
                over.wait(60)
                return
            status, content = answer
            self.send_response(status)
            is_raw = isinstance(content, bytes | Endless)
            sent = {
                "Content-Type": "text/plain" if is_raw else "application/json",
                **registry.headers,
            }
            for header in sent.items():
                self.send_header(*header)
            if 300 <= status < 400:
                self.send_header("Location", content)
            self.end_headers()
            for piece in _pieces(content, over):
                self.wfile.write(piece)
                self.wfile.flush()

        def do_POST(self):
            self.do_GET()

        def log_message(self, *args):
            """Keep the test's output clean."""

    class Server(ThreadingHTTPServer):
        def handle_error(self, *args):
            """A client that goes away is what some tests are about."""

    with Server(("127.0.0.1", 0), Handler) as server:
        if context is not None:
            server.socket = context.wrap_socket(server.socket, server_side=True)
        scheme = "http" if context is None else "https"
        registry.url = f"{scheme}://127.0.0.1:{server.server_address[1]}"
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield registry
        finally:
            over.set()
            server.shutdown()
            thread.join()
