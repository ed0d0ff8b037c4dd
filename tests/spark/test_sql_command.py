"""The command `sql` as a person runs it: a process that is ended by signals, and goes on from its checkpoint."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from pyspark_upsert_kafka import CheckpointError, run_sql
from tests.conftest import Broker
from tests.spark.conftest import eventually, rows

pytestmark = [
    pytest.mark.classic("starts a program of its own"),
    pytest.mark.long("starts programs with a JVM"),
    pytest.mark.skipif(
        signal.getsignal(signal.SIGINT) is signal.SIG_IGN,
        reason="SIGINT is ignored here, as in a background job of a shell",
    ),
]

PAGE_VIEWS = Path(__file__).parents[1] / "unit" / "sql" / "scripts" / "pageviews.sql"


def views(*pairs: tuple[int, str]) -> list[tuple[None, str]]:
    """Messages of page views: user and region."""
    return [(None, json.dumps({"user_id": user, "user_region": region})) for user, region in pairs]


def processes_of(session: int) -> list[str]:
    """The processes of a session that have not ended: the program, its JVM and their workers."""
    found = []
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            name, rest = status.read_text(encoding="utf-8").rsplit(")", 1)
        except (FileNotFoundError, ProcessLookupError):  # it has just ended
            continue
        state, *_, of_session = rest.split()[:4]
        if int(of_session) == session and state != "Z":
            found.append(name)
    return found


def first_lines(program: subprocess.Popen[str]) -> list[str]:
    """The lines that a program prints, up to that of its first batch: it comes when the batch is committed."""
    assert program.stdout is not None
    lines: list[str] = []
    while not lines or ", batch " not in lines[-1]:
        lines.append(program.stdout.readline())
        assert lines[-1], "the program has ended"
    return lines


def ended(program: subprocess.Popen[str]) -> tuple[int, list[str], str]:
    """Waits for the end of a program that got a signal: exit code, lines and errors."""
    printed, said = program.communicate(timeout=300)
    eventually(lambda: processes_of(program.pid) == [], "no process is left behind")
    return program.returncode, printed.splitlines(), said


def test_the_page_views_script(spark: SparkSession, broker: Broker, tmp_path: Path) -> None:
    """The script of Flink's documentation runs as it stands until a signal ends it, and goes on where it was."""
    views_topic, regions = broker.topic(), broker.topic(cleanup_policy="compact")
    folder = f"{tmp_path}/checkpoint"
    broker.produce(views_topic, *views((1, "Europe"), (2, "Europe"), (1, "Europe"), (3, "Asia")))
    script = PAGE_VIEWS.read_text(encoding="utf-8").replace("'pageviews'", f"'{views_topic}'")
    script = script.replace("'pageviews_per_region'", f"'{regions}'")
    file = tmp_path / "page_views.sql"
    file.write_text(script, encoding="utf-8")
    address = {"properties.bootstrap.servers": broker.servers}
    given = ["--set", f"properties.bootstrap.servers={broker.servers}", "--checkpoint", folder]
    command = [sys.executable, "-m", "pyspark_upsert_kafka", "sql", str(file), *given]
    counts = spark.read.format("upsert-kafka").options(ddl=script.partition(";")[0], **address)
    counts = counts.option("read.mode", "snapshot")

    def started() -> subprocess.Popen[str]:
        pipe = subprocess.PIPE
        return subprocess.Popen(
            command, stdout=pipe, stderr=pipe, text=True, start_new_session=True
        )

    with started() as program:
        wanted = [("Asia", 1, 1), ("Europe", 3, 2)]
        eventually(lambda: rows(counts.load()) == wanted, "both regions are counted")
        same = script.replace("'...'", f"'{broker.servers}'")
        with pytest.raises(CheckpointError, match="a query of another process on this machine"):
            run_sql(spark, f"SET 'execution.checkpointing.dir' = '{folder}'; {same}")
        runs, batch = first_lines(program)
        os.killpg(program.pid, signal.SIGINT)  # as a terminal does: the JVM gets it too
        code, lines, said = ended(program)

    assert (code, said) == (0, "")
    assert runs == f"pageviews_per_region runs, with its checkpoint in {folder}. Ctrl-C ends it.\n"
    assert batch.startswith("pageviews_per_region, batch 0 (")
    assert lines[-1] == "Stopped."

    broker.produce(views_topic, *views((9, "Asia")))
    with started() as program:
        wanted = [("Asia", 2, 2), ("Europe", 3, 2)]
        eventually(lambda: rows(counts.load()) == wanted, "the new view is counted with the old")
        _, batch = first_lines(program)
        program.terminate()
        code, _, said = ended(program)

    assert (code, said) == (128 + signal.SIGTERM, "")
    assert batch.startswith("pageviews_per_region, batch 1 (")
    assert f"{views_topic} 1 rows" in batch
