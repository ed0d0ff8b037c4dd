"""`merge_sink`: each micro-batch of changes becomes one MERGE into a table of Iceberg or Delta Lake.

The function, what of a batch goes into the table, and what is tried again after commits of others.
"""

from __future__ import annotations

import logging
import re
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from pyspark.sql.types import BooleanType, StructField, StructType

from pyspark_upsert_kafka.connector.changelog.changelog_columns import ChangeColumns, change_columns
from pyspark_upsert_kafka.connector.changelog.last_changes import several_partitions
from pyspark_upsert_kafka.connector.lakehouse.changes_by_key import (
    changes_by_key,
    flags_name,
    unavailable_columns,
)
from pyspark_upsert_kafka.connector.lakehouse.lakehouse_tables import (
    Merge,
    conformed,
    fitting_columns,
)
from pyspark_upsert_kafka.connector.lakehouse.merge_settings import (
    DELETED_COLUMN,
    MergeSettings,
    merge_settings,
)
from pyspark_upsert_kafka.core.clock import Backoff
from pyspark_upsert_kafka.core.column_changes import field_named
from pyspark_upsert_kafka.core.ddl.spark_columns import quoted
from pyspark_upsert_kafka.core.errors import SchemaError, warn_once

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_log = logging.getLogger("pyspark_upsert_kafka")
_T = TypeVar("_T")

_ADAPTIVE = (
    "spark.sql.adaptive.enabled",
    "spark.sql.optimizer.canChangeCachedPlanOutputPartitioning",
)

_PAUSES = Backoff(0.5, 30.0)

_DECLARED = "__CHAR_VARCHAR_TYPE_STRING"
"""Where Spark keeps what a text column of a table was declared as."""

_CONFLICT = re.compile(
    # Delta Lake's names of errors
    r"DELTA_CONCURRENT_\w+|DELTA_METADATA_CHANGED|DELTA_PROTOCOL_CHANGED|DELTA_SCHEMA_CHANGE_SINCE_ANALYSIS"
    r"|sql\.delta\.Concurrent\w+Exception|sql\.delta\.(?:Metadata|Protocol)ChangedException"
    # Iceberg's, and how those of its errors begin that have other reasons too
    r"|iceberg\.exceptions\.Commit(?:Failed|StateUnknown)Exception"
    r"|iceberg\.exceptions\.ValidationException: (?:Found|Missing required|Cannot commit|Cannot determine history)[^\n]*"
    r"|the table has been concurrently modified"
    # Spark's, when a table has changed after a statement was analysed
    r"|INCOMPATIBLE_TABLE_CHANGE_AFTER_ANALYSIS"
)


@dataclass(frozen=True)
class MergeSink:
    """A function for ``foreachBatch``, returned by `merge_sink`."""

    settings: MergeSettings

    def __call__(self, rows: DataFrame, batch_id: int) -> None:
        """Merges one micro-batch, and returns when the table has it.

        Args:
            rows: The changes that foreachBatch passes, or changes derived from them.
            batch_id: The batch number that foreachBatch passes.
        """
        batch = _Batch.of(rows, self.settings)
        # What is read from Kafka and checked is what is merged, also when it is tried again.
        changes = changes_by_key(rows, batch.columns, self.settings, batch.flags)
        with _adaptive(rows.sparkSession), _persisted(changes):
            if _has_changes(changes, batch.columns, batch.flags):
                what = f"The MERGE of batch {batch_id} into {str(self.settings.table)!r}"
                Attempts().run(lambda: batch.merge(changes), what)


@contextmanager
def _adaptive(session: SparkSession) -> Iterator[None]:
    """Lets Spark choose the number of tasks by the number of changes, and not by ``spark.sql.shuffle.partitions``.

    In the session of a stream it may not, because state cannot move from task to task; nor does it for what is persisted,
    unless it is told so.
    """
    before = {name: str(session.conf.get(name)) for name in _ADAPTIVE}
    try:
        for name in _ADAPTIVE:
            session.conf.set(name, "true")
        yield
    finally:
        for name, value in before.items():
            session.conf.set(name, value)


@contextmanager
def _persisted(changes: DataFrame) -> Iterator[None]:
    changes.persist()
    try:
        yield
    finally:
        changes.unpersist()


