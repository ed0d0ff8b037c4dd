"""Which change of a key is newer, where the key lies in several partitions."""

from __future__ import annotations

from typing import Any, NamedTuple

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyspark_upsert_kafka.connector.changelog.changelog_columns import ChangeColumns
from pyspark_upsert_kafka.connector.changelog.row_images import (
    DELETES_ARE_KEPT_US,
    kept_fields,
    normalized,
    without_deletes,
)
from pyspark_upsert_kafka.core import errors

SCHEMA = pa.schema(
    [
        pa.field("_change_type", pa.string()),
        pa.field("id", pa.int64()),
        pa.field("name", pa.string()),
        pa.field("_topic", pa.string()),
        pa.field("_partition", pa.int32()),
        pa.field("_offset", pa.int64()),
        pa.field("_timestamp", pa.timestamp("us", "UTC")),
    ]
)
COLUMNS = ChangeColumns(
    tuple(SCHEMA.names),
    ("id",),
    ("id", "name"),
    ("_topic", "_partition", "_offset", "_timestamp"),
    "_change_type",
    "_partition",
    "_offset",
    "_topic",
    "_timestamp",
)
NOTHING = pa.schema(
    [*(SCHEMA.field(name) for name in COLUMNS.row), *kept_fields(COLUMNS)]
).empty_table()


class Change(NamedTuple):
    """A change of the only key."""

    partition: int
    offset: int
    time: int | None
    name: str | None
    topic: str = "a"

    def row(self) -> dict[str, Any]:
        """Its columns."""
        return {
            "_change_type": "delete" if self.name is None else "upsert",
            "id": 1,
            "name": self.name,
            "_topic": self.topic,
            "_partition": self.partition,
            "_offset": self.offset,
            "_timestamp": self.time,
        }


def table_after(*batches: list[Change]) -> list[str]:
    """The names in the table after some batches."""
    last = NOTHING
    for batch in batches:
        changes = pa.Table.from_pylist([change.row() for change in batch], SCHEMA)
        last = normalized(last, changes, COLUMNS).last
    rows = without_deletes(last, pa.schema([SCHEMA.field(name) for name in COLUMNS.row]))
    return rows["name"].to_pylist()


OLD, NEW = Change(2, 70, 100, "old"), Change(0, 5, 200, "new")


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ([OLD, NEW], ["new"]),
        ([OLD, NEW._replace(name=None)], []),
        ([OLD._replace(name=None), NEW], ["new"]),
        ([OLD._replace(time=200), NEW], ["old"]),
        ([OLD._replace(time=None), NEW], ["new"]),
        ([Change(0, 1, 300, "first"), Change(0, 2, 200, "second")], ["second"]),
        ([Change(0, 1, 300, "a"), Change(0, 2, 100, "b"), Change(1, 1, 200, "c")], ["b"]),
        ([OLD._replace(topic="b", partition=0), NEW], ["new"]),
    ],
    ids=[
        "the timestamp decides, not the partition",
        "a newer delete deletes",
        "an older delete does nothing",
        "the higher partition is newer at equal times",
        "no timestamp is the oldest",
        "the offset decides in a partition",
        "the greatest timestamp in a partition counts",
        "a partition of another topic is another one",
    ],
)
def test_which_change_is_the_last_one(changes: list[Change], expected: list[str]) -> None:
    """It is the same in one batch and in several, in any order that keeps that of each partition."""
    assert table_after(changes) == expected
    assert table_after(*([change] for change in changes)) == expected
    by_partition = sorted(changes, key=lambda change: (-change.partition, change.offset))
    assert table_after(*([change] for change in by_partition)) == expected


@given(
    st.lists(
        st.tuples(
            st.integers(0, 2), st.integers(0, 5) | st.none(), st.sampled_from([None, "x", "y", "z"])
        ),
        max_size=12,
    ),
    st.data(),
)
def test_the_table_does_not_depend_on_cut_and_order(
    drawn: list[tuple[int, int | None, str | None]], data: st.DataObject
) -> None:
    """However the partitions' changes are mixed and cut into batches, the table is that of one batch of all."""
    changes = [
        Change(partition, at, time, name) for at, (partition, time, name) in enumerate(drawn)
    ]
    logs = [[change for change in changes if change.partition == each] for each in range(3)]
    batches: list[list[Change]] = []
    while any(logs):
        counts = [data.draw(st.integers(0, len(log))) for log in logs]
        batches.append(
            [change for log, count in zip(logs, counts, strict=True) for change in log[:count]]
        )
        logs = [log[count:] for log, count in zip(logs, counts, strict=True)]

    assert table_after(*filter(None, batches)) == (table_after(changes) if changes else [])


def test_a_delete_is_remembered_for_a_day() -> None:
    """Within a day of the timestamps an older change of another partition does not bring the row back."""
    delete = Change(1, 1, DELETES_ARE_KEPT_US, None)
    older = Change(0, 1, DELETES_ARE_KEPT_US - 1, "older")

    assert table_after([delete], [older]) == []

    other = pa.Table.from_pylist(
        [Change(1, 2, 3 * DELETES_ARE_KEPT_US, "x").row() | {"id": 2}], SCHEMA
    )
    first = normalized(NOTHING, pa.Table.from_pylist([delete.row()], SCHEMA), COLUMNS).last
    assert normalized(first, other, COLUMNS).last["id"].to_pylist() == [2]


def test_a_warning_names_keys_in_several_partitions(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Once, a few of them; a key that the state has in another partition counts."""
    monkeypatch.setattr(errors, "_warned", set())
    changes = [
        Change(partition, at, at, "x").row() | {"id": id_}
        for at, (id_, partition) in enumerate([(1, 0), (2, 0), (7, 0), (7, 1)])
    ]
    moved = [Change(2, 9, 9, "y").row() | {"id": 2}]

    last = normalized(NOTHING, pa.Table.from_pylist(changes[:2], SCHEMA), COLUMNS).last
    assert caplog.messages == []
    for _ in range(2):
        normalized(last, pa.Table.from_pylist([*changes[2:], *moved], SCHEMA), COLUMNS)

    (message,) = caplog.messages
    assert message.startswith("normalize_changelog: keys lie in several partitions")
    assert message.endswith(" Such keys: id = 2; id = 7.")


def test_a_state_without_times_is_older_than_all() -> None:
    """A checkpoint of an earlier version, or of a query without timestamps, goes on."""
    kept = pa.table({"id": pa.array([1]), "name": ["kept"]})
    for field in kept_fields(COLUMNS):
        kept = kept.append_column(field, pa.nulls(1, field.type))

    changes = pa.Table.from_pylist([NEW.row()], SCHEMA)

    assert normalized(kept, changes, COLUMNS).last["name"].to_pylist() == ["new"]
