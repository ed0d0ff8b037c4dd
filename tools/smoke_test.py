"""Runs the example of the README in the Python that runs this script. So it tests that the built wheel is complete.

Usage: ``python -I tools/smoke_test.py README.md`` (``-I``: the package in the checkout is not on the path).
"""

from __future__ import annotations

import re
import sys
from importlib.metadata import version
from pathlib import Path

import pyspark_upsert_kafka

if __name__ == "__main__":
    assert "site-packages" in str(pyspark_upsert_kafka.__file__)
    assert pyspark_upsert_kafka.__version__ == version("pyspark-upsert-kafka")
    readme = Path(sys.argv[1]).read_text(encoding="utf-8")
    example = re.search(r"^```python\n(.*?)^```$", readme, re.DOTALL | re.MULTILINE)
    assert example is not None
    exec(compile(example[1], "README.md", "exec"))
    print(f"The README's example ran from the wheel in Python {sys.version.split()[0]}.")
