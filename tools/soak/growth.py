"""What the driver and its Python processes hold, and whether that has grown."""

from __future__ import annotations

from collections.abc import Sequence

import psutil
from pyspark.sql import SparkSession

from tools.soak.changes import SoakError

SLACK = {
    "largest worker, MB": 24.0,
    "all workers, MB": 96.0,
    "threads of workers": 16.0,
    "descriptors of workers": 32.0,
    "driver's process, MB": 48.0,
    "driver's heap after a collection, MB": 24.0,
}

Sample = dict[str, float]


def sample(spark: SparkSession) -> Sample:
    """What the driver and its Python processes hold now."""
    heap = spark.sparkContext._jvm.java  # type: ignore[union-attr]  # noqa: SLF001
    heap.lang.System.gc()
    used = heap.lang.management.ManagementFactory.getMemoryMXBean().getHeapMemoryUsage().getUsed()
    mine = psutil.Process()
    workers = []
    for process in mine.children(recursive=True):
        try:
            # By its program: what the JVM has just forked still has the JVM's memory.
            if "pyspark" in " ".join(process.cmdline()) and "java" not in process.exe():
                memory = process.memory_info().rss / 2**20
                workers.append((memory, process.num_threads(), process.num_fds()))
        except psutil.Error:  # it ended while it was looked at
            continue
    memory, threads, descriptors = zip(*workers, strict=True) if workers else ((0,), (0,), (0,))
    return {
        "largest worker, MB": max(memory),
        "all workers, MB": sum(memory),
        "threads of workers": float(sum(threads)),
        "descriptors of workers": float(sum(descriptors)),
        "driver's process, MB": jvm(mine).memory_info().rss / 2**20,
        "driver's heap after a collection, MB": used / 2**20,
    }


def jvm(mine: psutil.Process) -> psutil.Process:
    """The process of Spark's driver."""
    for child in mine.children():
        if "org.apache.spark.deploy.SparkSubmit" in child.cmdline():
            return child
    raise SoakError("the driver's process is gone")


def refuse_growth(samples: Sequence[Sample]) -> str:
    """What was measured, in a line.

    Raises:
        SoakError: Something has grown.
    """
    third = len(samples) // 3
    shown = []
    for name, slack in SLACK.items():
        before = max(each[name] for each in samples[third : 2 * third])
        after = max(each[name] for each in samples[2 * third :])
        shown.append(f"{name} {before:.0f} -> {after:.0f}")
        if after > before * 1.1 + slack:
            raise SoakError(
                f"{name}: from {before:.0f} in the second third to {after:.0f} in the last"
            )
    return ", ".join(shown)
