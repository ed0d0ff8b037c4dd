"""What a proof ran on: versions, and the machine."""

from __future__ import annotations

import os
import platform
import subprocess
from importlib.metadata import version
from pathlib import Path

import psutil

import pyspark_upsert_kafka
from pyspark_upsert_kafka.kafka.local.jars import broker_jars

_PACKAGES = ("pyspark", "pyarrow", "polars", "confluent-kafka", "pytest")


PACKAGE = "`git rev-parse HEAD:pyspark_upsert_kafka`"
"""By this what was tried is known, whatever commit it is in."""


def about() -> dict[str, str]:
    """By the name of what it is."""
    clients = next(broker_jars().glob("kafka-clients-*.jar"))
    return {
        "pyspark_upsert_kafka": f"{pyspark_upsert_kafka.__version__}, commit {_commit()}",
        PACKAGE: _tree(),
        "Python": platform.python_version(),
        **{package: version(package) for package in _PACKAGES},
        "Kafka (broker, and Java client that reads the histories)": clients.stem.rpartition("-")[2],
        "Java": _java(),
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores, "
        f"{psutil.virtual_memory().total / 2**30:.0f} GB",
        "load average when it began": f"{os.getloadavg()[0]:.0f}",
    }


def _commit() -> str:
    """The commit of the checkout, and whether files differ from it."""
    given = ["git", "describe", "--always", "--dirty= with local changes", "--exclude=*"]
    return _said(given) or "unknown"


def _tree() -> str:
    """What git calls the content of the package, whatever commit it is in."""
    changed = _said(["git", "status", "--porcelain", "pyspark_upsert_kafka"])
    tree = _said(["git", "rev-parse", "HEAD:pyspark_upsert_kafka"])
    return f"{tree} with local changes" if changed else tree or "unknown"


def _java() -> str:
    return _said(["java", "--version"]).partition("\n")[0] or "unknown"


def _said(command: list[str]) -> str:
    root = Path(__file__).parents[2]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    return done.stdout.strip()
