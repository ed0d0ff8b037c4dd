"""Messages ``{"schema":...,"payload":...}``, as Connect's JSON converter writes them, taken apart.

Messages of one schema begin with the same bytes, up to where the payload begins. So only the first message of a schema is
parsed to find that place; of the others, the bytes at the beginning are compared and cut off, and the bracket at the end.
Where a message begins like that and goes on otherwise (a second ``payload``, for example), what is cut out of it is no JSON
value. So whoever cannot decode a payload parses the whole message, by `exactly`; a payload that is null is such a one.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyspark_upsert_kafka.core.bytes_column import BytesColumn, column_of
from pyspark_upsert_kafka.formats.binary.numbers import Numbers
from pyspark_upsert_kafka.formats.decoding import UnreadableError
from pyspark_upsert_kafka.formats.json.document import (
    DEEPEST,
    compact,
    parse,
    parse_object,
    too_deep,
)

_SCHEMA, _PAYLOAD = '{"schema":', ',"payload":'
# A topic has one schema, or two while its table changes; each costs a comparison with all messages of a batch.
_MOST_BEGINNINGS = 16
_LONGEST_BEGINNING = 1024 * 1024
_DEEPEST = DEEPEST + 1
"""How deep a message may nest, in which a payload may be as deep as it may be by itself."""

_SCANNER = json.JSONDecoder(parse_int=str, parse_float=str)


@dataclass(frozen=True)
class Part:
    """The messages of a batch that have the same schema.

    Args:
        schema: The schema as JSON; ``null`` for messages without one.
        places: Where the messages stand in the batch.
        payloads: Their payloads; see `exactly` for one that is no JSON value.
    """

    schema: bytes
    places: Numbers
    payloads: BytesColumn


class Splitter:
    """Takes messages apart, and remembers how those of the last schemas begin."""

    def __init__(self) -> None:
        self._beginnings: list[bytes] = []

    def split(self, messages: Sequence[bytes]) -> tuple[list[Part], dict[int, str]]:
        """The messages by their schemas, and what is wrong with those that have no payload."""
        column = column_of(messages)
        left = np.ones(len(column), np.bool_)
        parts = [*self._known(column, left), *self._learned(column, left)]
        others, errors = _parsed(column, np.flatnonzero(left).tolist())
        return [*parts, *others], errors

    def _known(self, column: pa.LargeBinaryArray, left: Numbers) -> Iterator[Part]:
        """The messages that begin as earlier ones did; these are no longer ``left``."""
        for beginning in self._beginnings:
            if not left.any():
                return
            part = _taken(beginning, column, left)
            if part is not None:
                yield part

    def _learned(self, column: pa.LargeBinaryArray, left: Numbers) -> Iterator[Part]:
        """The messages that begin in new ways, but not in very many."""
        places = iter(np.flatnonzero(left).tolist())
        for _ in range(_MOST_BEGINNINGS):
            beginning = self._new_beginning(column, left, places)
            if beginning is None:
                return
            self._beginnings = [beginning, *self._beginnings][:_MOST_BEGINNINGS]
            part = _taken(beginning, column, left)
            if part is not None:
                yield part

    def _new_beginning(
        self, column: pa.LargeBinaryArray, left: Numbers, places: Iterator[int]
    ) -> bytes | None:
        """How the next message begins that is left and written as the converter does; None = there is none."""
        for place in places:
            beginning = _beginning(column[place].as_py()) if left[place] else None
            if beginning is not None and beginning not in self._beginnings:
                return beginning
        return None


def exactly(message: bytes) -> tuple[bytes, bytes]:
    """The schema and the payload of a message, each as JSON; of members with the same name the last counts.

    Raises:
        UnreadableError: It is no JSON object, or its payload is null or missing.
    """
    document = parse_object(message, _DEEPEST)
    if document.get("payload") is None:
        raise UnreadableError(f"field 'payload' is null or missing{_hint(document)}")
    return compact(document.get("schema")).encode(), compact(document["payload"]).encode()


def _hint(document: Mapping[str, Any]) -> str:
    """What a message without a payload is, as the end of an error."""
    if "op" not in document:
        return ""
    return (
        "; it has no schema around it, which 'value.debezium-json.schema-include' = 'false' reads"
    )


def _beginning(message: bytes) -> bytes | None:
    """What stands before the payload; None = the message does not begin as the converter writes it."""
    if not message.startswith(_SCHEMA.encode()) or too_deep(message, _DEEPEST):
        return None
    try:
        text = message.decode()
        _, end = _SCANNER.raw_decode(text, len(_SCHEMA))
        parse(text[len(_SCHEMA) : end].encode())  # which takes no NaN, for one
    except (ValueError, RecursionError):
        return None
    if not text.startswith(_PAYLOAD, end):
        return None
    beginning = text[: end + len(_PAYLOAD)].encode()
    return beginning if len(beginning) <= _LONGEST_BEGINNING else None


def _taken(beginning: bytes, column: pa.LargeBinaryArray, left: Numbers) -> Part | None:
    """The messages left that begin like this; they are no longer left. None = there are none."""
    like_it = pc.and_(pc.starts_with(column, beginning), pc.ends_with(column, b"}"))
    found = like_it.to_numpy(zero_copy_only=False) & left
    if not found.any():
        return None
    left &= ~found
    payloads = pc.binary_slice(column.filter(pa.array(found)), len(beginning), -1)
    schema = beginning[len(_SCHEMA) : -len(_PAYLOAD)]
    return Part(schema, np.flatnonzero(found), BytesColumn(payloads))


def _parsed(
    column: pa.LargeBinaryArray, places: Sequence[int]
) -> tuple[list[Part], dict[int, str]]:
    """The same of messages that are written in another way."""
    found: dict[bytes, dict[int, bytes]] = {}
    errors = {}
    for place in places:
        try:
            schema, payload = exactly(column[place].as_py())
        except UnreadableError as why:
            errors[place] = str(why)
        else:
            found.setdefault(schema, {})[place] = payload
    parts = [
        Part(schema, np.array([*payloads]), BytesColumn.of(payloads.values()))
        for schema, payloads in found.items()
    ]
    return parts, errors
