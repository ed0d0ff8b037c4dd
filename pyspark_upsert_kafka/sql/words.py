"""Sentences about names that are not there."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


def ended(sentence: str, name: str, known: Iterable[str]) -> str:
    """A sentence about a name that is not there, with its end: the name that may be meant, or all that there are.

    >>> ended("there is no table 'pageview'", "pageview", ["pageviews", "users"])
    "there is no table 'pageview'; did you mean 'pageviews'?"
    >>> ended("there is no view 'v'", "v", [])
    "there is no view 'v'."
    """
    known = list(known)
    if found := get_close_matches(name, known, n=1):
        return f"{sentence}; did you mean '{found[0]}'?"
    return f"{sentence}; there are: {', '.join(known)}." if known else f"{sentence}."
