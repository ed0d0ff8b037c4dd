"""Whether there are wheels of all dependencies for a platform that is not at hand."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from tools.versions.environments import NoEnvironmentError, uv
from tools.versions.results import Result

_COMPILED_ON_LINUX = "kerberos"
"""The extra whose package has no wheel for any Linux: it is compiled against the system's Kerberos."""

_WITHOUT_WHEELS = "pyspark ; python_version < '3'"
"""PySpark has none for any platform, and contains nothing to compile: it is left out."""


@dataclass(frozen=True)
class Wheels:
    """The dependencies of the project and of its extras, on a platform.

    Args:
        platform: The platform, as uv names it.
        python: The version of Python.
    """

    platform: str
    python: str

    def check(self, day: str) -> Result:
        """Resolves the dependencies from wheels alone, for that platform.

        Args:
            day: Today.
        """
        with tempfile.TemporaryDirectory() as folder:
            instead = Path(folder, "instead.txt")
            instead.write_text(_WITHOUT_WHEELS, encoding="utf-8")
            wanted = ["--python-platform", self.platform, "--python-version", self.python]
            wanted += ["--only-binary", ":all:", "--override", str(instead)]
            for extra in extras():
                wanted += ["--extra", extra]
            try:
                said = uv(
                    "pip", "compile", *wanted, "--no-annotate", "--no-header", "pyproject.toml"
                )
            except NoEnvironmentError as problem:
                return Result(day, problem=str(problem))
        found = [line for line in said.splitlines() if "==" in line]
        return Result(day, passed=len(found))


def extras() -> list[str]:
    """The extras of the project that need no compiler."""
    named = metadata.metadata("pyspark-upsert-kafka").get_all("Provides-Extra") or []
    return [name for name in named if name != _COMPILED_ON_LINUX]
