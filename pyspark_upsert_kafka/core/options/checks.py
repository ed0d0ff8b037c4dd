"""Options that contradict each other. Each check raises OptionError, with Flink's wording where Flink has the rule.

A reader also checks what only a writer uses, and the other way round.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyspark_upsert_kafka.core.delivery.guarantee import DeliveryGuarantee
from pyspark_upsert_kafka.core.errors import OptionError
from pyspark_upsert_kafka.core.options.values import ReadMode, TableOptions, Topics


def check_no_primary_key(given: Mapping[str, str]) -> None:
    """An append source has no primary key; it reads columns from keys if both options say which and how."""
    reads_key = {"key.fields", "key.format"} <= given.keys()
    for name in given:
        if name == "primary-key" or (name.startswith("key.") and not reads_key):
            raise OptionError(
                "'read.mode' = 'append' reads every message as a row of its own and has no primary key: "
                f"leave out '{name}'. (To read columns from the message key too, give 'key.format' and "
                "'key.fields'.)"
            )


def check_position(values: Mapping[str, Any], table: TableOptions, which: str, mode: str) -> None:
    """The mode of a position has what it needs, and nothing else.

    Args:
        values: The value of every declared option.
        table: What both sides know of the table.
        which: ``startup`` or ``bounded``.
        mode: The mode, given or default.
    """
    for needed, option, hint in (
        (
            "timestamp",
            f"scan.{which}.timestamp-millis",
            f" A time as text goes into 'scan.{which}.timestamp'.",
        ),
        ("specific-offsets", f"scan.{which}.specific-offsets", ""),
    ):
        if mode == needed and values[option] is None:
            raise OptionError(f"'{option}' is required in '{mode}' {which} mode but missing.{hint}")
        if mode != needed and values[option] is not None:
            raise OptionError(
                f"'{option}' is for 'scan.{which}.mode' = '{needed}' only, but that is '{mode}'."
            )
    if mode == "specific-offsets" and len(table.topics.names) != 1:
        raise OptionError("Currently Kafka source only supports specific offset for single topic.")
    if mode == "group-offsets" and not table.properties.get("group.id"):
        raise OptionError(f"'properties.group.id' is required in 'group-offsets' {which} mode.")


def check_snapshot(values: Mapping[str, Any]) -> None:
    """A snapshot starts at the earliest offset, and has no rows of errors."""
    start = values["scan.startup.mode"]
    if start != "earliest-offset":
        raise OptionError(
            f"'scan.startup.mode' = '{start}' is not allowed with 'read.mode' = 'snapshot': the "
            "table is the result of all changes since the earliest offset. Use 'read.mode' = "
            "'changelog' to read from elsewhere."
        )
    if values["error-handling.mode"] == "column":
        raise OptionError("'error-handling.mode' = 'column' is for 'changelog' and 'append' reads.")


def check_table_first(values: Mapping[str, Any], mode: ReadMode, *, stream: bool) -> None:
    """Only a stream of an upsert table can begin with the table, which has no rows of errors and no order in time."""
    start = f"'scan.startup.mode' = '{values['scan.startup.mode']}'"
    if not stream:
        raise OptionError(
            f"{start} is for streams, which begin with the table and go on with its changes. A batch read shows the table "
            "anyway ('read.mode' = 'snapshot', the default): leave out 'scan.startup.mode'."
        )
    if mode == "append":
        raise OptionError(
            f"{start} is not allowed with 'read.mode' = 'append': a topic that is read so is no table, since its messages "
            "have no primary key. Use 'earliest-offset' to read all of them."
        )
    if values["scan.watermark.alignment.max-drift"] is not None:
        raise OptionError(
            f"{start} is not allowed with 'scan.watermark.alignment.max-drift': the first batch is the whole table, "
            "whatever the times of its rows. Remove one of them."
        )
    if values["error-handling.mode"] == "column":
        raise OptionError(
            f"{start} is not allowed with 'error-handling.mode' = 'column': a message that cannot be decoded is no row of "
            "a table. Use 'fail', 'ignore' or 'log'."
        )


def check_key_partitioner(values: Mapping[str, Any], table: TableOptions, mode: ReadMode) -> None:
    """Only of a table whose keys are read is it known what is hashed."""
    given = f"'scan.key-partitioner' = '{values['scan.key-partitioner']}'"
    if values["scan.key-partitioner"] is None:
        return
    if mode == "append":
        raise OptionError(
            f"{given} says in which partition the rows of a primary key are, and with 'read.mode' = 'append' there is "
            "none: leave it out."
        )
    if table.is_cdc:
        raise OptionError(
            f"{given} says in which partition the rows of a primary key are, but what writes "
            f"'{table.value_format.name}' need not choose the partition by the key of the row: leave it out."
        )


def check_limits(values: Mapping[str, Any]) -> None:
    """No least number, of offsets in a micro-batch or of Spark partitions, is larger than the greatest one."""
    most, least = values["maxOffsetsPerTrigger"], values["minOffsetsPerTrigger"]
    if most is not None and least is not None and least > most:
        raise OptionError(
            f"The value of 'minOffsetsPerTrigger' ({least}) must not be larger than "
            f"'maxOffsetsPerTrigger' ({most})."
        )
    most, least = values["scan.parallelism"], values["minPartitions"]
    if most == "auto" and least is not None:
        raise OptionError(
            "'minPartitions' is not allowed with 'scan.parallelism' = 'auto': the first splits Kafka partitions "
            "among tasks, the second reads few messages of several partitions in one task. Remove one of them."
        )
    if most is not None and least is not None and least > most:
        raise OptionError(
            f"The value of 'minPartitions' ({least}) must not be larger than 'scan.parallelism' ({most}): "
            "the first is the least number of tasks, the second the greatest."
        )


def check_merging(values: Mapping[str, Any], mode: ReadMode) -> None:
    """Partitions are merged in a table only, by tasks each of which reads all of them."""
    if not values["scan.snapshot.merge-partitions"]:
        return
    if mode != "snapshot" and values["scan.startup.mode"] != "full":
        raise OptionError(
            "'scan.snapshot.merge-partitions' is for snapshots, and for 'scan.startup.mode' = 'full'. Of changes, last_changes "
            "finds the last one of each key."
        )
    if values["scan.parallelism"] is not None:
        raise OptionError(
            "'scan.parallelism' is not allowed with 'scan.snapshot.merge-partitions': 'minPartitions' is the number of tasks, "
            "each of which reads all partitions."
        )


def check_dead_letter_topic(values: Mapping[str, Any], topics: Topics) -> None:
    """If bad messages are sent to a topic, that topic is given, and is not one that is read."""
    target = values["error-handling.log.target"]
    if values["error-handling.mode"] != "log":
        return
    if target is None:
        raise OptionError(
            "'error-handling.log.target' is required in 'log' error-handling mode but missing."
        )
    if target in topics.names or (topics.pattern is not None and topics.pattern.fullmatch(target)):
        raise OptionError(
            f"'error-handling.log.target' = '{target}' is one of the topics that are read: each bad "
            "message would be read and sent again without end. Name another topic."
        )


def check_buffer(values: Mapping[str, Any]) -> None:
    """The buffer has both of its bounds or neither."""
    if (values["sink.buffer-flush.max-rows"] > 0) != (values["sink.buffer-flush.interval"] > 0):
        raise OptionError(
            "'sink.buffer-flush.max-rows' and 'sink.buffer-flush.interval' must be set to be greater "
            "than zero together to enable sink buffer flushing."
        )


def check_exactly_once(values: Mapping[str, Any]) -> None:
    """Transactions have a name and a fixed number of tasks."""
    if values["sink.delivery-guarantee"] != DeliveryGuarantee.EXACTLY_ONCE.value:
        return
    if values["sink.transactional-id-prefix"] is None:
        raise OptionError(
            "sink.transactional-id-prefix must be specified when using DeliveryGuarantee.EXACTLY_ONCE: "
            "'sink.delivery-guarantee' = 'exactly-once' names its transactions by it. Give each sink a "
            "prefix of its own."
        )
    if values["sink.parallelism"] is None:
        raise OptionError(
            "'sink.parallelism' is required with 'sink.delivery-guarantee' = 'exactly-once' but missing: "
            "each of that many tasks writes in a transaction of its own, and a batch that is written again "
            "needs the same tasks."
        )


def check_from_upsert_sink(values: Mapping[str, Any]) -> None:
    """Only `upsert_sink` can write exactly once, and distribute rows."""
    if values["sink.delivery-guarantee"] == DeliveryGuarantee.EXACTLY_ONCE.value:
        raise OptionError(
            "'sink.delivery-guarantee' = 'exactly-once' works with upsert_sink only, since Spark does not "
            "tell a Python writer the number of tasks: use .foreachBatch(upsert_sink(options)) with "
            "'sink.parallelism' and 'sink.transactional-id-prefix'."
        )
    for name in ("sink.parallelism", "sequence-by"):
        if values[name] is not None:
            raise OptionError(
                f"Option '{name}' works with upsert_sink only, since a Python writer cannot control "
                "how Spark distributes rows: use .foreachBatch(upsert_sink(options)), or "
                "df.repartition(n, key columns) first."
            )
