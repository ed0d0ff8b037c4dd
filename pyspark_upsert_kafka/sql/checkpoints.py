"""Where the streams of a script keep their checkpoints, and whose checkpoint one is."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from pyspark.errors import AnalysisException

from pyspark_upsert_kafka.core.errors import CheckpointError
from pyspark_upsert_kafka.sql.checkpoint_use import OWNER, refuse_used
from pyspark_upsert_kafka.sql.plans import Step

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_UNUSUAL = re.compile(r"[^\w.-]")


def names_of(steps: Sequence[Step], taken: Sequence[str]) -> list[str]:
    """A name for each stream: that of the script or of its table, with a number where it is taken.

    Args:
        steps: The streams.
        taken: Names of queries that run already.

    Returns:
        The names, in the order of the streams.
    """
    found: list[str] = []
    for step in steps:
        wanted = step.settings.name or (step.table.name if step.table else "select")
        name, number = wanted, 1
        while name in found or name in taken:
            number += 1
            name = f"{wanted}-{number}"
        found.append(name)
    return found


def folders_of(steps: Sequence[Step]) -> list[str | None]:
    """The checkpoint of each stream; None = a temporary one.

    Raises:
        CheckpointError: A query uses it already, or another of the streams.
    """
    found: list[str | None] = []
    for step, name in zip(steps, names_of(steps, ()), strict=True):
        folder = None
        if step.settings.checkpoints is not None:
            folder = f"{step.settings.checkpoints.rstrip('/')}/{_UNUSUAL.sub('_', name)}"
            if folder in found:
                raise CheckpointError(
                    f"{step.place}: the queries {name!r} and another of this script have one checkpoint, {folder!r}: SET "
                    "'pipeline.name' to a name of letters and digits before one of them."
                )
            refuse_used(folder, step.place)
        found.append(folder)
    return found


def check_owner(spark: SparkSession, step: Step, folder: str) -> bool:
    """Whether a checkpoint is there already, made by the same statement.

    Raises:
        CheckpointError: Another statement has made it.
    """
    try:
        rows = spark.read.text(f"{folder}/{OWNER}", wholetext=True).collect()
    except AnalysisException as error:
        if "PATH_NOT_FOUND" not in str(error):
            raise
        return False
    if [row[0].strip() for row in rows] != [_identity(step)]:
        raise CheckpointError(
            f"{step.place}: the checkpoint {folder!r} belongs to another statement, whose state it holds. Give this script a "
            "folder of its own, or delete that one to begin anew."
        )
    return True


def mark(spark: SparkSession, step: Step, folder: str) -> None:
    """Writes into a new checkpoint whose it is."""
    text = spark.createDataFrame([(_identity(step),)], "value STRING")
    text.coalesce(1).write.text(f"{folder}/{OWNER}")


def _identity(step: Step) -> str:
    """What may not change from one run to the next; options may."""
    return json.dumps(
        {
            "query": step.query.sql,
            "reads": {name: table.name for name, table in step.query.tables.items()},
            "writes": step.table.name if step.table else None,
            "columns": [f"{c.name} {c.dataType.simpleString()}" for c in step.columns],
        }
    )
