"""Columns that messages have by now, and a stream lacks since it was planned: what ``scan.schema-changes`` says of them.

Each schema that messages name is looked at once, before the first of its messages is decoded. A new start has the columns of the
newest schema, which need not be that of the message. So it helps only if it has one of the columns; or if it lacks one of which
this query has a narrower type: then the message cannot be read here, and is read there without it.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Literal, NoReturn

import pyarrow.compute as pc
from pyspark.sql.types import StructType

from pyspark_upsert_kafka.connector.schema_inference import newest_columns
from pyspark_upsert_kafka.core.clock import SYSTEM_CLOCK, Clock
from pyspark_upsert_kafka.core.column_changes import has_path, lacking
from pyspark_upsert_kafka.core.ddl.spark_columns import columns_as_ddl
from pyspark_upsert_kafka.core.errors import SchemaChangedError, logger
from pyspark_upsert_kafka.core.options.frozen_options import ReadOptions
from pyspark_upsert_kafka.core.table import Table
from pyspark_upsert_kafka.formats.codec import Side
from pyspark_upsert_kafka.formats.writers_columns import SchemaStopError, WrittenSchema
from pyspark_upsert_kafka.kafka.raw_batch import RawBatch

_AGAIN_S = 30.0
"""How often it is asked whether a new start has a column by now: a registry may say late which schema is the newest."""


class LaterColumns:
    """Looks at the schemas of messages for columns that a stream lacks.

    Args:
        table: The table.
        options: How it is read.
        clock: Tells when it is asked again.
    """

    def __init__(self, table: Table, options: ReadOptions, clock: Clock = SYSTEM_CLOCK) -> None:
        self._options, self._clock = options, clock
        self._schema, self._prefix = table.schema, table.key_prefix
        self._exempt = table.key_names if table.is_keyed else ()
        self._told: set[str] = set()
        self._asked: dict[tuple[str, ...], float] = {}

    def watching(self, side: Side) -> Side:
        """A side of the table, whose decoder lets this one look."""
        if not self._options.is_inferred:
            return side
        watch = partial(self._look, side.spec.side, side.spec.schema)
        return replace(side, spec=replace(side.spec, watch=watch))

    def _look(self, side: Literal["key", "value"], read: StructType, schema: WrittenSchema) -> bool:
        """Whether it wants to be called again.

        Raises:
            SchemaStopError: The query has to be started again.
        """
        found = self._lacking(side, read, schema)
        if not found:
            return False
        if self._options.new_columns == "restart":
            what, now = (schema.origin, *found.values()), self._clock.monotonic()
            if now < self._asked.get(what, float("-inf")) + _AGAIN_S:
                return True
            new = newest_columns(self._options)
            gained = lacking(new, self._schema, self._exempt)
            gone = {
                path: text
                for path, text in found.items()
                if has_path(self._schema, path) and not has_path(new, path)
            }
            if gone or not gained.keys().isdisjoint(found):
                raise self._stop(side, schema, ", ".join({**gone, **gained}.values()), new)
            self._asked[what] = now
        self._tell(found, schema)
        return self._options.new_columns == "restart"

    def _lacking(
        self, side: Literal["key", "value"], read: StructType, schema: WrittenSchema
    ) -> dict[tuple[str, ...], str]:
        """What the stream lacks of a schema, under the names of the table.

        A key has the columns that the primary key names, whatever else is in its schema; what is no column of the value may be one
        of the key, or show metadata.
        """
        names, prefix = {name.lower() for name in read.names}, self._prefix if side == "key" else ""
        others = {name.lower() for name in self._schema.names} - names if side == "value" else None
        columns = [
            each
            for each in schema.columns
            if (each.name.lower() in names if others is None else each.name.lower() not in others)
        ]
        found = lacking(StructType(columns), read, self._exempt if not prefix else read.names)
        return {(prefix.lower() + first, *rest): text for (first, *rest), text in found.items()}

    def _stop(
        self, side: str, schema: WrittenSchema, gained: str, new: StructType
    ) -> SchemaStopError:
        """What ends the query, for columns that a new start has."""
        columns = gained, columns_as_ddl(self._schema), columns_as_ddl(new)

        def error(topic: str, partition: int, offset: int) -> SchemaChangedError:
            place = topic, partition, offset
            return SchemaChangedError(*place, schema.origin, schema.subject, *columns)

        return SchemaStopError(side, error)

    def _tell(self, found: dict[tuple[str, ...], str], schema: WrittenSchema) -> None:
        """Logs the warning for what was not told yet."""
        new = [text for text in found.values() if text not in self._told]
        self._told.update(new)
        if not new:
            return
        if self._options.new_columns == "ignore":
            then = "They are read without; a query that is started again has the columns of the newest schema. 'scan.schema-changes' = 'restart' ends the query for it."
        else:
            then = "They are read without, since a query that is started again would not have them either: the newest schema has not."
        logger.warning(
            "Messages in %s were written with columns that this query lacks, or with wider types: %s (%s says so). %s",
            self._options.table.topics, ", ".join(new), schema.origin, then,
        )  # fmt: skip


def raise_at(stop: SchemaStopError, batch: RawBatch) -> NoReturn:
    """Raises the error of the first message in a batch that must not be decoded.

    Args:
        stop: Which message that is.
        batch: The messages, as the formats read them.
    """
    side = batch.keys if stop.side == "key" else batch.values
    place = pc.index(side.column, stop.message).as_py()
    raise stop.error(batch.topic, batch.partition, batch.offsets[place]) from None
