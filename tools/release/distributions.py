"""The wheel and the source distribution."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from tools.release.changelog import NotReadyError


@dataclass(frozen=True)
class Distributions:
    """The two files of a build."""

    wheel: Path
    sdist: Path

    @property
    def files(self) -> list[Path]:
        """Both."""
        return [self.wheel, self.sdist]


def built(folder: Path, version: str) -> Distributions:
    """The files of a version, in a folder that has no other files.

    Raises:
        NotReadyError: One is missing, or another file is there.
    """
    name = f"pyspark_upsert_kafka-{version}"
    expected = Distributions(folder / f"{name}-py3-none-any.whl", folder / f"{name}.tar.gz")
    found = sorted(folder.iterdir()) if folder.is_dir() else []
    if found != sorted(expected.files):
        names = [file.name for file in found]
        raise NotReadyError(
            f"{folder} holds {names}, and not the wheel and the sdist of {version}: run make dist."
        )
    return expected


def build_again(folder: Path) -> None:
    """Builds into a folder; the environment variable SOURCE_DATE_EPOCH must be that of the first build."""
    command = [sys.executable, "-m", "build", "--outdir", str(folder)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def check_same(first: Distributions, again: Path) -> None:
    """Whether a second build has the same files, byte by byte.

    Args:
        first: The files of the first build.
        again: The folder of the second one.

    Raises:
        NotReadyError: A file differs, or is not there.
    """
    for file in first.files:
        other = again / file.name
        if not other.exists() or sha256(file) != sha256(other):
            raise NotReadyError(f"{file.name} is not the same when it is built again: see {other}.")


def sha256(file: Path) -> str:
    """What a file hashes to, in hexadecimal."""
    return hashlib.sha256(file.read_bytes()).hexdigest()
