"""The arguments of `merge_sink`, checked when it is called; the table is named in a catalog, or by its path."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import TypeVar

from pyspark_upsert_kafka.core.ddl.spark_columns import direction_of, quoted
from pyspark_upsert_kafka.core.errors import OptionError

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


DELETED_COLUMN = "is_deleted"

_Choice = TypeVar("_Choice", bound=Enum)


class Deletes(Enum):
    """What a delete does to the row of its key."""

    HARD = "hard"
    """The row is deleted."""
    SOFT = "soft"
    """The row stays, and a column of it becomes true."""
    IGNORE = "ignore"
    """Nothing."""


class SchemaChanges(Enum):
    """What is done with a column that the table cannot hold."""

    FIXED = "fixed"
    """It is an error."""
    EVOLVE = "evolve"
    """The table gets the column, or a wider type."""


class _FirstBatch(Enum):
    CHANGES = "changes"
    TABLE = "table"


@dataclass(frozen=True)
class MergeSettings:
    """What is merged into which table, and how.

    Args:
        table: The table.
        primary_key: The columns of its key.
        deletes: What a delete does.
        schema: What a new column does.
        unavailable: The text that stands for a value that was not sent; None = there is none.
        deleted_column: The column that says that a row is deleted; None = rows that are deleted do not stay.
        sequence_by: The columns that say which change of a key is newer; none = the order of the log does.
        ignores_nulls: Whether NULL in an update leaves the table's value as it is.
        begins_with_table: Whether the first batch is the whole table, so that rows of other keys are deleted.
        properties: Of the table, when it is created.
    """

    table: TableName
    primary_key: tuple[str, ...]
    deletes: Deletes
    schema: SchemaChanges
    unavailable: str | None
    deleted_column: str | None
    sequence_by: tuple[str, ...] = ()
    ignores_nulls: bool = False
    begins_with_table: bool = False
    properties: Mapping[str, str] = field(default_factory=dict)


def merge_settings(  # noqa: PLR0913
    table: str,
    *,
    primary_key: Sequence[str] | str,
    deletes: str,
    schema: str,
    unavailable: str | None,
    deleted_column: str,
    sequence_by: Sequence[str] | str | None = None,
    ignore_null_updates: bool = False,
    first_batch: str = "changes",
    properties: Mapping[str, str] | None = None,
) -> MergeSettings:
    """The arguments as frozen values.

    Raises:
        OptionError: One is missing or malformed, or contradicts another.
    """
    how = _choice("deletes", deletes, Deletes)
    if unavailable is not None and not (isinstance(unavailable, str) and unavailable):
        raise OptionError(
            "merge_sink: unavailable is the text that stands for a value that was not sent, such as "
            f"'__debezium_unavailable_value', and is {unavailable!r}."
        )
    if not isinstance(ignore_null_updates, bool):
        raise OptionError(
            f"merge_sink: ignore_null_updates must be True or False, and is {ignore_null_updates!r}."
        )
    key = _names("primary_key", primary_key)
    return MergeSettings(
        table_name(table),
        key,
        how,
        _choice("schema", schema, SchemaChanges),
        unavailable,
        _deleted_column(deleted_column, how),
        _sequence_by(sequence_by, key, how),
        ignore_null_updates,
        _begins_with_table(first_batch, how),
        _properties(properties),
    )


def _choice(name: str, value: object, choices: type[_Choice]) -> _Choice:
    for choice in choices:
        if choice.value == value:
            return choice
    known = " or ".join(repr(choice.value) for choice in choices)
    raise OptionError(f"merge_sink: {name} must be {known}, and is {value!r}.")


def _names(argument: str, given: Sequence[str] | str) -> tuple[str, ...]:
    if isinstance(given, str):
        names = [name.strip() for name in given.split(",")]
    else:
        names = list(given) if isinstance(given, Sequence) else []
    if not names or not all(isinstance(name, str) and name for name in names):
        raise OptionError(
            f"merge_sink: {argument} is a list of the names of columns, or a text with commas between them, and is "
            f"{given!r}."
        )
    if len({name.lower() for name in names}) < len(names):
        raise OptionError(f"merge_sink: {argument} = {given!r} names a column twice.")
    return tuple(names)


def _sequence_by(
    given: Sequence[str] | str | None, key: tuple[str, ...], deletes: Deletes
) -> tuple[str, ...]:
    if given is None:
        return ()
    names = _names("sequence_by", given)
    for name in names:
        if name.lower() in {each.lower() for each in key}:
            raise OptionError(
                f"merge_sink: sequence_by = {given!r} names {name!r}, a column of the key, which is the same in all changes of a "
                "key: name the columns that say which change is newer."
            )
        if direction := direction_of(name):
            raise OptionError(
                f"merge_sink: sequence_by = {given!r} ends with {direction}, and takes the names of columns only: the "
                "change with the greatest value stands. For the opposite order, add a column with the negated value."
            )
    if deletes is Deletes.HARD:
        raise OptionError(
            "merge_sink: sequence_by needs deletes = 'soft' or 'ignore', and deletes is 'hard': after a hard delete nothing would be "
            "left to tell that a later change is older."
        )
    return names


def _begins_with_table(first_batch: str, deletes: Deletes) -> bool:
    is_table = _choice("first_batch", first_batch, _FirstBatch) is _FirstBatch.TABLE
    if is_table and deletes is Deletes.IGNORE:
        raise OptionError(
            "merge_sink: first_batch = 'table' deletes the rows whose keys are not in the first batch, and deletes = 'ignore' "
            "keeps them. Set deletes to 'hard' or 'soft', or leave out first_batch."
        )
    return is_table


def _properties(given: Mapping[str, str] | None) -> Mapping[str, str]:
    properties = {} if given is None else given
    if not isinstance(properties, Mapping) or not all(
        isinstance(text, str) and name
        for name, value in properties.items()
        for text in (name, value)
    ):
        raise OptionError(
            "merge_sink: properties are names and values of a table's properties, all of them texts, such as "
            f"{{'format-version': '3'}}, and are {given!r}."
        )
    return dict(properties)


def _deleted_column(name: str, deletes: Deletes) -> str | None:
    if not isinstance(name, str) or not name:
        raise OptionError(
            f"merge_sink: deleted_column must be the name of a column, and is {name!r}."
        )
    if deletes is Deletes.SOFT:
        return name
    if name != DELETED_COLUMN:
        raise OptionError(
            f"merge_sink: deleted_column = {name!r} is for deletes = 'soft', and deletes is {deletes.value!r}: no row that is "
            "deleted stays."
        )
    return None
