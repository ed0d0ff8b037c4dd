"""A notebook whose session exists before the import, and whose workers run another Python."""

from __future__ import annotations

import os
import subprocess
import sys
import venv
from pathlib import Path

import pytest

pytestmark = [
    pytest.mark.classic("a session of Spark Connect has its Python on the server"),
    pytest.mark.long("starts programs with a JVM"),
]

PROGRAM = """
from pyspark.sql import SparkSession

def session():
    settings = {"spark.ui.enabled": "false", "spark.sql.warehouse.dir": "$folder/warehouse"}
    spark = SparkSession.builder.master("local[1]").config(map=settings).getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    return spark

def is_found(spark):
    try:
        spark.read.format("upsert-kafka").schema("id BIGINT").load()
    except Exception as e:
        return f"DATA_SOURCE_NOT_FOUND={'DATA_SOURCE_NOT_FOUND' in str(e)}"
    return "found"

spark = session()
import pyspark_upsert_kafka
print(is_found(spark))
spark.stop()
print(is_found(session()))
"""
WARNING = "The Spark session that runs already starts its Python workers with"


@pytest.fixture(scope="module")
def other_python(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The Python of an environment that has no package at all."""
    folder = tmp_path_factory.mktemp("other") / "env"
    venv.create(folder, symlinks=True, with_pip=False)
    return str(folder / "bin" / "python3")


def notebook(folder: Path, first: str = "", **environment: str) -> subprocess.CompletedProcess[str]:
    """Runs the program as a notebook's cells, by the path of a Python whose environment is not activated."""
    unset = ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON", "PYTHONPATH")
    inherited = {name: value for name, value in os.environ.items() if name not in unset}
    return subprocess.run(
        [sys.executable, "-c", first + PROGRAM.replace("$folder", str(folder))],
        cwd=folder,  # Python finds packages in the folder in which it is started
        env={**inherited, **environment},
        capture_output=True,
        text=True,
        timeout=600,
        check=True,
    )


@pytest.mark.parametrize("how", ["on the PATH", "given"])
def test_a_session_that_was_made_before_the_import(
    tmp_path: Path, other_python: str, how: str
) -> None:
    """The import says that Spark will not find the format, why, and what to do; once."""
    path = f"{Path(other_python).parent}{os.pathsep}{os.environ['PATH']}"
    given = {"PATH": path} if how == "on the PATH" else {"PYSPARK_PYTHON": other_python}
    ran = notebook(tmp_path, **given)

    assert ran.stdout.splitlines() == ["DATA_SOURCE_NOT_FOUND=True"] * 2
    assert ran.stderr.count(f"{WARNING} {other_python}, which has no pyspark_upsert_kafka") == 1
    assert f"os.environ['PYSPARK_PYTHON'] = '{sys.executable}'" in ran.stderr


def test_what_is_said_works(tmp_path: Path, other_python: str) -> None:
    """With what the warning says before the session is made the format is found, and there is nothing to say."""
    first = f"import os; os.environ['PYSPARK_PYTHON'] = '{sys.executable}'"
    ran = notebook(tmp_path, first, PYSPARK_PYTHON=other_python)

    assert ran.stdout.splitlines() == ["found"] * 2
    assert WARNING not in ran.stderr
