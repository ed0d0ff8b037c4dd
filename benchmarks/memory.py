"""Peak memory of Spark's Python workers, by looking at them while a job runs."""

from __future__ import annotations

import contextlib
import os
import threading

import psutil


class PeakWorkerMemory:
    """The largest resident memory of any one Python worker, in bytes, while the context lasts."""

    def __init__(self) -> None:
        self.peak = 0
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> PeakWorkerMemory:  # noqa: PYI034 - typing.Self needs Python 3.11
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        self._thread.join()

    def _watch(self) -> None:
        me = psutil.Process(os.getpid())
        while not self._end.wait(0.1):
            for process in me.children(recursive=True):
                with contextlib.suppress(psutil.Error):
                    if "pyspark" in " ".join(process.cmdline()) and "java" not in process.name():
                        self.peak = max(self.peak, process.memory_info().rss)
