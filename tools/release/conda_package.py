"""Builds the conda package from the recipe, with a channel of its own: no other one is asked.

Usage: ``python -m tools.release.conda_package VERSION FOLDER``, with the Python that has py-rattler-build. The channel has
this machine's Python, pip and the build backend, which is all that a build needs. What the package requires to run is not
installed, so its tests are not run.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import subprocess
import sys
from pathlib import Path
from shutil import rmtree
from typing import Any

from rattler_build import Package, ToolConfiguration, assemble_package

from tools.release.recipe import variant_of

_PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"
_SYSTEMS = {"Linux": "linux", "Darwin": "osx"}
_MACHINES = {"x86_64": "64", "arm64": "arm64", "aarch64": "aarch64"}


def built(version: str, folder: Path) -> Package:
    """The package of a version, for which its sdist must be in ``dist``.

    Args:
        version: The version.
        folder: Where it is built; what was there is removed.

    Raises:
        RattlerBuildError: It cannot be built.
        ValueError: It does not have the files of the version.
    """
    rmtree(folder, ignore_errors=True)
    os.environ["RATTLER_CACHE_DIR"] = str(folder / "cache")  # its Python is not one for others
    result = variant_of(version).run_build(
        ToolConfiguration(use_zstd=False, use_bz2=False, use_sharded=False),
        output_dir=folder / "built",
        channels=[channel(folder).as_uri()],
    )
    package = Package.from_file(result.packages[0])
    wanted = {f"pyspark_upsert_kafka-{version}.dist-info/METADATA", "pyspark_upsert_kafka/py.typed"}
    if missing := {f"site-packages/{name}" for name in wanted} - {*package.files}:
        raise ValueError(f"{package.path} lacks {sorted(missing)}")
    return package


def channel(folder: Path) -> Path:
    """Makes a channel with what builds the package."""
    made, subdir = folder / "channel", _subdir()
    for name in (subdir, "noarch"):
        (made / name).mkdir(parents=True)
    packages = [
        _package(made / subdir, "python", platform.python_version(), _environment(folder)),
        _package(made / subdir, "pip", "25.1"),
        _package(made / subdir, "hatchling", "1.27"),
    ]
    for name, there in ((subdir, dict(packages)), ("noarch", {})):
        index = {"info": {"subdir": name}, "packages": {}, "packages.conda": there}
        (made / name / "repodata.json").write_text(json.dumps(index), encoding="utf-8")
    return made


def _environment(folder: Path) -> Path:
    """A virtual environment with pip and the build backend, as the files of a package.

    It belongs to this machine's Python, and what is installed there goes into the environment.
    """
    made, home = folder / "python", Path(sys.base_prefix) / "bin"
    (made / "bin").mkdir(parents=True)
    (made / "pyvenv.cfg").write_text(f"home = {home}\nversion = {_PYTHON}\n", encoding="utf-8")
    (made / "bin" / "python").symlink_to(home / f"python{_PYTHON}")
    packages = made / "lib" / f"python{_PYTHON}" / "site-packages"
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--target", str(packages)]
    subprocess.run([*command, "pip>=25.1", "hatchling>=1.27"], check=True)
    return made


def _package(
    folder: Path, name: str, version: str, files: Path | None = None
) -> tuple[str, dict[str, Any]]:
    """Makes a package, and what the index of its channel says of it. One without files stands for what ``python`` has."""
    depends = [] if files else ["python"]
    made = assemble_package(
        name, version, _subdir(), "0", folder, files_dir=files, depends=depends, compression_level=1
    )
    data = Path(made.path).read_bytes()
    record = {
        "name": name, "version": version, "build": "0", "build_number": 0, "depends": depends,
        "subdir": _subdir(), "sha256": hashlib.sha256(data).hexdigest(), "size": len(data),
    }  # fmt: skip
    return Path(made.path).name, record


def _subdir() -> str:
    """Conda's name of this machine's platform."""
    return f"{_SYSTEMS[platform.system()]}-{_MACHINES[platform.machine()]}"


if __name__ == "__main__":
    package = built(sys.argv[1], Path(sys.argv[2]).absolute())
    print(f"{package.path}: {len(package.files)} files")
