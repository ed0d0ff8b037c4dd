"""A program that tests kill: it keeps a table up to date with `read_changes`: ``python -m tests.kafka.follower JOB``.

The table is one of DuckDB, by the code of docs/read-changes.md: rows and position in one transaction. Or it is one of SQLite, where
each statement is done at once, and the position stands in a file that is replaced after the batch. Beside the rows it keeps which
messages it was given.
"""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from pyspark_upsert_kafka import read_changes

COLUMNS = "user_id BIGINT, name STRING, region STRING"
SCHEMA = f"{COLUMNS}, _partition INT, _offset BIGINT"

PLACES = {
    "duckdb": ["applying", "saving", "committing", "saved"],
    "sqlite": ["applying", "applied", "saving", "saved"],
}
"""Where the program may end, by the store: with a half of a batch applied; before, and in, what saves its position; and after it."""

_GIVEN = (
    "CREATE TABLE IF NOT EXISTS messages (topic_partition INT, topic_offset BIGINT)",
    "CREATE TABLE IF NOT EXISTS positions_after (position TEXT)",
)


@dataclass(frozen=True)
class Job:
    """What is followed, and where the program ends.

    Args:
        options: Those of the topic.
        store: ``duckdb`` or ``sqlite``.
        folder: Where the table is.
        code: That of the page's section on DuckDB, up to where it begins to read.
        place: Where it kills itself; empty = nowhere.
        batch: In which batch, from 1.
        to_end: Whether it ends where the topic ends now.
    """

    options: dict[str, str]
    store: str
    folder: str
    code: str
    place: str = ""
    batch: int = 0
    to_end: bool = False

    def arguments(self, **more: Any) -> list[str]:
        """Those of Python, to do it."""
        return ["-m", "tests.kafka.follower", json.dumps(asdict(replace(self, **more)))]

    @property
    def database(self) -> str:
        """The file of the table."""
        return str(Path(self.folder, f"lake-users.{self.store}"))

    def rows(self) -> set[tuple[Any, ...]]:
        """The table."""
        return set(self._found("SELECT user_id, name, region FROM users"))

    def messages(self) -> list[tuple[int, int]]:
        """Partition and offset of each message that was given, as often as it was."""
        return sorted(self._found("SELECT topic_partition, topic_offset FROM messages"))

    def positions(self) -> list[Any]:
        """The position after each batch that was given."""
        found = self._found("SELECT position FROM positions_after ORDER BY rowid")
        return [json.loads(position) for (position,) in found]

    def _found(self, query: str) -> list[tuple[Any, ...]]:
        connect: Any = {"duckdb": duckdb.connect, "sqlite": sqlite3.connect}[self.store]
        with closing(connect(self.database)) as db:
            return list(db.execute(query).fetchall())


class _Places:
    """Ends the program at its place.

    Args:
        job: Says where.
    """

    def __init__(self, job: Job) -> None:
        self._job, self._batch = job, 0

    def begin_batch(self) -> None:
        """It has a batch, and tells so: whoever has started it may write more."""
        self._batch += 1
        if not self._job.to_end:
            _say(f"batch {self._batch}")

    def reached(self, place: str) -> None:
        """It is here now."""
        if (place, self._batch) == (self._job.place, self._job.batch):
            os.kill(os.getpid(), signal.SIGKILL)


class _Watched:
    """A connection to DuckDB, whose calls are places.

    Args:
        db: The connection.
        called: Is told each call before it is done.
    """

    def __init__(self, db: Any, called: Callable[[str], None]) -> None:
        self._db, self._called = db, called

    def __getattr__(self, name: str) -> Any:
        # The connection's own method: it looks for tables among the variables of its caller, which is the page.
        self._called(name)
        return getattr(self._db, name)


def _by_page(job: Job, places: _Places) -> None:
    """Follows a topic as the page does."""
    page: dict[str, Any] = {"options": job.options, "schema": SCHEMA, "read_changes": read_changes}
    exec(job.code.replace("/tmp/lake-users.duckdb", job.database), page)
    db, apply, calls = page["db"], page["apply"], [""]
    for statement in _GIVEN:
        db.execute(statement)
    batch: Any = None
    after = ""

    def called(name: str) -> None:
        calls.append(name)
        if calls[-3:] == ["begin", "sql", "sql"]:
            places.reached("applying")
        if name == "execute":
            places.reached("saving")
        if name == "commit":
            db.register("given", pa.table(batch).select(["_partition", "_offset"]))
            db.execute("INSERT INTO messages FROM given")
            db.execute("INSERT INTO positions_after VALUES (?)", [after])
            places.reached("committing")

    def watched(given: Any, position: str) -> None:
        nonlocal batch, after
        batch, after = given, position
        places.begin_batch()
        apply(given, position)
        places.reached("saved")

    page.update(db=_Watched(db, called), apply=watched)
    page["follow"](stop_at_end=job.to_end)


def _position_second(job: Job, places: _Places) -> None:
    """Follows a topic, each statement on its own, and the position in a file."""
    db = sqlite3.connect(job.database, isolation_level=None)
    db.execute("PRAGMA synchronous = OFF")  # what a kill leaves is what was written
    db.execute("CREATE TABLE IF NOT EXISTS users (user_id INTEGER PRIMARY KEY, name, region)")
    for statement in _GIVEN:
        db.execute(statement)
    file = Path(job.folder, "position")
    saved = file.read_text() if file.exists() else None
    with read_changes(job.options, schema=SCHEMA, position=saved, stop_at_end=job.to_end) as found:
        for batch in found:
            places.begin_batch()
            rows = batch.to_pylist()
            for number, row in enumerate(rows):
                if number == len(rows) // 2:
                    places.reached("applying")
                if row["_change_type"] == "delete":
                    db.execute("DELETE FROM users WHERE user_id = ?", [row["user_id"]])
                else:
                    values = [row["user_id"], row["name"], row["region"]]
                    db.execute("INSERT OR REPLACE INTO users VALUES (?, ?, ?)", values)
            places_of = [(row["_partition"], row["_offset"]) for row in rows]
            db.executemany("INSERT INTO messages VALUES (?, ?)", places_of)
            db.execute("INSERT INTO positions_after VALUES (?)", [found.position])
            places.reached("applied")
            with _replaced(file) as half:
                half.write_text(found.position[:20])
                places.reached("saving")
                half.write_text(found.position)
            places.reached("saved")


@contextmanager
def _replaced(file: Path) -> Iterator[Path]:
    """A file that takes the place of another one when it is written."""
    written = file.with_suffix(".new")
    yield written
    written.replace(file)


def follow(job: Job) -> None:
    """Follows a topic."""
    {"duckdb": _by_page, "sqlite": _position_second}[job.store](job, _Places(job))


def _say(what: str) -> None:
    sys.stdout.write(f"{what}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may have it ignored
    _say("begun")
    follow(Job(**json.loads(sys.argv[1])))
