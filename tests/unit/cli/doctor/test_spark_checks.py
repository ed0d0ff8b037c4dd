"""What is said of Spark, from facts alone."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace

import pytest

from pyspark_upsert_kafka.cli import main
from pyspark_upsert_kafka.cli.doctor.asked_spark import LookedUp, VersionFacts, WorkerFacts
from pyspark_upsert_kafka.cli.doctor.findings import Finding, Level, NotSeen
from pyspark_upsert_kafka.cli.doctor.spark_checks import (
    FILTER_PUSHDOWN,
    SPECULATION,
    STATE_STORE,
    UNIX_SOCKETS,
    WORKER_REUSE,
    check_java,
    check_no_worker,
    check_settings,
    check_source,
    check_start,
    check_versions,
    check_workers,
)
from pyspark_upsert_kafka.cli.doctor.worker_facts import worker_facts

CLASSIC = VersionFacts("4.3.0", "4.3.0", "3.11.7", "/env/bin/python", "0.2.0", False, "local[2]")
CONNECT = replace(CLASSIC, connect=True, master="")
WORKER = WorkerFacts(
    host="node-1",
    executable="/env/bin/python",
    python="3.11.7",
    pyspark="4.3.0",
    package="0.2.0",
    import_errors={},
    requirements=[["pyarrow", "20.0", "26.0.1"], ["orjson", "3.10", "3.11.1"]],
    unix_sockets=True,
    address_limit=None,
    arrow_pool="",
)
SETTINGS: Mapping[str, str | NotSeen] = {
    UNIX_SOCKETS: "true",
    SPECULATION: "false",
    WORKER_REUSE: "true",
    FILTER_PUSHDOWN: "false",
    STATE_STORE: "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider",
}
GIB = 2**30


def is_found(finding: Finding, level: Level, *said: str) -> bool:
    """Whether a finding has a level, and all these words."""
    return finding.level is level and all(
        each in f"{finding.text} {finding.advice}" for each in said
    )


@pytest.mark.parametrize(
    ("remote", "said"),
    [(None, "JAVA_HOME"), ("sc://host:15002", "--remote sc://HOST:15002")],
)
def test_spark_does_not_start(remote: str | None, said: str) -> None:
    """What to do depends on where it was to start."""
    assert is_found(check_start("why.", remote), Level.ERROR, "not start: why", said)


@pytest.mark.parametrize(
    ("spark", "program", "connect", "level", "said"),
    [
        ("4.3.0", "4.3.0", False, Level.OK, "Spark 4.3.0"),
        ("4.1.2", "4.1.0", False, Level.OK, "need Spark 4.2"),
        ("4.0.2", "4.0.2", True, Level.OK, "need Spark 4.2"),
        ("3.5.7", "3.5.7", False, Level.ERROR, "older than 4.0"),
        ("4.2.0", "4.3.0", False, Level.WARNING, "pip install pyspark==4.2.*"),
        ("4.3.0", "4.2.0", False, Level.WARNING, "pip install pyspark==4.3.*"),
        ("4.2.0", "4.3.0", True, Level.WARNING, "pip install pyspark==4.2.*"),
        ("4.3.0", "4.2.0", True, Level.OK, "Spark 4.3.0"),
        ("4.3.0.dev1", "4.3.0", False, Level.OK, "4.3.0.dev1"),
    ],
)
def test_versions(spark: str, program: str, connect: bool, level: Level, said: str) -> None:
    """A server of Spark Connect may be newer than its client, and not older; a classic Spark is the program's own."""
    facts = replace(CLASSIC, spark=spark, pyspark=program, connect=connect)
    session, versions = check_versions(facts)

    assert session.level is Level.OK
    assert ("Spark Connect" in session.text) is connect
    assert is_found(versions, level, said)


@pytest.mark.parametrize(
    ("version", "level"),
    [
        ("17.0.15", Level.OK),
        ("21", Level.OK),
        ("25.0.1", Level.OK),
        ("11.0.2", Level.ERROR),
        ("1.8.0_402", Level.ERROR),
        (NotSeen("refused"), Level.NOT_CHECKED),
    ],
)
def test_java(version: str | NotSeen, level: Level) -> None:
    """Spark 4 needs Java 17; a service may not show which one it runs."""
    assert check_java(version).level is level


