"""Where the pages of the documentation are, for texts that people read: an installed package has none of them beside it."""

from __future__ import annotations

_DOCS = "https://github.com/pyspark-upsert-kafka/pyspark-upsert-kafka/tree/main/docs"
"""The address of the documentation in ``pyproject.toml``."""


def page(name: str) -> str:
    """The address of a page, and of a heading on it.

    >>> page("writing.md#when-a-batch-is-done")
    'https://github.com/pyspark-upsert-kafka/pyspark-upsert-kafka/tree/main/docs/writing.md#when-a-batch-is-done'
    """
    return f"{_DOCS}/{name}"
