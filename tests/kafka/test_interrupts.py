"""Ctrl-C at any moment, and more than once: a command ends with the exit code of its page, and says nothing of Python."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.conftest import Broker
from tests.kafka.conftest import eventually

pytestmark = [
    pytest.mark.long("runs a command again and again"),
    pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc"),
    pytest.mark.skipif(
        signal.getsignal(signal.SIGINT) is signal.SIG_IGN,
        reason="SIGINT is ignored here, as of a job in the background, and so by every command that is started",
    ),
]

TABLE = ("--schema", "region STRING, pv BIGINT", "--option", "primary-key=region")
MOMENTS = 12

BEFORE_IT_BEGINS = 130
"""The exit code, without a word, while the program still imports what it needs."""


def takes_signals(process: subprocess.Popen[str]) -> bool:
    """Whether a command has begun: from then on it takes SIGALRM, which Python itself leaves alone."""
    if process.poll() is not None:
        return True
    status = Path(f"/proc/{process.pid}/status").read_text()
    (caught,) = (line.split()[1] for line in status.splitlines() if line.startswith("SigCgt"))
    return bool(int(caught, 16) >> (signal.SIGALRM - 1) & 1)


@pytest.mark.parametrize(
    ("more", "codes"),
    [(["--follow"], {0}), (["--follow", "--output", "json"], {0}), ([], {0, 130})],
)
def test_ctrl_c_at_any_moment(broker: Broker, more: list[str], codes: set[int]) -> None:
    """Before the first request, within a call of the client, while rows are printed, and on the way out."""
    topic = broker.topic(3)
    pairs = [(f'{{"region":"{n}"}}', f'{{"region":"{n}","pv":{n}}}') for n in range(5_000)]
    broker.produce(topic, *pairs)
    formats = ("--option", "key.format=json", "--option", "value.format=json")
    servers = ("--bootstrap-servers", broker.servers, "--topic", topic)
    command = [sys.executable, "-m", "pyspark_upsert_kafka", "show", *servers, *TABLE, *formats]
    chance = random.Random(7)
    for _ in range(MOMENTS):
        process = subprocess.Popen(
            [*command, *more], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        assert eventually(lambda: takes_signals(process))  # noqa: B023 - waited for within the loop
        time.sleep(chance.uniform(0.05, 2.0))
        for _ in range(chance.choice([1, 1, 2, 5])):
            process.send_signal(signal.SIGINT)
            time.sleep(chance.choice([0.0, 0.05, 0.2]))
        _, said = process.communicate(timeout=300)

        is_early = process.returncode == BEFORE_IT_BEGINS and not said
        assert is_early or process.returncode in codes, said
        assert "Traceback" not in said
        assert "Exception ignored" not in said
