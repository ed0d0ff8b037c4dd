"""Which unit tests are nearest to a module."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

PACKAGE = "pyspark_upsert_kafka"
TESTS = "tests"


class Nearest:
    """The unit tests of a tree.

    Args:
        root: The folder that holds the package and ``tests/unit``.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._unit = root / TESTS / "unit"
        self._tests = {path: self._imported(path) for path in sorted(self._unit.rglob("test_*.py"))}
        self._package = {
            path: self._imported(path) for path in sorted((root / PACKAGE).rglob("*.py"))
        }

    def of(self, module: str) -> tuple[str, ...]:
        """The examples of its docstrings, its own test file, and what imports it beside that.

        Also what imports a module that imports it: in the same folder, and anywhere beside if it has no test file of its own.
        Laws come last, as they take long.
        """
        path = self._root / PACKAGE / module
        stem = path.parent.name if path.stem == "__init__" else path.stem
        own = self._unit / Path(module).parent
        named = [
            each for each in (own / f"test_{stem}.py", own / f"test_{stem}_law.py") if each.exists()
        ]
        users = {user for user, imported in self._package.items() if path in imported}
        direct, indirect = (
            [test for test, imported in self._tests.items() if some & imported]
            for some in ({path}, users)
        )
        beside = [test for test in indirect if not named or test.parent == own]
        found = named + [test for test in direct + beside if self._folder(module) in test.parents]
        found = list(dict.fromkeys(found or direct + indirect))
        in_order = sorted(found, key=lambda test: "law" in test.name)
        examples = [path] if ">>> " in path.read_text() else []
        return tuple(str(each.relative_to(self._root)) for each in examples + in_order)

    def _folder(self, module: str) -> Path:
        return self._unit / Path(module).parts[0]

    def _imported(self, path: Path) -> frozenset[Path]:
        """The files of the package that a file imports, itself or by what is beside the tests, where files import one another."""
        found: set[Path] = set()
        beside = [path]
        for read in beside:
            for each in (each for names in self._imports(read) for each in self._files(*names)):
                if self._root / TESTS not in each.parents:
                    found.add(each)
                elif each not in beside:
                    beside.append(each)
        return frozenset(found)

    def _files(self, module: str, name: str) -> Iterator[Path]:
        """Where a name is defined; a package that only passes names on leads to the module that has it."""
        base = self._root.joinpath(*module.split("."))
        for path in (base / f"{name}.py", base / name / "__init__.py", base.with_suffix(".py")):
            if path.exists():
                yield path
                return
        passed_on = base / "__init__.py"
        if passed_on.exists():
            sources = [source for source, each in self._imports(passed_on) if each == name]
            yield from (each for source in sources for each in self._files(source, name))
            yield passed_on

    @cache  # noqa: B019 - it lives as long as the program
    def _imports(self, path: Path) -> list[tuple[str, str]]:
        """Modules of this project that a file imports, and the names that it takes from them."""
        ours = [
            (node.module, alias.name)
            for node in ast.walk(ast.parse(path.read_text()))
            if isinstance(node, ast.ImportFrom) and node.module
            for alias in node.names
        ]
        return [(module, name) for module, name in ours if module.split(".")[0] in (PACKAGE, TESTS)]
