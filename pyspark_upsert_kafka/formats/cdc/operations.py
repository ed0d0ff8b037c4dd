"""The field of an envelope that says what was done to a row."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyspark_upsert_kafka.formats.cdc.envelope_decoder import Envelopes
from pyspark_upsert_kafka.formats.cdc.row_changes import Op

_SHOWN = 40


@dataclass(frozen=True)
class Operations:
    """The field that says what was done.

    Args:
        field: Its name.
        known: What each of its values means.
        passed_over: Values of envelopes that change no row, and what these are.
    """

    field: str
    known: Mapping[str, Op]
    passed_over: Mapping[str, str]

    def unknown(self, value: str | None) -> str:
        """The error about another value; None = there is none."""
        if value is None:
            return f'the message has no "{self.field}"'
        shown = value if len(value) <= _SHOWN else f"{value[:_SHOWN]}…"
        expected = ", ".join([*self.known, *self.passed_over])
        return f'unknown "{self.field}" value "{shown}", expected one of {expected}'


Hint = Callable[[bytes], str]
"""What a message that lacks the field may be instead, as the end of an error; empty = nothing tells."""


def no_hint(_message: bytes) -> str:
    """Nothing tells."""
    return ""


def operations_of(
    envelopes: Envelopes, operations: Operations, hint: Hint = no_hint
) -> tuple[Any, dict[int, str], dict[int, str]]:
    """What was done, and which envelopes do not say so.

    Args:
        envelopes: The envelopes.
        operations: What the values of their field mean.
        hint: What a message without the field may be.

    Returns:
        The `Op` of each envelope, those that are wrong with why, and those that change no row with what they are.
    """
    column = envelopes.rows.column(operations.field)
    found = pc.index_in(column, pa.array([*operations.known], pa.string()))
    codes = np.array([*operations.known.values()], np.int8)
    known = found.is_valid().to_numpy(zero_copy_only=False)
    ops = codes[found.fill_null(0).to_numpy(zero_copy_only=False)]
    errors, passed_over = {}, {}
    for at in np.flatnonzero(~known & envelopes.read).tolist():
        value = column[at].as_py()
        if value in operations.passed_over:
            passed_over[at] = operations.passed_over[value]
        else:
            what = hint(envelopes.messages[at]) if value is None else ""
            errors[at] = operations.unknown(value) + what
    return ops, errors, passed_over
