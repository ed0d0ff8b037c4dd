"""The name of a table in a Spark catalog, or the path of a table of Delta Lake."""

from __future__ import annotations

import re
from dataclasses import dataclass

from pyspark_upsert_kafka.core.errors import OptionError
from pyspark_upsert_kafka.core.table.names import quoted

_PART = re.compile(r"`((?:[^`]|``)+)`|([^`.\s]+)")
_ABSOLUTE_PATH = re.compile(r"/|[A-Za-z][A-Za-z0-9+.-]*:/")


@dataclass(frozen=True)
class TableName:
    """A table, as statements name it.

    Args:
        parts: The parts of its name, the catalog first if it is named; for a path ``delta`` and the path.
        is_path: Whether it is a path of Delta Lake.
    """

    parts: tuple[str, ...]
    is_path: bool = False

    @property
    def sql(self) -> str:
        """The name in Spark's SQL."""
        return ".".join(map(quoted, self.parts))

    def __str__(self) -> str:
        return self.parts[1] if self.is_path else ".".join(self.parts)


def table_name(text: str) -> TableName:
    """Reads the name of a table.

    Args:
        text: ``catalog.database.table``, with parts in backticks where they need them, or an absolute path.

    Raises:
        OptionError: It is neither.

    >>> table_name("lake.db.users").sql, table_name("/tmp/users").sql, table_name("`a.b`.c").parts
    ('`lake`.`db`.`users`', '`delta`.`/tmp/users`', ('a.b', 'c'))
    """
    if not isinstance(text, str) or not text.strip():
        raise OptionError(
            f"merge_sink: table is the name of a table or the path of a Delta table, and is {text!r}."
        )
    text = text.strip()
    if "/" in text and "`" not in text:
        return TableName(("delta", _absolute(text)), is_path=True)
    parts = _parts(text)
    if len(parts) == 2 and parts[0].lower() == "delta" and "/" in parts[1]:
        return TableName(("delta", _absolute(parts[1])), is_path=True)
    return TableName(parts)


def _absolute(path: str) -> str:
    if not _ABSOLUTE_PATH.match(path):
        raise OptionError(
            f"merge_sink: the path of a table is absolute, as in '/lake/users' or 's3a://lake/users', and table is {path!r}."
        )
    return path


def _parts(text: str) -> tuple[str, ...]:
    parts, place = [], 0
    while match := _PART.match(text, place):
        in_backticks, plain = match.groups()
        parts.append(plain or in_backticks.replace("``", "`"))
        place = match.end()
        if place == len(text):
            return tuple(parts)
        if text[place] != ".":
            break
        place += 1
    raise OptionError(
        f"merge_sink: table is {text!r}, which is no name of a table: parts are separated by dots, and one with other "
        "characters than letters, digits and underscores stands in backticks, as in lake.db.`my table`."
    )
