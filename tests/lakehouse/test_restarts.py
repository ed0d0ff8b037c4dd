"""A query is killed before, in and after a MERGE, and goes on from its checkpoint."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from tests.conftest import Broker
from tests.lakehouse.engines import Lake
from tests.lakehouse.program import start
from tests.spark.conftest import eventually, run_to_end

ROOT = Path(__file__).parents[2]


def messages(begin: int, end: int) -> list[tuple[str, str | None]]:
    """Changes of 20 rows; every seventh is a delete."""
    return [
        (f'{{"id":{n % 20}}}', None if n % 7 == 0 else f'{{"id":{n % 20},"name":"n{n}"}}')
        for n in range(begin, end)
    ]


def live(end: int) -> list[tuple[int, str]]:
    """The rows after that many changes."""
    rows: dict[int, str] = {}
    for n in range(end):
        rows.pop(n % 20, None)
        if n % 7:
            rows[n % 20] = f"n{n}"
    return sorted(rows.items(), key=repr)


@pytest.mark.timeout(900)
@pytest.mark.parametrize("step", ["before", "in", "after"])
def test_a_query_that_is_killed_merges_each_batch(
    lake: Lake, broker: Broker, tmp_path: Path, step: str
) -> None:
    """The batch runs again, and the table is that of all changes, whether it had the batch already or not."""
    topic = broker.topic(2)
    # Only names in a catalog of files are the same in two programs.
    table = lake.table() if lake.engine.name == "iceberg" else str(tmp_path / "lake" / "users")
    broker.produce(topic, *messages(0, 100))
    run_to_end(start(lake.session, broker.servers, topic, table, tmp_path, None))
    assert lake.rows(table) == live(100)
    broker.produce(topic, *messages(100, 200))
    files = lake.files(table)

    program = [sys.executable, "-m", "tests.lakehouse.program", broker.servers, topic, table]
    log = tmp_path / "program.log"
    with log.open("wb") as said:
        process = subprocess.Popen(
            [*program, str(lake.folder), str(tmp_path), step],
            cwd=ROOT, start_new_session=True, stdout=said, stderr=said,
        )  # fmt: skip
    try:
        eventually(
            lambda: process.poll() is not None or (tmp_path / f"{step}.reached").exists(), step
        )
        if step == "in":
            eventually(lambda: process.poll() is not None or lake.files(table) > files, "files")
        assert process.poll() is None or step == "in", log.read_text()[-5000:]
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()

    if step != "in":
        assert not (tmp_path / "checkpoint" / "commits" / "1").exists()
        assert (lake.rows(table) == live(200)) is (step == "after")
    run_to_end(start(lake.session, broker.servers, topic, table, tmp_path, None))
    assert lake.rows(table) == live(200)
    broker.produce(topic, *messages(200, 210))
    run_to_end(start(lake.session, broker.servers, topic, table, tmp_path, None))

    assert lake.rows(table) == live(210)
