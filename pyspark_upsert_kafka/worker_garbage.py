"""What the search for garbage costs in Spark's Python workers."""

from __future__ import annotations

import gc
import sys


class _Frozen:
    """How many modules there were when objects were frozen."""

    modules = 0


def freeze_modules() -> None:
    """Frees the garbage collector from all objects that are there, if modules have come since it was called last.

    After each task Spark has its Python worker look for garbage (``gc.collect()`` in ``pyspark/daemon.py``). Most of what
    it looks through are modules, which stay: 20 to 45 ms of CPU time, where a small task takes less. Tasks, and what is
    planned in such a worker, call this first, when the garbage of before is gone. It costs nothing (``gc.freeze()``).

    Example::

        freeze_modules()
    """
    if len(sys.modules) > _Frozen.modules:
        gc.freeze()
        _Frozen.modules = len(sys.modules)
