"""What is found in an exception that ended a query, and whether starting the query again can help."""

from __future__ import annotations

import traceback
from collections.abc import Callable

import pytest
from pyspark.errors import PySparkRuntimeError

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
from pyspark_upsert_kafka.core.query_end import QueryEnd, why_it_ended

CLASSIC = """[STREAM_FAILED] Query [id = 1, runId = 2] terminated with exception: Job aborted due to stage failure: Task 0 \
in stage 1.0 failed 1 times: org.apache.spark.api.python.PythonException: {traceback}
\tat org.apache.spark.api.python.BasePythonRunner$ReaderIterator.handlePythonException(PythonRunner.scala:581)
SQLSTATE: XXKST
=== Streaming Query ===
Identifier: [id = 1, runId = 2]

JVM stacktrace:
org.apache.spark.sql.streaming.StreamingQueryException: ...
Caused by: org.apache.spark.api.python.PythonException: {traceback}
\tat org.apache.spark...
"""

OF_FOREACH_BATCH = """[STREAM_FAILED] Query [id = 1, runId = 2] terminated with exception: An exception was raised by the \
Python Proxy. Return Message: Traceback (most recent call last):
  File "foreachBatch.py", line 9, in call
pyspark.errors.exceptions.captured.PythonException:
  An exception was thrown from the Python worker. Please see the stack trace below.
{traceback}

\tat py4j.Protocol.getReturnValue(Protocol.java:476)
"""

OF_A_WRITER = """[STREAM_FAILED] Query [id = 1, runId = 2] terminated with exception: [FOREACH_BATCH_USER_FUNCTION_ERROR] An error \
occurred in the user provided function in foreach batch sink. Reason: An exception was raised by the Python Proxy. Return \
Message: Traceback (most recent call last):
  File "captured.py", line 262, in deco
    raise converted from None
pyspark.errors.exceptions.captured.AnalysisException: [PYTHON_DATA_SOURCE_ERROR] Failed to initialize Python data source \
writer: {traceback}
 SQLSTATE: 38000
 SQLSTATE: 39000 SQLSTATE: XXKST
=== Streaming Query ===
"""

OF_A_READER = """[STREAM_FAILED] Query [id = 1, runId = 2] terminated with exception: [PYTHON_DATA_SOURCE_ERROR] Failed to plan \
Python data source initialize source: {traceback}

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "pyspark.zip/pyspark/sql/streaming/python_streaming_source_runner.py", line 295, in main
    reader.stop()
    ^^^^^^
UnboundLocalError: cannot access local variable 'reader' where it is not associated with a value
 SQLSTATE: 38000 SQLSTATE: XXKST
=== Streaming Query ===
"""

FORMS = pytest.mark.parametrize(
    "form",
    [CLASSIC, OF_FOREACH_BATCH, OF_A_WRITER, OF_A_READER],
    ids=["a task", "foreachBatch", "a writer", "a reader that was not made"],
)


class SparkError(Exception):
    """What Spark raises for a query that has failed."""


def as_spark_shows(error: UpsertKafkaError, form: str) -> SparkError:
    """The exception of a query that this error has ended."""
    try:
        raise error
    except UpsertKafkaError:
        return SparkError(form.format(traceback=traceback.format_exc().rstrip()))


def delivery(reason: str) -> DeliveryError:
    """A message that was not delivered."""
    return DeliveryError("t", 0, b"k", reason)


