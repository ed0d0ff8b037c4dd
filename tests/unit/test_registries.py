"""Where packages come from is the business of who installs them, with the registry or the mirror that they have."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.git import git

ROOT = Path(__file__).parents[2]

ADDRESS = re.compile(
    r"pypi\.(org|io|python\.org)|pythonhosted\.org|anaconda\.(org|com)|conda\.io|repo1?\.maven\.|repo\.maven\.apache"
    r"|search\.maven\.org|central\.sonatype|npmjs\.(org|com)|crates\.io|proxy\.golang\.org|sum\.golang\.org|ghcr\.io"
    r"|docker\.io|quay\.io|packages\.confluent\.io|deb\.debian\.org|prefix\.dev"
)

# LocalKafka downloads Apache Kafka from there, unless MAVEN_CENTRAL_URL names a mirror.
ITS_OWN = {"pyspark_upsert_kafka/kafka/local/jars.py"}


def tracked_files() -> list[str]:
    """The files of the repository."""
    if not (ROOT / ".git").exists():
        pytest.skip("the files of a repository are those that git knows")
    return git(ROOT, "ls-files").splitlines()


def test_no_file_names_the_address_of_a_package_registry() -> None:
    """Workflows name actions, the recipe a path; one module has the address from which the program itself downloads."""
    found = {
        name
        for name in tracked_files()
        if (file := ROOT / name).is_file()
        and ADDRESS.search(file.read_bytes().decode("utf-8", errors="replace"))
    }

    assert found == ITS_OWN
