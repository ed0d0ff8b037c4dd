"""What a proof ran on: versions, and the machine."""

from __future__ import annotations

import os
import platform
import resource
import shutil
import subprocess
import tempfile
import time
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path

import psutil

from pyspark_upsert_kafka.kafka.local.jars import broker_jars
from pyspark_upsert_kafka.version import newest_release

ROOT = Path(__file__).parents[2]
PAGE = "docs/proof.md"
PACKAGE = "content of the package: `git rev-parse <commit>:pyspark_upsert_kafka`"
"""By this what was tried is known, whatever commit it is in."""

_PACKAGES = ("pyspark", "pyarrow", "polars", "confluent-kafka", "pytest")
_COMMIT = "commit"
_LOAD = "load average when it began"


def about() -> dict[str, str]:
    """By the name of what it is."""
    clients = next(broker_jars().glob("kafka-clients-*.jar"))
    return {
        "pyspark_upsert_kafka": release(),
        _COMMIT: commit(),
        PACKAGE: _package(),
        "Python": platform.python_version(),
        **{package: version(package) for package in _PACKAGES},
        "Kafka (broker, and Java client that reads the histories)": clients.stem.rpartition("-")[2],
        "Java": _said(["java", "--version"]).partition("\n")[0],
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores, "
        f"{psutil.virtual_memory().total / 2**30:.0f} GB",
        _LOAD: f"{os.getloadavg()[0]:.0f}",
    }


def release() -> str:
    """The version that comes next, or is this one."""
    return newest_release((ROOT / "CHANGELOG.md").read_text(encoding="utf-8"))


def differences(before: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    """What is another package, version or machine now; commits may differ, if the package is the same."""
    names = [name for name in now if name not in (_COMMIT, _LOAD)]
    return [
        f"{name}: {before.get(name)} before, {now[name]} now"
        for name in names
        if before.get(name) != now[name]
    ]


def commit() -> str:
    """The commit of the checkout, and which files differ from it; this tool's own page does not count."""
    found = _said(["git", "rev-parse", "--short=9", "HEAD"])
    if not found:
        return "unknown"
    changed = _said(["git", "status", "--porcelain", "--", ".", f":!{PAGE}"]).splitlines()
    files = [line.split(maxsplit=1)[1] for line in changed]
    more = f" and {len(files) - 3} more" if len(files) > 3 else ""
    return f"{found}, with changes to {', '.join(files[:3])}{more}" if files else found


def _package() -> str:
    """What git calls the files of the package as they are, whether they are committed or not."""
    with tempfile.TemporaryDirectory() as folder:
        index = {"GIT_INDEX_FILE": f"{folder}/index"}
        _said(["git", "add", "--all", "pyspark_upsert_kafka"], **index)
        tree = _said(["git", "write-tree", "--prefix=pyspark_upsert_kafka/"], **index)
    return tree or "unknown"


def lacks() -> str | None:
    """What a proof needs and this machine does not have, as a sentence; None = nothing."""
    if _said(["git", "rev-parse", "HEAD"]) == "":
        return "A proof names the commit that was tried: run it in a clone, with git."
    if shutil.which("java") is None or "jdk.compiler" not in _said(["java", "--list-modules"]):
        return "The reader of the histories is a program in Java: install a JDK of 17 or newer (a JRE has no compiler)."
    return None


def _said(command: list[str], **environment: str) -> str:
    """What a program prints; empty if it fails or is not there."""
    if shutil.which(command[0]) is None:
        return ""
    done = subprocess.run(
        command,
        cwd=ROOT,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout.strip() if done.returncode == 0 else ""


class OtherWork:
    """What other programs do while a step runs.

    CPU time of a process that nobody has waited for counts as other work.
    """

    def __init__(self) -> None:
        self._begin = self._now()

    def share(self) -> float:
        """The part of the machine's CPU time, since this was made, that went to other programs; 0 to 1."""
        busy, own, seconds = (
            now - begin for now, begin in zip(self._now(), self._begin, strict=True)
        )
        return max(0.0, (busy - own) / (seconds * (os.cpu_count() or 1)))

    @staticmethod
    def _now() -> tuple[float, float, float]:
        times = psutil.cpu_times()
        waiting = times.idle + getattr(times, "iowait", 0.0)
        inside = getattr(times, "guest", 0.0) + getattr(times, "guest_nice", 0.0)
        children = resource.getrusage(resource.RUSAGE_CHILDREN)
        own = children.ru_utime + children.ru_stime
        return sum(times) - waiting - inside, own, time.monotonic()
