"""The law of `merge_sink`: its table is that of a model, whatever the order, the batches and the partitions of the changes.

``spark/test_merge_law.py`` has it for the plans of merges, ``lakehouse/test_histories.py`` for real tables.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from typing import Any, NamedTuple

COLUMNS = (
    "history INT, id INT, n INT, s STRING, v INT, _partition INT, _offset BIGINT, _timestamp TIMESTAMP, "
    "_change_type STRING"
)
ROW = "history INT, id INT, n INT, s STRING, v INT"
NOT_SENT = "?"
START = datetime(2026, 1, 1, tzinfo=timezone.utc)


class Change(NamedTuple):
    """A change of a key in a history."""

    id: int
    n: int | None
    s: str | None
    v: int | None
    partition: int
    offset: int
    time: int
    is_delete: bool

    def row(self, history: int) -> tuple[Any, ...]:
        """Its columns."""
        at = START + timedelta(seconds=self.time)
        kind = "delete" if self.is_delete else "upsert"
        return (history, *self[:4], self.partition, self.offset, at, kind)


@dataclass(frozen=True)
class Way:
    """How changes are merged.

    Args:
        deletes: What a delete does.
        sequence: Whether the column ``v`` says which change is newer.
        nulls: Whether NULL in an update keeps the table's value.
        unavailable: Whether a text does so.
        place: Whether the table says when and where its rows were changed.
    """

    deletes: str
    sequence: bool = False
    nulls: bool = False
    unavailable: bool = False
    place: bool = False

    @property
    def arguments(self) -> dict[str, Any]:
        """Those of `merge_sink`."""
        return {
            "primary_key": "history,id",
            "deletes": self.deletes,
            "sequence_by": "V" if self.sequence else None,
            "ignore_null_updates": self.nulls,
            "unavailable": NOT_SENT if self.unavailable else None,
        }

    @property
    def table(self) -> str:
        """The columns of the table."""
        marked = ", is_deleted BOOLEAN" if self.deletes == "soft" else ""
        return f"{ROW}{', _timestamp TIMESTAMP, _partition INT' if self.place else ''}{marked}"


class Known(NamedTuple):
    """A row of the model."""

    n: int | None
    s: str | None
    v: int | None
    is_deleted: bool
    time: int
    partition: int


@dataclass
class Model:
    """A table, changed by one change after the other, as the page says."""

    way: Way
    rows: dict[int, Known] = field(default_factory=dict)

    def apply(self, change: Change) -> None:
        """Applies one change."""
        before = self.rows.get(change.id)
        if change.is_delete and self.way.deletes == "ignore":
            return
        if before is not None and self._is_older(change, before):
            return
        if not change.is_delete:
            self.rows[change.id] = self._upserted(change, before)
        elif self.way.deletes == "hard":
            self.rows.pop(change.id, None)
        elif before is not None:
            known = {"v": change.v} if self.way.sequence else {}
            self.rows[change.id] = before._replace(
                is_deleted=True, time=change.time, partition=change.partition, **known
            )
        elif self.way.sequence or self.way.place:
            version = change.v if self.way.sequence else None
            self.rows[change.id] = Known(None, None, version, True, change.time, change.partition)

    def _is_older(self, change: Change, row: Known) -> bool:
        of_change, of_row = (-1 if v is None else v for v in (change.v, row.v))
        if self.way.sequence and of_change != of_row:
            return of_change < of_row
        if not self.way.place or change.partition == row.partition:
            return False
        return (change.time, change.partition) < (row.time, row.partition)

    def _upserted(self, change: Change, before: Known | None) -> Known:
        n, s, v = change.n, change.s, change.v
        kept = before
        if before is not None and before.is_deleted and self.way.nulls:
            kept = None
        if self.way.unavailable and s == NOT_SENT:
            s = None if kept is None else kept.s
        elif self.way.nulls and s is None and kept is not None:
            s = kept.s
        if self.way.nulls and kept is not None:
            n = kept.n if n is None else n
            v = kept.v if v is None and not self.way.sequence else v
        return Known(n, s, v, False, change.time, change.partition)


def shown(rows: dict[int, Known]) -> set[tuple[Any, ...]]:
    """The rows of a model, with the columns that a table has."""
    return {(id_, *row[:4]) for id_, row in rows.items()}


def one_partition(rng: random.Random) -> list[Change]:
    """A log, in which versions come in any order."""
    return [
        Change(
            rng.randint(1, 2), rng.choice([None, step]), rng.choice([None, NOT_SENT, f"s{step}"]),
            rng.choice([None, 0, 1, 2, 3]), 0, step, step, rng.random() < 0.3,
        )
        for step in range(rng.randint(1, 8))
    ]  # fmt: skip


def two_partitions(rng: random.Random) -> list[Change]:
    """Changes of keys that lie in both partitions, whose timestamps never fall."""
    changes = []
    for partition in range(2):
        time = 0
        for offset in range(rng.randint(0, 5)):
            time += rng.randint(0, 2)
            is_delete = rng.random() < 0.3
            value = f"{partition}/{offset}"
            changes.append(
                Change(rng.randint(1, 2), offset, value, rng.choice([None, 0, 1]), partition, offset, time, is_delete)
            )  # fmt: skip
    return changes


def one_for_each_version(rng: random.Random) -> list[Change]:
    """Changes of which no two have one version: nothing else is needed to know which is newer."""
    versions = rng.sample(range(20), rng.randint(1, 8))
    return [
        Change(rng.randint(1, 2), step, f"s{step}", version, rng.randint(0, 1), step, rng.randint(0, 9), rng.random() < 0.3)
        for step, version in enumerate(versions)
    ]  # fmt: skip


def in_batches(rng: random.Random, changes: list[Change], count: int) -> Iterator[list[Change]]:
    """The changes in so many batches: those of a partition one after the other, those of several in any order."""
    cut = {
        partition: sorted(rng.choices(range(count), k=len(changes)))
        for partition in {change.partition for change in changes}
    }
    seen = dict.fromkeys(cut, 0)
    places = []
    for change in changes:
        places.append(cut[change.partition][seen[change.partition]])
        seen[change.partition] += 1
    for number in range(count):
        yield [change for change, place in zip(changes, places, strict=True) if place == number]


def last_ones(way: Way, changes: list[Change]) -> dict[int, Known]:
    """The table, if the newest change of each key decides: by its version, then by time, partition and offset."""
    model = Model(way)

    def order(change: Change) -> tuple[int, ...]:
        version = [-1 if change.v is None else change.v] if way.sequence else []
        return (*version, change.time, change.partition, change.offset)

    for change in sorted(changes, key=order):
        model.apply(change)
    return model.rows


HISTORIES, BATCHES = 60, 3

Row = tuple[Any, ...]
Histories = dict[int, set[Row]]
"""Of each history its rows: id, n, s, v, and whether it is deleted."""
Merging = Callable[[Way, list[list[Row]]], Histories]
"""Merges batches of changes, with the columns ``COLUMNS``, and returns the rows."""


def merge_histories(
    merge: Merging, way: Way, arrivals: list[list[list[Change]]], rng: random.Random
) -> Histories:
    """The rows of each history, whose changes arrive in such batches; one of them arrives twice."""
    batches = []
    again = rng.randrange(BATCHES)
    for number in range(BATCHES):
        batch = [
            change.row(history)
            for history, arriving in enumerate(arrivals)
            for change in arriving[number]
        ]
        rng.shuffle(batch)
        batches += [batch] * (1 + (number == again))
    return merge(way, batches)


BY_BATCHES = [
    Way("soft", sequence=True, nulls=True, unavailable=True),
    Way("hard", nulls=True, unavailable=True),
    Way("hard"),
    Way("hard", unavailable=True),
    Way("hard", nulls=True),
    Way("soft"),
    Way("soft", nulls=True),
    Way("soft", unavailable=True),
    Way("soft", sequence=True),
    Way("soft", sequence=True, nulls=True),
    Way("soft", sequence=True, unavailable=True),
    Way("soft", place=True, nulls=True),
    Way("ignore", nulls=True),
    Way("ignore", sequence=True),
    Way("ignore", sequence=True, nulls=True, unavailable=True),
]
BY_PARTITIONS = [
    Way("soft", place=True),
    Way("soft", sequence=True, place=True),
    Way("ignore", place=True),
    Way("ignore", sequence=True, place=True),
]
BY_ORDER = [Way("soft", sequence=True), Way("ignore", sequence=True)]


def check_batches(merge: Merging, way: Way, rng: random.Random) -> None:
    """The changes of a partition, in any batches, leave what they leave one by one.

    Where NULL keeps values, those of rows that are deleted may differ: they begin empty if they come again.
    """
    shown_of = live if way.nulls else set
    arrivals, models = [], []
    for _ in range(HISTORIES):
        changes, model = one_partition(rng), Model(way)
        for change in changes:
            model.apply(change)
        models.append(model)
        arrivals.append([*in_batches(rng, changes, BATCHES)])

    found = merge_histories(merge, way, arrivals, rng)

    for history, model in enumerate(models):
        expected = shown_of(shown(model.rows))
        assert shown_of(found.get(history, set())) == expected, arrivals[history]


def check_partitions(merge: Merging, way: Way, rng: random.Random) -> None:
    """If the table says when and where its rows were changed, changes of two partitions come in any order.

    Values of rows that are deleted may differ.
    """
    logs = [two_partitions(rng) for _ in range(HISTORIES)]
    arrivals = [[*in_batches(rng, log, BATCHES)] for log in logs]

    found = merge_histories(merge, way, arrivals, rng)

    for history, log in enumerate(logs):
        expected = live(shown(last_ones(way, log)))
        assert live(found.get(history, set())) == expected, arrivals[history]


def check_order(merge: Merging, way: Way, rng: random.Random) -> None:
    """If a sequence says which change of a key is newer, each may come in any batch, and come again."""
    logs = [one_for_each_version(rng) for _ in range(HISTORIES)]
    arrivals = []
    for log in logs:
        again = [*log, *rng.choices(log, k=2)]
        places = [rng.randrange(BATCHES) for _ in again]
        placed = [*zip(places, again, strict=True)]
        arrivals.append([[each for at, each in placed if at == number] for number in range(BATCHES)])  # fmt: skip

    found = merge_histories(merge, way, arrivals, rng)

    for history, log in enumerate(logs):
        expected = live(shown(last_ones(way, log)))
        assert live(found.get(history, set())) == expected, arrivals[history]


LAWS = [
    *((check_batches, way) for way in BY_BATCHES),
    *((check_partitions, way) for way in BY_PARTITIONS),
    *((check_order, way) for way in BY_ORDER),
]


def live(rows: set[tuple[Any, ...]]) -> set[tuple[Any, ...]]:
    """The rows, without the values of those that are deleted."""
    return {(id_, None, None, None, True) if gone else (id_, n, s, v, gone) for id_, n, s, v, gone in rows}  # fmt: skip


def by_history(rows: Iterable[Mapping[str, Any]]) -> Histories:
    """Rows of a table, each once, by their history."""
    found: Histories = {}
    for row in rows:
        is_deleted = bool(row.get("is_deleted"))
        of_history = found.setdefault(row["history"], set())
        known = (row["id"], row["n"], row["s"], row["v"], is_deleted)
        assert known not in of_history
        of_history.add(known)
    return found
