"""Names of columns in Spark's SQL."""

from __future__ import annotations


def quoted(name: str) -> str:
    """A column's name, whatever is in it.

    >>> quoted("a.`b`")
    '`a.``b```'
    """
    return "`" + name.replace("`", "``") + "`"
