"""The changes of a soak, and the table that they lead to."""

from __future__ import annotations

import json
from collections.abc import Iterable

from tools.proof.java_reader import Message

KEYS = 10_000

Rows = dict[bytes | None, object]
"""A table: what the last value of each key is."""


class SoakError(Exception):
    """Why the soak failed."""


def change(n: int) -> tuple[str, str | None]:
    """Key and value of a change; every 13th is a delete."""
    id_ = n * 7919 % KEYS
    value = None if n % 13 == 0 else f'{{"id":{id_},"n":{n},"text":"{"x" * (n % 100)}"}}'
    return f'{{"id":{id_}}}', value


def sent(count: int) -> Rows:
    """The table that so many changes lead to."""
    changes = map(change, range(count))
    return _rows((key.encode(), value.encode() if value else None) for key, value in changes)


def table_of(messages: Iterable[Message]) -> Rows:
    """The table in a topic."""
    return _rows((message.key, message.value) for message in messages)


def _rows(changes: Iterable[tuple[bytes | None, bytes | None]]) -> Rows:
    return {key: json.loads(value) for key, value in dict(changes).items() if value is not None}


def refuse_difference(topic: str, asked: Rows, found: Rows) -> None:
    """Refuses a table that is not the one that was asked for.

    Raises:
        SoakError: It is another one.
    """
    wrong = sum(asked.get(key) != found.get(key) for key in asked.keys() | found.keys())
    if wrong:
        raise SoakError(f"the table in {topic} differs in {wrong} of {len(asked)} rows")
