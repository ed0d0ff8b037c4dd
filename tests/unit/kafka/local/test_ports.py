"""Ports for local brokers: each is given once, over all processes of the machine."""

from __future__ import annotations

import subprocess
import sys
from collections import deque
from contextlib import ExitStack

import pytest

from pyspark_upsert_kafka.core.errors import BrokerError
from pyspark_upsert_kafka.kafka.local import ports

SAME_NUMBER = """
import os, sys
os.getpid = lambda: 7
from pyspark_upsert_kafka.kafka.local import ports
print(*ports.free_ports(150), flush=True)
sys.stdin.read()
"""
"""Takes more ports than a share has, with the process number of all others, and lives on."""

FORKS = """
import os
from pyspark_upsert_kafka.kafka.local import ports
print(ports.free_port(), flush=True)
if os.fork():
    os.wait()
else:
    print(ports.free_port(), flush=True)
"""

TAKES_A_PORT = """
from pyspark_upsert_kafka.kafka.local import ports
ports.free_port()
"""


def test_a_port_is_given_once() -> None:
    """A broker that is stopped finds its port free when it starts again: nobody else was given it."""
    given = [port for _ in range(20) for port in ports.free_ports(2)]

    assert len({*given}) == 40


def test_processes_that_live_at_once_have_different_ports() -> None:
    """Also after their first hundred ports, and where their process numbers would give them the same."""
    with ExitStack() as end:
        started = [
            end.enter_context(
                subprocess.Popen(
                    [sys.executable, "-c", SAME_NUMBER],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    text=True,
                )
            )
            for _ in range(3)
        ]
        given = [port for each in started for port in (each.stdout or sys.stdin).readline().split()]

    assert len({*given}) == 450


def test_a_forked_process_has_ports_of_its_own() -> None:
    """It does not go on with those that its parent has left."""
    said = subprocess.run([sys.executable, "-c", FORKS], capture_output=True, text=True, check=True)
    parent, child = (int(port) // 100 for port in said.stdout.split())

    assert parent != child


def test_a_process_that_ends_says_nothing_of_its_ports() -> None:
    """The port that it held for its share is no resource that it forgot to close."""
    said = subprocess.run(
        [sys.executable, "-W", "always", "-c", TAKES_A_PORT],
        capture_output=True,
        text=True,
        check=True,
    )

    assert said.stderr == ""


def test_no_port_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """The range that was looked through is told."""
    monkeypatch.setattr(ports, "_left", deque())
    monkeypatch.setattr(ports, "_bind_error", lambda _: OSError("taken"))
    monkeypatch.setattr(ports, "_take_share", lambda: False)

    with pytest.raises(
        BrokerError, match=r"Too few free ports on 127\.0\.0\.1 from 20000 to 31999"
    ):
        ports.free_port()
