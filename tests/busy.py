"""A machine that has no time: it runs a program for a part of each moment only."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_MOMENT_S = 0.06
_SHARE = 1 / 3
"""What two programs that never rest would leave to one that has as much to do."""


@contextmanager
def busy_machine() -> Iterator[None]:
    """Takes the cores away from this process and all that it has started, for two thirds of the time.

    The kernel stops them and lets them go on: the same as other programs that hold every core, but it
    leaves those to the other tests.
    """
    command = [sys.executable, "-m", __name__, str(os.getpid())]
    with subprocess.Popen(command, stdin=subprocess.PIPE) as stopping:
        yield
        stopping.communicate()


def _family(process: int) -> set[int]:
    """A process and all that it has started, and those have."""
    found = {process}
    with suppress(OSError):  # it has just ended
        for children in Path(f"/proc/{process}/task").glob("*/children"):
            found |= {
                each for child in children.read_text().split() for each in _family(int(child))
            }
    return found


def _send(signal_: int, processes: set[int]) -> None:
    for process in processes:
        with suppress(ProcessLookupError):
            os.kill(process, signal_)


def _stop_and_go(process: int) -> None:
    """Until the pipe to it ends, and so also when the test that started it is killed."""
    os.set_blocking(0, False)
    while os.getppid() == process:
        if sys.stdin.buffer.read(1) == b"":
            return
        stopped = _family(process) - {os.getpid()}
        try:
            _send(signal.SIGSTOP, stopped)
            time.sleep(_MOMENT_S * (1 - _SHARE))
        finally:
            _send(signal.SIGCONT, stopped)
        time.sleep(_MOMENT_S * _SHARE)


if __name__ == "__main__":
    _stop_and_go(int(sys.argv[1]))
