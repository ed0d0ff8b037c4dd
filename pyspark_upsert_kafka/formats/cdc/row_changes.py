"""What envelopes say was done to rows: changes, each with the row before it and the row after it.

Rows stand in envelopes in one of three ways: before and after a change (Debezium, OGG), as they are and what of them is old
(Maxwell), and as arrays of these (Canal).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyspark_upsert_kafka.core.bytes_column import column_of
from pyspark_upsert_kafka.formats.cdc.envelope_format import EnvelopeFields, Op
from pyspark_upsert_kafka.formats.decoding import Mask
from pyspark_upsert_kafka.formats.json.json_document import parse_object, plain_object


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
class RowImages:
    """Rows as they were at one moment, one for each change.

    Args:
        columns: The columns by name; those of the key at least.
        present: For each change whether it has such a row; where it has none, all columns are NULL.
    """

    columns: Mapping[str, pa.Array]
    present: Mask

    def where(self, mask: Mask) -> RowImages:
        """Those for which the mask is true."""
        chosen = pa.array(mask)
        columns = {name: column.filter(chosen) for name, column in self.columns.items()}
        return RowImages(columns, self.present[mask])


@dataclass(frozen=True)
class RowChanges:
    """Changes of rows.

    Args:
        places: The index of each change's envelope; it rises, and occurs as often as its envelope has changes.
        ops: The `Op` of each change.
        before: The rows before; an insert has none.
        after: The rows after; a delete has none.
    """

    places: Any
    ops: Any
    before: RowImages
    after: RowImages

    def __len__(self) -> int:
        return len(self.ops)

    def without(self, envelopes: Collection[int]) -> RowChanges:
        """The changes that are in none of some envelopes."""
        if not envelopes:
            return self
        mask = ~np.isin(self.places, [*envelopes])
        return RowChanges(
            self.places[mask], self.ops[mask], self.before.where(mask), self.after.where(mask)
        )


@dataclass(frozen=True)
class EnvelopeContents:
    """What some envelopes say.

    Args:
        changes: The changes of rows; those of other envelopes than a change of a row have no meaning.
        errors: Index of each envelope that makes no sense, and why.
        passed_over: Index of each envelope that changes no row, and what it is.
    """

    changes: RowChanges
    errors: dict[int, str] = field(default_factory=dict)
    passed_over: dict[int, str] = field(default_factory=dict)


_Read = Callable[[Envelopes], EnvelopeContents]
_Hint = Callable[[bytes], str]
"""What a message that does not say what was done may be instead, as the end of an error; empty = nothing tells."""


def _operations(
    envelopes: Envelopes, fields: EnvelopeFields, hint: _Hint | None = None
) -> tuple[Any, dict[int, str], dict[int, str]]:
    """The `Op` of each envelope, those that are wrong with why, and those that change no row with what they are."""
    column = envelopes.rows.column(fields.operation)
    found = pc.index_in(column, pa.array([*fields.known], pa.string()))
    codes = np.array([*fields.known.values()], np.int8)
    ops = codes[found.fill_null(0).to_numpy(zero_copy_only=False)]
    errors, passed_over = {}, {}
    for at in np.flatnonzero(~_present(found) & envelopes.read).tolist():
        value = column[at].as_py()
        if value in fields.passed_over:
            passed_over[at] = fields.passed_over[value]
        else:
            what = hint(envelopes.messages[at]) if hint is not None and value is None else ""
            errors[at] = fields.unknown_operation(value) + what
    return ops, errors, passed_over


def _images(structs: pa.StructArray) -> RowImages:
    """The rows in a column of structs, where NULL is no row."""
    names = [structs.type.field(at).name for at in range(structs.type.num_fields)]
    return RowImages(dict(zip(names, structs.flatten(), strict=True)), _present(structs))


def _present(array: pa.Array) -> Mask:
    return _mask(array.is_valid())


def _mask(mask: pa.BooleanArray) -> Mask:
    return mask.to_numpy(zero_copy_only=False)


def read_before_after(
    fields: EnvelopeFields, hint: _Hint | None = None, *, empty_is_missing: bool = False
) -> _Read:
    """Compiles the reading of envelopes that have the row before a change, and the row after it.

    Args:
        fields: Their fields.
        hint: What a message without an operation may be; None = nothing tells.
        empty_is_missing: Whether an object without fields is no row.
    """

    def images(envelopes: Envelopes, name: str) -> RowImages:
        found = _images(envelopes.rows.column(name))
        return _without_empty(found, name, envelopes.messages) if empty_is_missing else found

    def read(envelopes: Envelopes) -> EnvelopeContents:
        ops, errors, passed_over = _operations(envelopes, fields, hint)
        before, after = images(envelopes, fields.before), images(envelopes, fields.after)
        changes = RowChanges(np.arange(len(ops)), ops, before, after)
        return EnvelopeContents(changes, errors, passed_over)

    return read


def _without_empty(images: RowImages, name: str, messages: Sequence[bytes]) -> RowImages:
    """The rows without those of which the message has an object without fields; only messages that may are looked into."""
    values = (_present(column) for column in images.columns.values())
    may = images.present & ~np.logical_or.reduce([np.zeros(len(messages), np.bool_), *values])
    if not may.any():
        return images
    has_empty = _mask(pc.match_substring_regex(column_of(messages), r"\{[ \t\r\n]*\}"))
    present = images.present.copy()
    for at in np.flatnonzero(may & has_empty).tolist():
        present[at] = _parsed(messages[at])[name] != {}
    return replace(images, present=present)


def read_data_and_old(fields: EnvelopeFields, *, lenient: bool) -> _Read:
    """Compiles the reading of envelopes that have a row, and of an update what has changed as it was before.

    Args:
        fields: Their fields.
        lenient: Whether a value that cannot be read is NULL.
    """

    def read(envelopes: Envelopes) -> EnvelopeContents:
        ops, errors, passed_over = _operations(envelopes, fields)
        data = _images(envelopes.rows.column(fields.after))
        old = _images(envelopes.rows.column(fields.before))

        def old_of(message: Any, _change: int) -> Collection[str]:
            found: Collection[str] = message[fields.before]
            return found

        places = np.arange(len(ops))
        nulls = _explicit_nulls(envelopes.messages, places, old.columns, old_of, lenient=lenient)
        changes = RowChanges(places, ops, _completed(ops, data, old, nulls), data)
        return EnvelopeContents(changes, errors, passed_over)

    return read


def read_lists_of_data_and_old(fields: EnvelopeFields, *, one_row: bool, lenient: bool) -> _Read:
    """Compiles the reading of envelopes that have arrays of both.

    Args:
        fields: Their fields.
        one_row: Whether only the message's key tells which row is changed, so that it can be one row only.
        lenient: Whether a value that cannot be read is NULL.
    """

    def read(envelopes: Envelopes) -> EnvelopeContents:
        ops, errors, passed_over = _operations(envelopes, fields)
        data, old = envelopes.rows.column(fields.after), envelopes.rows.column(fields.before)
        counts, of_old = _lengths(data), _lengths(old)
        for at, why in _uneven(ops, data, old, envelopes.read, fields).items():
            if at not in passed_over:
                errors.setdefault(at, why)
        for at in np.flatnonzero(counts > 1).tolist() if one_row else ():
            if at not in passed_over:
                errors.setdefault(
                    at,
                    f"it has {counts[at]} rows, and with 'value.fields-include' = 'EXCEPT_KEY' its key tells of one which it is",
                )
        places = np.repeat(np.arange(len(ops)), counts)
        within = np.arange(len(places)) - np.repeat(np.cumsum(counts) - counts, counts)
        has_old = (counts == of_old)[places]
        begins = np.cumsum(of_old) - of_old
        in_old = pa.array(np.where(has_old, begins[places] + within, 0), mask=~has_old)
        sent, before = _images(data.flatten()), _images(old.flatten().take(in_old))

        def old_of(message: Any, change: int) -> Collection[str]:
            found: Collection[str] = message[fields.before][int(within[change])]
            return found

        nulls = _explicit_nulls(envelopes.messages, places, before.columns, old_of, lenient=lenient)
        of_row = ops[places]
        changes = RowChanges(places, of_row, _completed(of_row, sent, before, nulls), sent)
        return EnvelopeContents(changes, errors, passed_over)

    return read


def _lengths(lists: pa.ListArray) -> Any:
    """How many entries each array has; 0 = it is null."""
    return pc.fill_null(pc.list_value_length(lists), 0).to_numpy(zero_copy_only=False)


def _uneven(
    ops: Any, data: pa.ListArray, old: pa.ListArray, read: Mask, fields: EnvelopeFields
) -> dict[int, str]:
    """The envelopes whose arrays do not fit, of those that could be read."""
    missing = np.flatnonzero(read & ~_present(data)).tolist()
    found = {at: fields.no_row(Op(ops[at])) for at in missing}
    counts, of_old = _lengths(data), _lengths(old)
    uneven = (ops == Op.UPDATE) & _present(old) & (counts != of_old)
    for at in np.flatnonzero(uneven).tolist():
        found.setdefault(
            at,
            f'the "{fields.before}" field has {of_old[at]} rows, and the "{fields.after}" field has {counts[at]}',
        )
    return found


def _completed(
    ops: Any, data: RowImages, old: RowImages, explicit_nulls: Callable[[Mask], dict[str, Mask]]
) -> RowImages:
    """The row before each change: of a delete the row itself, of an update ``old``, where it says nothing completed by ``data``.

    A field that is not in ``old`` has not changed, so its value is that of ``data``. A field that is there as null was NULL
    before. The columns of a batch do not tell one from the other; the messages do, and they are looked into only where it
    matters.

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


