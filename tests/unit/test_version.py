"""The version moves with commits, and needs no tags."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path

import pytest

from pyspark_upsert_kafka.version import current_version, newest_release, version_of_tree
from tests.git import git


def commit(root: Path, text: str) -> str:
    """Commits a change; the id of the commit."""
    (root / "module.py").write_text(text)
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "--message", text)
    return git(root, "rev-parse", "--short=9", "HEAD")


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A repository with one commit and no tag."""
    root = tmp_path / "clone"
    root.mkdir()
    git(root, "init", "--quiet")
    (root / "CHANGELOG.md").write_text(
        "# Changelog\n\n## [1.2.0] - Unreleased\n\n## [1.1.0] - 2026-01-02\n"
    )
    commit(root, "first")
    return root


def test_each_commit_has_a_number_of_its_own(clone: Path) -> None:
    """A clone without tags is enough; later commits have greater numbers."""
    first = version_of_tree(clone)
    second = commit(clone, "second")

    assert first.startswith("1.2.0.dev1+g")
    assert version_of_tree(clone) == f"1.2.0.dev2+g{second}"


def test_the_tagged_commit_is_the_release(clone: Path) -> None:
    """The commit with the tag of CHANGELOG's newest version, and neither the one before nor after it."""
    git(clone, "tag", "v1.2.0")
    assert version_of_tree(clone) == "1.2.0"
    commit(clone, "later")
    assert version_of_tree(clone).startswith("1.2.0.dev2+g")


def test_other_tags_change_nothing(clone: Path) -> None:
    """The number comes from CHANGELOG.md, so that a wrong tag makes no release."""
    git(clone, "tag", "v1.3.0")
    git(clone, "tag", "1.2.0")

    assert version_of_tree(clone).startswith("1.2.0.dev1+g")


def test_changes_that_are_not_committed_show(clone: Path) -> None:
    """A build from a changed tree never has the number of a release; files that git does not know do not count."""
    git(clone, "tag", "v1.2.0")
    (clone / "notes.txt").write_text("not tracked")
    assert version_of_tree(clone) == "1.2.0"
    (clone / "module.py").write_text("changed")
    assert version_of_tree(clone).endswith(".changed")


def test_a_shallow_clone_has_a_version(clone: Path, tmp_path: Path) -> None:
    """It counts the commits that it has; which commit it is can still be seen."""
    second = commit(clone, "second")
    shallow = tmp_path / "shallow"
    git(tmp_path, "clone", "--quiet", "--depth=1", clone.as_uri(), str(shallow))

    assert version_of_tree(shallow) == f"1.2.0.dev1+g{second}"


def test_a_tree_outside_git(clone: Path, tmp_path: Path) -> None:
    """An archive of the sources, also when it lies in a folder of another repository."""
    unpacked = clone / "unpacked"
    unpacked.mkdir()
    (unpacked / "CHANGELOG.md").write_text("## [2.0.0] - Unreleased\n")

    assert version_of_tree(unpacked) == "2.0.0.dev0"


def test_git_that_cannot_be_asked(clone: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine without git, as an image of Docker, can install the package from its sources."""
    monkeypatch.setenv("PATH", "/nowhere")

    assert version_of_tree(clone) == "1.2.0.dev0"


def test_a_hook_of_another_repository(
    clone: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Git names the repository of a hook in the environment: a program that it runs is not a part of that one."""
    git(tmp_path, "init", "--quiet", "other")
    commit(tmp_path / "other", "another history")
    expected = version_of_tree(clone)
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "other" / ".git"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(tmp_path / "other" / ".git" / "index"))

    assert version_of_tree(clone) == expected


def test_an_editable_install_is_never_stale(clone: Path, tmp_path: Path) -> None:
    """In a clone the commit is asked for; elsewhere the installed distribution knows."""
    assert current_version(clone) == version_of_tree(clone)
    assert current_version(tmp_path) == version("pyspark-upsert-kafka")


def test_a_changelog_without_a_version() -> None:
    """The error says which line is missing."""
    with pytest.raises(ValueError, match=r"no heading such as '## \[0\.2\.0\] - Unreleased'"):
        newest_release("# Changelog\n\n## [Unreleased]\n")
