"""Spark's workers must run in the interpreter that has this package."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
from pyspark import SparkContext

from pyspark_upsert_kafka.connector.interpreter import check_running_session, use_this_interpreter
from pyspark_upsert_kafka.core import errors

PYTHONS = ("ours/python3", "ours/python", "other/python3")


@pytest.fixture
def workers_python(tmp_path: Path, monkeypatch) -> Callable[..., str | None]:
    """PYSPARK_PYTHON after our import, for a PATH of folders, an interpreter and what was set before."""
    for name in PYTHONS:
        python = tmp_path / name
        python.parent.mkdir(exist_ok=True)
        python.write_text("#!/bin/sh\n")
        python.chmod(0o755)

    def after_import(path: list[str], executable: str | None, given: str | None) -> str | None:
        monkeypatch.setenv("PATH", os.pathsep.join(str(tmp_path / folder) for folder in path))
        monkeypatch.setattr(sys, "executable", executable and str(tmp_path / executable))
        monkeypatch.setenv("PYSPARK_PYTHON", given or "")
        if given is None:
            monkeypatch.delenv("PYSPARK_PYTHON")
        use_this_interpreter()
        python = os.environ.get("PYSPARK_PYTHON")
        return python and python.removeprefix(f"{tmp_path}/")

    return after_import


@pytest.mark.parametrize(
    ("path", "executable", "given", "wanted"),
    [
        (["ours"], "ours/python3", None, None),
        (["ours"], "ours/python", None, None),
        (["empty", "ours", "other"], "ours/python3", None, None),
        (["other"], "ours/python3", None, "ours/python3"),
        (["other", "ours"], "ours/python", None, "ours/python"),
        (["empty"], "ours/python3", None, "ours/python3"),
        ([], "ours/python3", None, "ours/python3"),
        (["other"], "ours/python3", "theirs", "theirs"),
        (["other"], "ours/python3", "", ""),
        (["other"], "", None, None),
        (["other"], None, None, None),
    ],
)
def test_which_python_workers_use(workers_python, path, executable, given, wanted):
    """Ours is named only when Spark would take another; what the user has set stays."""
    assert workers_python(path, executable, given) == wanted


@pytest.mark.parametrize(
    ("workers", "answer", "warned"),
    [
        (None, 1, False),
        ("ours/python", 1, False),
        ("linked/python", 1, False),
        ("other/python3", 0, False),
        ("other/python3", 1, True),
        ("other/python3", 2, False),
        ("nowhere/python3", 1, False),
    ],
    ids=["no session", "ours", "ours by a link", "has it", "lacks it", "fails", "elsewhere"],
)
def test_a_session_that_runs_already(
    tmp_path, monkeypatch, caplog, workers, answer, warned
) -> None:
    """A warning is logged once where the session's Python answers that it has no such package."""
    for name in PYTHONS:
        python = tmp_path / name
        python.parent.mkdir(exist_ok=True)
        python.write_text(f"#!/bin/sh\nexit {answer}\n")
        python.chmod(0o755)
    (tmp_path / "linked").symlink_to(tmp_path / "ours")
    session = workers and SimpleNamespace(pythonExec=str(tmp_path / workers))
    monkeypatch.setattr(SparkContext, "_active_spark_context", session)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "ours/python3"))
    monkeypatch.setattr(errors, "_warned", set())

    check_running_session()
    check_running_session()

    assert len(caplog.messages) == warned
    if warned:
        assert f"Python workers with {tmp_path}/other/python3, which has no" in caplog.text
        assert f"os.environ['PYSPARK_PYTHON'] = '{tmp_path}/ours/python3'" in caplog.text
