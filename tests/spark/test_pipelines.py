"""Spark Declarative Pipelines: the definitions on docs/pipelines.md run, and where they end is as the page says."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.conftest import Broker, options
from tests.spark.conftest import rows

pipelines = pytest.importorskip("pyspark.pipelines", reason="pipelines need PySpark 4.1")

pytestmark = [
    pytest.mark.classic("runs pipelines as a client of the driver that it has"),
    pytest.mark.long("runs pipelines in programs of their own"),
]

PAGE = Path(__file__).parents[2] / "docs" / "pipelines.md"
SCHEMA = "user_id BIGINT, region STRING, _change_type STRING"

Run = Callable[[str], "subprocess.CompletedProcess[str]"]


def definition(name: str) -> str:
    """The definitions that the page has for the file of this name."""
    _, _, after = PAGE.read_text(encoding="utf-8").partition(f"`definitions/{name}.py`")
    found = re.search(r"^```py\n(.*?)^```$", after, re.DOTALL | re.MULTILINE)
    assert found is not None
    return found[1]


def pipeline(
    folder: Path, connect_server: str, name: str, servers: str, topics: dict[str, str]
) -> Run:
    """Makes the page's pipeline with one of its definitions; what is given runs it, as ``spark-pipelines`` does.

    Args:
        folder: Where it is made.
        connect_server: The Spark Connect server.
        name: The definitions.
        servers: The brokers.
        topics: What stands for a topic of the page here.
    """
    spec = re.search(
        r"^```yaml\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE
    )
    assert spec is not None
    (folder / "definitions").mkdir()
    (folder / "spark-pipeline.yml").write_text(
        spec[1].replace("/tmp/checkpoints", str(folder / "storage"))
    )
    code = definition(name)
    for topic, here in topics.items():
        code = code.replace(f'"topic": "{topic}"', f'"topic": "{here}"')
    code = code.replace("localhost:9092", servers)
    (folder / "definitions" / f"{name}.py").write_text(code)
    environment = {**os.environ, "SPARK_REMOTE": connect_server}
    program = [sys.executable, "-m", "pyspark.pipelines.cli"]
    return lambda command: subprocess.run(
        [*program, command],
        cwd=folder,
        env=environment,
        check=False,
        capture_output=True,
        text=True,
        timeout=900,
    )


def change(spark: SparkSession, given: dict[str, str], *changes: tuple[object, ...]) -> None:
    """Writes changes of users, in this order."""
    frame = spark.createDataFrame(changes, SCHEMA).coalesce(1)
    frame.write.format("upsert-kafka").mode("append").options(**given).save()


def test_a_flow_into_a_sink(
    spark: SparkSession, broker: Broker, connect_server: str, tmp_path: Path
) -> None:
    """Changes go on to another topic, deletes included; the next run goes on where the last one ended."""
    users, copied = broker.topic(2), broker.topic(2)
    given = options(broker, users, primary_key="user_id")
    topics = {"users": users, "users_copy": copied}
    run = pipeline(tmp_path, connect_server, "users_copy", broker.servers, topics)
    change(spark, given, (1, "Asia", "upsert"), (2, "Asia", "upsert"), (2, None, "delete"))
    first = run("run")
    change(spark, given, (1, "Europe", "upsert"), (3, "Africa", "upsert"))
    second = run("run")

    assert (first.returncode, second.returncode) == (0, 0), first.stderr + second.stderr
    assert broker.pairs(copied) == broker.pairs(users)
    table = spark.read.format("upsert-kafka").schema("user_id BIGINT, region STRING")
    copy = table.options(**{**given, "topic": copied}).load()
    assert rows(copy) == [(1, "Europe"), (3, "Africa")]


@pytest.mark.skipif(not hasattr(pipelines, "create_auto_cdc_flow"), reason="needs PySpark 4.2")
def test_auto_cdc_ends_at_the_table(
    spark: SparkSession, broker: Broker, connect_server: str, tmp_path: Path
) -> None:
    """A read of changes is what the flow wants; a table of Spark's own formats, which have no MERGE, is refused."""
    topics = {"users": broker.topic(2)}
    run = pipeline(tmp_path, connect_server, "users_now", broker.servers, topics)
    checked = run("dry-run")
    refused = run("run")
    spark.sql("DROP TABLE IF EXISTS users_now")

    assert checked.returncode == 0, checked.stderr
    assert refused.returncode != 0
    assert "[AUTOCDC_TARGET_DOES_NOT_SUPPORT_MERGE]" in refused.stderr