AWAY = "Could not look up offsets: no Kafka broker at 'host:9092'"
RESTARTED: dict[str, UpsertKafkaError] = {
    "no answer": RetriableBrokerError(f"{AWAY} answered within 60 seconds (timed out)."),
    "columns that came": SchemaChangedError(
        "t", 3, 42, "Schema id 7", "t-value", "tier INT", "id BIGINT", "id BIGINT, tier INT"
    ),
    "no confirmation": RetriableDeliveryError("t", 0, b"k", "no broker confirmed it in time"),
}
NOT_RESTARTED: dict[str, UpsertKafkaError] = {
    "data": DataLossError("t", 0, 3, 6, "it was deleted"),
    "message": DecodeError("t", 0, 3, "value", "nothing arrived for it: no broker confirmed it"),
    "row": EncodeError("id", "it is NULL"),
    "schema": SchemaError("The schema to write is not compatible with those under the subject 's'"),
    "checkpoint": CheckpointError("Batch 4 was written already"),
    "option": OptionError("Unknown option 'topik'"),
    "topic": UnknownTopicError("Could not look up offsets: unknown topic"),
    "rights": BrokerError("Could not look up offsets: the user has no ACL for the topic"),
    "login": BrokerError("Topic 't', partition 0, offset 2 cannot be read: bad password."),
    "text of an outage": BrokerError(f"{AWAY} answered within 60 seconds (timed out)."),
    "key that quotes": delivery("RetriableDeliveryError: no broker confirmed it"),
    "fenced": delivery("transactional id 'x': Local: Purged. It is fenced off"),
    "too large": delivery("the message is too large"),
}


@FORMS
@pytest.mark.parametrize("name", [*RESTARTED, *NOT_RESTARTED])
def test_class_text_and_whether_a_restart_can_help(name: str, form: str) -> None:
    """An outage passes by itself, and its class says so; everything else needs a change first."""
    error = {**RESTARTED, **NOT_RESTARTED}[name]
    public = type(error).__name__.removeprefix("Retriable")
    wanted = QueryEnd(public, str(error), name in RESTARTED)

    assert why_it_ended(as_spark_shows(error, form)) == wanted
    assert why_it_ended(error) == wanted


def test_the_last_of_several_errors_counts() -> None:
    """It was raised because of those before it."""
    error = DataLossError("t", 0, 3, 6, "it was deleted")
    error.__cause__ = RetriableBrokerError(f"{AWAY} answered within 60 seconds")
    shown = as_spark_shows(error, CLASSIC)

    assert "BrokerError" in str(shown)
    assert why_it_ended(shown).error == "DataLossError"
    assert not why_it_ended(shown).restart


QUOTED = f"pyspark_upsert_kafka.core.errors.RetriableBrokerError: {AWAY} answered"


def no_broker_answers() -> None:
    """What a user's function calls."""
    raise RetriableBrokerError(f"{AWAY} answered")


def quotes_in_its_text() -> None:
    """A user's function that shows a value."""
    raise ValueError(f"bad row: {QUOTED}")


def quotes_a_traceback() -> None:
    """A user's function that shows all of another error."""
    try:
        no_broker_answers()
    except BrokerError:
        text = traceback.format_exc()
    raise RuntimeError(f"gave up:\n{text}")


def has_a_mistake_of_its_own() -> None:
    """A user's function that fails in its handling of an outage."""
    try:
        no_broker_answers()
    except BrokerError:
        {}["no such key"]


def raises_because_of_it() -> None:
    """A user's function that turns an outage into an error of its own."""
    try:
        no_broker_answers()
    except BrokerError as error:
        raise RuntimeError(f"my sink: {error}") from error


@FORMS
@pytest.mark.parametrize(
    "fail",
    [quotes_in_its_text, quotes_a_traceback, has_a_mistake_of_its_own, raises_because_of_it],
)
def test_an_error_of_a_user_that_shows_one_of_ours(form: str, fail: Callable[[], None]) -> None:
    """What ended the query is the user's error: what is in its text, or was raised before it, is no reason to restart."""
    try:
        fail()
    except (ValueError, RuntimeError, KeyError):
        shown = SparkError(form.format(traceback=traceback.format_exc().rstrip()))
    end = why_it_ended(shown)

    assert "BrokerError" in str(shown)
    assert (end.error, end.restart) == (None, False)


