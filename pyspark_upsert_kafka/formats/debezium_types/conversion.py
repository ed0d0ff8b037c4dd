"""Columns as a plain decoder read them become columns of the table; a bad value is an error of its row.

A conversion keeps what is null as null, and a bad value becomes null: the caller drops the rows of the errors.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from pyspark_upsert_kafka.formats.binary.numbers import Numbers
from pyspark_upsert_kafka.formats.decoded_size import Budget
from pyspark_upsert_kafka.formats.exact_types import with_type
from pyspark_upsert_kafka.formats.json.document import shown

Errors = Mapping[int, str]
"""Positions in a column, and what is wrong with the value there or in it."""

Conversion = Callable[[pa.Array, Budget], "tuple[pa.Array, Errors]"]
"""A column of the physical type to one of the table's type, whose nested fields may have other names and be nullable.

How large the columns of some messages may become together is a budget: a decimal of a few bytes may be a text of 200 KB.
"""


@dataclass(frozen=True)
class LeafConversion:
    """Converts the values of a semantic type.

    Args:
        path: Where the field stands, for errors: ``after.lines[].price``.
        column: A column of the physical type to that of the table, as in `Reading`.
        value: The same of a value.
        kind: The type of the column.
        lenient: Whether a bad value is NULL and no error.
    """

    path: str
    column: Callable[[pa.Array], pa.Array] | None
    value: Callable[[Any], Any]
    kind: pa.DataType
    lenient: bool = False

    def __call__(self, array: pa.Array, budget: Budget) -> tuple[pa.Array, Errors]:
        """The column, and its errors. Raises TooManyMessagesError."""
        if self.column is not None:
            try:
                return self.column(array).cast(self.kind), {}
            except ValueError:  # pyarrow's ArrowInvalid is one
                pass
        return self._one_by_one(array, budget)

    def _one_by_one(self, array: pa.Array, budget: Budget) -> tuple[pa.Array, Errors]:
        read, found, errors = self.value, [], {}
        for at, value in enumerate(array.to_pylist()):
            try:
                seen = None if value is None else read(value)
                if isinstance(seen, str):
                    budget.take_text(seen)
                found.append(seen)
            except ValueError as why:
                found.append(None)
                errors[at] = self._error(value, why)
        return pa.array(found, self.kind), {} if self.lenient else errors

    def _error(self, value: Any, why: ValueError) -> str:
        return f"field '{self.path}': {why}, got {shown(value)}"


@dataclass(frozen=True)
class StructConversion:
    """Converts some fields of structs.

    Args:
        fields: A conversion for each field that needs one, by its place.
    """

    fields: Mapping[int, Conversion]

    def __call__(self, array: pa.StructArray, budget: Budget) -> tuple[pa.Array, Errors]:
        """The structs; what stands in a struct that is null is no error."""
        valid = array.is_valid()
        children, errors = [array.field(at) for at in range(array.type.num_fields)], {}
        for at, convert in self.fields.items():
            children[at], found = convert(children[at], budget)
            errors.update({row: why for row, why in found.items() if valid[row].as_py()})
        names = [field.name for field in array.type]
        made = pa.StructArray.from_arrays(children, names, mask=array.is_null()) if names else array
        return made, errors


@dataclass(frozen=True)
class ItemsConversion:
    """Converts the items of arrays, or the values of maps.

    Args:
        items: The conversion of an item.
    """

    items: Conversion

    def __call__(self, array: pa.Array, budget: Budget) -> tuple[pa.Array, Errors]:
        """The arrays or maps, whose errors are those of their items."""
        values, found = self._converted(array, budget)
        kind = _kind_around(array.type, values)
        offsets = _offsets(array)
        exact = with_type(values, kind.field(0).type)
        own = array.buffers()[:2]
        made = pa.Array.from_buffers(kind, len(array), own, offset=array.offset, children=[exact])
        return made, _errors_of_rows(found, offsets, array)

    def _converted(self, array: pa.Array, budget: Budget) -> tuple[pa.Array, Errors]:
        if not pa.types.is_map(array.type):
            return self.items(array.values, budget)
        entries = array.values
        values, found = self.items(entries.field(1), budget)
        names = [field.name for field in entries.type]
        return pa.StructArray.from_arrays([entries.field(0), values], names), found


def _kind_around(kind: pa.DataType, values: pa.Array) -> pa.DataType:
    if pa.types.is_map(kind):
        return pa.map_(values.type.field(0).type, values.type.field(1).type)
    return pa.list_(values.type)


def _offsets(array: pa.Array) -> Numbers:
    """Where the items of each row begin, and where those of the last one end."""
    if not len(array):
        return np.zeros(1, np.int32)
    return np.frombuffer(array.buffers()[1], np.int32)[array.offset :][: len(array) + 1]


def _errors_of_rows(found: Errors, offsets: Numbers, array: pa.Array) -> Errors:
    """The errors of items as those of the rows that they stand in; of several the first. Some stand in no row."""
    errors: dict[int, str] = {}
    for item in sorted(found):
        row = int(np.searchsorted(offsets, item, side="right")) - 1
        if 0 <= row < len(array) and array[row].is_valid:
            errors.setdefault(row, found[item])
    return errors


def row_errors(conversions: Sequence[Errors]) -> Errors:
    """The errors of several columns together; of several in a row the first."""
    errors: dict[int, str] = {}
    for each in conversions:
        for row, why in each.items():
            errors.setdefault(row, why)
    return errors
