"""The warning about a topic that is written and not compacted."""

from __future__ import annotations

import pytest

from pyspark_upsert_kafka.connector.format_catalog import format_options
from pyspark_upsert_kafka.connector.writing.sink_warnings import warn_unless_compacted
from pyspark_upsert_kafka.core.options.write import write_options
from tests.conftest import Broker
from tests.kafka.conftest import Edge, own_messages
from tests.table_options import table_options


def test_a_topic_that_is_not_compacted_is_one_warning(
    broker: Broker, edge: Edge, caplog: pytest.LogCaptureFixture
) -> None:
    """It is told once, however often it is asked for, and of a compacted topic nothing is said."""
    deleted, compacted = (
        broker.topic(cleanup_policy="delete"),
        broker.topic(cleanup_policy="compact"),
    )
    for topic in (deleted, compacted, deleted):
        given = table_options(
            topic=topic,
            **{"properties.bootstrap.servers": broker.servers, "kafka.client": edge.client},
        )
        if not edge.has_transactions:
            given["properties.enable.idempotence"] = "false"
        warn_unless_compacted(write_options(given, format_options).table)

    (warning,) = own_messages(caplog)
    assert f"Topic {deleted!r} has cleanup.policy = 'delete'" in warning
