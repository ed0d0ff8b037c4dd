"""Environments with chosen versions of Python and of packages, made by uv."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / ".venv-versions"

_SHOWN = (
    "pyspark", "pyarrow", "numpy", "polars", "orjson", "confluent-kafka", "sqlglot", "platformdirs", "rich", "pandas",
    "protobuf", "grpcio-tools", "googleapis-common-protos", "prometheus-client", "kafka-python-ng", "kafka-python",
)  # fmt: skip
_EXTRAS = ("kafka-python", "changelog", "metrics", "protobuf")
"""Those whose oldest versions are tried; certificates for tests need newer ones than the others."""

_ASK = """
import importlib.metadata as metadata, json, platform, sys
found = {"python": platform.python_version()}
for name in sys.argv[1:]:
    try:
        found[name] = metadata.version(name)
    except metadata.PackageNotFoundError:
        pass
print(json.dumps(found))
"""


class NoEnvironmentError(Exception):
    """An environment cannot be made; the text is a sentence for the page."""


@dataclass(frozen=True)
class Environment:
    """A Python with this project, the packages that its tests need, and chosen versions of some.

    Args:
        name: The name of its folder.
        python: The version of Python, as ``3.12``.
        packages: Requirements besides those of the project and its tests.
        instead: Requirements that replace all others of the same packages; with a marker that is never true, a package is left out.
        is_oldest: Whether each dependency of the project and of its extras has the oldest version that ``pyproject.toml``
            allows; else the newest. What only tests need is always the newest.
    """

    name: str
    python: str
    packages: tuple[str, ...] = ()
    instead: tuple[str, ...] = ()
    is_oldest: bool = False

    @property
    def folder(self) -> Path:
        """Where it is."""
        return FOLDER / self.name

    def make(self) -> Path:
        """Makes it anew; returns its Python.

        Raises:
            NoEnvironmentError: There is no such Python, or no set of versions fits.
        """
        found = interpreter(self.python)
        if found is None:
            raise NoEnvironmentError(f"no Python {self.python} on the machine of the run")
        uv("venv", "--clear", "--quiet", "--python", str(found), str(self.folder))
        instead = self.folder / "instead.txt"
        instead.write_text("\n".join(self.instead), encoding="utf-8")
        python = self.folder / "bin" / "python"
        options = ["--quiet", "--python", str(python), "--override", str(instead)]
        if self.is_oldest:
            oldest = self.folder / "oldest.txt"
            oldest.write_text(_oldest(self.python), encoding="utf-8")
            options += ["--constraint", str(oldest)]
        options += ["--group", "test", "--editable", str(ROOT)]
        uv("pip", "install", *options, *self.packages)
        return python

    def remove(self) -> None:
        """Deletes it."""
        shutil.rmtree(self.folder, ignore_errors=True)


def _oldest(python: str) -> str:
    """The oldest versions of the dependencies, a line each."""
    options = ["--resolution", "lowest-direct", "--python-version", python, "--no-header"]
    for extra in _EXTRAS:
        options += ["--extra", extra]
    return uv("pip", "compile", "--quiet", "--no-annotate", *options, "pyproject.toml")


def uv(*arguments: str) -> str:
    """Runs uv in the folder of the project; returns what it printed.

    Raises:
        NoEnvironmentError: It refused; the text is what it said.
    """
    # As pip does, with the certificates of the system.
    settings = {"UV_SYSTEM_CERTS": "1", **os.environ}
    done = subprocess.run(
        [sys.executable, "-m", "uv", *arguments],
        capture_output=True, text=True, check=False, cwd=ROOT, env=settings,
    )  # fmt: skip
    if done.returncode:
        raise NoEnvironmentError(" ".join(done.stderr.split()))
    return done.stdout


def versions_in(python: Path) -> dict[str, str]:
    """The versions in an environment: of Python, and of the packages that the project uses."""
    asked = [str(python), "-c", _ASK, *_SHOWN]
    done = subprocess.run(asked, check=True, capture_output=True, text=True)
    found: dict[str, str] = json.loads(done.stdout)
    return found


def interpreter(version: str) -> Path | None:
    """A Python of this version: on the PATH or of pyenv.

    A whole Python 3.14 for Linux is on Maven Central, too: the jar ``org.bytedeco:cpython:3.14.3-1.5.13:linux-x86_64``.
    """
    folders = [Path(folder) for folder in os.environ["PATH"].split(os.pathsep)]
    root = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    folders += sorted(root.glob(f"{version}.*/bin"))
    for folder in folders:
        python = folder / f"python{version}"
        # A shim of pyenv is there for versions that are not chosen, too.
        if (
            python.exists()
            and not subprocess.run([python, "-V"], capture_output=True, check=False).returncode
        ):
            return python
    return None
