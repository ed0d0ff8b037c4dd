"""docs/lakehouse.md: a topic kept in step with a table of Delta Lake, on the Spark that Delta Lake is made for."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.conftest import Broker
from tests.spark.conftest import eventually, rows
from tests.spark.lakehouse import FITS, after_the_first_load, delta_session
from tests.spark.pages import LAKEHOUSE, ROOT, check_page

pytestmark = pytest.mark.skipif(not FITS, reason="Delta Lake 4.4 is for Spark 4.2: make test-delta")


@pytest.fixture(scope="module")
def delta() -> Iterator[SparkSession]:
    """A session with Delta Lake; a process has one session, so tests with the other one are run apart."""
    if SparkSession.getActiveSession() is not None:
        pytest.skip("a session without Delta Lake runs in this process: make test-delta")
    session = delta_session()
    yield session
    session.stop()


def commits(table: Path) -> Iterator[list[dict[str, dict[str, object]]]]:
    """The actions of each commit of a table."""
    for file in sorted((table / "_delta_log").glob("*.json")):
        yield [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


def merged(table: Path) -> list[object]:
    """The numbers of the micro-batches that reached a table, commit by commit."""
    return [
        action["txn"]["version"]
        for commit in commits(table)
        for action in commit
        if "txn" in action
    ]


@pytest.mark.timeout(900)
def test_the_page_runs_and_prints_what_it_says(
    delta: SparkSession, broker: Broker, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What a user pastes, top to bottom, works: deletes, a restart, a column that the table lacks."""
    names: dict[str, object] = {"__name__": "__main__"}
    check_page(LAKEHOUSE, names, broker, tmp_path, lambda: capsys.readouterr().out)


@pytest.mark.timeout(900)
def test_a_batch_that_is_in_the_table_is_not_merged_again(
    delta: SparkSession, broker: Broker, tmp_path: Path
) -> None:
    """The driver is killed when the table has a batch and Spark has not noted it; another one goes on."""
    topic, table, log = broker.topic(2), tmp_path / "lake" / "users", tmp_path / "program.log"
    program = [sys.executable, "-m", "tests.spark.lakehouse", broker.servers, topic, str(tmp_path)]
    with log.open("wb") as said:
        process = subprocess.Popen(program, cwd=ROOT, start_new_session=True, stderr=said)
    try:
        eventually(
            lambda: process.poll() is not None or 1 in merged(table), "two batches are in the table"
        )
        assert process.poll() is None, log.read_text()[-5000:]
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    done = tmp_path / "checkpoints" / "users_to_delta" / "commits"
    assert not (done / "1").exists()

    page = after_the_first_load(broker.servers, topic, tmp_path)
    page["run"]()

    batches = merged(table)
    assert batches == list(range(len(batches)))
    assert len(batches) > 2
    assert (done / str(batches[-1])).exists()
    columns = ("user_id", "region", "_partition", "_offset")
    newest = delta.read.format("upsert-kafka").schema(page["columns"]).options(**page["users"])
    assert rows(delta.read.format("delta").load(str(table)).select(*columns)) == rows(newest.load())
