"""Glue on this machine, which answers what a test tells it to, faults too."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from uuid import UUID

SILENCE = None
"""In place of an answer: the connection stays open, and nothing comes."""

Answer = tuple[int, Any] | None


def error(code: str, message: str = "no.", status: int = 400) -> Answer:
    """An error as Glue answers it."""
    return status, {"__type": code, "Message": message}


@dataclass
class FakeGlue:
    """What it answers, by action, and what it was asked.

    Args:
        url: Its address.
        answers: For each action what is answered, in turn, the last again and again.
        versions: The schemas that it has, by the ids of their versions.
        asked: The requests that came: action and parameters.
        headers: The headers of the last one.
    """

    url: str = ""
    answers: dict[str, list[Answer]] = field(default_factory=dict)
    versions: dict[str, dict[str, Any]] = field(default_factory=dict)
    asked: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    headers: dict[str, str] = field(default_factory=dict)

    def schema(self, version: UUID | int, kind: str, text: str, **more: Any) -> None:
        """It has this version."""
        version = UUID(int=version) if isinstance(version, int) else version
        self.versions[str(version)] = {
            "SchemaVersionId": str(version),
            "SchemaDefinition": text,
            "DataFormat": kind,
            "Status": "AVAILABLE",
            "VersionNumber": 1,
            **more,
        }

    def actions(self) -> list[str]:
        """What was asked for."""
        return [action for action, _ in self.asked]

    def answer(self, action: str, asked: dict[str, Any]) -> Answer:
        """What it says now."""
        answers = self.answers.get(action)
        if answers is not None:
            return answers[0] if len(answers) == 1 else answers.pop(0)
        if asked.get("SchemaVersionId") in self.versions:
            return 200, self.versions[asked["SchemaVersionId"]]
        return error("EntityNotFoundException", "Schema version is not found.")


@contextmanager
def serving() -> Iterator[FakeGlue]:
    """A Glue that runs."""
    glue, over = FakeGlue(), threading.Event()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            action = self.headers["X-Amz-Target"].removeprefix("AWSGlue.")
            glue.asked.append((action, asked))
            glue.headers = dict(self.headers)
            answer = glue.answer(action, asked)
            if answer is SILENCE:
                over.wait(60)
                return
            status, content = answer
            sent = content if isinstance(content, bytes) else json.dumps(content).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(sent)))
            self.end_headers()
            self.wfile.write(sent)

        def log_message(self, *args):
            """Keep the test's output clean."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        glue.url = f"http://127.0.0.1:{server.server_address[1]}"
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield glue
        finally:
            over.set()
            server.shutdown()
            thread.join()
