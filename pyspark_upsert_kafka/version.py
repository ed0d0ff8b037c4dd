"""The version: in a clone that of its commit, else that of the installed distribution.

The build runs this file alone (``tool.hatch.version`` in pyproject.toml), so it imports nothing of the package.
"""

from __future__ import annotations

import os
import re
import subprocess
from importlib.metadata import version
from pathlib import Path

_ROOT = Path(__file__).parents[1]
_OTHER_REPOSITORY = {"GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_COMMON_DIR"}
"""With these, git speaks of the repository whose hook runs this program."""

_HEADING = re.compile(r"^## \[(\d+\.\d+\.\d+)\]", re.MULTILINE)


def current_version(root: Path = _ROOT) -> str:
    """The version of the package that runs.

    The number of an editable install is as old as the installation, so a clone is asked for its commit.

    Args:
        root: The folder that holds the package.
    """
    if (root / ".git").exists() and (root / "CHANGELOG.md").exists():
        return version_of_tree(root)
    return version("pyspark-upsert-kafka")


def version_of_tree(root: Path = _ROOT) -> str:
    """The version that a build of a source tree gets.

    It begins with the newest version of CHANGELOG.md. A commit with the tag ``v0.2.0`` is ``0.2.0``. Every other one
    is ``0.2.0.dev623+g5aff5aa12``: the number of commits that the clone has (a shallow clone has few), and which commit
    it is. Tags of other versions change nothing, so a clone without tags will do. A source tree without git, or whose
    git cannot be asked, is ``0.2.0.dev0``.

    Args:
        root: The folder with CHANGELOG.md.
    """
    release = newest_release((root / "CHANGELOG.md").read_text(encoding="utf-8"))
    commit = _git(root, "rev-parse", "--short=9", "HEAD") if (root / ".git").exists() else None
    if commit is None:
        return f"{release}.dev0"
    changed = _git(root, "status", "--porcelain", "--untracked-files=no")
    if not changed and f"v{release}" in (_git(root, "tag", "--points-at", "HEAD") or "").split():
        return release
    count = _git(root, "rev-list", "--count", "HEAD")
    return f"{release}.dev{count}+g{commit}{'.changed' if changed else ''}"


def newest_release(changelog: str) -> str:
    """The version of the first heading that has one.

    >>> newest_release("## [0.2.0] - Unreleased")
    '0.2.0'

    Raises:
        ValueError: There is no such heading.
    """
    heading = _HEADING.search(changelog)
    if heading is None:
        raise ValueError("CHANGELOG.md has no heading such as '## [0.2.0] - Unreleased'")
    return heading[1]


def _git(root: Path, *arguments: str) -> str | None:
    """What git prints; None = it is not installed, or refuses."""
    # It only reads: the lock that a refreshed index needs could stop a commit that runs now.
    command = ["git", "--no-optional-locks", "-C", str(root), *arguments]
    environment = {key: each for key, each in os.environ.items() if key not in _OTHER_REPOSITORY}
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    except (OSError, subprocess.CalledProcessError):
        return None
    return done.stdout.strip()
