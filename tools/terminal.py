"""Runs a program on a terminal, and returns what the screen shows."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Callable, Sequence
from types import TracebackType

import pyte

_SECONDS = 120


class Terminal:
    """Runs a program on a terminal of so many columns and lines.

    Example::

        with Terminal(["python3", "-q"]) as terminal:
            terminal.wait_until(lambda: ">>>" in terminal.text)

    Args:
        command: The program and its arguments.
        columns: Width.
        lines: Height.
    """

    def __init__(self, command: Sequence[str], columns: int = 80, lines: int = 24) -> None:
        self._command = command
        self.screen = pyte.Screen(columns, lines)
        self._stream = pyte.ByteStream(self.screen)

    def __enter__(self) -> Terminal:  # noqa: PYI034 - typing.Self needs Python 3.11
        self._master, slave = pty.openpty()
        size = struct.pack("HHHH", self.screen.lines, self.screen.columns, 0, 0)
        fcntl.ioctl(slave, termios.TIOCSWINSZ, size)
        settings = termios.tcgetattr(slave)
        settings[3] &= ~termios.ECHO  # what is typed would stand among what the program shows
        termios.tcsetattr(slave, termios.TCSANOW, settings)
        environment = {**os.environ, "TERM": "xterm-256color"}
        for name in ("COLUMNS", "LINES", "NO_COLOR"):
            environment.pop(name, None)
        self.process = subprocess.Popen(
            self._command, stdin=slave, stdout=slave, stderr=slave, env=environment,
            preexec_fn=_heed_signals,  # noqa: PLW1509 - it takes no lock that a thread could hold
        )  # fmt: skip
        os.close(slave)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._master)

    @property
    def text(self) -> str:
        """What the screen shows, without blanks at the ends of lines."""
        return "\n".join(line.rstrip() for line in self.screen.display).rstrip()

    def type(self, text: str) -> None:
        """Types on the terminal's keyboard."""
        os.write(self._master, text.encode())

    def wait_until(self, condition: Callable[[], bool], seconds: float = _SECONDS) -> None:
        """Returns when the screen is as wanted.

        Raises:
            TimeoutError: It is not; the error shows it.
        """
        deadline = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > deadline or not self._read():
                raise TimeoutError(f"The screen is not as wanted:\n{self.text}")

    def wait(self) -> int:
        """The exit code, when the program has ended and all that it wrote is on the screen."""
        while self._read():
            pass
        return self.process.wait(_SECONDS)

    def _read(self) -> bool:
        """Puts what the program has written on the screen; False = it has ended."""
        if not select.select([self._master], [], [], 0.1)[0]:
            return True
        try:
            written = os.read(self._master, 65536)
        except OSError:  # Linux: the other end is closed
            return False
        self._stream.feed(written)
        return bool(written)


def _heed_signals() -> None:
    """As in a terminal: a program started by ``nohup`` or in the background would ignore these signals for ever."""
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
