"""A machine that has no time: processes that keep every core busy."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

_SPINNING = """
import os, sys, threading
threading.Thread(target=lambda: (sys.stdin.read(), os._exit(0)), daemon=True).start()
while True:
    pass
"""
"""It ends with the pipe to it: also when the test that started it is killed."""


@contextmanager
def busy_machine(processes: int = 2) -> Iterator[None]:
    """Keeps so many cores busy."""
    with ExitStack() as ended:
        for _ in range(processes):
            spinning = ended.enter_context(
                subprocess.Popen([sys.executable, "-c", _SPINNING], stdin=subprocess.PIPE)
            )
            ended.callback(spinning.kill)
        yield
