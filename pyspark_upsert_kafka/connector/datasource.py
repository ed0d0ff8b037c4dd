"""The Spark data source. Each method hands the options to a reader or a writer, which parses them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource

if TYPE_CHECKING:
    from pyspark.sql.datasource import (
        DataSourceReader,
        DataSourceStreamReader,
        DataSourceStreamWriter,
        DataSourceWriter,
    )
    from pyspark.sql.types import StructType


class UpsertKafkaDataSource(DataSource):
    """Kafka topics as tables: the format ``upsert-kafka``.

    Spark finds it automatically if the package is installed. If Spark does not find it, call
    ``spark.dataSource.register(UpsertKafkaDataSource)``.

    Example::

        changes = (
            spark.readStream.format("upsert-kafka")
            .schema("user_region STRING, pv BIGINT, uv BIGINT, _change_type STRING")
            .option("topic", "pageviews_per_region")
            .option("properties.bootstrap.servers", "localhost:9092")
            .option("primary-key", "user_region")
            .option("key.format", "json")
            .option("value.format", "json")
            .load()
        )
        query = changes.writeStream.format("console").start()
    """

    @classmethod
    def name(cls) -> str:
        """The name for ``format(...)`` and ``USING``."""
        return "upsert-kafka"

    _inferred_ms: int | None = None
    """When `schema` was called; Spark passes on the object to which it was: None = the user gives the columns."""

    def schema(self) -> StructType | str:
        """The columns if the user gives none: those of the DDL or of the schema of a format.

        Raises:
            SchemaError: The columns are not known from anything else either.
            OptionError: An option is wrong.
            BrokerError: The schema registry does not answer, or refuses the request.
        """
        from pyspark_upsert_kafka.connector.schema_inference import inferred_schema
        from pyspark_upsert_kafka.core.clock import now_ms

        self._inferred_ms = now_ms()
        return inferred_schema(self.options)

    def reader(self, schema: StructType) -> DataSourceReader:
        """A batch read: the current table, its changes, or plain messages."""
        from pyspark_upsert_kafka.connector.planning.batch_reader import batch_reader

        return batch_reader(schema, self.options)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """A streaming read: the table's changes, or plain messages."""
        from pyspark_upsert_kafka.connector.planning.stream_reader import stream_reader

        return stream_reader(schema, self.options, self._inferred_ms)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """A batch write of changes.

        Raises:
            OptionError: Mode ``overwrite``.
        """
        from pyspark_upsert_kafka.connector.writing.writer import BatchWriter
        from pyspark_upsert_kafka.core.errors import OptionError

        if overwrite:
            raise OptionError(
                "Mode 'overwrite' is not possible: a Kafka topic cannot be truncated. Use "
                ".mode('append'), which upserts by primary key; delete rows with _change_type = 'delete'."
            )
        return BatchWriter(schema, self.options)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:  # noqa: ARG002 - Spark calls it by name
        """A streaming write of changes. In output mode ``complete`` each batch upserts the whole result."""
        from pyspark_upsert_kafka.connector.writing.writer import StreamWriter

        return StreamWriter(schema, self.options)
