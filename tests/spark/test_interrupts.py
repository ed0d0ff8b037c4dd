"""Ctrl-C at any moment, and more than once, for commands with a JVM or a broker to end."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.conftest import Broker
from tests.kafka.test_interrupts import takes_signals
from tests.spark.conftest import eventually
from tests.spark.test_sql_command import PAGE_VIEWS, processes_of, views

pytestmark = [
    pytest.mark.long("starts programs with a JVM, and interrupts them by chance"),
    pytest.mark.classic("starts a program of its own"),
    pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc"),
    pytest.mark.skipif(
        signal.getsignal(signal.SIGINT) is signal.SIG_IGN,
        reason="SIGINT is ignored here, as in a background job of a shell",
    ),
]

MOMENTS = 3
"""For each command; each of them starts a JVM."""


@pytest.mark.parametrize(
    ("name", "codes", "longest_s"),
    [
        ("sql", {0, 130}, 25.0),
        ("demo", {0, 130}, 40.0),
        ("local-kafka", {0, 130}, 10.0),
        ("ddl", {0, 130}, 0.5),
    ],
)
def test_ctrl_c_at_any_moment(
    broker: Broker, tmp_path: Path, name: str, codes: set[int], longest_s: float
) -> None:
    """While it starts, while it runs, and on the way out: an exit code of its page, no traceback, and no process is left."""
    topic, regions = broker.topic(), broker.topic(cleanup_policy="compact")
    broker.produce(topic, *views((1, "Europe"), (2, "Asia")))
    script = PAGE_VIEWS.read_text(encoding="utf-8").replace("'pageviews'", f"'{topic}'")
    script = script.replace("'pageviews_per_region'", f"'{regions}'")
    (tables := tmp_path / "tables.sql").write_text(script.partition(";")[0], encoding="utf-8")
    (all_of_it := tmp_path / "script.sql").write_text(script, encoding="utf-8")
    arguments = {
        "sql": [str(all_of_it), "--set", f"properties.bootstrap.servers={broker.servers}"],
        "demo": ["--messages", "3000", "--folder", str(tmp_path / "demo")],
        "local-kafka": ["--port", "0"],
        "ddl": [str(tables)],
    }[name]
    command = [sys.executable, "-m", "pyspark_upsert_kafka", name, *arguments]
    chance = random.Random(name)
    for _ in range(MOMENTS):
        program = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        eventually(lambda: takes_signals(program), "it has begun")  # noqa: B023 - within the loop
        time.sleep(chance.uniform(0.0, longest_s))
        for _ in range(chance.choice([1, 2, 5])):
            if program.poll() is None:
                os.killpg(program.pid, signal.SIGINT)  # as a terminal does: the JVM gets it too
            time.sleep(chance.choice([0.0, 0.05, 0.5]))
        _, said = program.communicate(timeout=300)

        assert program.returncode in codes, said
        assert "Traceback" not in said
        assert "Exception ignored" not in said
        assert "Error" not in said
        eventually(lambda: processes_of(program.pid) == [], "no process is left")  # noqa: B023
