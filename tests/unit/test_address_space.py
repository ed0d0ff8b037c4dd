"""What docs/cluster.md says of ``spark.executor.pyspark.memory``, which limits the addresses that a worker reserves."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "cluster-settings.md"
WORKER = """
import resource
resource.setrlimit(resource.RLIMIT_AS, (2**30, 2**30))
import pyspark.worker, pandas, polars, pyarrow.compute
import pyspark_upsert_kafka.connector.reading.task_reading, pyspark_upsert_kafka.kafka.librdkafka.reader
import pyspark_upsert_kafka.formats.json.column_paths
polars.DataFrame({"a": [1, 2]}).lazy().select(polars.col("a") * 2).collect()
held = pyarrow.array(range(1_000_000))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="limits of addresses are Linux's")
def test_a_worker_that_may_reserve_a_gigabyte_starts_with_the_settings_of_the_page() -> None:
    """With them it can import what it needs, and hold something."""
    settings = re.findall(
        r"^spark\.executorEnv\.(\w+)=(\w+)$", PAGE.read_text(encoding="utf-8"), re.MULTILINE
    )
    done = subprocess.run(
        [sys.executable, "-c", WORKER],
        env={**os.environ, **dict(settings)},
        check=False,
        capture_output=True,
        text=True,
    )

    assert len(settings) == 3
    assert done.returncode == 0, done.stderr
