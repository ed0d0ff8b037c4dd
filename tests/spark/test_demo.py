"""The demo, from its first word to the picture."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from confluent_kafka.admin import ConfigResource, ResourceType

from pyspark_upsert_kafka.cli.demo_example import REGIONS, demo_topics
from tests.conftest import Broker, broker_at

pytestmark = [
    pytest.mark.classic("starts a program of its own"),
    pytest.mark.long("starts programs with a JVM, and a broker"),
]


@pytest.mark.timeout(900)
def test_demo_runs_and_checks_itself(broker: Broker, tmp_path: Path) -> None:
    """It counts, copies, compares both tables with a recomputation, and draws; nothing is in the way.

    On a cluster that runs, its topics are its own, and remain. A server of Spark Connect that the environment names is
    not asked, and a Spark that is not there not started. The path of its Python has a space.
    """
    environment = tmp_path / "an environment"
    environment.symlink_to(sys.prefix)
    program = (str(environment / "bin" / "python"), "-m", "pyspark_upsert_kafka", "demo")
    run = subprocess.run(
        [*program, "--messages", "6000", "--folder", str(tmp_path / "demo")],
        capture_output=True,
        text=True,
        check=False,
        env={
            **os.environ,
            "KAFKA_BOOTSTRAP_SERVERS": broker.servers,
            "SPARK_REMOTE": "sc://nowhere",
            "SPARK_HOME": "/nowhere",
        },
        timeout=800,
    )

    assert run.returncode == 0, run.stderr
    assert run.stderr == ""
    assert f"Using the Kafka at {broker.servers}" in run.stdout
    copy = re.search(r"(users_copy-\w+): [1-9]\d* rows, all equal", run.stdout)
    assert copy is not None
    assert broker.messages(copy[1])
    assert re.search(r"pageviews_per_region-\w+: 6 rows, all equal", run.stdout)
    assert "→ null   a tombstone" in run.stdout
    for query, topic in (("counts", "page_views"), ("copy", "users")):
        line = rf"^{query}, batch 0 \([\d.]+ s\): {topic}-\w+ [\d,]+ rows, [\d,]+/s, lag 0, bad 0; wrote [\d,]+ rows, "
        assert re.search(line, run.stdout, re.MULTILINE), run.stdout
    picture = tmp_path / "demo" / "page_views_per_region.svg"
    assert len(lines_of(picture)) == len(REGIONS)


def test_without_a_cluster_the_demo_starts_one(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its topics are compacted, and have a partition for each core."""
    monkeypatch.delenv("KAFKA_BOOTSTRAP_SERVERS", raising=False)
    with demo_topics() as topics:
        kafka = broker_at(topics.servers)
        kafka.produce(topics["users"], ("k", "v"))
        assert topics["users"] == "users"
        assert len(kafka.admin.list_topics("users", timeout=60).topics["users"].partitions) == 2
        resource = ConfigResource(ResourceType.TOPIC, "users")
        settings = kafka.admin.describe_configs([resource])[resource].result()
    assert settings["cleanup.policy"].value == "compact"
    assert "Starting Apache Kafka" in capsys.readouterr().out


def lines_of(picture: Path) -> list[ET.Element]:
    """The lines of a chart."""
    return ET.parse(picture).getroot().findall("{http://www.w3.org/2000/svg}polyline")
