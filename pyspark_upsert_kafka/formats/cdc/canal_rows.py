"""The rows of Canal's messages: the fields ``data`` and ``old`` are arrays, with an entry for each row."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyspark_upsert_kafka.formats.cdc.data_old import explicit_nulls, rows_before
from pyspark_upsert_kafka.formats.cdc.envelope_decoder import Envelopes
from pyspark_upsert_kafka.formats.cdc.operations import Operations, operations_of
from pyspark_upsert_kafka.formats.cdc.row_changes import Mask, Op, Reading, RowChanges, RowImages


def canal_reader(
    operations: Operations, *, one_row: bool, lenient: bool
) -> Callable[[Envelopes], Reading]:
    """Compiles the reading of envelopes.

    Args:
        operations: The types of messages.
        one_row: Whether only the message's key tells which row is changed, so that it can be one row only.
        lenient: Whether a value that cannot be read is NULL.
    """

    def read(envelopes: Envelopes) -> Reading:
        rows = envelopes.rows
        ops, errors, passed_over = operations_of(envelopes, operations)
        data, old = rows.column("data"), rows.column("old")
        for at, why in _lacking(ops, data, old, envelopes.read, one_row=one_row).items():
            if at not in passed_over:
                errors.setdefault(at, why)
        changes = _changes(ops, data, old, envelopes, lenient=lenient)
        return Reading(changes, errors, passed_over)

    return read


def _lengths(lists: pa.ListArray) -> Any:
    """How many entries each array has; 0 = it is null."""
    return pc.fill_null(pc.list_value_length(lists), 0).to_numpy(zero_copy_only=False)


def _lacking(
    ops: Any, data: pa.ListArray, old: pa.ListArray, read: Mask, *, one_row: bool
) -> dict[int, str]:
    """The envelopes whose arrays do not fit, of those that could be read."""
    found: dict[int, str] = {}
    for at in np.flatnonzero(read & ~_present(data)).tolist():
        found[at] = f'the "data" field of {Op(ops[at]).name} message is null or missing'
    counts, of_old = _lengths(data), _lengths(old)
    uneven = (ops == Op.UPDATE) & _present(old) & (counts != of_old)
    for at in np.flatnonzero(uneven).tolist():
        found.setdefault(
            at, f'the "old" field has {of_old[at]} rows, and the "data" field has {counts[at]}'
        )
    for at in np.flatnonzero(counts > 1).tolist() if one_row else ():
        found.setdefault(
            at,
            f"it has {counts[at]} rows, and with 'value.fields-include' = 'EXCEPT_KEY' its key tells of one which it is",
        )
    return found


def _present(array: pa.Array) -> Mask:
    return array.is_valid().to_numpy(zero_copy_only=False)


def _changes(
    ops: Any, data: pa.ListArray, old: pa.ListArray, envelopes: Envelopes, *, lenient: bool
) -> RowChanges:
    counts, of_old = _lengths(data), _lengths(old)
    places = np.repeat(np.arange(len(ops)), counts)
    within = np.arange(len(places)) - np.repeat(np.cumsum(counts) - counts, counts)
    has_old = (counts == of_old)[places]
    begins = np.cumsum(of_old) - of_old
    in_old = pa.array(np.where(has_old, begins[places] + within, 0), mask=~has_old)
    sent, before = RowImages.of(data.flatten()), RowImages.of(old.flatten().take(in_old))

    def names(message: Any, change: int) -> Any:
        return message["old"][int(within[change])]

    nulls = explicit_nulls(envelopes.messages, places, before.columns, names, lenient=lenient)
    of_row = ops[places]
    return RowChanges(places, of_row, rows_before(of_row, sent, before, nulls), sent)
