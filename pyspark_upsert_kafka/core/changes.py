"""Kinds of change and their spellings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from enum import IntEnum, auto
from itertools import islice

from pyspark_upsert_kafka.core.errors import printable


class Change(IntEnum):
    """What a row does to the row of its key, or to the table where there is no primary key.

    A row that is read shows it in ``_change_type``, spelt as the name in lower case. Of a row that is written, whatever becomes
    the message's value is an upsert.
    """

    UPSERT = 0
    """The row after the change, of a table with a primary key; in a sink the message's value."""
    DELETE = auto()
    """The key of a row that is gone, in a sink a tombstone; without a primary key the whole row."""
    INSERT = auto()
    """A new row, where there is no primary key."""
    UPDATE_PREIMAGE = auto()
    """The row as it was before an update; in a sink a tombstone unless a later change of the key follows."""
    UPDATE_POSTIMAGE = auto()
    """The same row after it, where there is no primary key."""


_SPELLINGS = {
    "insert": Change.UPSERT,
    "update_postimage": Change.UPSERT,
    "upsert": Change.UPSERT,
    "+i": Change.UPSERT,
    "+u": Change.UPSERT,
    "delete": Change.DELETE,
    "-d": Change.DELETE,
    "update_preimage": Change.UPDATE_PREIMAGE,
    "-u": Change.UPDATE_PREIMAGE,
}

SPELLINGS_OF = {
    kind: tuple(spelling for spelling, change in _SPELLINGS.items() if change is kind)
    for kind in (Change.UPSERT, Change.DELETE, Change.UPDATE_PREIMAGE)
}
"""The spellings of each kind that can be written, in lower case."""

SPELLINGS = "insert, update_postimage, upsert, +I, +U, delete, -D, update_preimage, -U"


SHOWN_KEYS = 3
"""So many keys are named where there may be many."""


def such_keys(keys: Iterable[Mapping[str, object]], count: int | None = None) -> str:
    """What stands behind a warning about some keys: a few of them.

    Args:
        keys: Columns and values of a few keys, and what else is to be said of each.
        count: How many keys there are; None = nobody has counted them.

    >>> such_keys([{"id": 1}, {"id": 2}], 7)
    ' Such keys: id = 1; id = 2; and 5 more.'
    """
    shown = [
        ", ".join(f"{name} = {value!r:.100}" for name, value in key.items())
        for key in islice(keys, SHOWN_KEYS)
    ]
    if count is not None and count > len(shown):
        shown.append(f"and {count - len(shown)} more")
    return f" Such keys: {printable('; '.join(shown))}."


def change_named(spelling: str | None) -> Change | None:
    """The kind of change that a ``_change_type`` means, in any case; None = it is not known.

    >>> change_named("+U"), change_named("DELETE"), change_named("gone")
    (<Change.UPSERT: 0>, <Change.DELETE: 1>, None)
    """
    return None if spelling is None else _SPELLINGS.get(spelling.lower())


def unknown_kind(spelling: str | None) -> str:
    """The error text about a spelling that is not known; None = NULL.

    >>> unknown_kind("delet").split(";")[0]
    "'delet' is not a kind of change (did you mean 'delete'?)"
    """
    near = get_close_matches((spelling or "").strip().lower(), _SPELLINGS, n=1)
    hint = f" (did you mean '{near[0]}'?)" if near else ""
    return f"{'NULL' if spelling is None else repr(spelling)} is not a kind of change{hint}; known kinds: {SPELLINGS}"
