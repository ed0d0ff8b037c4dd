"""The statements of a script, each with its place."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from sqlglot import exp

from pyspark_upsert_kafka.core.ddl import TableDefinition
from pyspark_upsert_kafka.core.ddl.statement import Name
from pyspark_upsert_kafka.core.ddl.tokens import Place
from pyspark_upsert_kafka.sql.changelog_calls import ChangelogCall

Path = tuple[str, ...]
"""The name of a table or view: its catalog and database first where they are given."""

_OURS = ("default_catalog", "default_database")


def without_default(path: Path) -> Path:
    """The name without Flink's default catalog and database, which a script need not write.

    >>> without_default(("default_catalog", "default_database", "t")), without_default(("d", "t"))
    (('t',), ('d', 't'))
    """
    for name in _OURS:
        if len(path) > 1 and path[0] == name:
            path = path[1:]
    return path


@dataclass(frozen=True)
class Query:
    """A ``SELECT``, ``VALUES`` or ``WITH``.

    Args:
        tree: The query as sqlglot reads it; its nodes have their place as an offset in the script.
        place: Where it begins.
        script: The script.
        calls: Its calls of FROM_CHANGELOG and TO_CHANGELOG, by their offset in the script.
    """

    tree: exp.Expr
    place: Place
    script: str = field(repr=False)
    calls: Mapping[int, ChangelogCall] = field(default_factory=dict, repr=False, hash=False)


@dataclass(frozen=True)
class CreateTable:
    """``CREATE TABLE``.

    Args:
        place: Where it begins.
        path: The table's name.
        text: The statement, as option ``ddl`` takes it; it may hold secrets.
        definition: What it means.
        unless_exists: Whether an existing table of that name is kept (IF NOT EXISTS).
    """

    place: Place
    path: Path
    text: str = field(repr=False)
    definition: TableDefinition
    unless_exists: bool = False


@dataclass(frozen=True)
class CreateView:
    """``CREATE VIEW``.

    Args:
        place: Where it begins.
        path: The view's name.
        columns: Names of its columns; none = those of the query.
        query: What it shows.
        unless_exists: Whether an existing view of that name is kept (IF NOT EXISTS).
    """

    place: Place
    path: Path
    columns: tuple[Name, ...]
    query: Query
    unless_exists: bool = False


@dataclass(frozen=True)
class OnConflict:
    """``ON CONFLICT``: what is done with rows of the query that have another key than the table.

    Args:
        place: Where it begins.
        strategy: What stands behind DO.
    """

    place: Place
    strategy: Literal["ERROR", "NOTHING", "DEDUPLICATE"]


@dataclass(frozen=True)
class Insert:
    """``INSERT INTO``.

    Args:
        place: Where the table's name stands.
        path: The table's name.
        columns: The columns that are filled, in the order of the query's columns; empty = all.
        query: The rows.
        on_conflict: Its last clause.
    """

    place: Place
    path: Path
    columns: tuple[Name, ...]
    query: Query
    on_conflict: OnConflict | None = None


@dataclass(frozen=True)
class Select:
    """A query whose rows are printed."""

    query: Query


@dataclass(frozen=True)
class Set:
    """``SET 'key' = 'value'``, or ``RESET``.

    Args:
        place: Where it begins.
        key: The setting; None = all of them.
        value: Its value; None = that with which the script begins.
    """

    place: Place
    key: Name | None
    value: str | None


@dataclass(frozen=True)
class ShowSettings:
    """``SET`` alone, which shows the settings."""

    place: Place


@dataclass(frozen=True)
class Drop:
    """``DROP TABLE`` or ``DROP VIEW``.

    Args:
        place: Where the name stands.
        kind: What is dropped.
        path: Its name.
        if_exists: Whether there may be none.
    """

    place: Place
    kind: Literal["TABLE", "VIEW"]
    path: Path
    if_exists: bool = False


Statement = CreateTable | CreateView | Insert | Select | Set | ShowSettings | Drop
