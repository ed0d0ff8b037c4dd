"""How ``show`` ends when a signal or its output ends it; rows come from memory, so that no broker is needed."""

from __future__ import annotations

import signal
import sys

import pytest

from tools.terminal import Terminal

PROGRAM = """
import sys, time
from contextlib import closing
import pyarrow as pa
from pyspark_upsert_kafka.cli import main
from pyspark_upsert_kafka.cli.show import command
from pyspark_upsert_kafka.cli.show.progress import ReadProgress
from pyspark_upsert_kafka.core.arrow import arrow_schema

seconds, *arguments = sys.argv[1:]

def rows_of(plan, ranges, key, *, prints):
    columns = [pa.array([1]), pa.array(["\u00e9"])]
    with closing(ReadProgress(100, prints=prints)) as progress:
        for _ in range(1_000 if float(seconds) else 1):
            yield pa.RecordBatch.from_arrays(columns, schema=arrow_schema(plan.table.schema))
            time.sleep(float(seconds))
            progress.advance(10)

command.rows_of = rows_of
command.ranges_to_read = lambda plan, key: []
table = ["--topic", "t", "--schema", "id BIGINT, v STRING", "--primary-key", "id"]
sys.exit(main(["show", *table, *arguments]))
"""
SHOW = [sys.executable, "-c", PROGRAM]


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_signals(number: signal.Signals, code: int) -> None:
    """A signal while the bar is shown gives back the cursor, and is told by the exit code."""
    with Terminal([*SHOW, "0.6"]) as terminal:
        terminal.wait_until(lambda: "20/100 offsets" in terminal.text)
        assert terminal.screen.cursor.hidden
        terminal.process.send_signal(number)

        assert terminal.wait() == code
        assert not terminal.screen.cursor.hidden
        assert "Traceback" not in terminal.text
