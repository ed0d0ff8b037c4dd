"""Repositories of tests."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

WHO = {
    f"GIT_{who}_{what}": "a@b.c" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")
}
"""Who commits, as variables of the environment."""


def needs_git() -> None:
    """Skips a test on a machine without git, to which the sources came as an archive."""
    if shutil.which("git") is None:
        pytest.skip("git is not installed")


def git(folder: Path, *arguments: str, environment: Mapping[str, str] | None = None) -> str:
    """What git prints in a folder.

    Args:
        folder: Where it runs.
        arguments: What it is told.
        environment: Its environment; None = that of the tests.
    """
    needs_git()
    given = os.environ if environment is None else environment
    return subprocess.check_output(
        ["git", "-C", str(folder), *arguments], env={**given, **WHO}, text=True
    ).strip()
