"""Jackson's own CSV reader and writer, set up as Flink's ``csv`` format sets them up.

Jackson comes with the broker of the tests; Spark's JVM loads it apart from Spark's own.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from typing import Any

from pyspark.sql import SparkSession

from pyspark_upsert_kafka.kafka.local.jars import broker_jars

_CSV = "com.fasterxml.jackson.dataformat.csv."
_DATA = "com.fasterxml.jackson.databind."


@cache
def _loader(spark: SparkSession) -> Any:
    """One for the session: py4j remembers methods by the names of their classes."""
    jvm = spark._jvm
    files = [jar.as_uri() for jar in broker_jars().glob("jackson-*.jar")]
    urls = spark.sparkContext._gateway.new_array(jvm.java.net.URL, len(files))
    for at, file in enumerate(files):
        urls[at] = jvm.java.net.URL(file)
    return jvm.java.net.URLClassLoader(urls, jvm.ClassLoader.getPlatformClassLoader())


class JacksonCsv:
    """``CsvRowDataSerializationSchema`` and its sibling, for columns of text and numbers.

    Args:
        spark: The session whose JVM does it.
        columns: Names of the columns, each with Jackson's type: STRING, NUMBER, BOOLEAN, ARRAY.
        null_literal: As the option of that name.
        changes: What else is set, as calls of ``CsvSchema``: ``withEscapeChar="*"``.
    """

    def __init__(
        self,
        spark: SparkSession,
        columns: dict[str, str],
        null_literal: str | None = None,
        **changes: str,
    ) -> None:
        self._jvm, self._gateway = spark._jvm, spark.sparkContext._gateway
        self._loader = _loader(spark)
        self._json = self._new(f"{_DATA}ObjectMapper")
        self._csv = self._new(f"{_CSV}CsvMapper")
        self._schema = self._schema_of(columns, null_literal, changes)

    def write(self, rows: Sequence[dict[str, Any]]) -> list[bytes]:
        """The messages of rows."""
        writer = self._csv.writer(self._schema.withLineSeparator(""))
        nodes = [self._json.readTree(json.dumps(row)) for row in rows]
        return [bytes(writer.writeValueAsBytes(node)) for node in nodes]

    def read(self, message: bytes) -> dict[str, Any] | str:
        """The fields of a message, or what is wrong with it."""
        node = self._loader.loadClass(f"{_DATA}JsonNode")
        reader = self._csv.readerFor(node).__getattr__("with")(self._schema)
        try:
            found: dict[str, Any] = json.loads(reader.readValue(message).toString())
        except Exception as error:  # noqa: BLE001 - py4j has one class for all of Java's
            return str(error.java_exception.getMessage())
        return found

    def _new(self, name: str) -> Any:
        arguments = self._gateway.new_array(self._jvm.Object, 0)
        types = self._gateway.new_array(self._jvm.Class, 0)
        return self._loader.loadClass(name).getDeclaredConstructor(types).newInstance(arguments)

    def _schema_of(self, columns: dict[str, str], literal: str | None, changes: Any) -> Any:
        kinds = {
            str(kind.name()): kind
            for kind in self._loader.loadClass(f"{_CSV}CsvSchema$ColumnType").getEnumConstants()
        }
        builder = self._new(f"{_CSV}CsvSchema$Builder")
        for name, kind in columns.items():
            builder.addColumn(name, kinds[kind])
        schema = builder.build()
        if literal is not None:
            schema = schema.withNullValue(literal)
        for name, character in changes.items():
            schema = getattr(schema, name)(*character)
        return schema
