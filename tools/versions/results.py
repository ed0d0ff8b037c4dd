"""What the cells of docs/versions.md gave when they last ran, in a file from which the page is made."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

FILE = Path(__file__).with_name("results.json")

Place = tuple[str, str, str]
"""A cell: its table, its row and its column."""


@dataclass(frozen=True)
class Result:
    """What a cell gave.

    Args:
        day: When it ran, as ``2026-11-23``.
        passed: How many tests passed; of a check of wheels, how many packages have one.
        skipped: How many tests were skipped.
        failed: The tests that failed.
        problem: Why it could not run; empty text = it ran.
        versions: Versions that were seen in it, by the name of the package.
    """

    day: str
    passed: int = 0
    skipped: int = 0
    failed: tuple[str, ...] = ()
    problem: str = ""
    versions: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_good(self) -> bool:
        """Whether something ran, and nothing failed."""
        return bool(self.passed) and not self.failed and not self.problem


Results = Mapping[Place, Result]


def load(file: Path = FILE) -> dict[Place, Result]:
    """The results in a file; none if there is no file."""
    if not file.exists():
        return {}
    return {
        (table, row, column): Result(**{**given, "failed": tuple(given.get("failed", ()))})
        for table, rows in json.loads(file.read_text(encoding="utf-8")).items()
        for row, columns in rows.items()
        for column, given in columns.items()
    }


def save(results: Results, file: Path = FILE) -> None:
    """Writes results to a file, in the order of their places."""
    tree: dict[str, dict[str, dict[str, object]]] = {}
    for (table, row, column), result in sorted(results.items()):
        said = {name: value for name, value in asdict(result).items() if value or name == "day"}
        tree.setdefault(table, {}).setdefault(row, {})[column] = said
    file.write_text(json.dumps(tree, indent=1) + "\n", encoding="utf-8")
