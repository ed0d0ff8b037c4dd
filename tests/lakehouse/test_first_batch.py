"""The first batch of a query may be the whole table: rows of other keys are deleted."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest
from pyspark.sql.streaming import StreamingQuery

from pyspark_upsert_kafka import merge_sink
from tests.conftest import Broker
from tests.lakehouse.engines import Lake
from tests.lakehouse.program import COLUMNS
from tests.spark.conftest import run_to_end

USERS = "id BIGINT, name STRING"


@pytest.mark.timeout(900)
@pytest.mark.parametrize("deletes", ["hard", "soft"])
def test_a_new_checkpoint_deletes_what_was_deleted_meanwhile(
    lake: Lake, broker: Broker, tmp_path: Path, deletes: str
) -> None:
    """Between two checkpoints keys are deleted and their tombstones compacted away, as it were: the table is that of the topic."""
    topic, table = broker.topic(2), lake.table()

    def run(checkpoint: str) -> None:
        run_to_end(start(checkpoint))

    def start(checkpoint: str) -> StreamingQuery:
        options = {
            "topic": topic, "properties.bootstrap.servers": broker.servers, "primary-key": "id",
            "key.format": "json", "value.format": "json", "scan.startup.mode": "full",
        }  # fmt: skip
        stream = lake.session.readStream.format("upsert-kafka").schema(COLUMNS).options(**options)
        sink = merge_sink(table, primary_key="id", deletes=deletes, first_batch="table")
        writer = stream.load().writeStream.foreachBatch(sink).trigger(availableNow=True)
        return writer.option("checkpointLocation", str(tmp_path / checkpoint)).start()

    def produce(*changes: tuple[int, str | None]) -> None:
        broker.produce(topic, *(
            (f'{{"id":{id_}}}', None if name is None else f'{{"id":{id_},"name":"{name}"}}')
            for id_, name in changes
        ))  # fmt: skip

    produce(*((n, f"a{n}") for n in range(10)))
    run("first")
    produce((1, None), (2, "b"), (3, None), (3, "again"), (11, "new"), (12, "x"), (12, None))
    run("second")
    alive = {n: f"a{n}" for n in range(10) if n != 1} | {2: "b", 3: "again", 11: "new"}
    expected = {(n, name) if deletes == "hard" else (n, name, False) for n, name in alive.items()}
    gone = set() if deletes == "hard" else {(1, "a1", True)}
    assert set(lake.rows(table)) == expected | gone
    produce((4, None), (13, "y"))
    run("second")

    found = {row[0] for row in lake.rows(table) if not row[2:] or not row[2]}
    assert found == {*alive, 13} - {4}


@pytest.mark.parametrize("deletes", ["hard", "soft"])
def test_the_first_batch_again(lake: Lake, deletes: str) -> None:
    """It leaves the table as it is; a later batch deletes nothing that it does not have."""
    table = lake.table()
    marked = deletes == "soft"
    lake.merge(table, USERS, *((n, "old", "upsert") for n in range(4)), deletes=deletes)
    sink = merge_sink(table, primary_key="id", deletes=deletes, first_batch="table")
    first = lake.changes(USERS, (1, "a", "upsert"), (7, "b", "insert"))

    for _ in range(2):
        sink(first, 0)
        rows = [(1, "a", *([False] * marked)), (7, "b", *([False] * marked))]
        gone = [(n, "old", True) for n in (0, 2, 3)] if marked else []
        assert lake.rows(table) == sorted([*rows, *gone])
    sink(lake.changes(USERS, (7, None, "delete"), (2, "c", "upsert")), 1)

    alive = [row[0] for row in lake.rows(table) if not row[2:] or not row[2]]
    assert alive == [1, 2]


def test_an_empty_first_batch_deletes_nothing(lake: Lake, caplog: pytest.LogCaptureFixture) -> None:
    """It is more likely that something is wrong than that all is gone: a warning says what to do."""
    table = lake.table()
    lake.merge(table, USERS, (1, "a", "upsert"))

    with caplog.at_level(logging.WARNING):
        merge_sink(table, primary_key="id", first_batch="table")(lake.changes(USERS), 0)

    assert lake.rows(table) == [(1, "a")]
    (message,) = caplog.messages
    assert message.startswith("merge_sink: batch 0 is empty, and first_batch = 'table'")


def test_a_first_batch_of_changes_is_refused(lake: Lake) -> None:
    """A delete, or a key that changes twice in a partition: this is not the table, so nothing is deleted."""
    table = lake.table()
    lake.merge(table, USERS, (1, "a", "upsert"), (2, "b", "upsert"))
    sink = merge_sink(table, primary_key="id", first_batch="table")

    for changes in (
        [(3, "c", "upsert"), (1, None, "delete")],
        [(3, "c", "upsert"), (3, "d", "upsert")],
    ):
        with pytest.raises(Exception, match=r"first_batch = 'table', and batch 0 has .* at partition 0, offset \d+: so it is not"):  # fmt: skip
            sink(lake.changes(USERS, *changes), 0)
        assert lake.rows(table) == [(1, "a"), (2, "b")]