def _explicit_nulls(
    messages: Sequence[bytes],
    places: Any,
    names: Collection[str],
    old_of: Callable[[Any, int], Collection[str]],
    *,
    lenient: bool,
) -> Callable[[Mask], dict[str, Mask]]:
    """Compiles what says of which columns ``old`` says that they were NULL.

    Args:
        messages: The messages.
        places: The index of each change's message.
        names: The columns.
        old_of: From a parsed message and the index of a change: the names of the fields in its ``old``.
        lenient: Whether a value that cannot be read is NULL too, so that NULL need not stand there as ``null``.
    """

    def found(unsure: Mask) -> dict[str, Mask]:
        masks = {name: np.zeros(len(unsure), np.bool_) for name in names}
        if not lenient:
            unsure = unsure & _mask(pc.match_substring(column_of(messages), b"null"))[places]
        last: tuple[int, Any] = (-1, None)
        for at in np.flatnonzero(unsure).tolist():
            place = int(places[at])
            if last[0] != place:
                last = place, _parsed(messages[place])
            for name in old_of(last[1], at):
                if name in masks:
                    masks[name][at] = True
        return masks

    return found


def _parsed(message: bytes) -> Any:
    """A message that was decoded, parsed."""
    try:
        return plain_object(message)
    except ValueError:
        return parse_object(message)
