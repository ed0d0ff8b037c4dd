"""Messages that cannot be decoded."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Literal

Stage = Literal["key", "value", "null-key", "headers"]
"""What of a message cannot be decoded."""


@dataclass(frozen=True)
class BadMessage:
    """A message that cannot be decoded: its index in the batch, what failed and why."""

    index: int
    stage: Stage
    reason: str


def first_per_message(bad: Iterable[BadMessage], skipped: Collection[int]) -> list[BadMessage]:
    """The first entry of each message, in offset order.

    A message that a format skips for one of its sides is no error, whatever is wrong with the other side.
    """
    first: dict[int, BadMessage] = {}
    for message in bad:
        if message.index not in skipped:
            first.setdefault(message.index, message)
    return [first[index] for index in sorted(first)]
