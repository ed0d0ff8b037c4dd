"""Makes sure that Spark's workers run in the Python in which this package is installed."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

_PACKAGE = "pyspark_upsert_kafka"
_HAS_PACKAGE = f"import importlib.util as u, sys; sys.exit(u.find_spec({_PACKAGE!r}) is None)"
_SECONDS = 10
"""How long to wait for the answer of another Python."""


def use_this_interpreter() -> None:
    """Makes a Spark session that is started later use this Python, if it would use another.

    Without PYSPARK_PYTHON, Spark starts its Python workers with the first ``python3`` on the PATH, also on the driver's
    machine. If that belongs to another environment (a script is run as ``.venv/bin/python script.py``), the workers
    cannot import this package, and Spark does not find the format. If the user or spark-submit has set the variable, it
    is not changed.
    """
    if "PYSPARK_PYTHON" in os.environ or not sys.executable:
        return
    default = shutil.which("python3")
    if default is None or Path(default).parent != Path(sys.executable).parent:
        os.environ["PYSPARK_PYTHON"] = sys.executable


def check_running_session() -> None:
    """Logs a warning if a running session starts its Python workers with a Python that does not have this package.

    This package cannot change that: the session's JVM keeps the environment with which it was started. The check costs
    nothing if no session runs, or if the session uses this Python. It raises nothing.
    """
    workers = _python_of_session()
    python = workers and shutil.which(workers)
    # A Python that is not found here is one of other machines.
    if python is None or not sys.executable or _is_in_one_folder(python, sys.executable):
        return
    if _lacks_package(python):
        from pyspark_upsert_kafka.core.errors import warn_once

        warn_once(
            f"The Spark session that runs already starts its Python workers with {python}, which has no {_PACKAGE}: "
            "Spark does not find the format upsert-kafka there (DATA_SOURCE_NOT_FOUND). spark.stop() does not change it. "
            "Restart this program (in a notebook: its kernel), and before the session is created: "
            f"import os; os.environ['PYSPARK_PYTHON'] = '{sys.executable}'"
        )


def _python_of_session() -> str | None:
    """What starts the workers of the classic session of this process; None = there is no such session."""
    # Looked up, not imported: a client of Spark Connect has no such module.
    module = sys.modules.get("pyspark.core.context")
    context = getattr(getattr(module, "SparkContext", None), "_active_spark_context", None)
    return getattr(context, "pythonExec", None)


def _is_in_one_folder(python: str, other: str) -> bool:
    # The programs of two environments may be links to one file, so their folders tell.
    return os.path.realpath(Path(python).parent) == os.path.realpath(Path(other).parent)


def _lacks_package(python: str) -> bool:
    """Whether a Python says that it has no such package."""
    import subprocess

    try:
        asked = subprocess.run(
            [python, "-c", _HAS_PACKAGE],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_SECONDS,
            check=False,
        )
    except (OSError, subprocess.SubprocessError):
        return False
    return asked.returncode == 1
