"""`make bench`: compares this source and sink with Spark's own, on the same machine, in turn, in one run.

The JVM side needs Spark's Kafka connector. Its newest jars on Maven Central are those for 4.2.0, so both sides run on PySpark
4.2.0, in a separate venv. This file only makes that venv and starts `compare.py` in it.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
PROJECT = HERE.parent
VENV = PROJECT / ".venv-bench"
PYSPARK = "4.2.0"


def main() -> int:
    """Makes the venv when it is not there yet, and runs the comparison in it."""
    python = VENV / "bin" / "python"
    ready = VENV / f".ready-{PYSPARK}"
    needs = PROJECT / "pyproject.toml"
    if not ready.exists() or ready.stat().st_mtime < needs.stat().st_mtime:
        print(f"Making {VENV.name} with PySpark {PYSPARK} ...", flush=True)
        subprocess.run([sys.executable, "-m", "venv", VENV], check=True)
        subprocess.run(
            [python, "-m", "pip", "install", "--quiet", "--editable",
             f"{PROJECT}[protobuf,changelog]", f"pyspark=={PYSPARK}", "psutil>=6.0"],
            check=True,
        )  # fmt: skip
        ready.touch()
    # Spark's workers import the bare Arrow source of stages.py; the schema registry is that of the tests.
    path = os.pathsep.join([str(HERE), str(PROJECT)])
    environment = {
        "LOCAL_KAFKA_OPTS": "-XX:TieredStopAtLevel=4",  # a broker that runs fast, not one that starts fast
        **os.environ,
        "PYSPARK_PYTHON": str(python),
        "PYTHONPATH": path,
    }
    command = [python, HERE / "compare.py", *sys.argv[1:]]
    return subprocess.run(command, env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
