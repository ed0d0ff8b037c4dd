"""The demo, from its first word to the picture."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from pyspark.sql import SparkSession

from pyspark_upsert_kafka.cli.demo.runner import demo_topics
from pyspark_upsert_kafka.cli.demo.sample_data import REGIONS
from pyspark_upsert_kafka.cli.demo.scenario import run_scenario
from tests.conftest import Broker

PROGRAM = (sys.executable, "-m", "pyspark_upsert_kafka", "demo")


@pytest.mark.timeout(900)
def test_demo_runs_and_checks_itself(tmp_path: Path) -> None:
    """It counts, copies, compares both tables with a recomputation, and draws; nothing is in the way."""
    environment = {
        name: value for name, value in os.environ.items() if name != "KAFKA_BOOTSTRAP_SERVERS"
    }
    run = subprocess.run(
        [*PROGRAM, "--messages", "6000", "--folder", str(tmp_path / "demo")],
        capture_output=True,
        text=True,
        check=False,
        env=environment,
        timeout=800,
    )

    assert run.returncode == 0, run.stderr
    assert run.stderr == ""
    check(run.stdout, tmp_path / "demo" / "page_views_per_region.svg")


def test_demo_on_the_cluster_that_runs(
    spark: SparkSession,
    broker: Broker,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The same with topics of its own on that cluster, which remain."""
    monkeypatch.setenv("KAFKA_BOOTSTRAP_SERVERS", broker.servers)
    with demo_topics() as topics:
        run_scenario(spark, topics, 6000, tmp_path / "picture.svg")
    printed = capsys.readouterr().out

    assert f"Using the Kafka at {broker.servers}" in printed
    check(printed, tmp_path / "picture.svg")
    assert broker.messages(topics.named("users_copy"))


def check(printed: str, picture: Path) -> None:
    """The demo says that all is equal, and shows it."""
    assert re.search(r"pageviews_per_region\S*: 6 rows, all equal", printed)
    assert re.search(r"users_copy\S*: [1-9]\d* rows, all equal", printed)
    assert "→ null   a tombstone" in printed
    assert len(lines_of(picture)) == len(REGIONS)


def lines_of(picture: Path) -> list[ET.Element]:
    """The lines of a chart."""
    return ET.parse(picture).getroot().findall("{http://www.w3.org/2000/svg}polyline")
