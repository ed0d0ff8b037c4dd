"""Names that are near to one that is not there."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


def nearest(name: str, known: Iterable[str]) -> str:
    """A hint at the name that may be meant, or all that there are.

    >>> nearest("pageview", ["pageviews", "users"])
    "; did you mean 'pageviews'?"
    """
    known = list(known)
    found = get_close_matches(name, known, n=1)
    if found:
        return f"; did you mean '{found[0]}'?"
    return f"; there are: {', '.join(known)}" if known else ""
