"""Why a streaming query has ended, for a program that decides whether to start it again.

Spark shows an error of a Python data source as text: the name of its class, and its sentence, in a traceback. What is around
them differs from version to version, and between a classic session and Spark Connect.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from pyspark_upsert_kafka.core.errors import (
    BrokerError,
    DeliveryError,
    RetriableBrokerError,
    RetriableDeliveryError,
    SchemaChangedError,
    UpsertKafkaError,
)

_RAISED = re.compile(
    r"Traceback \(most recent call last\):\n(?:[ \t][^\n]*\n)*(?=([\w.]+)(?:: ([^\n]*))?$)",
    re.MULTILINE,
)
"""An exception as Python prints it at the end of a traceback: its class, and the first line of its text.

Nothing else of the whole text is searched: elsewhere there may be data of a user that looks like an error.
"""

_NEXT = re.compile(
    "^(?:During handling of the above exception, another exception occurred"
    "|The above exception was the direct cause of the following exception):$",
    re.MULTILINE,
)
"""What Python writes between two exceptions, of which the second ended the program."""

_OF_SPARK = ("pyspark.", "py4j.")
"""Modules whose exceptions wrap others."""

_READER_NOT_MADE = re.compile(
    r'python_streaming_source_runner\.py", line \d+, in main\n(?:    [^\n]*\n)*UnboundLocalError: '
)
"""What Spark's own program raises because of another exception: it stops a reader that could not be made (Spark 4.3)."""

_OF_THIS_PACKAGE = re.compile(r"pyspark_upsert_kafka\.(?:\w+\.)*(\w+Error)")

_RETRIABLE = {
    RetriableBrokerError.__name__: BrokerError.__name__,
    RetriableDeliveryError.__name__: DeliveryError.__name__,
    SchemaChangedError.__name__: SchemaChangedError.__name__,
}
"""The classes after which a new start goes on: their cause passes by itself, or with the columns of the new start. Beside each
what it is called here."""

_DEAD_WORKER = re.compile(
    r"(?:\A|org\.apache\.spark\.SparkException: |\(org\.apache\.spark\.SparkException\) |terminated with exception: )"
    r"(?:Python worker exited unexpectedly|Python worker failed to connect back|EOFException occurred while reading the port number)"
    r"|java\.lang\.IllegalStateException: Python (?:daemon )?failed to launch worker"
    r"|java\.io\.IOException: Stream closed\n(?:\s+at [^\n]*\n)*?\s+at org\.apache\.spark\.api\.python\.PythonWorkerFactory"
    r"|\A.*\[STREAMING_PYTHON_RUNNER_INITIALIZATION_(?:TIMEOUT|COMMUNICATION)_FAILURE\]"
)
"""What Spark says of a Python process, of a task, of the planning or of ``foreachBatch``, that has ended by itself, or has not started
in time: a machine was too busy, or had no memory. "Stream closed" is said by the first worker after the daemon of workers has ended.

The sentences are those of ``PythonWorkerFactory``, ``SparkCoreErrors`` and ``error-conditions.json`` of Spark 4.0 to 4.3. A process that
has said why it cannot start (``Error from python worker``) and a Python that is not there (``Cannot run program``) are not among
them: neither passes by itself.
"""

_SAID_WHY = "Error from python worker:"

_SAYS_NOTHING = re.compile(
    r"\Anull\n=== Streaming Query ==="
    r"|\A.*Query .*\[id = [\w-]+, runId = [\w-]+\] terminated with exception:(?: null)?(?: +SQLSTATE: \w+)?"
    r"(?: \(no cause message\))? *(?:\n|\Z)"
)
"""The first line of what Spark says if the process that plans a source's batches has ended by itself: nothing comes from it any more,
and the exception of that has no text."""


@dataclass(frozen=True)
class QueryEnd:
    """Why a query has ended.

    Args:
        error: The name of the error's class, such as ``DataLossError``; None = it is no error of this package.
        text: What the error says, in one line.
        restart: Whether the query, started again as it is, goes on from its checkpoint once brokers or the schema
            registry answer again, or with columns that messages have by now (``SchemaChangedError``), or since a Python worker
            died or did not start in time, of a task or of the planning. If not, something has to be changed first.
    """

    error: str | None
    text: str
    restart: bool


def why_it_ended(exception: BaseException) -> QueryEnd:
    """Finds the error of this package in the exception that ended a query.

    Args:
        exception: What ``query.awaitTermination()`` or ``start()`` has raised, or what ``query.exception()`` has returned.

    Raises:
        TypeError: It is no exception: a query that was stopped has none.

    Example::

        from pyspark.errors import PySparkException

        from pyspark_upsert_kafka import why_it_ended

        query = spark.readStream.format("rate").load().writeStream.format("console").start()
        try:
            query.awaitTermination(timeout=1)
        except PySparkException as exception:
            if not why_it_ended(exception).restart:
                raise

    >>> from pyspark_upsert_kafka import BrokerError, why_it_ended
    >>> why_it_ended(BrokerError("Could not look up offsets: the user has no ACL for the topic"))
    QueryEnd(error='BrokerError', text='Could not look up offsets: the user has no ACL for the topic', restart=False)
    """
    if not isinstance(exception, BaseException):
        raise TypeError(
            f"why_it_ended takes the exception that has ended a query, and not {exception!r}: query.exception() is None "
            "while a query runs, and after query.stop()."
        )
    text = str(exception)
    if isinstance(exception, UpsertKafkaError):
        return _end(type(exception).__name__, text.partition("\n")[0])
    raised = _raised(text)
    found = None if raised is None else _OF_THIS_PACKAGE.fullmatch(raised[0])
    if raised is None or found is None:
        first = text.partition("\n")[0]
        has_died = _DEAD_WORKER.search(text) or _SAYS_NOTHING.match(text)
        return QueryEnd(
            None, first, restart=raised is None and has_died is not None and _SAID_WHY not in text
        )
    return _end(found[1], raised[1])


def _raised(text: str) -> tuple[str, str] | None:
    """Class and text of the exception in Python that ended the query; None = there is none.

    The last part of the text counts, and in it the first exception that is not one of Spark, which only wraps another. What
    follows that one may be quoted in its text.
    """
    for part in reversed(_NEXT.split(text)):
        if _READER_NOT_MADE.search(part):
            continue
        for class_, said in _RAISED.findall(part):
            if not class_.startswith(_OF_SPARK):
                return class_, said
    return None


def _end(error: str, text: str) -> QueryEnd:
    return QueryEnd(_RETRIABLE.get(error, error), text, restart=error in _RETRIABLE)
