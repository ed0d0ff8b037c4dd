"""The conda recipe requires what pyproject.toml requires."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import yaml
from packaging.requirements import Requirement

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib  # hatchling has it there

ROOT = Path(__file__).parents[2]

# Names that differ in conda-forge, and requirements of extras that it does not have: the Kafka client in pure Python.
NAMES = {
    "confluent-kafka": "python-confluent-kafka",
    "gssapi": "python-gssapi",
    "prometheus-client": "prometheus_client",
}
NOT_THERE = {"kafka-python-ng"}


def recipe() -> dict[str, Any]:
    """The recipe, with its expressions as they stand there."""
    found: dict[str, Any] = yaml.safe_load(
        (ROOT / "recipe" / "recipe.yaml").read_text(encoding="utf-8")
    )
    return found


def project() -> dict[str, Any]:
    """What pyproject.toml says, whatever was installed from it before."""
    found: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    return found["project"]


def in_conda(requirement: Requirement) -> str:
    """A requirement as conda spells it."""
    versions = ",".join(sorted((str(each) for each in requirement.specifier), reverse=True))
    return f"{NAMES.get(requirement.name, requirement.name)} {versions}"


def test_requirements_are_those_of_the_project() -> None:
    """Name by name, with their versions."""
    python, *others = recipe()["requirements"]["run"]

    assert project()["requires-python"] == python.removeprefix("python ")
    assert sorted(others) == sorted(
        in_conda(Requirement(each)) for each in project()["dependencies"]
    )


def test_constraints_are_those_of_the_extras() -> None:
    """Conda has no extras: what they need is bounded where it is installed. Of two bounds the higher one counts."""
    lowest: dict[str, Requirement] = {}
    for texts in project()["optional-dependencies"].values():
        for each in map(Requirement, texts):
            known = lowest.get(each.name)
            if each.name not in NOT_THERE and (
                known is None or known.specifier.contains(min_version(each))
            ):
                lowest[each.name] = each

    assert sorted(recipe()["requirements"]["run_constraints"]) == sorted(
        map(in_conda, lowest.values())
    )


def min_version(requirement: Requirement) -> str:
    """The oldest version that is allowed."""
    return next(each.version for each in requirement.specifier if each.operator == ">=")


def test_the_build_backend_is_that_of_the_project() -> None:
    """The recipe builds without the network, so it names what builds."""
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    backend = re.search(r'requires = \["hatchling(.*?)"\]', text)

    assert backend is not None
    assert f"hatchling {backend[1]}" in recipe()["requirements"]["host"]


def test_it_builds_from_the_sdist_in_the_checkout() -> None:
    """The source is a path, and no address."""
    assert recipe()["source"] == {"path": "../dist/pyspark_upsert_kafka-${{ version }}.tar.gz"}
