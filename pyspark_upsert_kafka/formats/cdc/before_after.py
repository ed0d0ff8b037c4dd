"""Envelopes with the row before, the row after and what was done: those of Debezium and of OGG."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from pyspark_upsert_kafka.formats.cdc.envelope_decoder import Envelopes
from pyspark_upsert_kafka.formats.cdc.operations import Hint, Operations, no_hint, operations_of
from pyspark_upsert_kafka.formats.cdc.row_changes import Reading, RowChanges, RowImages

BEFORE, AFTER = "before", "after"


def read_before_after(
    operations: Operations, hint: Hint = no_hint
) -> Callable[[Envelopes], Reading]:
    """Compiles the reading of envelopes whose rows are in the fields ``before`` and ``after``."""

    def read(envelopes: Envelopes) -> Reading:
        rows = envelopes.rows
        ops, errors, passed_over = operations_of(
            rows.column(operations.field), operations, envelopes.messages, hint
        )
        changes = RowChanges(
            np.arange(len(ops)),
            ops,
            RowImages.of(rows.column(BEFORE)),
            RowImages.of(rows.column(AFTER)),
        )
        return Reading(changes.without({**errors, **passed_over}), errors, passed_over)

    return read
