"""Random histories of a table, cut into micro-batches at random: the table is that of a model, whatever the cuts.

``LAKEHOUSE_TABLES=20`` makes as many tables, with other histories, and not only one.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from pyspark_upsert_kafka import merge_sink
from tests import merge_law
from tests.lakehouse.engines import Lake

TABLES = int(os.environ.get("LAKEHOUSE_TABLES", "1"))
HISTORIES = 300
BATCHES = 3
COLUMNS = (
    "history INT, id INT, n INT, s STRING, _partition INT, _offset BIGINT, _change_type STRING"
)
NOT_SENT = "?"

Row = tuple[int | None, str | None]
Change = tuple[int, int | None, str | None, str]
Message = list[Change]
"""The changes of a message: id, n, s, kind."""


@dataclass
class Model:
    """A table, changed by one change after the other, as the contract of `merge_sink` says."""

    deletes: str
    rows: dict[int, tuple[int | None, str | None, bool]] = field(default_factory=dict)

    def apply(self, message: Message, *, has_s: bool) -> None:
        """Applies the changes of a message: a key that a row takes is not deleted; a column that is not there stays."""
        taken = {id_ for id_, _, _, kind in message if kind not in ("delete", "update_preimage")}
        for id_, n, s, kind in message:
            if kind not in ("delete", "update_preimage"):
                self._upsert(id_, n, s if has_s else NOT_SENT)
            elif id_ not in taken:
                self._delete(id_)

    def _upsert(self, id_: int, n: int | None, s: str | None) -> None:
        before = self.rows.get(id_, (None, None, False))
        self.rows[id_] = (n, before[1] if s == NOT_SENT else s, False)

    def _delete(self, id_: int) -> None:
        if self.deletes == "hard":
            self.rows.pop(id_, None)
        elif self.deletes == "soft" and id_ in self.rows:
            self.rows[id_] = (*self.rows[id_][:2], True)


def changes(rng: random.Random) -> Iterator[Message]:
    """Messages of a topic: upserts and deletes, or rows before and after, of which some change the key."""
    images = rng.random() < 0.5
    for step in range(rng.randint(1, 12)):
        id_, other = rng.randint(1, 3), rng.randint(1, 3)
        sent = rng.choice([NOT_SENT, f"s{step}", None])
        what = rng.random()
        if not images:
            yield [(id_, None, None, "delete")] if what < 0.3 else [(id_, step, sent, "upsert")]
        elif what < 0.25:
            yield [(id_, step, "before", "delete")]
        elif what < 0.5:
            yield [(id_, step, sent, "insert")]
        else:
            after = id_ if what < 0.8 else other
            yield [
                (id_, 0, "before", "update_preimage"),
                (after, step, sent, "update_postimage"),
            ]


@pytest.mark.parametrize("number", range(TABLES))
@pytest.mark.parametrize("deletes", ["hard", "soft", "ignore"])
def test_the_table_does_not_depend_on_the_batches(lake: Lake, deletes: str, number: int) -> None:
    """Each history is cut in its own way; each batch is merged, one of them again, and the table is the model's.

    The last batch lacks a column.
    """
    rng = random.Random(f"{deletes} {number}")
    batches: list[list[tuple[Any, ...]]] = [[] for _ in range(BATCHES)]
    expected = set()
    for history in range(HISTORIES):
        model, messages = Model(deletes), list(changes(rng))
        cuts = sorted(rng.choices(range(BATCHES), k=len(messages)))
        for offset, (message, batch) in enumerate(zip(messages, cuts, strict=True)):
            model.apply(message, has_s=batch < BATCHES - 1)
            batches[batch] += [(history, *c[:3], 0, offset, c[3]) for c in message]
        stays = {"soft"} & {deletes}
        expected |= {
            (history, id_, *(row if stays else row[:2])) for id_, row in model.rows.items()
        }
    table = lake.table()
    sink = merge_sink(table, primary_key="history,id", deletes=deletes, unavailable=NOT_SENT)

    again = rng.randrange(BATCHES)
    for batch_id, rows in enumerate(batches):
        batch = lake.session.createDataFrame(rng.sample(rows, len(rows)), COLUMNS)
        batch = batch.drop("s") if batch_id == BATCHES - 1 else batch
        for _ in range(1 + (batch_id == again)):
            sink(batch.repartition(3), batch_id)

    found = lake.rows(table)
    assert len(found) == len(set(found))
    assert set(found) == expected


LAWS = [(check, way) for check, way in merge_law.LAWS if way.sequence or way.nulls or way.place]


@pytest.mark.parametrize("number", range(TABLES))
@pytest.mark.parametrize("first", range(3))
def test_the_table_is_that_of_a_model(lake: Lake, first: int, number: int) -> None:
    """The law of sequences, partial updates and partitions; ``LAKEHOUSE_TABLES=20`` has every way to merge."""
    laws = [law for law in LAWS if lake.engine.name == "delta" or not law[1].place]
    check, way = laws[(first * 5 + number) % len(laws)]

    def merging(way: merge_law.Way, batches: list[list[merge_law.Row]]) -> merge_law.Histories:
        table = lake.create(way.table)
        sink = merge_sink(table, **way.arguments)
        for batch_id, rows in enumerate(batches):
            batch = lake.session.createDataFrame(rows, merge_law.COLUMNS)
            sink(batch.repartition(3), batch_id)
        return merge_law.by_history(row.asDict() for row in lake.read(table).collect())

    check(merging, way, random.Random(f"{first} {number}"))
