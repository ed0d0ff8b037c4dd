"""docs/doctor.md lists the checks: programs know them by these names."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from pyspark_upsert_kafka.cli import doctor

FOLDER = Path(doctor.__file__).parent
PAGE = Path(__file__).parents[4] / "docs" / "doctor.md"


def listed() -> set[str]:
    """The checks in the page's table."""
    text = PAGE.read_text(encoding="utf-8")
    rows = re.findall(r"^\| (`[a-z-]+`(?:, `[a-z-]+`)*) \|", text.partition("## ")[2], re.MULTILINE)
    return {name for row in rows for name in re.findall(r"[a-z-]+", row)}


def nodes() -> Iterator[ast.AST]:
    """The code of the command."""
    for file in FOLDER.glob("*.py"):
        yield from ast.walk(ast.parse(file.read_text(encoding="utf-8")))


def test_each_check_is_on_the_page() -> None:
    """What makes a finding under a new name has a row in docs/doctor.md, which says what is looked at."""
    named = {
        node.args[0].value
        for node in nodes()
        if isinstance(node, ast.Call)
        and isinstance(node.func, (ast.Name, ast.Attribute))
        and (node.func.id if isinstance(node.func, ast.Name) else node.func.attr).lower()
        == "finding"
        and node.args
        and isinstance(node.args[0], ast.Constant)
    }

    assert len(named) > 10
    assert named <= listed()


def test_each_check_on_the_page_is_there() -> None:
    """A name does not change from version to version."""
    texts = {node.value for node in nodes() if isinstance(node, ast.Constant)}

    assert len(listed()) > 15
    assert listed() <= texts
