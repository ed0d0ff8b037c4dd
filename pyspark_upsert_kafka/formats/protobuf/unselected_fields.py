"""Fields that are no columns: the runtime reads them too, and a message with a bad one is bad."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from pyspark_upsert_kafka.formats.binary.message_buffer import MessageBuffer
from pyspark_upsert_kafka.formats.protobuf.column_builders import Read
from pyspark_upsert_kafka.formats.protobuf.descriptors import is_repeated, is_required
from pyspark_upsert_kafka.formats.protobuf.enums import finder
from pyspark_upsert_kafka.formats.protobuf.numbers import meaning
from pyspark_upsert_kafka.formats.protobuf.occurrences import every
from pyspark_upsert_kafka.formats.protobuf.scanning import Slot
from pyspark_upsert_kafka.formats.protobuf.wire import Kind

Check = Callable[[MessageBuffer, Slot], np.ndarray]
"""What was found of a field to the messages that fall back to the row path for it."""

_NONE = np.empty(0, np.int64)
# The runtime reads messages no deeper than 100.
_DEEPEST = 90


def checker(
    field: Any, above: tuple[Any, ...], reader: Callable[[Any, tuple[Any, ...]], Read]
) -> Check:
    """Compiles the check of a field that is no column.

    Args:
        field: The field's descriptor.
        above: The descriptors of the messages that it stands in.
        reader: Compiles the way to read a message, given its descriptor and those it stands in.
    """
    if field.type == Kind.STRING:
        return _strings
    if field.type == Kind.ENUM and field.enum_type.is_closed and is_required(field):
        return _known_numbers(field.enum_type)
    if field.type != Kind.MESSAGE:
        return lambda buffer, slot: every(buffer, slot).fallback if is_repeated(field) else _NONE
    part = field.message_type
    if part in above or len(above) > _DEEPEST:
        return lambda _, slot: np.flatnonzero(slot.present)
    compiled = cache(lambda: reader(part, above))

    def check(buffer: MessageBuffer, slot: Slot) -> np.ndarray:
        found = every(buffer, slot)
        _, fallback = compiled()(buffer, found.values, found.values + found.lengths)
        return found.rows[fallback]

    return check


def _known_numbers(enum: Any) -> Check:
    """A number that the enum does not have is an unknown field to the runtime, and so the field is missing."""
    find = finder(enum)

    def check(buffer: MessageBuffer, slot: Slot) -> np.ndarray:
        found = every(buffer, slot)
        _, unknown = find(meaning(Kind.ENUM, found.values))
        rows: np.ndarray = found.rows[unknown]
        return rows

    return check


def _strings(buffer: MessageBuffer, slot: Slot) -> np.ndarray:
    found = every(buffer, slot)
    _, bad = buffer.texts(found.values, found.values + found.lengths)
    return found.rows[bad]
