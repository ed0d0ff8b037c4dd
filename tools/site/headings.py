"""Anchors of headings, as GitHub makes them: pages are read in both places."""

from __future__ import annotations

import re
from collections.abc import Callable

_NOT_IN_ANCHORS = re.compile(r"[^\w\- ]")


def github_anchors() -> Callable[[str, str], str]:
    """What Markdown's table of contents calls with a heading and a separator."""
    return github_anchor


def github_anchor(heading: str, separator: str = "-") -> str:
    """The anchor of a heading.

    Args:
        heading: Its text, without markup.
        separator: What stands for a blank.
    """
    return _NOT_IN_ANCHORS.sub("", heading.lower()).replace(" ", separator)
