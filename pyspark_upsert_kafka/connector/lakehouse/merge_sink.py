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
    may_be_nan,
    partial_columns,
    sequence_columns,
    shown_of_last_change,
)
from pyspark_upsert_kafka.connector.lakehouse.lakehouse_tables import (
    ENGINE_ERRORS,
    conformed,
    fitting_columns,
)
from pyspark_upsert_kafka.connector.lakehouse.merge_settings import (
    DELETED_COLUMN,
    Deletes,
    MergeSettings,
    merge_settings,
)
from pyspark_upsert_kafka.connector.lakehouse.merge_statement import Merge
from pyspark_upsert_kafka.core.changes import SHOWN_KEYS, such_keys
from pyspark_upsert_kafka.core.clock import Backoff
from pyspark_upsert_kafka.core.column_changes import field_named
from pyspark_upsert_kafka.core.ddl.spark_columns import quoted
from pyspark_upsert_kafka.core.errors import SchemaError, warn_once

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

_log = logging.getLogger("pyspark_upsert_kafka")
_T = TypeVar("_T")

_ADAPTIVE = (
    "spark.sql.adaptive.enabled",
    "spark.sql.optimizer.canChangeCachedPlanOutputPartitioning",
)

_PAUSES = Backoff(0.5, 30.0)

