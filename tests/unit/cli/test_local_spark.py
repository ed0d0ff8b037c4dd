"""Which Spark the commands start."""

from __future__ import annotations

import json
from pathlib import Path

import pyspark
import pytest

from pyspark_upsert_kafka.cli import main
from pyspark_upsert_kafka.cli.local_spark import unusable_spark_home


def home(folder: Path, version: str | None) -> str:
    """A folder with a Spark of a version; None = with none."""
    for name in ("bin", "jars"):
        (folder / name).mkdir()
    if version is not None:
        (folder / "bin" / "spark-submit").touch()
        (folder / "jars" / f"spark-core_2.12-{version}.jar").touch()
        (folder / "jars" / "spark-sql_2.12-2.0.0.jar").touch()
    return str(folder)


@pytest.mark.parametrize(
    ("version", "said"),
    [
        (None, "where there is no Spark"),
        ("3.5.9", f"which is Spark 3.5.9, and PySpark here is {pyspark.__version__}"),
        ("3.5.6-amzn-0", "which is Spark 3.5.6-amzn-0, and"),
        ("4.0.1-SNAPSHOT", None),
        (pyspark.__version__, None),
    ],
)
def test_a_spark_that_pyspark_cannot_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str | None, said: str | None
) -> None:
    """One of another major version, or none at all."""
    monkeypatch.setenv("SPARK_HOME", home(tmp_path, version))
    found = unusable_spark_home()

    assert found == (said and found)
    assert said is None or f"SPARK_HOME is {str(tmp_path)!r}, {said}" in str(found)


def test_the_spark_of_pyspark_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without SPARK_HOME; also where it names the folder of PySpark."""
    monkeypatch.delenv("SPARK_HOME", raising=False)
    assert unusable_spark_home() is None
    monkeypatch.setenv("SPARK_HOME", str(Path(pyspark.__file__).parent))
    assert unusable_spark_home() is None


def test_doctor_says_which_spark_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Before any is started, with what to do."""
    monkeypatch.setenv("SPARK_HOME", home(tmp_path, "3.5.9"))

    assert main(["doctor", "--spark", "--master", "local[1]", "--output", "json"]) == 2
    (found,) = map(json.loads, capsys.readouterr().out.splitlines())
    assert "which is Spark 3.5.9" in found["text"]
    assert "unset it" in found["advice"]
