"""The demo, from its first word to the picture."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from pyspark_upsert_kafka.demo.web_site import REGIONS
from tests.conftest import Broker

PROGRAM = (sys.executable, "-m", "pyspark_upsert_kafka", "demo")


@pytest.mark.timeout(900)
@pytest.mark.parametrize("where", ["a broker of its own", "the cluster that runs"])
def test_demo_runs_and_checks_itself(where: str, broker: Broker, tmp_path: Path) -> None:
    """It counts, copies, compares both tables with a recomputation, and draws; nothing is in the way."""
    environment = {
        name: value for name, value in os.environ.items() if name != "KAFKA_BOOTSTRAP_SERVERS"
    }
    if where == "the cluster that runs":
        environment["KAFKA_BOOTSTRAP_SERVERS"] = broker.servers
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
    assert re.search(r"pageviews_per_region\S*: 6 rows, all equal", run.stdout)
    assert re.search(r"users_copy\S*: [1-9]\d* rows, all equal", run.stdout)
    assert "→ null   a tombstone" in run.stdout
    assert len(lines_of(tmp_path / "demo" / "page_views_per_region.svg")) == len(REGIONS)


def lines_of(picture: Path) -> list[ET.Element]:
    """The lines of a chart."""
    return ET.parse(picture).getroot().findall("{http://www.w3.org/2000/svg}polyline")
