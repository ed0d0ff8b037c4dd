"""How ``show`` ends when a signal or its output ends it; rows come from memory, so that no broker is needed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tools.terminal import Terminal

PROGRAM = """
import sys, time
from contextlib import closing
import pyarrow as pa
from pyspark_upsert_kafka.cli import main
from pyspark_upsert_kafka.cli.show import show_command
from pyspark_upsert_kafka.cli.show.topic_reading import ReadProgress
from pyspark_upsert_kafka.core.arrow import arrow_schema

seconds, *arguments = sys.argv[1:]

def rows_of(plan, key, *, prints):
    columns = [pa.array([1]), pa.array(["\u00e9"])]
    with closing(ReadProgress(100, prints=prints)) as progress:
        for _ in range(1_000 if float(seconds) else 1):
            yield pa.RecordBatch.from_arrays(columns, schema=arrow_schema(plan.table.schema))
            time.sleep(float(seconds))
            progress.advance(10)

show_command.rows_of = rows_of
table = ["--topic", "t", "--schema", "id BIGINT, v STRING", "--primary-key", "id"]
sys.exit(main(["show", *table, *arguments]))
"""
SHOW = [sys.executable, "-c", PROGRAM]
AGAIN = pytest.mark.long("starts a process, for what another case shows already")


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGTERM, 143), pytest.param(signal.SIGHUP, 129, marks=AGAIN)]
)
def test_signals(number: signal.Signals, code: int) -> None:
    """A signal while the bar is shown gives back the cursor, and is told by the exit code."""
    with Terminal([*SHOW, "0.6"]) as terminal:
        terminal.wait_until(lambda: "20/100 offsets" in terminal.text)
        assert terminal.screen.cursor.hidden
        terminal.process.send_signal(number)

        assert terminal.wait() == code
        assert not terminal.screen.cursor.hidden
        assert "Traceback" not in terminal.text


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="the device is Linux's")
@pytest.mark.parametrize(
    "output",
    ["table", pytest.param("json", marks=AGAIN), pytest.param("csv", marks=AGAIN)],
)
def test_a_full_disk(output: str) -> None:
    """It is one sentence and exit code 1."""
    with Path("/dev/full").open("w") as full:
        run = subprocess.run([*SHOW, "0", "--output", output], stdout=full, stderr=subprocess.PIPE, text=True, check=False)  # fmt: skip

    assert run.returncode == 1
    assert run.stderr == "Standard output cannot be written: No space left on device.\n"


def test_a_closed_output() -> None:
    """It is one sentence and exit code 1."""
    run = subprocess.run(["sh", "-c", '"$@" >&-', "sh", *SHOW, "0"], stderr=subprocess.PIPE, text=True, check=False)  # fmt: skip

    assert run.returncode == 1
    assert run.stderr == "Standard output is closed: there is nowhere to show anything.\n"


@pytest.mark.parametrize(("arguments", "code"), [(["0"], 0), (["0", "--option", "x=1"], 1)])
def test_a_closed_standard_error(arguments: list[str], code: int) -> None:
    """What would be said there is lost; the table is printed, and an error has its exit code."""
    run = subprocess.run(["sh", "-c", '"$@" 2>&-', "sh", *SHOW, *arguments], stdout=subprocess.PIPE, text=True, check=False)  # fmt: skip

    assert run.returncode == code
    assert ("|1 |\u00e9|" in run.stdout) == (code == 0)


@pytest.mark.parametrize(
    ("output", "code", "text"),
    [("table", 0, r"|1 |\xe9|"), ("json", 0, r'{"id":1,"v":"\u00e9"}'), ("csv", 1, "which has no '\\xe9'")],
)  # fmt: skip
def test_an_output_of_few_letters(output: str, code: int, text: str) -> None:
    """A letter that the encoding lacks is spelt out where that can be told from its text, else refused."""
    ascii_only = {**os.environ, "PYTHONIOENCODING": "ascii"}
    run = subprocess.run([*SHOW, "0", "--output", output], env=ascii_only, capture_output=True, text=True, check=False)  # fmt: skip

    assert run.returncode == code
    assert text in run.stdout + run.stderr
    assert "Traceback" not in run.stderr


def test_json_on_a_terminal() -> None:
    """Nothing in a text can turn the direction of writing, and it stays JSON of the same text."""
    program = PROGRAM.replace("\u00e9", "\\u00e9\\u202e\\x7f\\x9b2J\\U0001f600")
    with Terminal([sys.executable, "-c", program, "0", "--output", "json"]) as terminal:
        assert terminal.wait() == 0
        assert r"\u202e\u007f\u009b2J" in terminal.text
        assert json.loads(terminal.text)["v"] == "\u00e9\u202e\x7f\x9b2J\U0001f600"
