"""Spark's workers must run in the interpreter that has this package."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path


def use_this_interpreter() -> None:
    """Tells a Spark session that is started later to use this Python, where it would use another.

    Without PYSPARK_PYTHON Spark starts its Python workers, on the driver's machine too, with the first
    ``python3`` on the PATH. When that belongs to another environment (a script run as
    ``.venv/bin/python script.py``), the workers cannot import this package and Spark does not find the
    format. A variable that is set, by the user or by spark-submit, is left as it is.
    """
    if "PYSPARK_PYTHON" in os.environ or not sys.executable:
        return
    default = shutil.which("python3")
    if default is None or Path(default).parent != Path(sys.executable).parent:
        os.environ["PYSPARK_PYTHON"] = sys.executable
