"""The examples in docstrings are true."""

from __future__ import annotations

import doctest
import re
from importlib import import_module
from pathlib import Path

import pyspark_upsert_kafka

ROOT = Path(pyspark_upsert_kafka.__file__).parent
_EXAMPLE = re.compile(r"^ *>>> ", re.MULTILINE)


def examples_in(file: Path) -> int:
    """How many examples the text of a module has."""
    return len(_EXAMPLE.findall(file.read_text(encoding="utf-8")))


def module_name(file: Path) -> str:
    """The name by which a file of the package is imported."""
    path = file.relative_to(ROOT.parent).with_suffix("")
    return ".".join(path.parts).removesuffix(".__init__")


WITH_EXAMPLES = [file for file in sorted(ROOT.rglob("*.py")) if examples_in(file)]


def test_examples_in_docstrings_are_true() -> None:
    """Each ``>>>`` of a module is run, none is skipped, and gives what the docstring shows."""
    wrong = {}
    for file in WITH_EXAMPLES:
        result = doctest.testmod(import_module(module_name(file)))
        if result.failed or result.attempted != examples_in(file):
            wrong[module_name(file)] = (result, examples_in(file))

    assert wrong == {}


def test_examples_are_found() -> None:
    """Modules of several rings have examples: the test above does not run over nothing."""
    rings = {file.relative_to(ROOT).parts[0] for file in WITH_EXAMPLES}

    assert rings >= {"cli", "core", "formats", "kafka"}
