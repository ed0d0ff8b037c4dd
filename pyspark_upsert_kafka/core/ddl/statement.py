"""What a ``CREATE TABLE`` statement says, each part with its place."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql.types import DataType

from pyspark_upsert_kafka.core.ddl.tokens import Place


@dataclass(frozen=True)
class Name:
    """A name, as it is written."""

    text: str
    place: Place


@dataclass(frozen=True)
class Column:
    """A column of the messages, or one that shows their metadata.

    Args:
        name: Its name.
        type: Its type in Spark.
        nullable: Whether it may be NULL.
        metadata: The metadata key of a ``METADATA`` column; None = the column is in the messages.
        virtual: Whether it is for reading only.
    """

    name: Name
    type: DataType
    nullable: bool
    metadata: Name | None
    virtual: bool


@dataclass(frozen=True)
class Watermark:
    """``WATERMARK FOR column AS column - delay``.

    Args:
        column: The column of event time.
        delay: How late rows may be, as ``withWatermark`` takes it.
    """

    column: Name
    delay: str


@dataclass(frozen=True)
class WithOption:
    """An option of the ``WITH`` clause; its value may be secret."""

    name: Name
    value: str

    def __repr__(self) -> str:
        return f"WithOption({self.name.text!r})"


@dataclass(frozen=True)
class CreateTable:
    """A ``CREATE TABLE`` statement.

    Args:
        name: The table's name, its catalog and database first where they are given.
        place: Where it begins.
        columns: Its columns.
        primary_key: Columns of the primary key, in its order.
        watermark: Its watermark.
        options: The options in ``WITH``.
    """

    name: tuple[str, ...]
    place: Place
    columns: tuple[Column, ...]
    primary_key: tuple[Name, ...] = ()
    watermark: Watermark | None = None
    options: tuple[WithOption, ...] = ()