OURS = "pyspark_upsert_kafka.core.errors.{}: The option 'topic' is missing"
NOT_FOUND = "[DATA_SOURCE_NOT_FOUND] Failed to find the data source: upsert-kafka. SQLSTATE: 42K02"


@pytest.mark.parametrize(
    ("seen", "facts", "level", "said"),
    [
        (LookedUp(OURS.format("OptionError")), CLASSIC, Level.OK, "finds the format"),
        (LookedUp(OURS.format("SchemaError")), CONNECT, Level.OK, "finds the format"),
        (LookedUp(NOT_FOUND), CLASSIC, Level.ERROR, "/env/bin/python has it"),
        (LookedUp(NOT_FOUND), CONNECT, Level.ERROR, "Python of the server"),
        (LookedUp(NOT_FOUND, ("pyspark_bad",)), CLASSIC, Level.ERROR, "remove pyspark_bad;"),
        (
            LookedUp(
                "[PYTHON_DATA_SOURCE_ERROR] x\nModuleNotFoundError: No module named 'polars'\n"
            ),
            CLASSIC,
            Level.ERROR,
            "ModuleNotFoundError: No module named 'polars'",
        ),
        (LookedUp("[CANNOT] do it SQLSTATE: 1"), CONNECT, Level.ERROR, "says: [CANNOT] do it."),
    ],
)
def test_the_format(seen: LookedUp, facts: VersionFacts, level: Level, said: str) -> None:
    """The source itself answers where Spark finds it; if it does not, the advice is for the place that lacks it."""
    finding = check_source(seen, facts)

    assert is_found(Finding("", finding.level, f"{finding.text}. {finding.advice}"), level, said)


MISMATCH = (
    "[PYTHON_VERSION_MISMATCH] Python in worker has different version: 3.10 than that in driver: 3.11, PySpark cannot run "
    "with different minor versions."
)
NO_PROGRAM = (
    "An error occurred while calling o1.collectToPython.\n: org.apache.spark.SparkException: Job aborted due to stage failure\n"
    'Driver stacktrace:\n\tat x\nCaused by: java.io.IOException: Cannot run program "/nope": error=2, No such file or directory\n'
    "\tat y\nCaused by: java.io.IOException: error=2, No such file or directory\n"
)
DEAD = (
    "Job aborted due to stage failure\n"
    "Caused by: org.apache.spark.SparkException: Python worker exited unexpectedly (crashed)\n"
)


@pytest.mark.parametrize(
    ("said", "facts", "level", "found"),
    [
        (MISMATCH, CLASSIC, Level.ERROR, ["Python 3.10, and this program Python 3.11"]),
        (MISMATCH, CONNECT, Level.WARNING, ["reading and writing work", "upsert_sink"]),
        (NO_PROGRAM, CLASSIC, Level.ERROR, ['Cannot run program "/nope"', "Set PYSPARK_PYTHON"]),
        (DEAD, CLASSIC, Level.ERROR, ["exited unexpectedly", "spark.executor.pyspark.memory"]),
        (
            "Traceback (most recent call last):\n  x\nModuleNotFoundError: No module named 'x'\n",
            CONNECT,
            Level.ERROR,
            ["ModuleNotFoundError: No module named 'x'"],
        ),
    ],
)
def test_no_worker(said: str, facts: VersionFacts, level: Level, found: list[str]) -> None:
    """Another Python is only a warning over Spark Connect, whose client sends no code for a read or a write."""
    assert is_found(check_no_worker(said, facts), level, *found)


def workers(**more: object) -> dict[str, Finding]:
    """The findings of a worker that is well but for what is given."""
    changed = replace(WORKER, host="node-2", **more)  # type: ignore[arg-type]
    return {each.check: each for each in check_workers([WORKER, changed], CLASSIC)}


