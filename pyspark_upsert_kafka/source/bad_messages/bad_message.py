"""Messages that cannot be decoded, and what their bytes look like."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Literal

from pyspark_upsert_kafka.core.secrets.outside_text import outside_text

Stage = Literal["key", "value", "null-key", "headers"]
"""What of a message cannot be decoded."""


_WITHOUT_PREFIX = frozenset({"json", "csv", "avro", "protobuf"})
"""Formats whose messages have no prefix of a schema registry."""

_NOT_JSON = frozenset({"csv", "avro", "protobuf"})

_PREFIX_BYTES = 5

_MOST = 2_000
"""So many characters has a reason."""


@dataclass(frozen=True)
class BadMessage:
    """A message that cannot be decoded: its index in the batch, what failed and why.

    The reason shows parts of the message: here it is made fit for errors, logs, the error column and dead letters.
    """

    index: int
    stage: Stage
    reason: str

    def __post_init__(self) -> None:
        # A reason is a part of a sentence; that of a schema is a sentence of its own.
        reason = self.reason if self.reason.endswith("..") else self.reason.removesuffix(".")
        object.__setattr__(self, "reason", outside_text(reason, _MOST))


def first_per_message(bad: Iterable[BadMessage], skipped: Collection[int]) -> list[BadMessage]:
    """The first entry of each message, in offset order.

    A message that a format skips for one of its sides is no error, whatever is wrong with the other side.
    """
    first: dict[int, BadMessage] = {}
    for message in bad:
        if message.index not in skipped:
            first.setdefault(message.index, message)
    return [first[index] for index in sorted(first)]


def with_format_hint(bad: BadMessage, data: bytes | None, format_: str) -> BadMessage:
    """A bad message, with what its bytes look like behind the reason.

    Args:
        bad: The message.
        data: The bytes of its key or value, whichever cannot be decoded.
        format_: The format as which they were read.
    """
    hint = format_hint(data or b"", format_)
    return BadMessage(bad.index, bad.stage, f"{bad.reason}{hint}") if hint else bad


def format_hint(data: bytes, format_: str) -> str:
    """What the bytes look like, as the end of a reason; empty when nothing tells.

    >>> format_hint(b'{"id":1}', "avro")
    "; it begins with '{', as JSON does"
    >>> format_hint(b'{"id":1}', "json")
    ''
    """
    if format_ in _WITHOUT_PREFIX and data[:1] == b"\0" and len(data) > _PREFIX_BYTES:
        schema_id = int.from_bytes(data[1:_PREFIX_BYTES], "big")
        return (
            f"; it begins as with a schema registry, with a zero byte and perhaps the schema id {schema_id}: the formats "
            "'avro-confluent', 'json-registry' and 'proto-registry' read that"
        )
    begin = data.lstrip()[:1]
    if format_ in _NOT_JSON and begin in (b"{", b"["):
        return f"; it begins with '{begin.decode()}', as JSON does"
    return ""
