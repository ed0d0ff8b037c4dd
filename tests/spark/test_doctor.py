"""``doctor`` and Spark: a checkpoint that it has written, and whether it can load the data source."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

from pyspark_upsert_kafka.cli import main
from tests.conftest import Broker
from tests.kafka.conftest import delete_before
from tests.spark.conftest import CONNECT, run_to_end
from tests.spark.streams import Batches, message, named, read


@pytest.mark.long("three queries; tests/kafka/test_doctor.py holds the rest")
def test_a_checkpoint_of_spark(
    spark: SparkSession, broker: Broker, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What doctor says of it is what the query does: it goes on, also with a second source, and cannot after data was lost."""
    topic = broker.topic(retention_ms="-1")
    other = broker.topic()
    broker.produce(topic, *(message(n) for n in range(3)))
    broker.produce(other, message(7))
    frame = named(read(spark, broker, other), "other").unionAll(
        named(read(spark, broker, topic), "topic")
    )
    sink = Batches(tmp_path)
    run_to_end(sink.start(frame))
    broker.produce(topic, message(3), message(4))

    def checkpoint() -> dict[str, str]:
        capsys.readouterr()
        where = ["--topic", topic, "--bootstrap-servers", broker.servers, "--output", "json"]
        table = ["--schema", "id BIGINT, name STRING", "--primary-key", "id"]
        main(["doctor", *where, *table, "--checkpoint", str(tmp_path)])
        found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
        return next(each for each in found if each["check"] == "checkpoint")

    found = checkpoint()
    assert found["level"] == "ok"
    assert "with about 2 offsets to read" in found["text"]
    delete_before(broker, topic, 4)
    found = checkpoint()
    assert found["level"] == "error"
    assert "at offset 3, and the first that is left is 4" in found["text"]
    with pytest.raises(StreamingQueryException, match="Some data may have been lost"):
        run_to_end(sink.start(frame))


@pytest.mark.connect
def test_spark_is_asked(spark: SparkSession, capsys: pytest.CaptureFixture[str]) -> None:
    """The Spark that the program has already is asked, and goes on; all is well in it as it is, with Spark's defaults."""
    code = main(["doctor", "--spark", "--output", "json"])
    found = {each["check"]: each for each in map(json.loads, capsys.readouterr().out.splitlines())}

    kind = "a classic Spark at local[2]" if CONNECT is None else "Spark Connect, "
    assert found["session"]["text"].startswith(kind)
    levels = {check: each["level"] for check, each in found.items()}
    assert (levels, code) == (dict.fromkeys(levels, "ok"), 0)
    assert {"java", "data-source", "workers", "worker-packages", "state-store"} <= levels.keys()
    assert spark.range(3).count() == 3


@pytest.mark.classic("starts Spark itself")
@pytest.mark.long("starts programs with a JVM")
@pytest.mark.parametrize(
    ("environment", "arguments", "check", "said"),
    [
        (
            {"PYSPARK_PYTHON": "$empty"},
            [],
            "data-source",
            "Set PYSPARK_PYTHON to a Python that has this",
        ),
        ({"JAVA_HOME": "/nope"}, [], "session", "which JAVA_HOME names"),
        ({}, ["--remote", "sc://localhost:1"], "session", "Start a server of Spark Connect there"),
        ({"SPARK_REMOTE": "sc://localhost:1"}, ["--master", "local[1]"], None, ""),
    ],
    ids=["another Python", "no Java", "no server", "a master wins over SPARK_REMOTE"],
)
def test_a_spark_whose_python_lacks_the_package(
    tmp_path: Path,
    environment: dict[str, str],
    arguments: list[str],
    check: str | None,
    said: str,
) -> None:
    """What is wrong is an error with what to do, and nothing of Spark's log is printed beside it."""
    empty = tmp_path / "env"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", empty], check=True)
    given = {
        name: value.replace("$empty", str(empty / "bin" / "python3"))
        for name, value in environment.items()
    }
    where = arguments or ["--master", "local[1]"]
    ran = subprocess.run(
        [
            sys.executable,
            "-m",
            "pyspark_upsert_kafka",
            "doctor",
            "--spark",
            "--output",
            "json",
            *where,
        ],
        cwd=tmp_path,
        env={**os.environ, **given},
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    found = [json.loads(line) for line in ran.stdout.splitlines()]
    errors = [each for each in found if each["level"] == "error"]

    assert ran.stderr == ""
    if check is None:
        assert errors == []
    else:
        assert ran.returncode == 2
        assert (errors[0]["check"], said in errors[0]["advice"]) == (check, True)
