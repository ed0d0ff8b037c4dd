"""What makes the processes of tests start faster. ``PLAIN_TESTS=1`` leaves it all out; the tests are the same.

The tests start hundreds of JVMs and Python processes for a few small jobs each, so most of their CPU time would be starts:

- a home for Spark without ``pyspark.zip``, which each Python process would compile anew (`tools.spark_home`);
- class archives for the JVMs of Spark and of brokers (`tools.class_archives`), which `make test-long` makes once;
- ``spark_workers/sitecustomize.py``: the processes from which Spark forks Python workers import first what those need.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from tools import class_archives
from tools.spark_home import spark_home

_WORKERS = Path(__file__).with_name("spark_workers")


def settings(environment: Mapping[str, str]) -> dict[str, str]:
    """The environment variables that are set for tests; none with ``PLAIN_TESTS``.

    Args:
        environment: Variables as they are; what a user has set for Spark and brokers stays.
    """
    if environment.get("PLAIN_TESTS"):
        return {}
    python_path = os.pathsep.join(filter(None, [str(_WORKERS), environment.get("PYTHONPATH")]))
    return {
        "SPARK_HOME": environment.get("SPARK_HOME") or str(spark_home()),
        "SPARK_SUBMIT_OPTS": environment.get("SPARK_SUBMIT_OPTS")
        or class_archives.flags(class_archives.SPARK),
        "LOCAL_KAFKA_OPTS": environment.get("LOCAL_KAFKA_OPTS")
        or class_archives.flags(class_archives.BROKER),
        "PYTHONPATH": python_path,
    }
