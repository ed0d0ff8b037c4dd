"""What CHANGELOG.md says of a release."""

from __future__ import annotations

import re
from datetime import date

_RELEASE = re.compile(
    r"^## \[(?P<version>[^\]]+)\] - (?P<day>\S+)\n(?P<lines>.*?)(?=^## |\Z)",
    re.DOTALL | re.MULTILINE,
)


class NotReadyError(Exception):
    """Something must be done before this can be released."""


def notes(changelog: str, version: str) -> str:
    """The lines of a version.

    Raises:
        NotReadyError: It has none.
    """
    for release in _RELEASE.finditer(changelog):
        if release["version"] == version and release["lines"].strip():
            return release["lines"].strip() + "\n"
    raise NotReadyError(f"CHANGELOG.md has no lines under '## [{version}] - ...'.")


def check_tag(changelog: str, version: str, tag: str, today: date) -> None:
    """Whether the commit with this tag can be released.

    Args:
        changelog: The text of CHANGELOG.md.
        version: The version of the commit, as its build has it.
        tag: The tag, such as v0.2.0.
        today: A release cannot be dated later.

    Raises:
        NotReadyError: The version is not that of the tag, or has no day, or one that is still to come.
    """
    if tag != f"v{version}":
        raise NotReadyError(
            f"The tag is {tag}, and the version of this commit is {version}. The tag must be that of the newest heading "
            "of CHANGELOG.md, on this commit, and nothing may be changed."
        )
    days = (each["day"] for each in _RELEASE.finditer(changelog) if each["version"] == version)
    day = next(days, "")
    if not _is_day(day) or date.fromisoformat(day) > today:
        raise NotReadyError(
            f"CHANGELOG.md says '## [{version}] - {day}'. Write the day of the release in its place, {today} or earlier."
        )


def _is_day(text: str) -> bool:
    """Whether it is a day that there is, as 2026-12-01."""
    try:
        return date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False
