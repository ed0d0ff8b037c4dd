"""The seam of CDC formats: value formats for reading, whose messages say what they did to a row.

Such a format is a `Format` with ``changes``. A message gives any number of rows: an update gives the row before and the
row after it, a message may hold several rows of a table, and some messages give none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from pyspark_upsert_kafka.formats.codec import CodecSpec

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class ChangeSpec:
    """What a CDC format compiles a decoder from.

    Args:
        value: The columns of the row, and the format's options.
        is_keyed: Whether the table has a primary key: changes are then upserts and deletes; otherwise they are shown as rows
            before and after each change.
        key: The columns of the primary key among those of the row; empty = the row has none of them.
        reads_key: Whether the key of messages is read too, which then names the row where the value does not.
        metadata: The keys of the format's metadata that are shown.
    """

    value: CodecSpec
    is_keyed: bool
    key: tuple[str, ...] = ()
    reads_key: bool = False
    metadata: tuple[str, ...] = ()


@dataclass(frozen=True)
class DecodedChanges:
    """Some messages, decoded.

    Args:
        rows: The rows in the order of the messages, in the Arrow types of the spec's columns; all are nullable. A delete of a
            table with a primary key has its key columns, and NULL elsewhere.
        places: The index of each row's message; it rises, and occurs as often as its message has rows.
        kinds: The `Change` of each row.
        metadata: For each wanted key of metadata its value for each row, in the first of its types.
        errors: Index of each message that could not be read, and why; it has no rows.
        skipped: Indexes of the messages that the format's own ``ignore-parse-errors`` passes over.
        passed_over: Index of each message that is no change of a row, such as a change of the table's schema, and what it is.
    """

    rows: pa.RecordBatch
    places: Any
    kinds: Any
    metadata: Mapping[str, pa.Array] = field(default_factory=dict)
    errors: Mapping[int, str] = field(default_factory=dict)
    skipped: frozenset[int] = frozenset()
    passed_over: Mapping[int, str] = field(default_factory=dict)


class ChangeDecoder(Protocol):
    """Turns messages into the rows that they changed."""

    def decode(self, messages: Sequence[bytes]) -> DecodedChanges:
        """The changes of some messages, none of which is null. No message makes this raise: a bad one is an error in the result.

        Raises:
            TooManyMessagesError: The rows are much larger than their messages.
        """
