"""Every error of this package, and warnings that are logged once.

UpsertKafkaError
├── OptionError          an option is missing, unknown, malformed or contradicts another
├── SchemaError          columns, key or types do not fit the table or the format
│   └── SchemaChangedError    a message has columns that the query lacks: topic, partition, offset, subject, columns
├── DecodeError          a message cannot be read: topic, partition, offset, stage, reason
├── EncodeError          a row cannot be written: column, reason
├── DeliveryError        the broker did not accept a message: topic, partition, key, reason
│   └── RetriableDeliveryError    no broker has confirmed it in time
├── DataLossError        offsets are gone: topic, partition, wanted, earliest
├── CheckpointError      a checkpoint cannot be read, or belongs to another query
└── BrokerError          no broker answers, no such topic, or access denied: what was tried
    ├── RetriableBrokerError    brokers, or the schema registry, do not answer
    └── UnknownTopicError    a topic or partition that the broker does not know

Spark shows only the class and the text of an error that a Python source raises, so each text contains everything, and the class
says whether a query that is started again goes on (`why_it_ended`). An error is pickled
between processes, which calls the constructor with ``args``: these are its arguments, from which ``__str__`` makes the text.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

logger = logging.getLogger("pyspark_upsert_kafka")


_SHOWN = 200
MOST_NAMES, _LONGEST_NAME = 10, 40


class UpsertKafkaError(Exception):
    """Base class of all errors of this package.

    >>> from pyspark_upsert_kafka import OptionError, UpsertKafkaError
    >>> issubclass(OptionError, UpsertKafkaError)
    True
    """

    def __str__(self) -> str:
        """What is wrong, in lines without control characters: names and texts from outside may have any."""
        return "\n".join(map(printable, super().__str__().split("\n")))


class OptionError(UpsertKafkaError, ValueError):
    """An option is missing, unknown, malformed or contradicts another.

    >>> from pyspark_upsert_kafka import LocalKafka, OptionError
    >>> try:
    ...     LocalKafka(port=0)
    ... except OptionError as error:
    ...     print(error)
    The port of LocalKafka must be from 1 to 65535, but is 0.
    """


class SchemaError(UpsertKafkaError, ValueError):
    """Columns, key or types do not fit the table or the format.

    >>> from pyspark_upsert_kafka import SchemaError, read_table
    >>> try:
    ...     read_table(topic="users", schema=["id", "name"])
    ... except SchemaError as error:
    ...     print(error)
    schema is of the type list: write the columns as a text, as in 'id BIGINT, name STRING'.
    """


class SchemaChangedError(SchemaError):
    """A message was written with columns that a stream lacks, and ``scan.schema-changes`` is ``restart``.

    Nothing of the message was read. Started again from its checkpoint, the query has the newest columns, and reads the same messages.

    Args:
        topic: Topic of the first such message.
        partition: Its partition.
        offset: Its offset.
        schema: The schema that it names: ``Schema id 7``.
        subject: The registry's subject whose newest schema a new start takes; None = there is no registry.
        lacking: What the query lacks, for people: ``tier SMALLINT``.
        old: The columns of the query, as DDL.
        new: The columns that a new start has, as DDL.

    >>> from pyspark_upsert_kafka import SchemaChangedError
    >>> error = SchemaChangedError(
    ...     "users", 0, 42, "Schema id 7", "users-value", "tier SMALLINT", "id BIGINT", "id BIGINT, tier SMALLINT"
    ... )
    >>> error.topic, error.partition, error.offset, error.new
    ('users', 0, 42, 'id BIGINT, tier SMALLINT')
    """

    def __init__(  # noqa: PLR0913, PLR0917
        self,
        topic: str,
        partition: int,
        offset: int,
        schema: str,
        subject: str | None,
        lacking: str,
        old: str,
        new: str,
    ) -> None:
        super().__init__(topic, partition, offset, schema, subject, lacking, old, new)
        self.topic, self.partition, self.offset = topic, partition, offset
        self.schema, self.subject, self.lacking = schema, subject, lacking
        self.old, self.new = old, new

    def __str__(self) -> str:
        of = "" if self.subject is None else f", of the subject {self.subject!r},"
        return printable(
            f"The message at topic {self.topic!r}, partition {self.partition}, offset {self.offset} was written with columns that "
            f"this query lacks: {self.lacking} ({self.schema}{of} says so). Nothing of it was read. Start the query again from its "
            "checkpoint, with a new load() (read_changes: call it again, with its position): it then has the newest columns, and reads "
            "the same messages."
        )


class DecodeError(UpsertKafkaError):
    """A message cannot be read.

    Args:
        topic: Topic of the message.
        partition: Its partition.
        offset: Its offset.
        stage: What could not be read: ``key``, ``value``, ``null-key`` or ``headers``.
        reason: Why it could not be read.

    >>> from pyspark_upsert_kafka import DecodeError
    >>> error = DecodeError("users", 0, 42, "value", "'id' is 'one', expected BIGINT")
    >>> error.topic, error.partition, error.offset, error.stage
    ('users', 0, 42, 'value')
    """

    def __init__(self, topic: str, partition: int, offset: int, stage: str, reason: str) -> None:
        super().__init__(topic, partition, offset, stage, reason)
        self.topic, self.partition, self.offset = topic, partition, offset
        self.stage, self.reason = stage, reason

    def __str__(self) -> str:
        from pyspark_upsert_kafka.core.error_modes import modes_that

        return (
            f"The message at topic {self.topic!r}, partition {self.partition}, offset {self.offset} "
            f"cannot be decoded (stage: {self.stage}): {printable(self.reason)}. To go on past such messages, "
            f"set 'error-handling.mode' to {modes_that('skip', 'column')}."
        )


class EncodeError(UpsertKafkaError):
    """A row cannot be written.

    Args:
        column: The name of the column in the table.
        reason: What is wrong with its value.

    >>> from pyspark_upsert_kafka import EncodeError
    >>> print(EncodeError("price", "NaN has no representation in JSON"))
    Column 'price' cannot be written: NaN has no representation in JSON
    """

    def __init__(self, column: str, reason: str) -> None:
        super().__init__(column, reason)
        self.column, self.reason = column, reason

    def __str__(self) -> str:
        return f"Column {self.column!r} cannot be written: {printable(self.reason)}"


class DeliveryError(UpsertKafkaError):
    """The broker did not accept a message.

    Args:
        topic: Topic of the message.
        partition: Its partition, or None if no partition was assigned.
        key: The message key.
        reason: The error of the client or of the broker.
        failed: How many messages of this task failed, as far as this is known.

    >>> from pyspark_upsert_kafka import DeliveryError
    >>> error = DeliveryError("users", 0, b'{"id": 1}', "MSG_SIZE_TOO_LARGE", failed=3)
    >>> error.topic, error.partition, error.key, error.failed
    ('users', 0, b'{"id": 1}', 3)
    """

    def __init__(
        self, topic: str, partition: int | None, key: bytes | None, reason: str, failed: int = 1
    ) -> None:
        super().__init__(topic, partition, key, reason, failed)
        self.topic, self.partition, self.key, self.reason = topic, partition, key, reason
        self.failed = failed

    def __str__(self) -> str:
        where = "not assigned" if self.partition is None else str(self.partition)
        more = f" ({self.failed} messages of this task failed; this was the first)"
        return (
            f"A message to topic {self.topic!r}, partition {where}, key {shown(self.key)} was not "
            f"delivered: {printable(self.reason)}{more if self.failed > 1 else ''}. The batch is not done; nothing of it was reported as "
            "written."
        )


class RetriableDeliveryError(DeliveryError):
    """No broker has confirmed a message in time: a query that is started again goes on once they do.

    >>> from pyspark_upsert_kafka import DeliveryError, RetriableDeliveryError
    >>> issubclass(RetriableDeliveryError, DeliveryError)
    True
    """


class DataLossError(UpsertKafkaError):
    """Offsets that the query still had to read are gone.

    Args:
        topic: The topic.
        partition: The partition, or None for the whole topic.
        wanted: The offset to be read next, or None if the topic itself is gone.
        earliest: The first offset that still exists, or None if there is none.
        reason: Why they are gone.

    >>> from pyspark_upsert_kafka import DataLossError
    >>> error = DataLossError("users", 0, wanted=100, earliest=250, reason="the topic's retention removed them")
    >>> error.wanted, error.earliest
    (100, 250)
    """

    def __init__(
        self,
        topic: str,
        partition: int | None,
        wanted: int | None,
        earliest: int | None,
        reason: str,
    ) -> None:
        super().__init__(topic, partition, wanted, earliest, reason)
        self.topic, self.partition, self.wanted, self.earliest = topic, partition, wanted, earliest
        self.reason = reason

    def __str__(self) -> str:
        return (
            f"{self._what_is_gone()} To go on from what is there, set 'failOnDataLoss' to 'false'."
        )

    def warning(self) -> str:
        """What is logged if the query continues, with ``failOnDataLoss`` = ``false``."""
        return f"{self._what_is_gone()} Reading continues with the messages that exist."

    def _what_is_gone(self) -> str:
        where = f"topic {self.topic!r}"
        if self.partition is not None:
            where += f", partition {self.partition}"
        if self.wanted is not None:
            where += f", wanted offset {self.wanted}"
        if self.earliest is not None:
            where += f", earliest available offset {self.earliest}"
        end = "" if self.reason.endswith("?") else "."
        return f"Some data may have been lost: {where}: {printable(self.reason)}{end}"


class CheckpointError(UpsertKafkaError):
    """A checkpoint cannot be read, or it belongs to another query.

    >>> from pyspark_upsert_kafka import CheckpointError, UpsertKafkaError
    >>> issubclass(CheckpointError, UpsertKafkaError)
    True
    """


class BrokerError(UpsertKafkaError):
    """No broker answers, the topic does not exist, or access is denied.

    Args:
        text: What was tried, and what the answer was.
        is_final: Whether the brokers have answered, so that a retry cannot help.

    >>> from pyspark_upsert_kafka import BrokerError
    >>> BrokerError("Topic 'users': no ACL for READ.", is_final=True).is_final
    True
    """

    def __init__(self, text: str, *, is_final: bool = False) -> None:
        super().__init__(text)
        self.is_final = is_final


class RetriableBrokerError(BrokerError):
    """Brokers, or the schema registry, do not answer: a query that is started again goes on once they do.

    >>> from pyspark_upsert_kafka import BrokerError, RetriableBrokerError
    >>> issubclass(RetriableBrokerError, BrokerError)
    True
    """


class UnknownTopicError(BrokerError):
    """A topic or partition is gone, or it is so new that the broker does not know it yet.

    >>> from pyspark_upsert_kafka import BrokerError, UnknownTopicError
    >>> issubclass(UnknownTopicError, BrokerError)
    True
    """


def printable(text: str) -> str:
    r"""The text with control characters, which a terminal would execute, written as escapes.

    >>> printable("a" + chr(27) + "[2J")
    'a\\x1b[2J'
    """
    if text.isprintable():
        return text
    # An escape takes seventy times the byte that it is of, so that of a long text only what is shown is given here.
    return "".join(each if each.isprintable() else repr(each)[1:-1] for each in text)


def shown_names(names: Collection[str]) -> str:
    """Some names, each cut when it is long, and how many there are besides.

    >>> shown_names(["id", "name"])
    "'id', 'name'"
    """
    some = [*names][:MOST_NAMES]
    cut = (name if len(name) <= _LONGEST_NAME else f"{name[:_LONGEST_NAME]}…" for name in some)
    more = f" and {len(names) - len(some)} more" if len(names) > len(some) else ""
    return ", ".join(map(repr, cut)) + more


def shown(data: bytes | None) -> str:
    """Bytes as they are shown in an error: as text if possible, and cut if they are long.

    >>> shown(b'{"id": 1}')
    '{"id": 1}'
    >>> shown(None)
    'null'
    """
    if data is None:
        return "null"
    try:
        text = data.decode()
        begin = printable(text[: _SHOWN + 1])
    except UnicodeDecodeError:
        begin = repr(data[:_SHOWN])  # with the quotes it is longer than what is shown
    return begin if len(begin) <= _SHOWN else f"{begin[:_SHOWN]}… ({len(data)} bytes)"


_warned: set[str] = set()


def warn_once(*texts: str, detail: Callable[[], str] = str) -> None:
    """Logs each text as a warning, unless this process has done so before.

    To be called where a query is planned, on the driver: Spark plans a streaming write again for every
    micro-batch. A text that names its topic is logged for each topic.

    Args:
        texts: The texts.
        detail: Gives what stands behind a text when it is logged, such as an example. With another one it is the same text.
    """
    for text in texts:
        if text not in _warned:
            _warned.add(text)
            logger.warning("%s%s", text, detail())
