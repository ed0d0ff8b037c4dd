"""Options as the user gave them -> frozen values, once, when the query is planned.

Formats read their own options when a codec is compiled; every default is part of a declaration. Rules and wording follow Flink's
``UpsertKafkaDynamicTableFactory`` and ``KafkaConnectorOptionsUtil`` where Flink has them.
"""

from pyspark_upsert_kafka.core.options.catalog import (
    DDL,
    EVENT_TIME,
    OPTIONS,
    SECTIONS,
    SPARKS_OWN,
    VIRTUAL,
)
from pyspark_upsert_kafka.core.options.given import (
    as_spark_passes_on,
    given_options,
    option_texts,
    options_of,
)
from pyspark_upsert_kafka.core.options.headers import WantedHeaders
from pyspark_upsert_kafka.core.options.internal import (
    CALL,
    DDL_COLUMNS,
    FROM_UPSERT_SINK,
    INTERNAL,
)
from pyspark_upsert_kafka.core.options.names import FormatOptions
from pyspark_upsert_kafka.core.options.option import Given, Option, OptionFamily
from pyspark_upsert_kafka.core.options.parsers import (
    any_text,
    boolean,
    one_of,
    regular_expression,
    text,
)
from pyspark_upsert_kafka.core.options.read import read_options
from pyspark_upsert_kafka.core.options.values import (
    BufferFlush,
    ErrorMode,
    FormatChoice,
    Limits,
    Position,
    PositionMode,
    PreimageOrder,
    ReadMode,
    ReadOptions,
    TableOptions,
    Topics,
    WriteOptions,
)
from pyspark_upsert_kafka.core.options.write import check_write_options, write_options

__all__ = [
    "CALL",
    "DDL",
    "DDL_COLUMNS",
    "EVENT_TIME",
    "FROM_UPSERT_SINK",
    "INTERNAL",
    "OPTIONS",
    "SECTIONS",
    "SPARKS_OWN",
    "VIRTUAL",
    "BufferFlush",
    "ErrorMode",
    "FormatChoice",
    "FormatOptions",
    "Given",
    "Limits",
    "Option",
    "OptionFamily",
    "Position",
    "PositionMode",
    "PreimageOrder",
    "ReadMode",
    "ReadOptions",
    "TableOptions",
    "Topics",
    "WantedHeaders",
    "WriteOptions",
    "any_text",
    "as_spark_passes_on",
    "boolean",
    "check_write_options",
    "given_options",
    "one_of",
    "option_texts",
    "options_of",
    "read_options",
    "regular_expression",
    "text",
    "write_options",
]
