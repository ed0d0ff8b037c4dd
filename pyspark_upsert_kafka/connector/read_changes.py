"""`read_changes`: the table in a topic and then its changes, as they come, in this process: without Spark and without Java."""

from __future__ import annotations

import json
import os
import threading
import weakref
from collections.abc import Generator, Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

import pyarrow as pa
from pyspark.sql.types import StringType, StructField, StructType

from pyspark_upsert_kafka.connector.change_stream import ChangeStream, Step
from pyspark_upsert_kafka.connector.format_catalog import format_options
from pyspark_upsert_kafka.connector.read_request import (
    Request,
    checked_request,
    columns_of,
    past_ms,
)
from pyspark_upsert_kafka.connector.schema_inference import watching
from pyspark_upsert_kafka.core.arrow import arrow_schema
from pyspark_upsert_kafka.core.clock import SYSTEM_CLOCK, WallClock, now_ms
from pyspark_upsert_kafka.core.closing import undone_on_failure
from pyspark_upsert_kafka.core.errors import CheckpointError, OptionError, UpsertKafkaError
from pyspark_upsert_kafka.core.metadata import CDC_FORMATS, CHANGE_TYPE
from pyspark_upsert_kafka.core.options.catalog import OPTIONS, TABLE_FIRST, Given
from pyspark_upsert_kafka.core.options.frozen_options import ReadOptions, Topics
from pyspark_upsert_kafka.core.options.given import given_options, option_texts
from pyspark_upsert_kafka.core.options.read import read_options
from pyspark_upsert_kafka.core.positions.offsets import (
    Keeper,
    StreamOffset,
    ranges_between,
    stream_offset,
)
from pyspark_upsert_kafka.kafka.client_pool import close_idle_clients, let_be

_CLOSE_S = 5.0
"""How long closing waits for another thread that reads, in seconds: while brokers are away, a request may take longer."""

_STARTS = {
    TABLE_FIRST: "full",
    "latest-offset": "latest",
    "earliest-offset": "earliest",
}
"""The words for `start`, by the value of ``scan.startup.mode`` that means the same."""

_MODE = "scan.startup.mode"

_CHANGE_TYPE = "_change_type"

_SHOWN = 100
"""Characters of a position that an error shows."""

_POSITION = Keeper("position", "leave position out, to begin with the table again")


def read_changes(
    options: Mapping[str, Any] | None = None,
    *,
    schema: str | StructType | None = None,
    start: datetime | str = "full",
    position: str | None = None,
    stop_at_end: bool = False,
    **more: Any,
) -> TableChanges:
    """The table in a topic and then its changes, as they come, as Arrow record batches.

    It needs neither Java nor a Spark session. Options, columns, rows and errors are those of
    ``spark.readStream.format("upsert-kafka")``; if the columns have none for the kind of a change, ``_change_type`` is added.

    Args:
        options: The options, by name.
        schema: The columns, as in ``"id BIGINT, name STRING"``; without it they come from ``ddl`` or the schema of a format.
        start: Where reading begins: ``"full"`` with the table as of now, ``"latest"`` with the changes from now on,
            ``"earliest"`` with all changes that the topic has, or a time, a ``datetime`` with a zone or a text such as
            ``"2026-01-31T12:00:00Z"``, with the changes from then on.
        position: Go on after the batch of an earlier call after which its ``position`` was this text; ``start`` then has no
            effect. None = a new reading.
        stop_at_end: Whether it ends where the topics end now, instead of waiting for more.
        **more: More options, as keyword arguments.

    Returns:
        The batches, an iterator that waits for more when all are read. Close it, or use it in a ``with``.

    Raises:
        OptionError: An option or an argument is unknown, missing or malformed, or contradicts another; while rows are read:
            the table does not fit into memory.
        SchemaError: There are no columns, or columns, key or types do not fit.
        CheckpointError: ``position`` is damaged, of a later version, of other topics, or of one that was created again since.
        BrokerError: No broker or registry answers, or there is no such topic.
        DataLossError: What follows ``position`` is gone, and ``failOnDataLoss`` is true; also while rows are read.
        DecodeError: While rows are read: a message cannot be decoded, and ``error-handling.mode`` is ``fail``.

    Example::

        from pyspark_upsert_kafka import read_changes

        users = {}
        options = {
            "topic": "users",
            "properties.bootstrap.servers": "localhost:9092",
            "primary-key": "id",
            "key.format": "json",
            "value.format": "json",
        }
        with read_changes(options, schema="id BIGINT, name STRING", stop_at_end=True) as changes:
            for batch in changes:
                for row in batch.to_pylist():
                    if row["_change_type"] == "delete":
                        users.pop(row["id"], None)
                    else:
                        users[row["id"]] = row["name"]
        print(users)
    """
    raw = option_texts({**(options or {}), **more})
    if not raw:
        raise OptionError(
            "read_changes has no options: give 'topic', 'properties.bootstrap.servers', 'primary-key', 'key.format' and "
            "'value.format', or a 'ddl' that has them."
        )
    at = None if position is None else _parsed(position)
    given = given_options(raw)  # a statement is parsed here, and not again
    if stop_at_end:
        _check_one_end(given)
    goes_on = at is not None and not at.is_table
    read = read_options(_with_start(given, start, goes_on), format_options, stream=True)
    columns = columns_of(schema, given)
    read = watching(read, columns, now_ms() if schema is None else None)
    request = checked_request(_with_change_type(columns, read), read)
    if at is not None:
        _check_topics(at, read.table.topics)
    return TableChanges(request, at, stops_at_end=stop_at_end)


