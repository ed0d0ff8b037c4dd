"""A table as lines of text, like those of Spark's ``show``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pyspark_upsert_kafka.core.errors import printable

NULL = "NULL"


def text_table(names: Sequence[str], columns: Sequence[Sequence[str | None]]) -> Iterator[str]:
    """The lines of a table.

    >>> print(*text_table(["id", "name"], [["1", "20"], ["Ada", None]]), sep=chr(10))
    +--+----+
    |id|name|
    +--+----+
    |1 |Ada |
    |20|NULL|
    +--+----+
    """
    titled = [[cell(name), *map(cell, column)] for name, column in zip(names, columns, strict=True)]
    padded = [_padded(column) for column in titled]
    line = f"+{'+'.join('-' * _width(column[0]) for column in padded)}+"
    header, *rows = (f"|{'|'.join(row)}|" for row in zip(*padded, strict=True))
    yield line
    yield header
    yield line
    yield from rows
    if rows:
        yield line


def cell(text: str | None) -> str:
    r"""What is shown of a value; what a terminal would obey, as an escape, is spelt out.

    >>> cell("a" + chr(27) + "[2J"), cell(None)
    ('a\\x1b[2J', 'NULL')
    """
    return NULL if text is None else printable(text)


def _padded(texts: Sequence[str]) -> list[str]:
    widths = [_width(text) for text in texts]
    widest = max(widths)
    return [text + " " * (widest - width) for text, width in zip(texts, widths, strict=True)]


def _width(text: str) -> int:
    """How many places of a terminal it takes."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)
