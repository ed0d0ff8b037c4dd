"""Others change the table at the same time."""

from __future__ import annotations

import logging
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from pyspark_upsert_kafka import merge_sink
from pyspark_upsert_kafka.connector.lakehouse.merge_sink import Attempts
from pyspark_upsert_kafka.core.clock import Backoff
from tests.lakehouse.engines import Lake


@pytest.mark.timeout(900)
def test_several_writers(lake: Lake, caplog: pytest.LogCaptureFixture) -> None:
    """Two queries and somebody who adds columns and rows: no change is lost, whoever has to wait."""
    table = lake.table()
    lake.merge(table, "id INT, n INT", *((id_, -1, "upsert") for id_ in range(20)))
    sink, rounds = merge_sink(table, primary_key="id"), 2
    batches = [
        [
            lake.changes("id INT, n INT", *((id_, turn, "upsert") for id_ in range(own, 20, 2)))
            for turn in range(rounds)
        ]
        for own in range(2)
    ]
    start = threading.Barrier(3)

    def write(own: int) -> None:
        start.wait()
        for number, batch in enumerate(batches[own]):
            sink(batch, number)

    def append() -> None:
        start.wait()
        for turn in range(rounds):
            alone = Attempts(600, Backoff(0.1, 1.0))
            statement = f"INSERT INTO {table} (id, n) VALUES ({100 + turn}, {turn})"
            alone.run(lambda: lake.session.sql(statement), "INSERT")  # noqa: B023

    with caplog.at_level(logging.WARNING), ThreadPoolExecutor(3) as pool:
        for done in [pool.submit(write, 0), pool.submit(write, 1), pool.submit(append)]:
            done.result()

    appended = {(100 + turn, turn) for turn in range(rounds)}
    assert set(lake.rows(table)) == {(id_, rounds - 1) for id_ in range(20)} | appended
    assert any(f"into '{table}' met a commit" in text for text in caplog.messages)


def test_a_table_that_another_program_has_changed(lake: Lake) -> None:
    """What a catalog remembers of the table does not count: its columns are asked for before each batch."""
    table = lake.table()
    known_as = table.replace("lake.", "remembering.")
    lake.merge(known_as, "id INT, n INT", (1, 1, "upsert"))
    other = lake.session.newSession()

    other.sql(f"ALTER TABLE {table} ADD COLUMNS (more STRING)")
    other.sql(f"INSERT INTO {table} (id, n, more) VALUES (2, 2, 'x')")
    lake.merge(known_as, "id INT, more STRING", (1, "y", "upsert"), (2, "z", "upsert"))

    assert lake.rows(table) == [(1, 1, "y"), (2, 2, "z")]