class TableChanges(Iterator[pa.RecordBatch]):
    """The batches that `read_changes` gives; an iterator, and a context that is closed at its end.

    After an error, the next batch is the one after the last that was given: nothing is lost. After Ctrl-C go on by a new call
    with the position that was saved last: Python may raise it when a batch was given, and before the program has it. One thread
    at a time reads; another one may ask ``caught_up``, and close.

    >>> from pyspark_upsert_kafka import TableChanges, read_changes
    >>> def names(changes: TableChanges) -> list[str]:
    ...     return [name for batch in changes for name in batch["name"].to_pylist()]
    """

    schema: pa.Schema
    """The columns of every batch."""

    def __init__(
        self,
        request: Request,
        at: StreamOffset | None = None,
        clock: WallClock = SYSTEM_CLOCK,
        *,
        stops_at_end: bool = False,
    ) -> None:
        self.schema = arrow_schema(request.table.schema)
        self._options, self._process = request.options, os.getpid()
        self._lock, self._reads = threading.RLock(), False
        self._closed = threading.Event()
        _OPEN.add(self)
        self._steps: Generator[Step, None, None] | None = None
        limits = request.options.limits
        self._stream = ChangeStream(request, limits, clock, stops_at_end=stops_at_end)
        with undone_on_failure(self.close):
            if at is None:
                at = self._stream.beginning()
            else:
                self._stream.check(at)
        self._at = self._committed = at

    @property
    def position(self) -> str:
        """Where reading is: a JSON text for the argument ``position`` of a later call.

        Take it right after a batch, and keep it together with what the batch has changed.
        """
        return json.dumps(self._at.to_json())

    @property
    def caught_up(self) -> bool:
        """Whether all messages that the topics hold now are in the batches that were given; asks the brokers.

        Raises:
            BrokerError: No broker answers.
        """
        self._check_process()
        if self._closed.is_set():
            raise UpsertKafkaError("These changes are closed: whether there are more is not asked.")
        return self._stream.has_read_all(self._at)

    def close(self) -> None:
        """Ends reading, in another thread too, and all connections. May be called at any moment, and again."""
        self._closed.set()
        if self._process != os.getpid():
            return  # the clients are those of the other process
        if self._lock.acquire(timeout=_CLOSE_S):
            try:
                if not self._reads:
                    self._end()
            finally:
                self._lock.release()

    def __iter__(self) -> TableChanges:
        """Itself."""
        return self

    def __next__(self) -> pa.RecordBatch:
        """The next batch; waits for it."""
        self._check_process()  # before the lock, which another thread may have held when this process began
        with self._lock:
            if self._closed.is_set():
                raise StopIteration
            self._reads = True
            try:
                return self._next()
            finally:
                self._reads = False
                if self._closed.is_set():
                    self._end()

    def __enter__(self) -> TableChanges:  # noqa: PYI034 - typing.Self needs Python 3.11
        """Itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Closes it."""
        self.close()

    def _next(self) -> pa.RecordBatch:
        if self._steps is None:
            self._steps = self._stream.steps(self._at)
        with undone_on_failure(self._forget_steps):
            for step in self._steps:
                if self._closed.is_set():
                    break
                if step.rows is not None:
                    batch = pa.RecordBatch.from_arrays(step.rows.columns, schema=self.schema)
                    self._at = step.at
                    return batch
                self._note_all_read(step.at)
        raise StopIteration

    def _forget_steps(self) -> None:
        """Lets the next call begin where the last batch ended."""
        steps, self._steps = self._steps, None
        if steps is not None:
            steps.close()

    def _note_all_read(self, at: StreamOffset) -> None:
        self._at = at
        if at != self._committed:
            self._stream.commit(at)
            self._committed = at

    def _check_process(self) -> None:
        if self._process != os.getpid():
            raise UpsertKafkaError(
                f"read_changes was called in process {self._process}, of which this one is a fork, and Kafka clients do not "
                "work in a fork: call it here, with the position."
            )

    def _end(self) -> None:
        """Ends the step that was begun, and all connections."""
        self._forget_steps()
        self._stream.close()
        close_idle_clients()