@pytest.mark.parametrize(
    ("more", "check", "level", "said"),
    [
        ({}, "workers", Level.OK, "on 2 machines"),
        ({}, "worker-packages", Level.OK, "0.2.0, PyArrow 26.0.1"),
        ({}, "worker-memory", Level.OK, "Nothing limits"),
        (
            {"import_errors": {"polars": "ImportError: no file"}},
            "workers",
            Level.ERROR,
            "on node-2 cannot import polars: ImportError: no file",
        ),
        (
            {"requirements": [["pyarrow", "20.0", "19.0.1"]]},
            "worker-packages",
            Level.ERROR,
            "has pyarrow 19.0.1, and this package needs 20.0 or newer",
        ),
        ({"package": "0.1.0"}, "worker-packages", Level.WARNING, "0.1.0, and this program 0.2.0"),
        ({"pyspark": "4.2.0"}, "worker-packages", Level.WARNING, "runs PySpark 4.2.0"),
        ({"address_limit": 4 * GIB}, "worker-memory", Level.OK, "4,295 MB"),
        ({"address_limit": 1 * GIB}, "worker-memory", Level.WARNING, "ARROW_DEFAULT_MEMORY_POOL"),
        ({"address_limit": 1 * GIB, "arrow_pool": "system"}, "worker-memory", Level.OK, "1,074 MB"),
    ],
)
def test_workers(more: dict[str, object], check: str, level: Level, said: str) -> None:
    """One worker that lacks something is enough: tasks run on all of them."""
    assert is_found(workers(**more)[check], level, said)


@pytest.mark.parametrize(
    ("name", "value", "check", "level"),
    [
        (SPECULATION, "false", "speculation", Level.OK),
        (SPECULATION, "true", "speculation", Level.WARNING),
        (SPECULATION, NotSeen("why"), "speculation", Level.NOT_CHECKED),
        (WORKER_REUSE, "true", "worker-reuse", Level.OK),
        (WORKER_REUSE, "false", "worker-reuse", Level.WARNING),
        (FILTER_PUSHDOWN, "false", "filter-pushdown", Level.OK),
        (STATE_STORE, "x.RocksDBStateStoreProvider", "state-store", Level.OK),
    ],
)
def test_settings(name: str, value: str | NotSeen, check: str, level: Level) -> None:
    """What slows a job down or writes twice is a warning; what only some jobs need is not."""
    found = {
        each.check: each for each in check_settings({**SETTINGS, name: value}, [WORKER], CLASSIC)
    }

    assert found[check].level is level


@pytest.mark.parametrize(
    ("seen", "setting", "spark", "said"),
    [
        ([WORKER], "true", "4.3.0", "by Unix sockets"),
        ([WORKER], NotSeen("why"), "4.3.0", "by Unix sockets"),
        ([WORKER, replace(WORKER, unix_sockets=False)], "true", "4.1.0", "by TCP"),
        ("no worker", "true", "4.3.0", "by Unix sockets"),
        ("no worker", "false", "4.3.0", "by TCP"),
        ("no worker", NotSeen("why"), "4.3.0", "why"),
        ([replace(WORKER, unix_sockets=False)], "false", "4.0.2", "since 4.1"),
    ],
)
def test_unix_sockets(
    seen: list[WorkerFacts] | str, setting: str | NotSeen, spark: str, said: str
) -> None:
    """Workers know how they are connected; where none could be asked, the setting says it. Spark's default hurts nobody."""
    facts = replace(CLASSIC, spark=spark)
    first = next(iter(check_settings({**SETTINGS, UNIX_SOCKETS: setting}, seen, facts)))

    assert (first.check, said in first.text) == ("unix-sockets", True)
    assert first.level is (Level.NOT_CHECKED if said == "why" else Level.OK)


def test_what_a_worker_says_is_what_is_read() -> None:
    """This process has all that a worker needs."""
    facts = WorkerFacts(**json.loads(worker_facts()))

    assert facts.import_errors == {}
    assert "pyarrow" in [each[0] for each in facts.requirements]
    found = check_workers([facts], replace(CLASSIC, package=facts.package))
    assert [each.level for each in found] == [Level.OK] * 3


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--spark", "--topic", "users"], "--topic was given, but --spark looks at Spark"),
        (["--spark", "--sample", "5"], "--sample was given, but --spark looks at Spark"),
        (["--remote", "sc://host"], "--remote was given, but it needs --spark"),
        (["--topic", "users", "--conf", "a=b"], "--conf was given, but it needs --spark"),
    ],
)
def test_arguments_that_mean_something_else(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """An argument that nothing would look at is refused."""
    assert main(["doctor", *arguments]) == 2
    assert said in capsys.readouterr().out
