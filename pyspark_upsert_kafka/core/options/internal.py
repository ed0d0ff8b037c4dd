"""Options that this connector passes to itself through Spark: users do not set them, and no page names them."""

from __future__ import annotations

import json

from pyspark.sql.types import StructType

from pyspark_upsert_kafka.core.delivery.receipts import call_of_text
from pyspark_upsert_kafka.core.options.option import Option
from pyspark_upsert_kafka.core.options.parsers import names_as_written, one_of

FROM_UPSERT_SINK = Option(
    "upsert-sink.order", one_of("in-task", "by-key", "unknown"), None,
    "set by `upsert_sink` for the tasks of a batch: the changes of a key come in order, one after another (`by-key`), "
    "or in order with changes of other keys between them (`in-task`), or may be in several tasks (`unknown`)",
)  # fmt: skip

CALL = Option(
    "upsert-sink.call", call_of_text, None,
    "set by `upsert_sink` for the tasks of an exactly-once batch: the call, as `Call.to_text` writes it",
)  # fmt: skip

NAMES = Option(
    "upsert-sink.names", names_as_written, {},
    "set by `upsert_sink` for the tasks of a batch, since Spark passes on names in lower case: names of options as they were "
    "written, by their lower case, as a JSON object",
)  # fmt: skip

DDL_COLUMNS = Option(
    "ddl.columns", lambda text: StructType.fromJson(json.loads(text)), None,
    "set when `ddl` is read, in its place: its columns, as Spark's JSON of a schema",
)  # fmt: skip

INTERNAL = frozenset({FROM_UPSERT_SINK.name, CALL.name, NAMES.name, DDL_COLUMNS.name})
"""Names of the internal options."""
