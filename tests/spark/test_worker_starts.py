"""Python workers that do not start: what Spark says of them, as `why_it_ended` reads it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [
    pytest.mark.classic("starts a program of its own"),
    pytest.mark.long("starts a program with a JVM, whose workers have ten seconds each"),
]

PROGRAM = '''
import json, os, sys
from pathlib import Path

folder = Path(sys.argv[1])
python, mode = folder / "python", folder / "mode"
python.write_text(f"""#!/bin/sh
case "$(cat {mode})" in exits) exit 3;; silent) exec sleep 600;; esac
exec {sys.executable} "$@"
""")
python.chmod(0o755)
os.environ["PYSPARK_PYTHON"] = str(python)

import psutil
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.functions import udf

from pyspark_upsert_kafka import why_it_ended

# Spark's daemon would start workers that are copies of itself, whatever has become of the program.
settings = {"spark.ui.enabled": "false", "spark.python.use.daemon": "false"}
spark = SparkSession.builder.master("local[1]").config(map=settings).getOrCreate()


def become(wanted):
    if (folder / "gone").exists():
        (folder / "gone").rename(python)
    mode.write_text(wanted)
    if wanted == "missing":
        python.rename(folder / "gone")
    for process in psutil.Process().children(recursive=True):
        if any("pyspark.worker" in part for part in process.cmdline()):
            process.kill()


def end_of(frame, wanted, name):
    query = None
    try:
        query = frame.writeStream.format("noop").option("checkpointLocation", str(folder / name)).start()
        query.awaitTermination()
    except PySparkException as error:
        return why_it_ended(error).restart


found = {}
rows = spark.readStream.format("rate").load()
for wanted in ("missing", "exits", "silent"):
    become("as it is")
    options = {"topic": "t", "properties.bootstrap.servers": "127.0.0.1:1", "value.format": "json"}
    table = spark.readStream.format("upsert-kafka").schema("id INT").options(**options)
    table = table.option("read.mode", "append").load()
    become(wanted)
    found[f"planning {wanted}"] = end_of(table, wanted, f"planning {wanted}")
    found[f"task {wanted}"] = end_of(rows.select(udf(lambda x: x, "long")("value")), wanted, f"task {wanted}")
print(json.dumps(found), flush=True)
for process in psutil.Process().children(recursive=True):
    process.kill()  # what sleeps is not waited for
os._exit(0)
'''


@pytest.mark.timeout(900)
def test_which_workers_a_new_start_may_have(tmp_path: Path) -> None:
    """One that ends without a word, or says nothing, may start the next time; one whose program is not there does not."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path)],
        capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip

    assert done.returncode == 0, done.stderr[-5000:]
    found = json.loads(done.stdout.splitlines()[-1])
    assert found == {
        f"{process} {wanted}": wanted != "missing"
        for wanted in ("missing", "exits", "silent")
        for process in ("planning", "task")
    }