_OPEN: weakref.WeakSet[TableChanges] = weakref.WeakSet()


def _begin_in_fork() -> None:
    """A fork must not end the clients that it has inherited, whose threads it has not."""
    for each in list(_OPEN):
        let_be(each)


os.register_at_fork(after_in_child=_begin_in_fork)


def _parsed(position: object) -> StreamOffset:
    """A position that a user has kept.

    Raises:
        OptionError: It is no text.
        CheckpointError: It is damaged, or of a later version.
    """
    if not isinstance(position, str):
        raise OptionError(
            f"position is of the type {type(position).__name__}: give the text that .position was, or None for a new reading."
        )
    try:
        parsed = json.loads(position)
    except (ValueError, RecursionError):
        parsed = None
    at = stream_offset(parsed, _POSITION) if isinstance(parsed, dict) else None
    if at is None:
        raise CheckpointError(
            f"position is not a text that .position was: {position[:_SHOWN]!r}. Restore it, or {_POSITION.begin_anew}."
        )
    if not at.is_table:
        return replace(at, begins={})
    ranges_between(None, at, _POSITION)
    return at


def _check_topics(at: StreamOffset, topics: Topics) -> None:
    """Raises CheckpointError if a position is of other topics than the options name."""
    for name in at.topic_ids:
        named = name in topics.names if topics.pattern is None else topics.pattern.fullmatch(name)
        if not named:
            raise CheckpointError(
                f"position is of topic {name!r}, and the options name {str(topics)!r}: give the position of this table, or "
                f"{_POSITION.begin_anew}."
            )


def _with_start(given: Given, start: datetime | str, goes_on: bool) -> Given:
    """The options with those that mean a start.

    Args:
        given: The options.
        start: Where a new reading begins.
        goes_on: Whether this one goes on with changes, so that no table has to be there, as one was not at its beginning.

    Raises:
        OptionError: They say something else, or what they say of the topic leaves no table to begin with.
    """
    modes = {word: mode for mode, word in _STARTS.items()}
    if start in modes:
        wanted = {_MODE: modes[str(start)]}
    else:
        instead = "For the changes from now on, give start='latest'."
        words = ", ".join(map(repr, modes))
        if isinstance(start, str) and start[:1] != "-" and not start[:1].isdigit():
            raise OptionError(
                f"start: expected {words} or a time such as 2026-01-31T12:00:00Z, but is {start!r}."
            )
        millis = past_ms(start, "start", instead)
        wanted = {_MODE: "timestamp", "scan.startup.timestamp-millis": str(millis)}
    for name, value in given.items():
        if name.startswith("scan.startup.") and wanted.get(name) != value:
            same = f", and give start={_STARTS[value]!r}" if value in _STARTS else ""
            raise OptionError(
                f"start={start!r} and '{name}' = '{value}' both say where reading begins: leave the option out{same}."
            )
    if start == "full" and (why := _why_no_table(given)):
        if not goes_on:
            raise OptionError(
                f"start='full' begins with the table, and {why}: give start='earliest', 'latest' or a time."
            )
        wanted = {_MODE: modes["earliest"]}
    return Given({**given, **wanted}, given.places, given.spelt)


def _why_no_table(given: Mapping[str, str]) -> str | None:
    """Why messages are not changes of rows with a key; None = they are."""
    value_format = OPTIONS["value.format"].read(given)
    has_key = not {"primary-key", "key.fields"}.isdisjoint(given)
    if OPTIONS["read.mode"].read(given) == "append":
        return "'read.mode' = 'append' (in a DDL: 'connector' = 'kafka') reads every message as a row of its own"
    if value_format in CDC_FORMATS and not has_key:
        return f"without 'primary-key' messages of '{value_format}' are no changes of a table"
    return None


def _check_one_end(given: Mapping[str, str]) -> None:
    for name, value in given.items():
        if name.startswith("scan.bounded.") and value != "unbounded":
            raise OptionError(f"stop_at_end and '{name}' both say where it ends: leave one out.")


def _with_change_type(columns: StructType, options: ReadOptions) -> StructType:
    """The columns with one for the kind of a change, if none is and deletes are shown."""
    shown = {column for column, key in options.table.metadata if key == CHANGE_TYPE}
    if options.mode != "changelog" or not options.emit_deletes:
        return columns
    if not shown.union({_CHANGE_TYPE}).isdisjoint(name.lower() for name in columns.names):
        return columns
    return StructType([*columns, StructField(_CHANGE_TYPE, StringType())])