def test_data_in_an_error_of_spark() -> None:
    """A value that cannot be cast is shown as it is, and so are literals of the query's plan."""
    cast = f"[CAST_INVALID_INPUT] The value '{QUOTED}' of the type \"STRING\" cannot be cast"

    assert why_it_ended(SparkError(cast)) == QueryEnd(None, cast, restart=False)
    assert not why_it_ended(SparkError(f"[STREAM_FAILED] ...\nLogical Plan:\n{QUOTED}\n")).restart


def test_errors_of_spark_around_ours_do_not_hide_it() -> None:
    """The process of a stream's reader raises one of PySpark because of ours."""
    try:
        try:
            no_broker_answers()
        except BrokerError as error:
            raise PySparkRuntimeError("[PYTHON_STREAMING_DATA_SOURCE_RUNTIME_ERROR]") from error
    except PySparkRuntimeError:
        shown = SparkError(CLASSIC.format(traceback=traceback.format_exc().rstrip()))

    assert why_it_ended(shown) == QueryEnd("BrokerError", f"{AWAY} answered", restart=True)


@pytest.mark.parametrize(
    "make",
    [lambda: ValueError("no Kafka broker at 'x' answered\nat all"), KeyboardInterrupt],
)
def test_an_error_of_others(make: Callable[[], BaseException]) -> None:
    """It has no class of this package, and is never a reason to start a query again."""
    error = make()

    assert why_it_ended(error) == QueryEnd(None, str(error).partition("\n")[0], restart=False)


def test_a_query_that_was_stopped_has_no_exception() -> None:
    """What is given in place of one is refused."""
    with pytest.raises(
        TypeError, match=r"and not None: query\.exception\(\) is None while a query"
    ):
        why_it_ended(None)  # type: ignore[arg-type]


DEAD = (
    "[STREAM_FAILED] Query [id = 1, runId = 2] terminated with exception: Job aborted due to stage failure: Task 0 in stage 0.0 "
    "failed 1 times, most recent failure: Lost task 0.0 in stage 0.0 (TID 0) (192.0.2.2 executor driver): "
    "org.apache.spark.SparkException: Python worker exited unexpectedly (crashed). Consider setting "
    "'spark.sql.execution.pyspark.udf.faulthandler.enabled'\n"
    "\tat org.apache.spark.api.python.BasePythonRunner$ReaderIterator$$anonfun$1.applyOrElse(PythonRunner.scala:1136)\n"
)


@pytest.mark.parametrize(
    ("said", "restart"),
    [
        ("", True),
        (" null", True),
        ("  SQLSTATE: XXKST", True),
        ("  SQLSTATE: XXKST (no cause message)", True),
        (" null SQLSTATE: XXKST", True),
        (" nullable SQLSTATE: XXKST", False),
        (" Connection refused SQLSTATE: XXKST", False),
    ],
)
@pytest.mark.parametrize("name", ["", "orders "])
def test_a_query_whose_planning_has_died_is_started_again(name: str, said: str, restart: bool):
    """Of the process that plans the batches comes nothing any more, and Spark says that without a text."""
    first = f"[STREAM_FAILED] Query {name}[id = 1-a, runId = 2-b] terminated with exception:{said}"
    error = SparkError(f"{first}\n=== Streaming Query ===\nIdentifier: {name}[id = 1-a]\n")

    assert why_it_ended(error) == QueryEnd(None, first, restart=restart)


def test_what_a_query_reports_itself_of_that():
    """Until Spark 4.1, ``query.exception()`` begins with the reason, where that of ``awaitTermination`` ends with it."""
    assert why_it_ended(SparkError("null\n=== Streaming Query ===\n")).restart
    assert not why_it_ended(SparkError("null\nand void")).restart


def test_a_query_whose_worker_has_died_is_started_again():
    """Nobody has said what was wrong, and its batch runs again; a text of a user's own error is no such end."""
    assert why_it_ended(SparkError(DEAD)) == QueryEnd(None, DEAD.partition("\n")[0], restart=True)

    quoted = CLASSIC.format(
        traceback=f'Traceback (most recent call last):\n  File "a.py"\nValueError: {DEAD}'
    )
    assert not why_it_ended(SparkError(quoted)).restart


