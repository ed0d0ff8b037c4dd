"""What a Python worker of Spark says of itself.

Spark sends this code to the workers as it stands, because they may lack this package: it imports nothing of it outside
of `_import_errors`, and nothing that Python itself does not have.
"""

from __future__ import annotations

import importlib
import json
import os
import platform
import re
import sys
from importlib import metadata

_DISTRIBUTION = "pyspark-upsert-kafka"
_NEEDED = ("pyspark_upsert_kafka", "pyarrow", "numpy", "polars", "orjson", "confluent_kafka")
"""What a task imports, the compiled packages too."""

_REQUIREMENT = re.compile(r"([\w.-]+)>=([\d.]+)")


def worker_facts(_: object = None) -> str:
    """A JSON object with the arguments of `WorkerFacts`."""
    return json.dumps(
        {
            "host": platform.node(),
            "executable": sys.executable,
            "python": platform.python_version(),
            "pyspark": getattr(sys.modules.get("pyspark"), "__version__", ""),
            "package": _version_of_package(),
            "import_errors": _import_errors(),
            "requirements": _requirements(),
            "unix_sockets": os.environ.get("PYTHON_UNIX_DOMAIN_ENABLED", "").lower() == "true",
            "address_limit": _address_limit(),
            "arrow_pool": os.environ.get("ARROW_DEFAULT_MEMORY_POOL", ""),
        }
    )


def _import_errors() -> dict[str, str]:
    """The modules that cannot be imported, each with the reason."""
    found = {}
    for name in _NEEDED:
        try:
            importlib.import_module(name)
        except (ImportError, OSError, AttributeError, ValueError) as error:
            found[name] = f"{type(error).__name__}: {error}"
    return found


def _version_of_package() -> str:
    try:
        return str(importlib.import_module("pyspark_upsert_kafka").__version__)
    except (ImportError, AttributeError):
        return ""


def _requirements() -> list[tuple[str, str, str]]:
    """The packages that are installed and of which this one needs a version: their name, that version, and the installed one."""
    try:
        lines = metadata.requires(_DISTRIBUTION) or []
    except metadata.PackageNotFoundError:
        return []
    found = []
    for line in lines:
        needed = None if ";" in line else _REQUIREMENT.match(line)
        if needed is not None:
            try:
                found.append((needed[1], needed[2], metadata.version(needed[1])))
            except metadata.PackageNotFoundError:
                continue  # it may be there without metadata, as PySpark in a Spark that is no package
    return found


def _address_limit() -> int | None:
    """How many bytes of addresses the worker may reserve; None = as many as it likes."""
    try:
        import resource
    except ImportError:  # Windows
        return None
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    return None if limit == resource.RLIM_INFINITY else limit
