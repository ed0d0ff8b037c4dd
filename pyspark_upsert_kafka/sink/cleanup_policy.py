"""The warning about a topic that is written as a table, and that Kafka does not compact."""

from __future__ import annotations

import logging
from contextlib import closing

from pyspark_upsert_kafka.core.errors import BrokerError
from pyspark_upsert_kafka.core.options import TableOptions
from pyspark_upsert_kafka.core.options.properties import Properties
from pyspark_upsert_kafka.core.positions.compaction import POLICY, not_compacted
from pyspark_upsert_kafka.core.warning import warn_once
from pyspark_upsert_kafka.kafka.clients import load_client

logger = logging.getLogger("pyspark_upsert_kafka")

_asked: set[tuple[Properties, tuple[str, ...]]] = set()


def warn_unless_compacted(table: TableOptions) -> None:
    """Warns of each topic that is written and not compacted; asks the brokers once in a process."""
    topics = table.topics.names
    if (table.properties, topics) in _asked:
        return
    _asked.add((table.properties, topics))
    with closing(load_client(table.client).cluster(table.properties, "writer")) as cluster:
        try:
            settings = cluster.topic_configs(topics, [POLICY])
        except BrokerError as error:  # writing needs no ACL for the settings of topics
            logger.info("It is not known whether topics are compacted: %s", error)
            return
    warn_once(*not_compacted(settings, table.properties.resolved()["bootstrap.servers"]))
