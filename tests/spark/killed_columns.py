"""What kills `tests.spark.columns_program` at each step of a change of columns, and what its topic holds."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

import psutil
from pyspark.sql import SparkSession

from tests.spark.batches import save
from tests.spark.columns_program import Job
from tests.spark.conftest import eventually
from tests.spark.pages import ROOT

Row = tuple[Any, ...]
_Process: TypeAlias = "subprocess.Popen[bytes]"

PLACES = ["ended", "planning", "changed", "written"]
"""Where it is killed: after the error, and before the new start; while that one plans its batch; when the target has the column,
and before it has all rows; and when it has them, before Spark notes it."""

_ONLY_READ = ("scan.", "metadata.", "read.")


@dataclass
class Story:
    """A topic whose rows get one column after the other, and the query that is killed meanwhile.

    Args:
        session: Writes the rows.
        job: The query.
        changed: Whether the schema of the target has a column by now.
    """

    session: SparkSession
    job: Job
    changed: Callable[[str], bool]
    columns: int = 0

    def rows(self) -> list[Row]:
        """All rows that were written, with NULL in columns that came later."""
        width = 2 + self.columns
        found = (row for number in range(self.columns + 1) for row in rows_of(number))
        return [(*row, *[None] * (width - len(row))) for row in found]

    def table(self) -> list[Row]:
        """The newest row of each key."""
        return sorted({row[0]: row for row in self.rows()}.values(), key=repr)

    def write(self) -> None:
        """Rows with the columns that there are."""
        more = "".join(f", c{number} INT" for number in range(1, self.columns + 1))
        frame = self.session.createDataFrame(
            rows_of(self.columns), f"id BIGINT NOT NULL, name STRING{more}"
        )
        save(frame, {k: v for k, v in self.job.source.items() if not k.startswith(_ONLY_READ)})

    def widen(self) -> None:
        """Rows with one more column."""
        self.columns += 1
        self.write()

    def killed_at(self, place: str) -> None:
        """A column comes while the query runs, which is killed at that step of getting it."""
        folder = Path(self.job.folder)
        waits = {"planning": "restarting", "changed": "altered"}.get(place, place)
        for each in (*folder.glob("*.go"), folder / "loaded", folder / waits):
            if each.is_file():
                each.unlink()
        with self._running("loaded", waits) as process:
            self._until((folder / "loaded").exists, "loaded", process)
            self.widen()
            (folder / "loaded.go").touch()
            if place == "changed":
                self._until(lambda: self.changed(f"c{self.columns}"), place, process)
            if waits != "altered" or not self.job.sink:
                self._until((folder / waits).exists, waits, process)
            if place == "planning":
                before = planners(process)
                (folder / f"{waits}.go").touch()
                self._until(lambda: planners(process) > before, place, process)

    def to_end(self) -> None:
        """The query runs until it has read what there is."""
        with self._running() as process:
            assert process.wait(900) == 0, self._said()

    def _until(self, condition: Callable[[], bool], what: str, process: _Process) -> None:
        eventually(lambda: process.poll() is not None or condition(), what)
        assert process.poll() is None, self._said()

    def _said(self) -> str:
        return self._log.read_text(errors="replace")[-5000:]

    @property
    def _log(self) -> Path:
        return Path(self.job.folder) / "program.log"

    @contextmanager
    def _running(self, *places: str) -> Iterator[_Process]:
        """The program, which is killed in the end."""
        job = replace(self.job, places=places)
        command = [sys.executable, "-m", "tests.spark.columns_program", job.to_text()]
        with self._log.open("wb") as log:
            process = subprocess.Popen(
                command, cwd=ROOT, start_new_session=True, stdout=log, stderr=log
            )
        try:
            yield process
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def rows_of(number: int) -> list[Row]:
    """The rows that come with that many columns: new ones, and one that each of them changes."""
    more = (number,) * number
    return [(id_, f"n{number}", *more) for id_ in (0, *range(10 * number + 1, 10 * number + 9))]


def planners(process: _Process) -> set[int]:
    """The processes that plan batches of the program."""
    found = set()
    for each in psutil.Process(process.pid).children(recursive=True):
        with suppress(psutil.Error):
            if "python_streaming_source_runner" in " ".join(each.cmdline()):
                found.add(each.pid)
    return found
