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


def shared_table(lake: Lake, folder: Path) -> str:
    """A table of two programs: only names in a catalog of files are the same in both."""
    return lake.table() if lake.engine.name == "iceberg" else str(folder / "lake" / "users")


@pytest.mark.timeout(900)
def test_a_query_that_is_killed_merges_each_batch(
    lake: Lake, broker: Broker, tmp_path: Path
) -> None:
    """The batch runs again, and the table is that of all changes, whether it had the batch already or not."""
    topic = broker.topic(2)
    table = shared_table(lake, tmp_path)
    given = (broker.servers, topic, table)

    broker.produce(topic, *messages(0, 100))
    kill(lake, *given, tmp_path, "after 0")
    assert lake.rows(table) == live(100)
    run_to_end(start(lake.session, *given, tmp_path))
    assert lake.rows(table) == live(100)
    broker.produce(topic, *messages(100, 200))
    kill(lake, *given, tmp_path, "before 1")
    assert lake.rows(table) == live(100)
    kill(lake, *given, tmp_path, "in 1")
    kill(lake, *given, tmp_path, "after 1")
    assert lake.rows(table) == live(200)
    run_to_end(start(lake.session, *given, tmp_path))
    assert lake.rows(table) == live(200)
    broker.produce(topic, *messages(200, 210))
    run_to_end(start(lake.session, *given, tmp_path))

    assert lake.rows(table) == live(210)


@pytest.mark.long("a program is killed three times")
@pytest.mark.timeout(900)
def test_a_new_checkpoint_whose_first_batch_is_killed(
    lake: Lake, broker: Broker, tmp_path: Path
) -> None:
    """``first_batch="table"`` deletes what the topic has no more, also if it runs again, and after deletes that came meanwhile."""
    topic = broker.topic(2)
    table = shared_table(lake, tmp_path)
    given = (broker.servers, topic, table)
    new = tmp_path / "new"
    new.mkdir()
    broker.produce(topic, *messages(0, 100))
    run_to_end(start(lake.session, *given, tmp_path))
    # Their tombstones are no part of a table: the rows are found by what the first batch does not have.
    broker.produce(topic, *((f'{{"id":{n}}}', None) for n in (3, 4, 5)))
    expected = {id_: name for id_, name in live(100) if id_ not in (3, 4, 5)}

    for place, deleted in (("before 0", 6), ("in 0", 8), ("after 0", 9)):
        kill(lake, *given, new, place, first_batch="table")
        broker.produce(topic, (f'{{"id":{deleted}}}', None))
        del expected[deleted]
    for _ in range(2):  # the first one may end after the batch that it does again
        run_to_end(start(lake.session, *given, new, first_batch="table"))

    assert lake.rows(table) == sorted(expected.items(), key=repr)


def kill(
    lake: Lake,
    servers: str,
    topic: str,
    table: str,
    folder: Path,
    place: str,
    first_batch: str = "changes",
) -> None:
    """Starts the program and kills it at a place; in the middle, as soon as there are new files."""
    files = lake.files(table)
    program = [sys.executable, "-m", "tests.lakehouse.program", servers, topic, table]
    with (folder / "program.log").open("w+b") as log:
        process = subprocess.Popen(
            [*program, str(lake.folder), str(folder), place, first_batch],
            cwd=ROOT, start_new_session=True, stdout=log, stderr=log,
        )  # fmt: skip
        try:
            eventually(lambda: process.poll() is not None or (folder / place).exists(), place)
            if place.startswith("in"):
                eventually(lambda: process.poll() is not None or lake.files(table) > files, "files")
            else:
                log.seek(0)
                assert process.poll() is None, log.read()[-5000:]
                assert not (folder / "checkpoint" / "commits" / place.split()[1]).exists()
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
