"""Rows before an update of which only the changed columns are sent: those of Maxwell and of Canal.

A field that is not in ``old`` has not changed, so its value is that of ``data``. A field that is there as null was NULL before.
The columns of a batch do not tell one from the other; the messages do, and they are looked into only where it matters.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyspark_upsert_kafka.core.bytes_column import column_of
from pyspark_upsert_kafka.formats.cdc.row_changes import Mask, Op, RowImages
from pyspark_upsert_kafka.formats.json.document import parse_object
from pyspark_upsert_kafka.formats.json.orjson_columns import document

_NULL = b"null"

OldNames = Callable[[Any, int], Collection[str]]
"""From a parsed message and the index of a change: the names of the fields in its ``old``."""


def rows_before(
    ops: Any, data: RowImages, old: RowImages, explicit_nulls: Callable[[Mask], dict[str, Mask]]
) -> RowImages:
    """The row before each change: of a delete the row itself, of an update ``old``, where it says nothing completed by ``data``.

    Args:
        ops: The `Op` of each change.
        data: The rows that were sent.
        old: What was sent of the rows before; all of its columns are looked at.
        explicit_nulls: From the changes for which it matters, to the columns of which ``old`` says that they were NULL, and where.
    """
    is_delete = ops == Op.DELETE
    is_update = (ops == Op.UPDATE) & old.present
    open_ = {
        name: _mask(pc.and_(column.is_null(), data.columns[name].is_valid())) & is_update
        for name, column in old.columns.items()
        if name in data.columns
    }
    unsure = np.logical_or.reduce([np.zeros(len(ops), np.bool_), *open_.values()])
    nulls = explicit_nulls(unsure) if unsure.any() else {}
    columns = {}
    for name, is_open in open_.items():
        taken = is_delete | (is_open & ~nulls.get(name, np.False_))
        columns[name] = pc.if_else(pa.array(taken), data.columns[name], old.columns[name])
    return RowImages(columns, np.where(is_delete, data.present, is_update))


def _mask(mask: pa.BooleanArray) -> Mask:
    return mask.to_numpy(zero_copy_only=False)


def explicit_nulls(
    messages: Sequence[bytes],
    places: Any,
    names: Collection[str],
    old_names: OldNames,
    *,
    lenient: bool,
) -> Callable[[Mask], dict[str, Mask]]:
    """Compiles what says of which columns ``old`` says that they were NULL.

    Args:
        messages: The messages.
        places: The index of each change's message.
        names: The columns.
        old_names: The fields in ``old`` of a change.
        lenient: Whether a value that cannot be read is NULL too, so that NULL need not stand there as ``null``.
    """

    def found(unsure: Mask) -> dict[str, Mask]:
        masks = {name: np.zeros(len(unsure), np.bool_) for name in names}
        if not lenient:
            has_null = pc.match_substring(column_of(messages), _NULL)
            unsure = unsure & _mask(has_null)[places]
        last: tuple[int, Any] = (-1, None)
        for at in np.flatnonzero(unsure).tolist():
            place = int(places[at])
            if last[0] != place:
                last = place, parsed(messages[place])
            for name in old_names(last[1], at):
                if name in masks:
                    masks[name][at] = True
        return masks

    return found


def parsed(message: bytes) -> Any:
    """A message that was decoded, parsed."""
    try:
        return document(message)
    except ValueError:
        return parse_object(message)
