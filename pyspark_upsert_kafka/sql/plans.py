"""What a script does, statement after statement."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from pyspark.sql.types import StructField

from pyspark_upsert_kafka.core.ddl.tokens import Place
from pyspark_upsert_kafka.sql.settings import Settings
from pyspark_upsert_kafka.sql.tables import Table
from pyspark_upsert_kafka.sql.translation import SparkQuery

Mode = Literal["streaming", "batch"]


@dataclass(frozen=True)
class Step:
    """An ``INSERT INTO``, or a ``SELECT`` whose rows are printed.

    Args:
        place: Where its query stands.
        query: What it reads.
        settings: What holds for it.
        table: The table that it writes; None = its rows are printed.
        columns: The columns of that table that it fills.
    """

    place: Place
    query: SparkQuery
    settings: Settings
    table: Table | None = None
    columns: tuple[StructField, ...] = ()

    @property
    def is_stream(self) -> bool:
        """Whether it runs until it is stopped, or its tables end."""
        return self.query.rows is not None

    @property
    def is_bounded(self) -> bool:
        """Whether each of its tables has an end."""
        ends = [table.check_read(batch=False).end for table in self.query.tables.values()]
        return all(end.kind != "unbounded" for end in ends)


@dataclass(frozen=True)
class Plan:
    """What a script does.

    Args:
        steps: What it does, in this order.
        settings: Those that hold at its end.
        notes: What is to be told of it.
    """

    steps: tuple[Step, ...]
    settings: Settings
    notes: tuple[str, ...] = ()

    @property
    def time_zone(self) -> str | None:
        """That of its statements; None = as it is."""
        return self.steps[0].settings.time_zone if self.steps else None
