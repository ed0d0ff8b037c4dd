"""A schema registry on this machine that answers what a test tells it to, faults too."""

from __future__ import annotations

import itertools
import json
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from tests.http_server import Answer, Asked, http_server

_NUMBERS = itertools.count(1)


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


@contextmanager
def serving(context: ssl.SSLContext | None = None) -> Iterator[FakeRegistry]:
    """A registry that runs; with a context by ``https``.

    Its address has a number behind it, which its paths do not have: it may get the port of one before, of which schemas are kept by
    address and id.
    """
    registry, number = FakeRegistry(), f"/{next(_NUMBERS)}"

    def answer(asked: Asked) -> Answer | None:
        asked = replace(asked, path=asked.path.removeprefix(number) or "/")
        registry.asked.append(asked)
        said = registry.next(asked.path)
        return None if said is None else Answer(*said, headers=registry.headers)

    with http_server(answer, context) as url:
        registry.url = f"{url}{number}"
        yield registry
