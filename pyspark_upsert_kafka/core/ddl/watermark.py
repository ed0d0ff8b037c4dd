"""``watermark_of``: what a source cannot set for itself."""

from __future__ import annotations

from pyspark_upsert_kafka.core.ddl.definition import table_definition
from pyspark_upsert_kafka.core.errors import OptionError


def watermark_of(ddl: str) -> tuple[str, str]:
    """The watermark of a ``CREATE TABLE`` statement, since a source of Spark cannot set one.

    Args:
        ddl: The statement, as option ``ddl`` takes it.

    Returns:
        Column and delay, for ``withWatermark``.

    Raises:
        OptionError: The table has no watermark, or the statement is not understood.

    Example::

        views = spark.readStream.format("upsert-kafka").option("ddl", ddl).load()
        views = views.withWatermark(*watermark_of(ddl))

    >>> watermark_of('''
    ...     CREATE TABLE views (page STRING, at TIMESTAMP_LTZ(3), WATERMARK FOR at AS at - INTERVAL '2' SECOND)
    ...     WITH ('connector' = 'kafka', 'topic' = 'views', 'format' = 'json')
    ... ''')
    ('at', '2 seconds')
    """
    definition = table_definition(ddl)
    if definition.watermark is None:
        raise OptionError(
            f"Table '{definition.name}' has no WATERMARK in its CREATE TABLE statement: add "
            "WATERMARK FOR column AS column - INTERVAL '5' SECOND, or call withWatermark by hand."
        )
    return definition.watermark
