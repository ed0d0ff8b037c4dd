"""What tasks and micro-batches have written, and how a `ProgressListener` learns of it.

Spark has no metrics of Python sinks. What the tasks have written arrives where a sink commits: in a Python process of its own on
the driver's machine. So the listener makes a folder for each run of a query, and the commit leaves a file there for each
batch. Without a listener, or with one on another machine, there is no folder, and nothing is written to disk.
"""

from __future__ import annotations

import atexit
import json
import logging
import os
import shutil
import tempfile
import uuid
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

from pyspark.sql.datasource import WriterCommitMessage

from pyspark_upsert_kafka.core.positions.progress import Written

logger = logging.getLogger("pyspark_upsert_kafka")

_KEPT_BATCHES = 100
"""So many batches a listener may be late. Of one that was removed from its session nobody says so: without a limit the folder
would grow until the query ends."""


@dataclass(frozen=True)
class WrittenByTask(WriterCommitMessage):
    """What a task has written, which Spark hands to `commit` on the driver.

    Args:
        run: Id of the run of the streaming query; None = it is none, or Spark Connect does not tell.
        batch: Number of the micro-batch.
        written: What the brokers have confirmed.
    """

    run: str | None
    batch: int | None
    written: Written


def report_batch(messages: Sequence[WriterCommitMessage | None]) -> None:
    """Logs what all tasks have written, and tells a `ProgressListener`; nothing, if they do not know their batch."""
    tasks = [each for each in messages if isinstance(each, WrittenByTask)]
    batches = {(task.run, task.batch) for task in tasks}
    if len(batches) != 1:
        return
    ((run, batch),) = batches
    if run is None or batch is None:
        return
    written = Written.sum(task.written for task in tasks)
    logger.info("Batch %d of run %s has written %s.", batch, run, written)
    report(run, batch, written)


def report(run: str, batch: int, written: Written) -> None:
    """Tells a listener on this machine what a sink has written of a micro-batch.

    Args:
        run: Id of the query's run.
        batch: Number of the micro-batch.
        written: What one sink has written; each sink of a batch reports by itself.
    """
    if not _is_id(
        run
    ):  # the user has set a job group of his own, which may be anything: a path too
        return
    folder = _folder_of(run)
    if not folder.is_dir():
        return
    name = uuid.uuid4().hex
    try:
        unfinished = folder / f"unfinished.{name}"
        unfinished.write_text(json.dumps(asdict(written)), encoding="utf-8")
        unfinished.replace(folder / f"{batch}.{name}")
        _forget(folder, batch - _KEPT_BATCHES)
    except OSError as error:
        logger.warning("ProgressListener does not know what batch %d has written: %s", batch, error)


class WrittenBatches:
    """What a listener knows of the batches of running queries.

    Several listeners of a program share the folders, so a file is kept until a later batch is asked for.
    """

    def __init__(self) -> None:
        self._removals: dict[str, partial[None]] = {}

    def open(self, run: str) -> None:
        """Has sinks report from now on.

        Args:
            run: Id of the query's run.
        """
        if run in self._removals:
            return
        folder = _folder_of(run)
        self._removals[run] = removal = partial(shutil.rmtree, folder, ignore_errors=True)
        try:
            folder.parent.mkdir(mode=0o700, exist_ok=True)
            if folder.parent.stat().st_uid != _user():
                raise PermissionError(f"{folder.parent} belongs to another user")
            folder.mkdir(mode=0o700, exist_ok=True)
        except OSError as error:
            logger.warning("ProgressListener does not know what queries write: %s", error)
            return
        atexit.register(removal)

    def take(self, run: str, batch: int) -> Written | None:
        """What a batch has written; None = it is not known.

        Args:
            run: Id of the query's run.
            batch: Number of the micro-batch.
        """
        folder = _folder_of(run)
        try:
            _forget(folder, batch)
            texts = [file.read_text(encoding="utf-8") for file in folder.glob(f"{batch}.*")]
        except OSError as error:  # a listener of another program was faster, or the disk fails
            logger.warning(
                "ProgressListener does not know what batch %d has written: %s", batch, error
            )
            return None
        parts = [Written(**json.loads(text)) for text in texts]
        return Written.sum(parts) if parts else None

    def close(self, run: str) -> None:
        """Forgets a run that has ended."""
        removal = self._removals.pop(run, None)
        if removal is not None:
            removal()
            atexit.unregister(removal)


def _folder_of(run: str) -> Path:
    return Path(tempfile.gettempdir(), f"pyspark-upsert-kafka-{_user()}", run)


def _forget(folder: Path, before: int) -> None:
    """Removes the files of the batches before one."""
    for file in folder.glob("*.*"):
        if file.stem.isdigit() and int(file.stem) < before:
            file.unlink(missing_ok=True)


def _is_id(run: str) -> bool:
    try:
        return str(uuid.UUID(run)) == run
    except ValueError:
        return False


def _user() -> int:
    return os.getuid() if hasattr(os, "getuid") else 0  # Windows: folders there belong to 0 too
