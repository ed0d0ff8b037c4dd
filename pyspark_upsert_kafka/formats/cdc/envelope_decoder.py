"""Messages to changes of rows: they are decoded as envelopes, these are read, and the changes become rows of the table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa

from pyspark_upsert_kafka.core.arrow import arrow_schema
from pyspark_upsert_kafka.core.bytes_column import column_of, offsets_of, some_of
from pyspark_upsert_kafka.core.changes import Change
from pyspark_upsert_kafka.formats.cdc.row_changes import (
    Mask,
    Op,
    Reading,
    RowChanges,
    Words,
)
from pyspark_upsert_kafka.formats.cdc.table_rows import TableRows, images, upserts
from pyspark_upsert_kafka.formats.change_format import ChangeSpec, DecodedChanges
from pyspark_upsert_kafka.formats.codec import Decoded, Decoder


@dataclass(frozen=True)
class Envelopes:
    """Messages that were decoded as envelopes.

    Args:
        rows: Their fields.
        messages: The messages themselves, for what their fields do not tell.
        read: For each message whether it could be read; the fields of another one are NULL.
    """

    rows: pa.RecordBatch
    messages: Sequence[bytes]
    read: Mask


@dataclass(frozen=True)
class Envelope:
    """What a format's envelope is.

    Args:
        decoder: Decodes messages as envelopes.
        read: What envelopes say.
        metadata: For each wanted key what a column shows of each envelope.
        words: How errors name its fields.
        chosen: The indexes of the messages that are read at all; None = all are.
    """

    decoder: Decoder
    read: Callable[[Envelopes], Reading]
    metadata: Callable[[pa.RecordBatch], Mapping[str, pa.Array]]
    words: Words
    chosen: Callable[[Sequence[bytes]], Any] | None = None


class EnvelopeDecoder:
    """Decodes the messages of a CDC format.

    Args:
        spec: The columns of the row, and what the table's key is.
        envelope: What the messages are.
        skip_bad: Pass over what cannot be read, for a format's ``ignore-parse-errors``.
    """

    def __init__(self, spec: ChangeSpec, envelope: Envelope, *, skip_bad: bool = False) -> None:
        self._spec, self._envelope, self._skip_bad = spec, envelope, skip_bad
        self._schema = arrow_schema(spec.value.schema)

    def decode(self, messages: Sequence[bytes]) -> DecodedChanges:
        """The changes of some messages; an empty message is nothing.

        Raises:
            TooManyMessagesError: Their rows would be too large together.
        """
        begin = self._read(messages)
        some = messages if len(begin) == len(messages) else some_of(messages, begin)
        decoded = self._envelope.decoder.decode(some)
        found = self._changes(decoded, some)
        errors = {int(begin[at]): why for at, why in found.errors.items()}
        skipped = frozenset(int(begin[at]) for at in found.skipped)
        return replace(
            found,
            places=begin[found.places],
            errors={} if self._skip_bad else errors,
            skipped=skipped.union(errors) if self._skip_bad else skipped,
            passed_over={int(begin[at]): what for at, what in found.passed_over.items()},
        )

    def _read(self, messages: Sequence[bytes]) -> Any:
        """The indexes of the messages that are decoded."""
        present = np.flatnonzero(np.diff(offsets_of(column_of(messages))))
        if self._envelope.chosen is None:
            return present
        some = messages if len(present) == len(messages) else some_of(messages, present)
        return present[self._envelope.chosen(some)]

    def _changes(self, decoded: Decoded, messages: Sequence[bytes]) -> DecodedChanges:
        """The changes of messages that were decoded as envelopes."""
        reading = self._envelope.read(Envelopes(decoded.rows, messages, decoded.read))
        of_no_change = (decoded.errors, decoded.skipped, reading.errors, reading.passed_over)
        changes = reading.changes.without([*chain.from_iterable(of_no_change)])
        lacking = self._lacking(changes)
        table = self._table_rows(changes.without(lacking))
        missing = self._missing_values(table)
        if missing:
            table = self._table_rows(changes.without([*lacking, *missing]))
        metadata = self._envelope.metadata(decoded.rows) if self._spec.metadata else {}
        return DecodedChanges(
            table.rows,
            table.places,
            table.kinds,
            {key: _of_rows(column, table.places) for key, column in metadata.items()},
            {**decoded.errors, **reading.errors, **lacking, **missing},
            decoded.skipped,
            reading.passed_over,
        )

    def _table_rows(self, changes: RowChanges) -> TableRows:
        if self._spec.is_keyed:
            return upserts(changes, self._schema, self._spec.key)
        return images(changes, self._schema)

    def _lacking(self, changes: RowChanges) -> dict[int, str]:
        """The envelopes of which a change has not the rows that it needs."""
        words, spec = self._envelope.words, self._spec
        found: dict[int, str] = {}
        no_after = (changes.ops != Op.DELETE) & ~changes.after.present
        for at in np.flatnonzero(no_after):
            found.setdefault(int(changes.places[at]), words.no_row(Op(changes.ops[at])))
        needs_before = np.isin(changes.ops, self._ops_with_row_before(spec))
        for at in np.flatnonzero(needs_before & ~changes.before.present):
            found.setdefault(int(changes.places[at]), words.no_row_before(Op(changes.ops[at])))
        return found

    @staticmethod
    def _ops_with_row_before(spec: ChangeSpec) -> list[Op]:
        """The changes that need the row before them."""
        if not spec.is_keyed:
            return [Op.UPDATE, Op.DELETE]
        return [] if spec.reads_key else [Op.DELETE]

    def _missing_values(self, table: TableRows) -> dict[int, str]:
        """The envelopes of rows that are not deletes, and have NULL in a NOT NULL column."""
        found: dict[int, str] = {}
        for field, column in zip(self._schema, table.rows.columns, strict=False):
            if field.nullable or not column.null_count:
                continue
            lacks = column.is_null().to_numpy(zero_copy_only=False) & (table.kinds != Change.DELETE)
            for place in table.places[lacks]:
                path = f"{self._envelope.words.after}.{field.name}"
                found.setdefault(int(place), f"field '{path}' is NOT NULL, but is null or missing")
        return found


def _of_rows(column: pa.Array, places: Any) -> pa.Array:
    """What is known of envelopes, for each row."""
    whole = len(column) == len(places) and not (np.diff(places) != 1).any()
    return column if whole else column.take(pa.array(places))