def merge_sink(  # noqa: PLR0913
    table: str,
    *,
    primary_key: Sequence[str] | str,
    deletes: str = "hard",
    schema: str = "fixed",
    unavailable: str | None = None,
    deleted_column: str = DELETED_COLUMN,
) -> MergeSink:
    """Returns a function for ``foreachBatch`` that keeps a table of Iceberg or Delta Lake in step with a stream of changes.

    Each micro-batch becomes one ``MERGE INTO`` of the last change of each key. A batch that runs again leaves the table as
    it is, and the table does not depend on how the changes were cut into batches. If somebody else changes the table at
    the same time, the ``MERGE`` is tried again, for ten minutes.

    The stream has the columns ``_change_type``, ``_partition`` and ``_offset``, which order the changes of a key in its
    partition. With ``_timestamp``, changes of a key that lies in several partitions are ordered by it, then by the partition:
    within a batch, and beyond it if the table has columns ``_timestamp`` and ``_partition``, and ``_topic`` if several topics
    are read (Iceberg reserves the name ``_partition``).
    Its changes are of ``upsert`` and ``delete``, or rows before and after, such as those of `normalize_changelog`. These
    columns and other metadata columns are stored only if the table has columns of their names.

    If there is no such table, it is created from the first batch that has changes: by Iceberg or Delta Lake, as the class of
    its catalog says (``spark.sql.catalog.<name>``), or else ``spark.sql.sources.default``. A path is always a table of
    Delta Lake. A table of Iceberg gets format version 2 and ``write.merge.mode`` = ``merge-on-read``. Create the table
    yourself for other properties, or for partitions.

    Args:
        table: A name in a Spark catalog, with parts in backticks where they need them; or the absolute path of a table of
            Delta Lake.
        primary_key: The columns of the key: a list, or a text with commas between them.
        deletes: ``hard``: a delete deletes the row. ``soft``: the row stays as it is, and its column ``is_deleted``
            becomes true; a later upsert sets it to false. ``ignore``: a delete does nothing.
        schema: ``fixed``: a column that the table does not have, or whose type does not fit, is an error. ``evolve``: the
            column is added, or gets a wider type: a larger whole number, DOUBLE instead of FLOAT, more digits of a DECIMAL.
            No column is dropped, and one that the stream does not have is left as it is.
        unavailable: A text that stands for a value that was not sent because it has not changed, such as Debezium's
            ``__debezium_unavailable_value``: the value in the table stays. A new row gets NULL.
        deleted_column: The name of the column ``is_deleted``.

    Raises:
        OptionError: An argument is malformed, or contradicts another.

    Example::

        from pyspark_upsert_kafka import merge_sink

        changes = (
            spark.readStream.format("upsert-kafka")
            .schema("user_id BIGINT, region STRING, _change_type STRING, _partition INT, _offset BIGINT")
            .option("topic", "users")
            .option("properties.bootstrap.servers", "localhost:9092")
            .option("primary-key", "user_id")
            .option("key.format", "json")
            .option("value.format", "json")
            .load()
        )
        sink = merge_sink("lake.db.users_by_id", primary_key="user_id")
        query = changes.writeStream.foreachBatch(sink).option("checkpointLocation", "/tmp/checkpoints/users").start()
    """
    return MergeSink(
        merge_settings(
            table,
            primary_key=primary_key,
            deletes=deletes,
            schema=schema,
            unavailable=unavailable,
            deleted_column=deleted_column,
        )
    )


def conflict(error: BaseException) -> str | None:
    """What an engine says about a commit of somebody else; None = the error is another one."""
    for text in _texts(error):
        found = _CONFLICT.search(text)
        if found:
            return found[0]
    return None


def _texts(error: BaseException) -> Iterator[str]:
    """What an error says, and the errors behind it: Spark hides those of an engine in stack traces of the JVM."""
    seen: BaseException | None = error
    while seen is not None:
        yield str(seen)
        for name in ("_stackTrace", "_stacktrace"):  # of a classic session, of Spark Connect
            yield str(getattr(seen, name, None) or "")
        seen = seen.__cause__ or seen.__context__


@dataclass(frozen=True)
class Attempts:
    """How long, and how often, something is tried that may conflict with what others do.

    Args:
        limit_s: For how long it is tried again, in seconds.
        backoff: How long is waited in between.
        clock: Gives the time, in seconds.
        sleep: Waits so many seconds.
    """

    limit_s: float = 600.0
    backoff: Backoff = _PAUSES
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep

    def run(self, action: Callable[[], _T], what: str) -> _T:
        """Runs an action until it meets no conflict, and returns what it returns.

        Args:
            action: What is run.
            what: What it is, for the log.

        Raises:
            Exception: What the action raises, if it is no conflict, or still is one when the time is over.
        """
        started, failed = self.clock(), 0
        while True:
            try:
                return action()
            except Exception as error:
                said = conflict(error)
                pause_s = self.backoff.pause_s(failed)
                if said is None or self.clock() - started + pause_s > self.limit_s:
                    raise
                _log.warning(
                    "%s met a commit of somebody else (%s). It is tried again in %.1f seconds.",
                    what, said, pause_s,
                )  # fmt: skip
            failed += 1
            self.sleep(pause_s)