QUERY = "[STREAM_FAILED] Query [id = 1, runId = 2] terminated with exception: "
LOST_TASK = (
    f"{QUERY}Job aborted due to stage failure: Task 1 in stage 3.0 failed 4 times, most recent failure: Lost task 1.3 in stage 3.0 "
    "(TID 9) (192.0.2.2 executor 1): "
)
SPARK = "org.apache.spark.SparkException: "
NOT_BACK = "Python worker failed to connect back."
CLOSED = "java.io.IOException: Stream closed"
WRITING = (
    "\tat java.base/java.lang.ProcessBuilder$NullOutputStream.write(ProcessBuilder.java:445)\n"
)
IN_FACTORY = "\tat org.apache.spark.api.python.PythonWorkerFactory.stopWorker(PythonWorkerFactory.scala:527)\n"
CALLED = "An error occurred while calling o36.start.\n: "


@pytest.mark.parametrize(
    ("said", "restart"),
    [
        (
            f"{LOST_TASK}{SPARK}{NOT_BACK}\n\tat x\nCaused by: java.net.SocketTimeoutException: x",
            True,
        ),
        (f"{QUERY}{NOT_BACK} SQLSTATE: XXKST\n=== Streaming Query ===\n", True),
        (f"{NOT_BACK}\n=== Streaming Query ===\n", True),
        (f"{CALLED}{SPARK}{NOT_BACK}\n\tat x", True),
        (f"(org.apache.spark.SparkException) {NOT_BACK}\n\nJVM stacktrace:\n{SPARK}", True),
        (
            f"{LOST_TASK}java.lang.IllegalStateException: Python daemon failed to launch worker with code -1",
            True,
        ),
        (
            f"{LOST_TASK}java.lang.IllegalStateException: Python failed to launch worker with code -1",
            True,
        ),
        (
            (
                f"{LOST_TASK}{SPARK}EOFException occurred while reading the port number from pyspark.daemon's stdout and terminated "
                "with code: 137."
            ),
            True,
        ),
        (
            f"{QUERY}EOFException occurred while reading the port number from pyspark.daemon's stdout. SQLSTATE: XXKST",
            True,
        ),
        (f"{LOST_TASK}{CLOSED}\n{WRITING}{IN_FACTORY}", True),
        (f"An error occurred while calling o142.load.\n: {CLOSED}\n{WRITING}{IN_FACTORY}", True),
        (f"{LOST_TASK}{CLOSED}\n{WRITING}\tat org.acme.Sink.write(Sink.java:1)\n", False),
        (f'{QUERY}Cannot run program "/nope": error=2, No such file SQLSTATE: XXKST', False),
        (f"{QUERY}[STREAMING_PYTHON_RUNNER_INITIALIZATION_TIMEOUT_FAILURE] Streaming Runner", True),
        (f"{QUERY}[STREAMING_PYTHON_RUNNER_INITIALIZATION_COMMUNICATION_FAILURE] Stre", True),
        (f"{QUERY}[STREAMING_PYTHON_RUNNER_INITIALIZATION_FAILURE] Streaming Runner", False),
        (
            (
                f"{LOST_TASK}{SPARK}\nError from python worker:\n  No module named pyspark\nPYTHONPATH was:\n  /x\n{SPARK}EOFException "
                "occurred while reading the port number from pyspark.daemon's stdout"
            ),
            False,
        ),
        (
            f'{LOST_TASK}java.io.IOException: Cannot run program "/nope": error=2, No such file',
            False,
        ),
        (
            f"[CAST_INVALID_INPUT] The value '{NOT_BACK}' of the type \"STRING\" cannot be cast",
            False,
        ),
    ],
)
def test_a_worker_that_did_not_start(said: str, restart: bool) -> None:
    """A machine that was too busy has time later; a Python that is not there, or says what it lacks, needs a change first."""
    assert why_it_ended(SparkError(said)) == QueryEnd(None, said.partition("\n")[0], restart)
