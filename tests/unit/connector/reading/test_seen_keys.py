"""A warning where a key of a table has rows in two partitions, by a hash of some rows of each."""

from __future__ import annotations

import pyarrow as pa
import pytest

from pyspark_upsert_kafka.connector.reading.task_reading import SeenKeys
from pyspark_upsert_kafka.core import errors
from pyspark_upsert_kafka.core.positions.offsets import Range

A, B, C = (Range("t", partition, 0, 9) for partition in range(3))
OTHER_TOPIC = Range("u", 0, 0, 9)


@pytest.fixture(autouse=True)
def nothing_warned(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing has been said yet in this process."""
    monkeypatch.setattr(errors, "_warned", set())


def rows(*keys: int) -> pa.RecordBatch:
    """Rows with these keys; the other column is no part of it."""
    return pa.record_batch([[0] * len(keys), list(keys)], ["other", "id"])


@pytest.mark.parametrize(
    ("looks", "warnings"),
    [
        ([], 0),
        ([(A, rows(1, 2)), (B, rows(3, 4))], 0),
        ([(A, rows(1, 2)), (B, rows(3, 2))], 1),
        ([(A, rows(5)), (B, rows(4)), (C, rows(1, 9, 5))], 1),
        ([(A, rows(5)), (A, rows(6)), (B, rows(6))], 1),
        ([(A, rows(5)), (A, rows(6)), (B, rows(5))], 1),
        ([(A, rows(5)), (OTHER_TOPIC, rows(5))], 1),
        # Rows of one partition, in one batch or in several, are those of different keys, or of one read in parts.
        ([(A, rows(1, 1)), (A, rows(1)), (B, rows(2))], 0),
        ([(A, rows()), (B, rows()), (C, rows(1))], 0),
    ],
)
def test_a_key_in_two_partitions_is_told(
    caplog: pytest.LogCaptureFixture,
    looks: list[tuple[Range, pa.RecordBatch]],
    warnings: int,
) -> None:
    """Whichever of its partitions it was seen in before."""
    seen = SeenKeys(["id"], [A, B, C, OTHER_TOPIC])
    for range_, some in looks:
        seen.look(range_, some)

    assert len(caplog.messages) == warnings


def test_after_a_warning_nothing_is_looked_at() -> None:
    """One is enough, and hashes cost time."""
    seen = SeenKeys(["id"], [A, B])
    for range_ in (A, B):
        seen.look(range_, rows(1))
    seen.look(A, pa.record_batch([[1]], ["without the key"]))


@pytest.mark.parametrize("ranges", [[], [A], [A, Range("t", 0, 9, 20)]])
def test_of_one_partition_nothing_is_looked_at(ranges: list[Range]) -> None:
    """However many ranges of it are read."""
    SeenKeys(["id"], ranges).look(A, pa.record_batch([[1]], ["without the key"]))


@pytest.mark.parametrize(
    ("partitions", "most"), [(2, 500_000), (100, 10_000), (101, 10_000), (5_000, 10_000)]
)
@pytest.mark.parametrize("step", [1, 3])
def test_a_million_rows_are_looked_at(
    caplog: pytest.LogCaptureFixture, partitions: int, most: int, step: int
) -> None:
    """Of each partition as many, in one batch or in several, and ten thousand at least."""
    all_rows = pa.record_batch([range(most + 1)], ["id"])
    for key, warnings in ((most, 0), (most - 1, 1)):
        seen = SeenKeys(["id"], [Range("t", each, 0, 9) for each in range(partitions)])
        size = -(-all_rows.num_rows // step)
        for begin in range(0, all_rows.num_rows, size):
            seen.look(A, all_rows.slice(begin, size))
        seen.look(B, pa.record_batch([[key]], ["id"]))
        assert len(caplog.messages) == warnings
