"""Lets a broker and its folder live no longer than the program that uses them.

The guard is a small process between the program and the broker. The program sends it requests
through a pipe, one a line, and gets one reply a line. When the pipe ends or the program is gone,
whatever ended it, the guard kills the broker and deletes the folder.

Both ends are in this file. The guard's end is run by path, without site-packages, to be there in
milliseconds: nothing but the standard library can be imported here.
"""

from __future__ import annotations

import json
import os
import select
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, cast

_PATIENCE_SECONDS = 10.0
_LOOK_UP_SECONDS = 1.0


@dataclass(frozen=True)
class BrokerGuard:
    """The program's end: runs one command at a time in a folder that is deleted at last.

    Args:
        process: The guard, as ``BrokerGuard.over`` starts it.

    Example::

        guard = BrokerGuard.over(folder, folder / "log", os.environ)
        guard.run(["java", "-version"])
        guard.close()
    """

    process: subprocess.Popen[str]

    @classmethod
    def over(cls, folder: Path, log: Path, environment: Mapping[str, str]) -> BrokerGuard:
        """Start a guard over a folder.

        Args:
            folder: Where the commands run; belongs to the guard from now on.
            log: File that gets all that the commands print.
            environment: Environment variables of the commands.
        """
        with log.open("ab") as output:
            process = subprocess.Popen(
                [sys.executable, "-I", "-S", __file__, str(folder), str(os.getpid())],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=output,
                text=True,
                cwd=folder,
                env=environment,
                start_new_session=True,  # Ctrl-C is for the program; the guard acts on its end
            )
        return cls(process)

    def run(self, command: Sequence[str]) -> None:
        """Start a command; the one before must have ended."""
        self._ask("run", *command)

    def exit_code(self) -> int | None:
        """How the last command ended; None while it runs, 0 before the first."""
        code: int | None = self._ask("exit_code")
        return code

    def stop(self) -> None:
        """Stop the command that runs, if any, and keep the folder."""
        self._ask("stop")

    def close(self) -> None:
        """Kill the command that runs, delete the folder, and wait until both is done."""
        # Asked for, because a forked child of this program may hold the pipe open.
        self.process.communicate(_line("close"))

    def _ask(self, *request: str) -> Any:
        requests = cast("IO[str]", self.process.stdin)
        replies = cast("IO[str]", self.process.stdout)
        requests.write(_line(*request))
        requests.flush()
        return json.loads(replies.readline())


def _line(*request: str) -> str:
    return json.dumps(request) + "\n"


def _requests(program: int) -> Iterator[list[str]]:
    """What the program asks for, until it is gone."""
    # A forked child of the program may hold the pipe open for longer, hence the second look.
    while os.getppid() == program:
        if select.select([sys.stdin], [], [], _LOOK_UP_SECONDS)[0]:
            line = sys.stdin.readline()
            if not line:
                return
            yield json.loads(line)


def _stop(command: subprocess.Popen[bytes] | None) -> None:
    if command is None or command.poll() is not None:
        return
    command.terminate()
    try:
        command.wait(_PATIENCE_SECONDS)
    except subprocess.TimeoutExpired:
        command.kill()
        command.wait()


def _serve(folder: str, program: int) -> None:
    """The guard's end."""
    # Only the end of the program ends the guard. Not SIG_IGN, which the broker would inherit.
    signal.signal(signal.SIGTERM, lambda *_: None)
    command: subprocess.Popen[bytes] | None = None
    try:
        for request, *arguments in _requests(program):
            if request == "run":
                command = subprocess.Popen(arguments, stdin=subprocess.DEVNULL, stdout=sys.stderr)
            elif request == "stop":
                _stop(command)
            elif request == "close":
                break
            code = command.poll() if command else 0
            print(json.dumps(code), flush=True)  # noqa: T201 - the reply
    finally:
        # Not in good order, which takes a second and is for data that somebody will read again.
        if command is not None:
            command.kill()
            command.wait()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    _serve(sys.argv[1], int(sys.argv[2]))
