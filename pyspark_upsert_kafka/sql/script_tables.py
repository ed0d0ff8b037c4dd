"""A table of a script: its columns in a query, and the checks whether it can be read and written."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property, partial

from pyspark.sql.types import LongType, StructField, StructType, TimestampNTZType

from pyspark_upsert_kafka.connector.format_catalog import (
    check_read_sides,
    check_written_sides,
    format_options,
)
from pyspark_upsert_kafka.connector.schema_inference import ddl_schema
from pyspark_upsert_kafka.core.errors import OptionError, SchemaError
from pyspark_upsert_kafka.core.metadata import CHANGE_TYPE
from pyspark_upsert_kafka.core.options.frozen_options import ReadOptions, WriteOptions
from pyspark_upsert_kafka.core.options.given import options_of
from pyspark_upsert_kafka.core.options.read import read_options
from pyspark_upsert_kafka.core.options.write import write_options
from pyspark_upsert_kafka.core.table import table_to_read, table_to_write
from pyspark_upsert_kafka.sql.script import CreateTable
from pyspark_upsert_kafka.sql.stream_rows import CHANGE, ORDER

_NO_CHANGE_TYPES = (
    "a script shows no change types: INSERT INTO copies deletes by itself. Leave the column out."
)

_NO_ORDER = (
    f"the rows before and after a change are put in order by the offset of their message, which the column '{ORDER}' shows, and here "
    "this column is another one. Read the topic with spark.readStream, and rename the column."
)

_NO_IMAGES = (
    "in batch mode a table of the format '{name}' needs a PRIMARY KEY (...) NOT ENFORCED, of which it is the rows as of now. Without "
    "one it is changes, which only a stream can show."
)


@dataclass(frozen=True)
class Table:
    """A table that a script creates.

    Args:
        statement: Its statement.
        beside: More options; they win over those of the statement.
        in_order: Whether a stream reads the column `ORDER` too.
    """

    statement: CreateTable
    beside: Mapping[str, str] = field(default_factory=dict, repr=False)
    in_order: bool = False

    @property
    def name(self) -> str:
        """Its name, without catalog and database."""
        return self.statement.path[-1]

    @property
    def is_append(self) -> bool:
        """Whether every message is a row, and none changes another."""
        return self.statement.definition.options.get("read.mode") == "append"

    @property
    def key(self) -> tuple[str, ...]:
        """Columns of the primary key, in its order."""
        given = self.statement.definition.options.get("primary-key", "")
        return tuple(name.strip() for name in given.split(",")) if given else ()

    @property
    def watermark(self) -> tuple[str, str] | None:
        """Column and delay, for ``withWatermark``."""
        return self.statement.definition.watermark

    @property
    def event_time_without_zone(self) -> str | None:
        """The column of its WATERMARK, if that is a time without a zone."""
        if self.watermark is None:
            return None
        column = self.watermark[0]
        kind = self.statement.definition.columns[column].dataType
        return column if isinstance(kind, TimestampNTZType) else None

    @cached_property
    def written(self) -> tuple[StructField, ...]:
        """The columns that an INSERT fills, in their order: all but the VIRTUAL ones."""
        definition = self.statement.definition
        return tuple(c for c in definition.columns if c.name not in definition.virtual)

    def metadata_of(self, column: str) -> str | None:
        """The key of the metadata that a column shows or sets; None = it is one of the row."""
        return self.statement.definition.options.get(f"metadata.{column.lower()}")

    def options(self, *, batch: bool) -> dict[str, str]:
        """The options with which Spark reads it, the statement among them."""
        is_changelog = "read.mode" in self.statement.definition.options
        more = {"read.mode": "snapshot"} if batch and not is_changelog else {}
        return {"ddl": self.statement.text, **self.beside, **more}

    def columns(self, *, batch: bool) -> StructType:
        """The columns that a query sees.

        Raises:
            OptionError: An option is wrong.
            SchemaError: The type of a column does not fit the metadata that it shows.
        """
        shown = self._shown(batch=batch)
        return StructType([column for column in shown if column.name != CHANGE])

    def columns_in_order(self) -> StructType | None:
        """All columns of a stream of it, with `ORDER`; None = those that its statement gives."""
        if not self.in_order:
            return None
        shown = self._shown(batch=False)
        is_there = ORDER in map(str.lower, shown.names)
        more = [] if is_there else [StructField(ORDER, LongType())]
        return StructType([*shown, *more])

    @cached_property
    def is_cdc(self) -> bool:
        """Whether its format is one of changes of a database."""
        return self._read_options(batch=False).table.is_cdc

    @cached_property
    def shows_images(self) -> bool:
        """Whether a stream of it shows rows before and after each change, which no key tells apart."""
        return self._read_options(batch=False).shows_images

    def has_deletes(self) -> bool:
        """Whether a stream of it has a column that says if a row is a delete or an upsert."""
        return CHANGE in self._shown(batch=False).names

    def check_read(self, *, batch: bool) -> ReadOptions:
        """The options for reading it.

        Raises:
            OptionError: An option is wrong; the text gives the table's place in the script.
            SchemaError: A format does not support a column.
        """
        options = self._read_options(batch=batch)
        if batch and options.shows_images:
            with self._named_in_errors():
                raise OptionError(_NO_IMAGES.format(name=options.table.value_format.name))
        schema = self._shown(batch=batch)
        with self._named_in_errors():
            if self.in_order and dict(options.table.metadata).get(ORDER, "offset") != "offset":
                raise OptionError(_NO_ORDER)
            check_read_sides(table_to_read(schema, options), options)
        return options

    def check_written(self) -> WriteOptions:
        """The options for writing it.

        Raises:
            OptionError: An option is wrong; the text gives the table's place in the script.
            SchemaError: A format does not support a column.
        """
        with self._named_in_errors():
            given = options_of(self.statement.definition, self.beside)
            options = write_options(given, format_options, update_mode=True)
            schema = StructType([StructField(c.name, c.dataType) for c in self.written])
            check_written_sides(table_to_write(schema, options), options)
        return options

    def check_unused(self, *, batch: bool) -> None:
        """Checks a table that no statement reads or writes: it must be possible to read or to write it.

        Args:
            batch: Whether it would be read as a batch; the error for this is raised first.

        Raises:
            OptionError: An option is wrong; the text gives the table's place in the script.
            SchemaError: A format does not support a column.
        """
        uses: list[Callable[[], object]] = [
            partial(self.check_read, batch=batch),
            partial(self.check_read, batch=not batch),
        ]
        if not self.is_append:
            uses.append(self.check_written)
        errors = []
        for check in uses:
            try:
                check()
            except (OptionError, SchemaError) as error:
                errors.append(error)
            else:
                return
        raise errors[0]

    def _read_options(self, *, batch: bool) -> ReadOptions:
        with self._named_in_errors():
            given = options_of(self.statement.definition, self._beside(batch=batch))
            return read_options(given, format_options, stream=not batch)

    def _beside(self, *, batch: bool) -> dict[str, str]:
        return {name: value for name, value in self.options(batch=batch).items() if name != "ddl"}

    def _shown(self, *, batch: bool) -> StructType:
        definition = self.statement.definition
        with self._named_in_errors():
            for name, value in definition.options.items():
                if name.startswith("metadata.") and value == CHANGE_TYPE:
                    raise OptionError(_NO_CHANGE_TYPES)
            return ddl_schema(options_of(definition, self._beside(batch=batch)))

    @contextmanager
    def _named_in_errors(self) -> Iterator[None]:
        """Puts the table's name and its place in the script before the errors of what it declares."""
        try:
            yield
        except (OptionError, SchemaError) as error:
            message = f"{self.statement.place}: table '{self.name}': {error}"
            raise type(error)(message) from None
