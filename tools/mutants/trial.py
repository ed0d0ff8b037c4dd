"""Mutations are tried in a copy of the tree, so that nothing happens to the tree itself."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from tools.mutants.mutations import Mutation
from tools.mutants.nearest import PACKAGE

_HOW = {
    0: "",
    1: "a test",
    2: "no import",  # of a file of tests
    3: "pytest",
    4: "no import",  # of conftest.py
}
"""What the exit codes of pytest say of a mutation."""


class MutantsError(Exception):
    """The tests cannot tell anything."""


@dataclass(frozen=True)
class Ended:
    """How the tests ended.

    Args:
        how: By what the mutation was noticed; empty = it was not.
        test: The test that failed, where one did.
    """

    how: str
    test: str = ""


class Copy:
    """A copy of the tree, and a process that runs tests there.

    Args:
        root: The tree.
        folder: An empty folder for the copy.
    """

    def __init__(self, root: Path, folder: Path) -> None:
        self._folder = folder
        self._times = count(1)
        git = (
            "git",
            "-C",
            str(root),
            "ls-files",
            "-z",
            "--cached",
            "--others",
            "--exclude-standard",
        )
        for name in subprocess.check_output(git, text=True).split("\0"):
            if (root / name).is_file():
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(root / name, folder / name)
        self._running = subprocess.Popen(
            (sys.executable, Path(__file__).with_name("warm.py")),
            cwd=folder,
            env={**os.environ, "PYTHONPATH": str(folder), "PYTHONHASHSEED": "0"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def tried(self, mutation: Mutation, tests: Sequence[str]) -> Ended:
        """What tests say of a mutation.

        Raises:
            MutantsError: They cannot be run at all.
        """
        path = self._folder / PACKAGE / mutation.module
        source = path.read_text()
        self._write(path, mutation.made(source))
        try:
            return self.run(tests)
        except MutantsError as error:
            raise MutantsError(f"{mutation}: {error}") from None
        finally:
            self._write(path, source)

    def run(self, tests: Sequence[str]) -> Ended:
        """What tests say of the tree as it is.

        Raises:
            MutantsError: They cannot be run at all.
        """
        assert self._running.stdin is not None
        assert self._running.stdout is not None
        print(json.dumps(tests), file=self._running.stdin, flush=True)
        told = json.loads(self._running.stdout.readline())
        code = told["code"]
        if code < 0:
            return Ended(signal.Signals(-code).name)
        if code not in _HOW:
            raise MutantsError(f"pytest ended with {code}: {told['said']}")
        return Ended(_HOW[code], told["failed"])

    def close(self) -> None:
        """Ends the process."""
        self._running.communicate()

    def _write(self, path: Path, source: str) -> None:
        """Bytecode is made anew for another time of change, however fast changes follow."""
        path.write_text(source)
        time = next(self._times)
        os.utime(path, (time, time))
