"""Kafka topics as tables for PySpark: the format ``upsert-kafka``.

Spark imports every installed ``pyspark_*`` package when it looks for data sources. So this import must be cheap and must
not fail: everything that needs a Kafka client is imported when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from pyspark_upsert_kafka.connector.datasource import UpsertKafkaDataSource
from pyspark_upsert_kafka.connector.interpreter import check_running_session, use_this_interpreter
from pyspark_upsert_kafka.core.errors import (
    BrokerError,
    CheckpointError,
    DataLossError,
    DecodeError,
    DeliveryError,
    EncodeError,
    OptionError,
    RetriableBrokerError,
    RetriableDeliveryError,
    SchemaChangedError,
    SchemaError,
    UnknownTopicError,
    UpsertKafkaError,
)

if TYPE_CHECKING:
    from pyspark_upsert_kafka.connector.changelog.last_changes import last_changes
    from pyspark_upsert_kafka.connector.changelog.normalize import normalize_changelog
    from pyspark_upsert_kafka.connector.lakehouse.merge_sink import merge_sink
    from pyspark_upsert_kafka.connector.listener import ProgressListener
    from pyspark_upsert_kafka.connector.read_changes import TableChanges, read_changes
    from pyspark_upsert_kafka.connector.read_table import read_table
    from pyspark_upsert_kafka.connector.writing.update_mode import upsert_sink
    from pyspark_upsert_kafka.core.ddl.definition import watermark_of
    from pyspark_upsert_kafka.core.query_end import why_it_ended
    from pyspark_upsert_kafka.kafka.local import (
        LocalAcl,
        LocalCertificates,
        LocalKafka,
        LocalSecurity,
    )
    from pyspark_upsert_kafka.sql import run_sql

    __version__: str

__all__ = [
    "BrokerError",
    "CheckpointError",
    "DataLossError",
    "DecodeError",
    "DefaultSource",
    "DeliveryError",
    "EncodeError",
    "LocalAcl",
    "LocalCertificates",
    "LocalKafka",
    "LocalSecurity",
    "OptionError",
    "ProgressListener",
    "RetriableBrokerError",
    "RetriableDeliveryError",
    "SchemaChangedError",
    "SchemaError",
    "TableChanges",
    "UnknownTopicError",
    "UpsertKafkaDataSource",
    "UpsertKafkaError",
    "last_changes",
    "merge_sink",
    "normalize_changelog",
    "read_changes",
    "read_table",
    "run_sql",
    "upsert_sink",
    "watermark_of",
    "why_it_ended",
]

DefaultSource = UpsertKafkaDataSource
"""Spark looks for the data source of a package under this name."""

_LAZY = {
    "LocalAcl": "pyspark_upsert_kafka.kafka.local",
    "LocalCertificates": "pyspark_upsert_kafka.kafka.local",
    "LocalKafka": "pyspark_upsert_kafka.kafka.local",
    "LocalSecurity": "pyspark_upsert_kafka.kafka.local",
    "ProgressListener": "pyspark_upsert_kafka.connector.listener",
    "TableChanges": "pyspark_upsert_kafka.connector.read_changes",
    "last_changes": "pyspark_upsert_kafka.connector.changelog.last_changes",
    "merge_sink": "pyspark_upsert_kafka.connector.lakehouse.merge_sink",
    "normalize_changelog": "pyspark_upsert_kafka.connector.changelog.normalize",
    "read_changes": "pyspark_upsert_kafka.connector.read_changes",
    "read_table": "pyspark_upsert_kafka.connector.read_table",
    "run_sql": "pyspark_upsert_kafka.sql",
    "upsert_sink": "pyspark_upsert_kafka.connector.writing.update_mode",
    "watermark_of": "pyspark_upsert_kafka.core.ddl.definition",
    "why_it_ended": "pyspark_upsert_kafka.core.query_end",
}

use_this_interpreter()
check_running_session()


if not TYPE_CHECKING:  # with it, a type checker takes every name for one that is there

    def __getattr__(name: str) -> Any:
        if name == "__version__":
            from pyspark_upsert_kafka.version import current_version  # not at import: it costs much

            return current_version()
        if name in _LAZY:
            return getattr(import_module(_LAZY[name]), name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
