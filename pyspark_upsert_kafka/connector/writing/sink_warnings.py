"""What a sink warns of: topics that Kafka does not compact, and tasks of which Spark runs two attempts at a time."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence

from pyspark import TaskContext

from pyspark_upsert_kafka.connector.spark_task import TaskIdentity
from pyspark_upsert_kafka.core.closing import closing
from pyspark_upsert_kafka.core.delivery_guarantee import DeliveryGuarantee
from pyspark_upsert_kafka.core.errors import BrokerError, OptionError, warn_once
from pyspark_upsert_kafka.core.options.frozen_options import TableOptions, WriteOptions
from pyspark_upsert_kafka.core.options.properties import Properties
from pyspark_upsert_kafka.core.pages import page
from pyspark_upsert_kafka.core.table import Table
from pyspark_upsert_kafka.kafka.clients import load_client
from pyspark_upsert_kafka.kafka.cluster import POLICY

logger = logging.getLogger("pyspark_upsert_kafka")

_asked: set[tuple[Properties, tuple[str, ...], bool]] = set()

_OF_TIMES = _RETENTION, _TIMES = ("retention.ms", "message.timestamp.type")
"""What says whether a row's own time decides when it is removed."""


def warn_unless_compacted(table: TableOptions, *, has_times: bool = False) -> None:
    """Warns of each topic that is written and not compacted; asks the brokers once in a process.

    Args:
        table: Names the topics.
        has_times: Whether rows have the times of their messages, by which a topic may remove them.
    """
    topics = table.topics.names
    if (table.properties, topics, has_times) in _asked:
        return
    _asked.add((table.properties, topics, has_times))
    with closing(load_client(table.client).cluster(table.properties, "writer")) as cluster:
        try:
            configs = cluster.topic_configs(topics, [POLICY, *(_OF_TIMES if has_times else ())])
        except BrokerError as error:  # writing needs no ACL for the settings of topics
            logger.info("It is not known whether topics are compacted: %s", error)
            return
    warn_once(*not_compacted(configs, table.properties.resolved()["bootstrap.servers"]))
    if has_times:
        warn_once(*removed_by_age(configs))


def removed_by_age(configs: Mapping[str, Mapping[str, str]]) -> list[str]:
    """The warnings about topics that remove messages by their age, for a writer that gives these times of its own.

    >>> removed_by_age({"users": {"cleanup.policy": "delete", "retention.ms": "-1"}})
    []
    """
    found = []
    for topic, each in sorted(configs.items()):
        kept_ms = int(each.get(_RETENTION, -1))
        by_writer = each.get(_TIMES, "CreateTime") == "CreateTime"
        if "delete" in each.get(POLICY, "") and kept_ms >= 0 and by_writer:
            found.append(
                f"Topic {topic!r} removes messages that are older than {_RETENTION} = {kept_ms}, and rows are written to it with "
                "times of their own ('_timestamp'): Kafka removes those that are older than that soon after they are written. Leave "
                f"the column out, set {_RETENTION}=-1 or {POLICY}=compact, or let brokers give the times ({_TIMES}=LogAppendTime)."
            )
    return found


def gives_times(rows: Table) -> bool:
    """Whether rows that are written have the times of their messages."""
    return rows.metadata_column("timestamp") is not None


def warn_of_speculation(task: TaskIdentity, options: WriteOptions) -> None:
    """Warns in the first task of a job, since Spark shows its settings to tasks only.

    `upsert_sink` sees them itself and has warned already.
    """
    context = TaskContext.get()
    if context is not None and task.task == 0 and options.order is None:
        setting = context.getLocalProperty("spark.speculation")
        warn_once(*speculation(setting, str(options.table.topics)))


def _is_on(setting: str | None) -> bool:
    return (setting or "").strip().lower() == "true"


def speculation(setting: str | None, topics: str) -> list[str]:
    """The warning about ``spark.speculation`` when it is on; else none.

    >>> speculation("false", "users"), speculation(None, "users"), len(speculation("TRUE ", "users"))
    ([], [], 1)
    """
    if not _is_on(setting):
        return []
    text = (
        f"'spark.speculation' is on while topic {topics} is written: two attempts of a task may write at "
        "the same time, and the slower one may leave an older value of a key last. Turn it off for "
        f"jobs that write (see {page('writing.md')})."
    )
    return [text]


def refuse_speculation(setting: str | None) -> None:
    """Refuses ``spark.speculation`` for a sink that writes exactly once.

    Raises:
        OptionError: It is on.
    """
    if _is_on(setting):
        raise OptionError(
            "'spark.speculation' is on, and 'sink.delivery-guarantee' = 'exactly-once' works without it only: "
            "of two attempts of a task that write at the same time, each would fence off the other. Turn it off."
        )


def check_speculation(setting: str | None, options: WriteOptions) -> None:
    """Refuses ``spark.speculation`` for a sink that writes exactly once, and warns of it for another.

    Raises:
        OptionError: It is on.
    """
    if options.guarantee is DeliveryGuarantee.EXACTLY_ONCE:
        refuse_speculation(setting)
    else:
        warn_once(*speculation(setting, str(options.table.topics)))


_NAMED = 3
"""Topics that a warning names at most."""


def not_compacted(configs: Mapping[str, Mapping[str, str]], servers: str) -> list[str]:
    """The warnings about topics that hold a table and are not compacted: one for all topics with the same policy.

    Args:
        configs: `POLICY` of each topic.
        servers: The bootstrap servers, for the command that puts it right.

    >>> not_compacted({"users": {"cleanup.policy": "compact,delete"}}, "localhost:9092")
    []
    """
    topics_of: dict[str, list[str]] = {}
    for topic, each in sorted(configs.items()):
        policy = each.get(POLICY)
        if policy is not None and "compact" not in policy:
            topics_of.setdefault(policy, []).append(topic)
    return [
        f"{_have(topics)} {POLICY} = {policy!r}: Kafka deletes messages by age or size, and so loses "
        "rows of the table that have not changed for long. To compact it: "
        f"kafka-configs.sh --bootstrap-server {servers} --alter --entity-type topics --entity-name {topics[0]} "
        f"--add-config {POLICY}=compact"
        for policy, topics in topics_of.items()
    ]


def _have(topics: Sequence[str]) -> str:
    """The beginning of a sentence about topics, of which the first ones are named.

    >>> _have(["users"]), _have(["a", "b"]), _have(["a", "b", "c", "d"])
    ("Topic 'users' has", "2 topics ('a', 'b') have", "4 topics ('a', 'b', 'c', ...) have")
    """
    if len(topics) == 1:
        return f"Topic {topics[0]!r} has"
    named = [*map(repr, topics[:_NAMED]), *(["..."] if len(topics) > _NAMED else [])]
    return f"{len(topics):,} topics ({', '.join(named)}) have"