_KEEPS_PROPERTIES = (
    "merge_sink: the MERGE has failed, and the table keeps the properties with which it was made: other ones in properties do not "
    "change them. If one of them is the cause, correct it with ALTER TABLE %s SET TBLPROPERTIES (...)."
)
"""An engine may make a table with a property that it refuses only when it writes."""

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
        is_table = self.settings.begins_with_table and batch_id == 0
        batch = _Batch.of(rows, self.settings, is_table=is_table)
        # What is read from Kafka and checked is what is merged, also when it is tried again.
        changes = changes_by_key(rows, batch.columns, self.settings, batch.flags, is_table=is_table)
        with _adaptive(rows.sparkSession), _persisted(changes):
            if batch.has_changes(changes):
                what = f"The MERGE of batch {batch_id} into {str(self.settings.table)!r}"
                Attempts().run(lambda: batch.merge(changes), what)
            elif is_table:
                _log.warning(
                    "merge_sink: batch 0 is empty, and first_batch = 'table' takes it for the whole table %r: no row of the table was "
                    "deleted. If it is to be empty, delete its rows.", str(self.settings.table),
                )  # fmt: skip


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
    sequence_by: Sequence[str] | str | None = None,
    ignore_null_updates: bool = False,
    first_batch: str = "changes",
    properties: Mapping[str, str] | None = None,
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
    Delta Lake. A table of Iceberg gets format version 2 and ``write.merge.mode`` = ``merge-on-read``, unless ``properties`` say
    otherwise. Create the table yourself for partitions.

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
        sequence_by: Columns that say which change of a key is newer, in place of the order of the log: a list, or a text with
            commas between them, compared in this order. A change whose values are lower than those of the table's row changes
            nothing; of equal ones the later change counts. NULL and NaN are lower than everything. The table has the columns. It needs
            ``deletes`` = ``soft`` or ``ignore``, and a delete of a key without a row then makes a row that is marked as deleted.
        ignore_null_updates: Whether NULL in an update leaves the table's value as it is. A new row has NULL, and so has one that was
            deleted before.
        first_batch: ``changes``, or ``table``: the first batch of the query is the whole table, as with ``scan.startup.mode`` =
            ``full``, so rows of the table whose keys it does not have are deleted, as ``deletes`` says. A delete in it is an error.
            An empty one deletes nothing, and warns.
        properties: Names and values of the table's properties, if it is created, such as ``{"format-version": "3"}``. An existing
            table keeps its own.

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
            sequence_by=sequence_by,
            ignore_null_updates=ignore_null_updates,
            first_batch=first_batch,
            properties=properties,
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
        sequence: The columns that say which change is newer.
        is_table: Whether it is the whole table.
    """

    schema: StructType
    columns: ChangeColumns
    settings: MergeSettings
    flags: str
    sequence: tuple[str, ...]
    is_table: bool

    @classmethod
    def of(cls, rows: DataFrame, settings: MergeSettings, *, is_table: bool) -> _Batch:
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
        sequence = sequence_columns(schema, columns, settings)
        return cls(schema, columns, settings, flags_name(schema), sequence, is_table)

    def merge(self, changes: DataFrame) -> None:
        """Merges the changes into the table as it is now; it is created or changed first, if it has to be.

        Args:
            changes: What `changes_by_key` has made of the batch.
        """
        session = changes.sparkSession
        settings = self.settings
        there = fitting_columns(
            session, settings.table, self._wanted, settings.schema, settings.properties
        )
        found = {name: field_named(name, there) for name in self.columns.all}
        stored = {name: field for name, field in found.items() if field is not None}
        for kind, names in (("key", self.columns.keys), ("sequence", self.sequence)):
            _check_not_filled([stored[name] for name in names], kind, str(settings.table))
        in_types_of_table = (
            conformed(changes[quoted(name)], self.schema[name].dataType, field.dataType).alias(field.name)
            for name, field in stored.items()
        )  # fmt: skip
        view = f"merge_sink_{uuid.uuid4().hex}"
        merge = self._merge(view, stored, there)
        again = [] if merge.again is None else [self._again().alias(merge.again)]
        changes.select(*in_types_of_table, self.flags, *again).createOrReplaceTempView(view)
        try:
            session.sql(merge.statement())
        except ENGINE_ERRORS as error:
            if settings.properties and conflict(error) is None:
                _log.warning(_KEEPS_PROPERTIES, settings.table.sql)
            raise
        finally:
            session.catalog.dropTempView(view)

    def _merge(self, view: str, stored: Mapping[str, StructField], there: StructType) -> Merge:
        settings = self.settings
        given = (self.schema, self.columns, settings)
        deleted = settings.deleted_column and field_named(settings.deleted_column, there)
        return Merge(
            table=settings.table.sql,
            changes=view,
            keys=[stored[key].name for key in self.columns.keys],
            columns=[field.name for field in stored.values()],
            deletes=settings.deletes,
            deleted_column=deleted.name if deleted else None,
            flags=self.flags,
            of_last_change=[stored[name].name for name in shown_of_last_change(*given) if name in stored],
            partial={stored[name].name: place for place, name in enumerate(partial_columns(*given))},
            revives_empty=settings.ignores_nulls,
            sequence={stored[name].name: may_be_nan(stored[name].dataType) for name in self.sequence},
            is_whole_table=self.is_table,
            again=self._again_name(stored, there),
            **self._known_place(stored),
        )  # fmt: skip

    def _again_name(self, stored: Mapping[str, StructField], there: StructType) -> str | None:
        """The column by which a row is there twice that was deleted and came again; None = it is updated.

        The row that was deleted may have values in columns that the changes do not have, and a new row has none of them. Where the table
        says when and where its row was changed, it may be newer than the delete: then the row is updated.
        """
        has_others = len(stored) < len(there)
        if self.settings.deletes is not Deletes.HARD or not has_others or self._known_place(stored):
            return None
        return f"{self.flags}_again"

    def _again(self) -> Column:
        """Whether a row is there a second time; twice a row that was deleted and came again."""
        from pyspark.sql import functions as f

        once, twice = f.array(f.lit(False)), f.array(f.lit(False), f.lit(True))
        return f.explode(f.when(f.col(f"{self.flags}.is_reborn"), twice).otherwise(once))

    def _known_place(self, stored: Mapping[str, StructField]) -> dict[str, Any]:
        """The columns of the table that say when and where its row was last changed; none unless it says both."""
        timestamp, places = self.columns.timestamp, self.columns.place
        known = [stored[name].name for name in places if name in stored]
        if timestamp is None or timestamp not in stored or self.columns.partition not in stored:
            return {}
        return {"timestamp": stored[timestamp].name, "place": known}

    def has_changes(self, changes: DataFrame) -> bool:
        """Whether there is anything to merge, checked; it warns once of changes whose order is not what one may think.

        These are keys in several partitions that no sequence orders, and deletes that have no sequence, as tombstones.

        Args:
            changes: What `changes_by_key` has made of the batch.

        Raises:
            SchemaError: A column of the key is NULL.
        """
        from pyspark.sql import functions as f

        columns = self.columns
        place = f.struct(columns.partition, columns.offset)
        nulls = (f.min(f.when(f.col(quoted(key)).isNull(), place)) for key in columns.keys)
        several = f.count(f"{self.flags}.places")
        counts = (f.count("*"), several, f.count_if(self._is_delete_without_sequence()))
        count, in_several, unordered, *places = changes.agg(*counts, *nulls).collect()[0]
        for key, null in zip(columns.keys, places, strict=True):
            if null is not None:
                raise SchemaError(
                    f"merge_sink: column {key!r} of the primary key is NULL in the change at {_shown(null)}. Nothing of this batch "
                    "was written. Leave such rows out, with df.where(...), or choose another key."
                )
        if in_several and not self.sequence:
            warn_once(
                several_partitions(columns, "merge_sink"),
                detail=lambda: self._keys_in_several(changes, in_several),
            )
        if unordered:
            names = ", ".join(map(repr, self.sequence))
            warn_once(
                f"merge_sink: deletes have no value in {names} (sequence_by), as tombstones, which have only a key: they are older than "
                "every row with a value, and delete none. Name a column that they have, such as '_timestamp'."
            )
        return bool(count)

    def _is_delete_without_sequence(self) -> Column:
        from pyspark.sql import functions as f

        if not self.sequence:
            return f.lit(False)
        found = f.col(f"{self.flags}.is_deleted")
        for at in range(len(self.sequence)):
            found &= f.col(f"{self.flags}.last.s{at}").isNull()
        return found

    def _keys_in_several(self, changes: DataFrame, count: int) -> str:
        """Some of the keys that lie in several partitions, with the lowest and the highest of each."""
        keys = self.columns.keys
        found = changes.where(f"{self.flags}.places IS NOT NULL").select(
            *map(quoted, keys), f"{self.flags}.places"
        )
        shown = [
            {**dict(zip(keys, row, strict=False)), "partitions": [*map(tuple, row[-1])]}
            for row in found.limit(SHOWN_KEYS).collect()
        ]
        return such_keys(shown, count)

    def _wanted(self, there: StructType) -> StructType:
        """The columns that the table must have: metadata columns only if it has them, or if they are its sequence."""
        needed = {*self.columns.row, *self.sequence}
        wanted = [
            self.schema[name]
            for name in self.columns.all
            if name in needed or field_named(name, there) is not None
        ]
        if self.settings.deleted_column is not None:
            wanted.append(StructField(self.settings.deleted_column, BooleanType()))
        return StructType(wanted)


def _check_not_filled(columns: Sequence[StructField], kind: str, table: str) -> None:
    """Checks that columns of a table hold texts as they are: those of its key, or of its sequence.

    Raises:
        SchemaError: One is CHAR: its texts are filled with blanks, and no text of the stream equals one.
    """
    for column in columns:
        declared = str((column.metadata or {}).get(_DECLARED, ""))
        if declared.startswith("char("):
            what = (
                "no key of the stream would be found, and each batch would insert its rows once more"
                if kind == "key"
                else "no change would equal its own row, and one that runs again would count as older"
            )
            raise SchemaError(
                f"merge_sink: {kind} column {column.name!r} of the table {table!r} is {declared.upper()}, which is filled with blanks: "
                f"{what}. Make it STRING or VARCHAR."
            )


def _shown(place: Any) -> str:
    partition, offset = ("NULL" if part is None else part for part in place)
    return f"partition {partition}, offset {offset}"
