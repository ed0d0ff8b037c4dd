"""Batches read and written by tests, and the text of what is refused."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession


def load(
    spark: SparkSession,
    schema: str,
    given: Mapping[str, object],
    path: str | list[str] | None = None,
) -> DataFrame:
    """A batch read with this schema and these options."""
    reader = spark.read.format("upsert-kafka").schema(schema)
    return reader.options(**{name: str(value) for name, value in given.items()}).load(path)


def save(frame: DataFrame, given: Mapping[str, object], path: str | None = None) -> None:
    """Writes a batch with these options."""
    writer = frame.write.format("upsert-kafka").mode("append")
    writer.options(**{name: str(value) for name, value in given.items()}).save(path)


def arrow_rows(frame: DataFrame) -> pa.RecordBatch:
    """The rows of a small DataFrame in one batch, as Spark hands them to a sink."""
    (batch,) = frame.toArrow().combine_chunks().to_batches()
    return batch


def clause(given: Mapping[str, object]) -> str:
    """Options as SQL has them, in parentheses."""
    return "(" + ", ".join(f"'{name}' = '{value}'" for name, value in given.items()) + ")"


def refused(action: Callable[[], object]) -> str:
    """The whole text of the error that an action ends in; Spark's own classes wrap ours."""
    with pytest.raises(Exception) as error:
        action()
    return str(error.value)


def all_refused(*actions: Callable[[], object]) -> list[str]:
    """The texts of the errors that actions end in, which wait for something: all do at once, the last one in this thread.

    Spark finds no format for a write in another one.
    """
    *others, last = actions
    with ThreadPoolExecutor(len(others)) as pool:
        asked = [pool.submit(refused, action) for action in others]
        text = refused(last)
        return [*(each.result() for each in asked), text]