@dataclass(frozen=True)
class _Batch:
    """The columns of a micro-batch, and how they come into the table.

    Args:
        schema: The columns.
        columns: Which is what.
        settings: The arguments of `merge_sink`.
        flags: The name of the column that `changes_by_key` adds.
    """

    schema: StructType
    columns: ChangeColumns
    settings: MergeSettings
    flags: str

    @classmethod
    def of(cls, rows: DataFrame, settings: MergeSettings) -> _Batch:
        """The columns of a batch, checked.

        Raises:
            SchemaError: A column is missing, cannot be what it is to be, or has the name of the column that says that a row
                is deleted; or the DataFrame is a stream.
        """
        schema = rows.schema
        columns = change_columns(schema, settings.primary_key, "merge_sink")
        if rows.isStreaming:
            raise SchemaError(
                "merge_sink takes a batch, and this DataFrame is a stream: use stream.writeStream.foreachBatch(merge_sink(...))."
            )
        deleted = settings.deleted_column
        if deleted is not None and field_named(deleted, schema) is not None:
            raise SchemaError(
                f"merge_sink: the stream has a column {deleted!r}, which is also the name of the column that says that a row is "
                "deleted. Give that another name, with deleted_column."
            )
        return cls(schema, columns, settings, flags_name(schema))

    def merge(self, changes: DataFrame) -> None:
        """Merges the changes into the table as it is now; it is created or changed first, if it has to be.

        Args:
            changes: What `changes_by_key` has made of the batch.
        """
        session = changes.sparkSession
        there = fitting_columns(session, self.settings.table, self._wanted, self.settings.schema)
        found = {name: field_named(name, there) for name in self.columns.all}
        stored = {name: field for name, field in found.items() if field is not None}
        _check_keys([stored[key] for key in self.columns.keys], str(self.settings.table))
        in_types_of_table = (
            conformed(changes[quoted(name)], self.schema[name].dataType, field.dataType).alias(field.name)
            for name, field in stored.items()
        )  # fmt: skip
        view = f"merge_sink_{uuid.uuid4().hex}"
        changes.select(*in_types_of_table, self.flags).createOrReplaceTempView(view)
        try:
            session.sql(self._merge(view, stored, there).statement())
        finally:
            session.catalog.dropTempView(view)

    def _merge(self, view: str, stored: Mapping[str, StructField], there: StructType) -> Merge:
        settings = self.settings
        deleted = settings.deleted_column and field_named(settings.deleted_column, there)
        unavailable = unavailable_columns(self.schema, self.columns, settings)
        return Merge(
            table=settings.table.sql,
            changes=view,
            keys=[stored[key].name for key in self.columns.keys],
            columns=[field.name for field in stored.values()],
            deletes=settings.deletes,
            deleted_column=deleted.name if deleted else None,
            unavailable={stored[name].name: place for place, name in enumerate(unavailable)},
            flags=self.flags,
            **self._known_place(stored),
        )

    def _known_place(self, stored: Mapping[str, StructField]) -> dict[str, Any]:
        """The columns of the table that say when and where its row was last changed; none unless it says both."""
        timestamp, places = self.columns.timestamp, self.columns.place
        known = [stored[name].name for name in places if name in stored]
        if timestamp is None or timestamp not in stored or self.columns.partition not in stored:
            return {}
        return {"timestamp": stored[timestamp].name, "place": known}

    def _wanted(self, there: StructType) -> StructType:
        """The columns that the table must have: metadata columns only if it has them."""
        wanted = [
            self.schema[name]
            for name in self.columns.all
            if name in self.columns.row or field_named(name, there) is not None
        ]
        if self.settings.deleted_column is not None:
            wanted.append(StructField(self.settings.deleted_column, BooleanType()))
        return StructType(wanted)


def _check_keys(keys: Sequence[StructField], table: str) -> None:
    """Checks that the key's columns of a table find the rows of keys.

    Raises:
        SchemaError: One is CHAR: its texts are filled with blanks, and no text of the stream equals one.
    """
    for key in keys:
        declared = str((key.metadata or {}).get(_DECLARED, ""))
        if declared.startswith("char("):
            raise SchemaError(
                f"merge_sink: key column {key.name!r} of the table {table!r} is {declared.upper()}, which is filled with blanks: no key "
                "of the stream would be found, and each batch would insert its rows once more. Make it STRING or VARCHAR."
            )


def _has_changes(changes: DataFrame, columns: ChangeColumns, flags: str) -> bool:
    """Whether there is anything to merge, checked; it warns once if a key lies in several partitions.

    Args:
        changes: One row for each key.
        columns: Its columns.
        flags: The column that `changes_by_key` has added.

    Raises:
        SchemaError: A column of the key is NULL.
    """
    from pyspark.sql import functions as f

    place = f.struct(columns.partition, columns.offset)
    nulls = (f.min(f.when(f.col(quoted(key)).isNull(), place)) for key in columns.keys)
    several = f.max(f.col(f"{flags}.in_several_partitions"))
    count, is_in_several, *places = changes.agg(f.count("*"), several, *nulls).collect()[0]
    for key, null in zip(columns.keys, places, strict=True):
        if null is not None:
            raise SchemaError(
                f"merge_sink: column {key!r} of the primary key is NULL in the change at {_shown(null)}. Nothing of this batch "
                "was written. Leave such rows out, with df.where(...), or choose another key."
            )
    if is_in_several:
        warn_once(several_partitions(columns, "merge_sink"))
    return bool(count)


def _shown(place: Any) -> str:
    partition, offset = ("NULL" if part is None else part for part in place)
    return f"partition {partition}, offset {offset}"
