"""Messages to rows of the table: they are decoded as envelopes, and what these say of rows becomes rows of the table.

With a primary key, changes are upserts and deletes of it; without one, each is shown as the rows before and after it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import LongType

from pyspark_upsert_kafka.core.arrow import arrow_schema, canonical_floats
from pyspark_upsert_kafka.core.bytes_column import column_of, offsets_of, some_of
from pyspark_upsert_kafka.core.changes import Change
from pyspark_upsert_kafka.formats.batches import batch_of, rows_at
from pyspark_upsert_kafka.formats.cdc.envelope_format import EnvelopeFields, Op, Place
from pyspark_upsert_kafka.formats.cdc.row_changes import (
    EnvelopeContents,
    Envelopes,
    RowChanges,
)
from pyspark_upsert_kafka.formats.codec import ChangeSpec, Decoded, DecodedChanges, Decoder
from pyspark_upsert_kafka.formats.decoding import Mask
from pyspark_upsert_kafka.formats.row_hash import equal_keys

_UPSERTS = np.array([Change.UPSERT, Change.UPSERT, Change.DELETE], np.int8)
_IMAGES = np.array([Change.INSERT, Change.UPDATE_PREIMAGE, Change.DELETE], np.int8)
"""The kind of the first row, or only one, that each `Op` gives."""


class EnvelopeDecoder:
    """Decodes the messages of a CDC format.

    Args:
        spec: The columns of the row, and what the table's key is.
        decoder: Decodes messages as envelopes.
        fields: Which fields of these say what.
        read: What envelopes say of rows.
        chosen: The indexes of the messages that are read at all; None = all are.
    """

    def __init__(
        self,
        spec: ChangeSpec,
        decoder: Decoder,
        fields: EnvelopeFields,
        read: Callable[[Envelopes], EnvelopeContents],
        chosen: Callable[[Sequence[bytes]], Any] | None = None,
    ) -> None:
        self._spec, self._decoder, self._fields, self._read = spec, decoder, fields, read
        self._chosen = chosen
        self._skip_bad = bool(spec.value.options.get("ignore-parse-errors"))
        self._schema = arrow_schema(spec.value.schema)

    def decode(self, messages: Sequence[bytes]) -> DecodedChanges:
        """The changes of some messages; an empty message is ignored.

        Raises:
            TooManyMessagesError: Their rows would be too large together.
        """
        begin = self._indexes(messages)
        some = messages if len(begin) == len(messages) else some_of(messages, begin)
        found = self._changes(self._decoder.decode(some), some)
        errors = {int(begin[at]): why for at, why in found.errors.items()}
        skipped = frozenset(int(begin[at]) for at in found.skipped)
        return replace(
            found,
            places=begin[found.places],
            errors={} if self._skip_bad else errors,
            skipped=skipped.union(errors) if self._skip_bad else skipped,
            passed_over={int(begin[at]): what for at, what in found.passed_over.items()},
        )

    def _indexes(self, messages: Sequence[bytes]) -> Any:
        """The indexes of the messages that are decoded."""
        present = np.flatnonzero(np.diff(offsets_of(column_of(messages))))
        if self._chosen is None:
            return present
        some = messages if len(present) == len(messages) else some_of(messages, present)
        return present[self._chosen(some)]

    def _changes(self, decoded: Decoded, messages: Sequence[bytes]) -> DecodedChanges:
        """The changes of messages that were decoded as envelopes."""
        contents = self._read(Envelopes(decoded.rows, messages, decoded.read))
        of_no_change = (decoded.errors, decoded.skipped, contents.errors, contents.passed_over)
        changes = contents.changes.without([*chain.from_iterable(of_no_change)])
        lacking = self._lacking(changes)
        changes = changes.without(lacking)
        table = (
            _upserts(changes, self._schema, self._spec.key)
            if self._spec.is_keyed
            else _images(changes, self._schema)
        )
        missing = self._missing_values(table)
        if missing:
            table = table.at(~np.isin(table.places, [*missing]))
        envelopes = dict(zip(decoded.rows.schema.names, decoded.rows.columns, strict=True))
        return DecodedChanges(
            table.rows,
            table.places,
            table.kinds,
            {
                key: _of_rows(_metadata(self._fields.metadata[key], envelopes), table.places)
                for key in self._spec.metadata
            },
            {**decoded.errors, **contents.errors, **lacking, **missing},
            decoded.skipped,
            contents.passed_over,
        )

    def _lacking(self, changes: RowChanges) -> dict[int, str]:
        """The envelopes of which a change has not the rows that it needs."""
        found: dict[int, str] = {}
        no_after = (changes.ops != Op.DELETE) & ~changes.after.present
        for at in np.flatnonzero(no_after):
            found.setdefault(int(changes.places[at]), self._fields.no_row(Op(changes.ops[at])))
        needs_before = np.isin(changes.ops, self._ops_with_row_before())
        for at in np.flatnonzero(needs_before & ~changes.before.present):
            why = self._fields.no_row_before(Op(changes.ops[at]))
            found.setdefault(int(changes.places[at]), why)
        return found

    def _ops_with_row_before(self) -> list[Op]:
        """The changes that need the row before them."""
        if not self._spec.is_keyed:
            return [Op.UPDATE, Op.DELETE]
        return [] if self._spec.reads_key else [Op.DELETE]

    def _missing_values(self, table: _TableRows) -> dict[int, str]:
        """The envelopes of rows that are not deletes, and have NULL in a NOT NULL column."""
        found: dict[int, str] = {}
        for field, column in zip(self._schema, table.rows.columns, strict=False):
            if field.nullable or not column.null_count:
                continue
            lacks = column.is_null().to_numpy(zero_copy_only=False) & (table.kinds != Change.DELETE)
            for place in table.places[lacks]:
                path = f"{self._fields.after}.{field.name}"
                found.setdefault(int(place), f"field '{path}' is NOT NULL, but is null or missing")
        return found


def _metadata(place: Place, envelopes: Mapping[str, pa.Array]) -> pa.Array:
    """What a column shows of each envelope, from the fields by their names."""
    column = envelopes[place.path[0]]
    if len(place.path) > 1 and pa.types.is_map(column.type):
        column = pc.map_lookup(column, pa.scalar(place.path[1]), "last")
        if isinstance(place.type, LongType):
            is_number = pc.match_substring_regex(column, "^-?[0-9]{1,18}$")
            null = pa.scalar(None, column.type)
            column = pc.if_else(is_number, column, null).cast(pa.int64())
    elif len(place.path) > 1:
        column = column.flatten()[column.type.get_field_index(place.path[1])]
    return column if place.convert is None else place.convert(column)


def _of_rows(column: pa.Array, places: Any) -> pa.Array:
    """What is known of envelopes, for each row."""
    whole = len(column) == len(places) and not (np.diff(places) != 1).any()
    return column if whole else column.take(pa.array(places))


@dataclass(frozen=True)
class _TableRows:
    """Rows of the table.

    Args:
        rows: The rows.
        places: The index of each row's envelope.
        kinds: The `Change` of each row.
    """

    rows: pa.RecordBatch
    places: Any
    kinds: Any

    def at(self, chosen: Mask) -> _TableRows:
        """Those for which a mask is true."""
        rows = rows_at(self.rows, pa.array(np.flatnonzero(chosen)))
        return _TableRows(rows, self.places[chosen], self.kinds[chosen])


def _images(changes: RowChanges, schema: pa.Schema) -> _TableRows:
    """Each insert is a row, each delete the row before it, and each update both rows, in this order."""
    is_update = changes.ops == Op.UPDATE
    source, is_second = _sources(is_update)
    kinds = _IMAGES[changes.ops[source]]
    kinds[is_second] = Change.UPDATE_POSTIMAGE
    is_before = (kinds == Change.DELETE) | (kinds == Change.UPDATE_PREIMAGE)
    columns = [_chosen(changes, name, source, is_before) for name in schema.names]
    return _table_rows(changes, schema, columns, source, kinds)


def _upserts(changes: RowChanges, schema: pa.Schema, key: Sequence[str]) -> _TableRows:
    """Each change is an upsert of the row after it, or a delete of its key; an update of the key is both, the delete first."""
    moved = _moved(changes, key)
    source, is_second = _sources(moved)
    kinds = _UPSERTS[changes.ops[source]]
    kinds[moved[source] & ~is_second] = Change.DELETE
    deletes = kinds == Change.DELETE
    columns = [
        _chosen(changes, name, source, deletes)
        if name in key
        else _unless(changes.after.columns[name], source, deletes)
        for name in schema.names
    ]
    found = _table_rows(changes, schema, columns, source, kinds)
    several = len(changes) > 1 and (changes.places[1:] == changes.places[:-1]).any()
    return _last_of_each_key(found, key) if several else found


def _sources(is_double: Mask) -> tuple[Any, Mask]:
    """The change that each row comes from, where some give two rows; and whether it is the second of these."""
    source = np.repeat(np.arange(len(is_double)), np.where(is_double, 2, 1))
    is_second = np.zeros(len(source), np.bool_)
    is_second[1:] = source[1:] == source[:-1]
    return source, is_second


def _moved(changes: RowChanges, key: Sequence[str]) -> Mask:
    """For each change whether it is an update that changes the key; NULL in a key says nothing."""
    may = (changes.ops == Op.UPDATE) & changes.before.present
    moved = np.zeros(len(changes), np.bool_)
    if not key or not may.any():
        return moved
    known = may
    for name in key:
        old, new = changes.before.columns[name], changes.after.columns[name]
        known = known & _true(pc.and_(old.is_valid(), new.is_valid()))
        moved |= ~_true(equal_keys(old, new))
    return moved & known


def _true(mask: pa.BooleanArray) -> Mask:
    return mask.to_numpy(zero_copy_only=False)


def _chosen(changes: RowChanges, name: str, source: Any, is_before: Mask) -> pa.Array:
    """A column, for each row of the row before its change or of the row after it."""
    before, after = changes.before.columns[name], changes.after.columns[name]
    if not is_before.any():
        return _taken(after, source)
    return pa.concat_arrays([after, before]).take(pa.array(source + is_before * len(after)))


def _unless(column: pa.Array, source: Any, is_null: Mask) -> pa.Array:
    """A column, and NULL in some rows."""
    if not is_null.any():
        return _taken(column, source)
    return column.take(pa.array(source, mask=is_null))


def _taken(column: pa.Array, source: Any) -> pa.Array:
    """A column, where no row comes from a change twice: then each change has one row."""
    return column if len(source) == len(column) else column.take(pa.array(source))


def _table_rows(
    changes: RowChanges, schema: pa.Schema, columns: list[pa.Array], source: Any, kinds: Any
) -> _TableRows:
    nullable = pa.schema([field.with_nullable(True) for field in schema])
    rows = batch_of(columns, nullable, len(source))
    return _TableRows(rows, changes.places[source], kinds)


def _last_of_each_key(found: _TableRows, key: Sequence[str]) -> _TableRows:
    """The rows without those that a later row of the same envelope overwrites."""
    names = [str(at) for at in range(len(key))]
    columns = [canonical_floats(found.rows.column(name)) for name in key]
    numbers = pa.array(np.arange(len(found.kinds)))
    rows = pa.table([*columns, pa.array(found.places), numbers], [*names, "place", "row"])
    last = rows.group_by([*names, "place"], use_threads=False).aggregate([("row", "max")])
    kept = np.zeros(len(found.kinds), np.bool_)
    kept[last.column("row_max").to_numpy()] = True
    return found if kept.all() else found.at(kept)
