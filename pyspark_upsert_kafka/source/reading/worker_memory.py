"""How much memory a Python worker of Spark has."""

from __future__ import annotations

import os
from pathlib import Path

from pyspark_upsert_kafka.core.options import ReadOptions

_LIMITS = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))
"""Where a container's limit stands: cgroups version 2 and 1."""


def snapshot_bytes(options: ReadOptions) -> int:
    """What a snapshot may take of it: as the options say, else half."""
    return options.snapshot_bytes or _worker_bytes() // 2


def _worker_bytes() -> int:
    """What ``spark.executor.pyspark.memory`` gives a worker, else its part of the machine or the container."""
    given = os.environ.get("PYSPARK_EXECUTOR_MEMORY_MB")
    if given:
        return int(given) * 1024 * 1024
    machine = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    limits = [_limit(path) for path in _LIMITS]
    total = min([machine, *(limit for limit in limits if limit is not None)])
    return total // (os.cpu_count() or 1)


def _limit(path: Path) -> int | None:
    try:
        text = path.read_text(encoding="ascii").strip()
    except OSError:
        return None
    return int(text) if text.isdigit() else None
