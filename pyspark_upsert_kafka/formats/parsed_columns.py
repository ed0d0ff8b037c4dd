"""What formats share that a library parses: from columns, or values of Python, as it reads them to columns of the table.

A parser reads numbers, booleans and texts itself. Other values it reads as texts, which are then converted
column by column. What it might get wrong falls back to the row path; where it cannot say which messages that are, it
refuses the batch, by a ValueError.

A column is read as a whole where all its values can be converted together; else in pieces, and the smallest that are
refused value by value. So a value that is refused costs a piece of its own column, and what a batch costs grows with its
values, however many of them are refused or bad, and in however many columns.

A library that parses message by message gives values of Python: objects, lists, and what has no parts, as orjson does of JSON.
A format whose messages another library parses, as msgpack or CBOR, has its columns by `column_builder` too: it says how a
type without parts is read.

A message that cannot be read with the others leaves its place to a copy of another one, so that all others keep theirs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import ArrayType, DataType, MapType, StructType

from pyspark_upsert_kafka.core.bytes_column import BytesColumn, column_of, offsets_of
from pyspark_upsert_kafka.formats.batches import batch_of, rows_lacking, with_others, with_type
from pyspark_upsert_kafka.formats.decoding import Mask
from pyspark_upsert_kafka.formats.text_values import BYTE_ORDER_MARK

# A column that is refused is split into so many pieces, again and again, until a piece is small.
_PIECES = 8
_SMALL = 32
# Where the vectorised reading refuses so many values at both ends, it probably refuses many, and pieces would not pay.
_END = 64

_LOOKS: tuple[tuple[Callable[[pa.DataType], bool], str], ...] = (
    (pa.types.is_integer, r"^[ \t]*-?[0-9]{1,18}[ \t]*$"),
    (pa.types.is_floating, r"^[ \t]*-?[0-9]{1,18}(\.[0-9]{1,18})?([eE][-+]?[0-9]{1,2})?[ \t]*$"),
    (pa.types.is_decimal, r"^-?[0-9]{1,38}(\.[0-9]{1,38})?$"),
    (pa.types.is_boolean, r"^(true|false|TRUE|FALSE|True|False)$"),
    (pa.types.is_date, r"^[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])$"),
    (
        pa.types.is_timestamp,
        r"^[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])[ T]([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\.[0-9]{1,9})?Z?$",
    ),
    (pa.types.is_binary, r"^[0-9A-Za-z+/]*={0,2}$"),
)
"""What most texts look like that are read as columns of a type."""

MOST_BAD = 3 / 4
"""Where a larger share of messages than this is bad, reading them by the row path costs least."""

Convert = Callable[[Any], pa.Array]
"""Values of a column as they were parsed to the column that the table has; ValueError = one of them is refused."""

BuildColumn = Callable[[list[Any]], pa.Array]
"""Parsed values, or None for null, to a column; ValueError = the batch needs the row path."""

_Leaves = Callable[[DataType], "BuildColumn | None"]
"""Compiles the builder of a type without parts; None = the values have lost what it needs."""


def unchanged(array: pa.Array) -> pa.Array:
    """The column as it was parsed."""
    return array


def finite(array: pa.Array) -> pa.Array:
    """The column, unless a number in it is infinite or none: parsers spell these otherwise than Java."""
    if pc.all(pc.is_finite(array)).as_py() is False:
        raise ValueError("a number is not finite")
    return array


@dataclass(frozen=True)
class Conversion:
    """How a column is read by a parser.

    Args:
        parsed: The type to parse it as.
        convert: The way from there to the type of the table.
    """

    parsed: pa.DataType
    convert: Convert = unchanged


def one_chunk(column: pa.ChunkedArray) -> pa.Array:
    """The values of a column of a table; those of an only chunk are not copied."""
    return column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays(column.chunks)


def without_marks(messages: Sequence[bytes]) -> BytesColumn:
    r"""The messages, each without the mark that it begins with.

    >>> list(without_marks([b"\xef\xbb\xbfa", b"b"]))
    [b'a', b'b']
    """
    column = column_of(messages)
    marked = pc.starts_with(column, BYTE_ORDER_MARK)
    rest = pc.binary_slice(column, len(BYTE_ORDER_MARK), 1 << 40)
    return BytesColumn(pc.if_else(marked, rest, column))


def with_stand_ins(messages: Sequence[bytes], left: Mask) -> BytesColumn:
    """The messages, with a copy of the shortest other one in the place of each under the mask.

    Raises:
        ValueError: There is no other one, or the copies take more than all messages do.
    """
    column, others = column_of(messages), np.flatnonzero(~left)
    if not others.size:
        raise ValueError("no message is left")
    sizes = np.diff(offsets_of(column))
    shortest = others[sizes[others].argmin()]
    if np.count_nonzero(left) * sizes[shortest] > sizes.sum():
        raise ValueError("the others are too long to stand in for so many")
    index = np.arange(len(column))
    index[left] = shortest
    return BytesColumn(column.take(pa.array(index)))


@dataclass(frozen=True)
class Column:
    """How one column is read.

    Args:
        field: The column.
        vectorised: All its values at once; None = it refuses all.
        one: One value, as the row path reads it; ValueError = it is bad. None = values are not read one by one.
        demanded: The same field, NOT NULL where a null counts as a missing value; None = the column.
    """

    field: pa.Field
    vectorised: Convert | None
    one: Callable[[Any], Any] | None
    demanded: pa.Field | None = None

    def read(self, values: Any, fallback: Mask) -> pa.Array:
        """The column; messages with a value that is bad, or that cannot be read, are marked in ``fallback``.

        Raises:
            ValueError: Probably most values are bad, or are refused and cannot be read one by one.
        """
        whole = self._whole(values)
        if whole is not None:
            return whole
        self._check_ends(values)
        odd = _odd(values, self.field.type)
        if self.one is None or not odd.any():
            return pa.concat_arrays(self._pieces(values, fallback))
        index, places = np.arange(len(odd)), np.flatnonzero(odd)
        index[odd] = np.flatnonzero(~odd)[0]
        plain = pa.concat_arrays(self._pieces(values.take(pa.array(index)), fallback))
        bad = np.zeros(len(places), np.bool_)
        others = self._one_by_one(values.take(pa.array(places)), bad)
        fallback[places[bad]] = True
        return with_others(plain, places, others)

    def _check_ends(self, values: Any) -> None:
        """Raises ValueError where the vectorised reading refuses both ends, and most values there are not read one by one."""
        ends = _piece(values, 0, _END), _piece(values, max(0, len(values) - _END), _END)
        for end in ends:
            bad = np.zeros(len(end), np.bool_)
            if self._whole(end) is not None:
                return
            self._one_by_one(end, bad)
            if bad.mean() <= MOST_BAD:
                return
        raise ValueError("most values are refused")

    def _whole(self, values: Any) -> pa.Array | None:
        if self.vectorised is None:
            return None
        try:
            array = self.vectorised(values)
            if rows_lacking(array, self.demanded or self.field):
                return None
            return with_type(array, self.field.type)
        except ValueError:  # pyarrow's ArrowInvalid is one
            return None

    def _pieces(self, values: Any, fallback: Mask) -> list[pa.Array]:
        whole = self._whole(values)
        if whole is not None:
            return [whole]
        if self.vectorised is None or len(values) <= _SMALL:
            return [self._one_by_one(values, fallback)]
        size, found = -(-len(values) // _PIECES), []
        for at in range(0, len(values), size):
            found += self._pieces(_piece(values, at, size), fallback[at : at + size])
        return found

    def _one_by_one(self, values: Any, fallback: Mask) -> pa.Array:
        if self.one is None:
            fallback[:] = True
            return pa.nulls(len(values), self.field.type)
        some = values.to_pylist() if isinstance(values, pa.Array) else values
        read, seen = self.one, []
        for at, value in enumerate(some):
            try:
                seen.append(read(value))
            except ValueError:
                fallback[at] = True
                seen.append(None)
        return pa.array(seen, self.field.type)


def _piece(values: Any, at: int, size: int) -> Any:
    """Some of the values; those of a nested array begin at its own beginning."""
    if isinstance(values, pa.Array) and values.type.num_fields:
        return values.take(pa.array(range(at, min(at + size, len(values))), pa.int64()))
    return values[at : at + size]


def _odd(values: Any, kind: pa.DataType) -> Mask:
    """Texts that are probably refused where a column of this type is read at once; nothing but their look is known."""
    odd = np.zeros(len(values), np.bool_)
    pattern = next((look for is_kind, look in _LOOKS if is_kind(kind)), None)
    if pattern is None or not isinstance(values, pa.Array) or not pa.types.is_string(values.type):
        return odd
    odd = pc.equal(pc.match_substring_regex(values, pattern), False).fill_null(False)
    found: Mask = odd.to_numpy(zero_copy_only=False)
    return np.zeros(len(values), np.bool_) if found.all() else found


def read_columns(
    columns: Sequence[Column], values: Sequence[Any], left: Mask
) -> tuple[pa.RecordBatch, Mask]:
    """The rows of some messages, and the mask of those that fall back to the row path.

    Args:
        columns: How each column is read.
        values: The values of each column.
        left: The mask of the messages that fall back anyway.

    Raises:
        ValueError: As `Column.read` does.
    """
    fallback = left.copy()
    arrays = [column.read(each, fallback) for column, each in zip(columns, values, strict=True)]
    return batch_of(arrays, pa.schema([column.field for column in columns]), len(left)), fallback


def leaf_builder(types: frozenset[type], conversion: Conversion) -> BuildColumn:
    """Compiles what makes a column of values without parts.

    Args:
        types: The types of Python that the values may have.
        conversion: The type of Arrow that holds them, and how that becomes the column.
    """

    def build(values: list[Any]) -> pa.Array:
        _check_types(values, types)
        try:
            return conversion.convert(pa.array(values, conversion.parsed))
        except OverflowError as error:
            raise ValueError("a number is out of range") from error

    return build


def column_builder(kind: DataType, leaves: _Leaves) -> BuildColumn | None:
    """Compiles what makes a column of this type of parsed values; None = a type within it has no builder."""
    if isinstance(kind, StructType):
        return _object(kind, leaves)
    if isinstance(kind, MapType):
        items = column_builder(kind.valueType, leaves)
        return items and _map(items)
    if isinstance(kind, ArrayType):
        items = column_builder(kind.elementType, leaves)
        return items and _list(items)
    return leaves(kind)


def _object(columns: StructType, leaves: _Leaves) -> BuildColumn | None:
    children = [column_builder(field.dataType, leaves) for field in columns.fields]
    ready = [child for child in children if child is not None]
    if len(ready) < len(children):
        return None
    names = columns.names

    def build(values: list[Any]) -> pa.Array:
        _check_types(values, {dict})
        null = [value is None for value in values]
        columns = [
            child([None if value is None else value.get(name) for value in values])
            for name, child in zip(names, ready, strict=True)
        ]
        return pa.StructArray.from_arrays(columns, names, mask=pa.array(null, pa.bool_()))

    return build


def _map(items: BuildColumn) -> BuildColumn:
    def build(values: list[Any]) -> pa.Array:
        _check_types(values, {dict})
        present = [value for value in values if value]
        keys = pa.array(chain.from_iterable(present), pa.string())
        inner = items(list(chain.from_iterable(value.values() for value in present)))
        return pa.MapArray.from_arrays(_list_offsets(values), keys, inner)

    return build


def _list(items: BuildColumn) -> BuildColumn:
    def build(values: list[Any]) -> pa.Array:
        _check_types(values, {list})
        inner = items(list(chain.from_iterable(value for value in values if value)))
        return pa.ListArray.from_arrays(_list_offsets(values), inner)

    return build


def _check_types(values: list[Any], allowed: frozenset[type] | set[type]) -> None:
    if not {*map(type, values)} <= {*allowed, type(None)}:
        raise ValueError("a value is of another kind")


def _list_offsets(values: list[Any]) -> pa.Array:
    """Where each list or map begins; a null one begins nowhere."""
    ends = list(accumulate(len(value) if value else 0 for value in values))
    starts = [None if v is None else start for v, start in zip(values, [0, *ends], strict=False)]
    return pa.array([*starts, ends[-1] if ends else 0], pa.int32())
