"""The options as frozen values: what the rest of the package knows of them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Literal

from pyspark.sql.types import StructType

from pyspark_upsert_kafka.core.arrow import MAX_HELD_BYTES
from pyspark_upsert_kafka.core.delivery_guarantee import DeliveryGuarantee
from pyspark_upsert_kafka.core.error_modes import ERROR_MODES, BadMessages, ErrorMode
from pyspark_upsert_kafka.core.masking import is_secret
from pyspark_upsert_kafka.core.metadata import CDC_FORMATS
from pyspark_upsert_kafka.core.options.parsers import WantedHeaders
from pyspark_upsert_kafka.core.options.properties import Properties
from pyspark_upsert_kafka.core.receipts import Call

ReadMode = Literal["snapshot", "changelog", "append"]

NewColumnsMode = Literal["ignore", "restart"]
"""The values of ``scan.schema-changes``: what a stream does about columns that messages have and it lacks."""

PositionMode = Literal[
    "earliest-offset",
    "latest-offset",
    "group-offsets",
    "timestamp",
    "specific-offsets",
    "unbounded",
]

PreimageOrder = Literal["in-task", "by-key", "unknown"]
"""How the changes of a key come in a task: in order, with changes of other keys between them (``in-task``); in order, one after
another (``by-key``); or some of them may be in other tasks (``unknown``)."""


@dataclass(frozen=True)
class Topics:
    """The topics of a table: a list of names, or a pattern."""

    names: tuple[str, ...] = ()
    pattern: re.Pattern[str] | None = None

    def __str__(self) -> str:
        return ";".join(self.names) if self.pattern is None else f"pattern {self.pattern.pattern!r}"


@dataclass(frozen=True)
class FormatChoice:
    """A chosen format and the values of its options, by their unprefixed names."""

    name: str
    options: tuple[tuple[str, Any], ...] = ()

    def __repr__(self) -> str:
        shown = {name: "***" if is_secret(name) else value for name, value in self.options}
        return f"FormatChoice({self.name!r}, {shown})"


@dataclass(frozen=True)
class TableOptions:
    """What both sides know of the table.

    Args:
        topics: The topics that hold its changes.
        primary_key: Key columns in the order of the message key; of an append source those that are read from
            it, mostly none.
        key_prefix: Prefix of the key columns, stripped in the message key.
        value_holds_key: Whether the value holds the key columns too (``ALL``).
        metadata: Metadata key by column name in lower case (``metadata.<column>``).
        key_format: Format of the key; None = the key is not read, as of an append source.
        value_format: Format of the value.
        properties: The client's properties.
        client: Which Kafka client.
        ddl_columns: The columns that option ``ddl`` declares, with what else it says of them in their metadata;
            None = there is no ``ddl``.
    """

    topics: Topics
    primary_key: tuple[str, ...]
    key_prefix: str
    value_holds_key: bool
    metadata: tuple[tuple[str, str], ...]
    key_format: FormatChoice | None
    value_format: FormatChoice
    properties: Properties
    client: str
    ddl_columns: StructType | None = None

    @property
    def is_cdc(self) -> bool:
        """Whether messages say what they did to a row."""
        return self.value_format.name in CDC_FORMATS


@dataclass(frozen=True)
class Position:
    """A place in every partition, before the brokers are asked for its offsets.

    Args:
        mode: The value of ``scan.startup.mode`` or ``scan.bounded.mode``.
        timestamp_ms: For ``timestamp``.
        offsets: For ``specific-offsets``: (partition, offset) pairs.
        reset: For ``group-offsets``: where a partition starts without a committed offset.
    """

    mode: PositionMode
    timestamp_ms: int | None = None
    offsets: tuple[tuple[int, int], ...] = ()
    reset: Literal["earliest", "latest", "none"] = "none"


@dataclass(frozen=True)
class Limits:
    """How much a micro-batch reads.

    Args:
        max_offsets: At most this many; None = no limit.
        min_offsets: At least this many; None = no limit.
        max_delay_s: For how long a micro-batch may wait until it has ``min_offsets``.
        max_drift_s: No partition reads further than this past the slowest, in record timestamps; None = no limit.
        max_bytes: About the most bytes of keys and values; None = no limit.
    """

    max_offsets: int | None = None
    min_offsets: int | None = None
    max_delay_s: float = 0.0
    max_drift_s: float | None = None
    max_bytes: int | None = None

    def __bool__(self) -> bool:
        limits = (self.max_offsets, self.min_offsets, self.max_drift_s, self.max_bytes)
        return any(each is not None for each in limits)


@dataclass(frozen=True)
class ReadOptions:
    """The options of a read.

    Args:
        table: What both sides know of the table.
        mode: What the rows are: the table, its changes, or the messages.
        emit_deletes: Whether a changelog shows deletes as rows.
        start: Where reading starts.
        end: Where reading ends.
        discovery_interval_s: How often new partitions and topics are looked for; 0 = never.
        outage_timeout_s: How long a running query waits while no broker answers; 0 = as long as for any request.
        min_partitions: At least this many Spark partitions; None = one for each Kafka partition.
        max_partitions: The most Spark partitions; ``auto`` = by the number of offsets; None = as many as there
            are ranges.
        snapshot_bytes: How much memory one task of a snapshot may use; None = half of what the worker has.
        limits: How much a micro-batch reads.
        fail_on_data_loss: Whether lost offsets are an error.
        error_mode: What happens to a message that cannot be decoded.
        dead_letter_topic: The topic that it is sent to; None = it is not sent.
        read_committed: Whether messages of open and aborted transactions are left out.
        warnings: What is logged when the read is planned.
        table_first: Whether the first batch of a new stream is the table (``scan.startup.mode`` = ``full``).
        wanted_headers: What headers a message must have to be read; empty = all messages are read.
        record_names: Of which record types a message must be to be read; empty = all messages are read.
        takes_filters: Whether a batch reads only what the filters of its query leave.
        key_partitioner: Which hash of a key's bytes gives its partition; None = a key may be in any.
        merges_partitions: Whether a key of a snapshot that lies in several partitions gives one row.
        new_columns: What is done about columns that messages have and a stream lacks.
        is_inferred: Whether the columns of a stream are those of a schema, so that messages may have others by now.
    """

    table: TableOptions
    mode: ReadMode
    emit_deletes: bool
    start: Position
    end: Position
    discovery_interval_s: float
    outage_timeout_s: float
    min_partitions: int | None
    max_partitions: int | Literal["auto"] | None
    snapshot_bytes: int | None
    limits: Limits
    fail_on_data_loss: bool
    error_mode: ErrorMode
    dead_letter_topic: str | None
    read_committed: bool
    warnings: tuple[str, ...] = ()
    table_first: bool = False
    wanted_headers: WantedHeaders = ()
    record_names: tuple[str, ...] = ()
    takes_filters: bool = False
    key_partitioner: Literal["murmur2"] | None = None
    merges_partitions: bool = False
    new_columns: NewColumnsMode = "ignore"
    is_inferred: bool = False

    @property
    def shows_images(self) -> bool:
        """Whether rows are shown as before and after each update: those of a CDC format without a primary key."""
        return self.table.is_cdc and not self.table.primary_key

    @property
    def holds_table(self) -> bool:
        """Whether the topic's messages are changes of rows, of which the last one for each key counts."""
        return self.mode != "append" and not self.shows_images

    @property
    def bad_messages_become(self) -> BadMessages:
        """What becomes of a message that cannot be decoded."""
        return ERROR_MODES[self.error_mode].becomes

    @property
    def sends_dead_letters(self) -> bool:
        """Whether a message that cannot be read is sent to the dead-letter topic."""
        return self.error_mode == "log"


@dataclass(frozen=True)
class BufferFlush:
    """When the keyed buffer is flushed: at that many distinct keys, after that many seconds, or with that many bytes."""

    max_rows: int
    interval_s: float
    max_bytes: int = MAX_HELD_BYTES


@dataclass(frozen=True)
class WriteOptions:
    """The options of a write.

    Args:
        table: What both sides know of the table.
        buffer: When the keyed buffer is flushed; None = no buffer.
        guarantee: What is promised about each message.
        parallelism: `upsert_sink` only: number of tasks.
        sequence_by: `upsert_sink` only: what orders the changes of one key.
        transactional_id_prefix: ``exactly-once`` only: what the names of its transactions begin with.
        call: ``exactly-once`` only: the call of `upsert_sink` whose rows are written.
        order: How changes are ordered in a task of `upsert_sink`; None = `upsert_sink` is not used.
        warnings: What is logged when the write is planned.
    """

    table: TableOptions
    buffer: BufferFlush | None
    guarantee: DeliveryGuarantee
    parallelism: int | None = None
    sequence_by: str | None = None
    order: PreimageOrder | None = None
    transactional_id_prefix: str | None = None
    call: Call | None = None
    warnings: tuple[str, ...] = ()
