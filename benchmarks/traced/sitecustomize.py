"""What the Python processes of a query do, for `start.py`: Python runs this first in each of them.

Each process appends lines of JSON to the file of START_TRACE: that it has begun or was forked, what it imported, and calls.
Times are seconds since the epoch; ``cpu`` is the CPU time of the process.
"""

from __future__ import annotations

import atexit
import importlib._bootstrap_external as loaders
import json
import os
import sys
import time
from collections import Counter
from functools import wraps
from pathlib import Path

_FILE = os.environ.get("START_TRACE")

_WORKERS = ("main",)
_CALLS = {
    "pyspark.worker": _WORKERS,
    "pyspark.sql.worker.commit_data_source_write": _WORKERS,
    "pyspark.sql.worker.create_data_source": _WORKERS,
    "pyspark.sql.worker.lookup_data_sources": _WORKERS,
    "pyspark.sql.worker.plan_data_source_read": _WORKERS,
    "pyspark.sql.worker.python_streaming_sink_runner": _WORKERS,
    "pyspark.sql.worker.write_into_data_source": _WORKERS,
    "pyspark_upsert_kafka.connector.datasource": (
        "UpsertKafkaDataSource.schema",
        "UpsertKafkaDataSource.reader",
        "UpsertKafkaDataSource.streamReader",
        "UpsertKafkaDataSource.writer",
        "UpsertKafkaDataSource.streamWriter",
    ),
    "pyspark_upsert_kafka.connector.planning.batch_reader": ("BatchReader.partitions",),
    "pyspark_upsert_kafka.connector.planning.stream_reader": (
        "StreamReader.partitions",
        "ReaderWithLimits.latestOffset",
    ),
    "pyspark_upsert_kafka.connector.writing.delivery": ("write_rows",),
    "pyspark_upsert_kafka.kafka.librdkafka.cluster": ("RetryingAdminClient.call",),
    "pyspark_upsert_kafka.kafka.librdkafka.properties": ("open_client",),
}
"""What is noted of a module's functions, beside its import."""

_TICKS = os.sysconf("SC_CLK_TCK")


class _Imports:
    """Seconds that modules took without those that they import, by their package."""

    def __init__(self) -> None:
        self._within: list[list[float]] = []
        self._cpu: Counter[str] = Counter()
        self._modules: Counter[str] = Counter()
        self._began = (0.0, 0.0)

    def timed(self, method):
        """The method of a loader, which is timed."""

        @wraps(method)
        def call(loader, module_or_spec):
            is_spec = method.__name__ == "create_module"
            name = module_or_spec.name if is_spec else module_or_spec.__name__
            began = time.time(), time.process_time()
            if not self._within:
                self._began = began
            self._within.append([0.0])
            try:
                return method(loader, module_or_spec)
            finally:
                self._note(name, time.process_time() - began[1])
                if not is_spec:
                    _watch(name)

        return call

    def _note(self, name: str, cpu: float) -> None:
        package = name.partition(".")[0]
        self._cpu[package] += cpu - self._within.pop()[0]
        self._modules[package] += 1
        if self._within:
            self._within[-1][0] += cpu
            return
        wall, at = self._began
        write(
            "imports", wall, name, used=time.process_time() - at, packages=dict(self._cpu), modules=dict(self._modules)
        )  # fmt: skip
        self._cpu.clear()
        self._modules.clear()


def write(what: str, begin: float, name: str, **more: object) -> None:
    """Appends a line."""
    line = {"what": what, "at": begin, "s": time.time() - begin, "name": name, "pid": os.getpid()}
    line |= {"parent": os.getppid(), "cpu": time.process_time(), **more}
    with Path(str(_FILE)).open("a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")


def _watch(name: str) -> None:
    module = sys.modules.get(name)
    for path in _CALLS.get(name, ()) if module is not None else ():
        owner_name, _, method = path.rpartition(".")
        owner = getattr(module, owner_name) if owner_name else module
        setattr(owner, method, _noted(f"{name.rpartition('.')[2]}.{path}", getattr(owner, method)))


def _noted(name: str, function):
    @wraps(function)
    def call(*args, **kwargs):
        begin, cpu = time.time(), time.process_time()
        try:
            return function(*args, **kwargs)
        finally:
            which = next((each for each in args if isinstance(each, (str, type))), "")
            detail = getattr(which, "__name__", which)
            write("call", begin, name, detail=detail, used=time.process_time() - cpu)

    return call


def _born() -> float:
    """When the kernel started this process."""
    fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
    up = float(Path("/proc/uptime").read_text().split()[0])
    return time.time() - (up - int(fields[19]) / _TICKS)


def _role() -> str:
    words = [word for word in sys.orig_argv[1:] if not word.startswith("-")]
    return " ".join(word.removeprefix("pyspark.") for word in words[:2])


def _trace() -> None:
    imports = _Imports()
    for loader in (loaders._LoaderBasics, loaders.ExtensionFileLoader):  # noqa: SLF001
        loader.exec_module = imports.timed(loader.exec_module)
    loaders.ExtensionFileLoader.create_module = imports.timed(
        loaders.ExtensionFileLoader.create_module
    )
    write("process", _born(), _role())
    os.register_at_fork(after_in_child=lambda: write("fork", time.time(), _role()))
    atexit.register(lambda: write("end", time.time(), _role()))
    end = os._exit

    def leave(code: int) -> None:
        write("end", time.time(), _role())
        end(code)

    os._exit = leave


if _FILE:
    _trace()
