"""Envelopes with the row before, the row after and what was done: those of Debezium and of OGG."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pyarrow.compute as pc

from pyspark_upsert_kafka.core.bytes_column import column_of
from pyspark_upsert_kafka.formats.cdc.data_old import parsed
from pyspark_upsert_kafka.formats.cdc.envelope_decoder import Envelopes
from pyspark_upsert_kafka.formats.cdc.operations import Hint, Operations, no_hint, operations_of
from pyspark_upsert_kafka.formats.cdc.row_changes import Reading, RowChanges, RowImages

BEFORE, AFTER = "before", "after"


def read_before_after(
    operations: Operations, hint: Hint = no_hint, *, empty_is_missing: bool = False
) -> Callable[[Envelopes], Reading]:
    """Compiles the reading of envelopes whose rows are in the fields ``before`` and ``after``.

    Args:
        operations: What was done to the rows.
        hint: What a message may be that does not say so.
        empty_is_missing: Whether an object without fields is no row.
    """

    def images(envelopes: Envelopes, field: str) -> RowImages:
        found = RowImages.of(envelopes.rows.column(field))
        return _without_empty(found, field, envelopes.messages) if empty_is_missing else found

    def read(envelopes: Envelopes) -> Reading:
        ops, errors, passed_over = operations_of(envelopes, operations, hint)
        changes = RowChanges(
            np.arange(len(ops)),
            ops,
            images(envelopes, BEFORE),
            images(envelopes, AFTER),
        )
        return Reading(changes, errors, passed_over)

    return read


def _without_empty(images: RowImages, field: str, messages: Sequence[bytes]) -> RowImages:
    """The rows without those of which the message has an object without fields; only messages that may are looked into."""
    values = (
        column.is_valid().to_numpy(zero_copy_only=False) for column in images.columns.values()
    )
    may = images.present & ~np.logical_or.reduce([np.zeros(len(messages), np.bool_), *values])
    if not may.any():
        return images
    has_empty = pc.match_substring_regex(column_of(messages), r"\{[ \t\r\n]*\}")
    present = images.present.copy()
    for at in np.flatnonzero(may & has_empty.to_numpy(zero_copy_only=False)).tolist():
        present[at] = parsed(messages[at])[field] != {}
    return replace(images, present=present)
