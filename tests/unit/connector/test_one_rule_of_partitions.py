"""A key in several partitions: whoever shows its row shows the same one."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.unit.connector.changelog import test_change_order as changelog
from tests.unit.connector.memory_topics import NO_TIME
from tests.unit.connector.reading import test_merged_partitions as snapshot

LOGS = st.lists(
    st.lists(
        st.tuples(st.sampled_from([None, "x", "y", "z"]), st.integers(1, 4) | st.none()), max_size=6
    ),
    min_size=1,
    max_size=3,
)


@given(LOGS)
@example([[("new", 2)], [("old", 1)]])
@example([[(None, 2)], [("old", 1)]])
@example([[("low", 1)], [("high", 1)]])
@example([[("timed", 1)], [("timeless", None)]])
@example([[("a", 3), ("b", 1)], [("c", 2)]])
def test_a_snapshot_has_the_row_that_changes_leave(
    logs: list[list[tuple[str | None, int | None]]],
) -> None:
    """One with `scan.snapshot.merge-partitions`, and the last rows of `normalize_changelog`."""
    changes = [
        changelog.Change(partition, offset, time, name)
        for partition, log in enumerate(logs)
        for offset, (name, time) in enumerate(log)
    ]
    messages = [
        [snapshot.message(1, name, NO_TIME if time is None else time) for name, time in log]
        for log in logs
    ]

    with pytest.MonkeyPatch.context() as patch:
        rows = snapshot.table(patch, *messages)

    assert [name for _, name in rows] == (changelog.table_after(changes) if changes else [])
