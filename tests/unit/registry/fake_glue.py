"""Glue on this machine, which answers what a test tells it to, faults too."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from tests.http_server import Answer, Asked, http_server

Said = tuple[int, Any] | None


def error(code: str, message: str = "no.", status: int = 400) -> Said:
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
    answers: dict[str, list[Said]] = field(default_factory=dict)
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

    def answer(self, action: str, asked: dict[str, Any]) -> Said:
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
    glue = FakeGlue()

    def answer(asked: Asked) -> Answer | None:
        action = asked.headers["X-Amz-Target"].removeprefix("AWSGlue.")
        glue.asked.append((action, asked.body))
        glue.headers = dict(asked.headers)
        said = glue.answer(action, asked.body)
        return None if said is None else Answer(*said)

    with http_server(answer) as glue.url:
        yield glue
