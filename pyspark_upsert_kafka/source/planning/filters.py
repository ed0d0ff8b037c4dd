"""Filters that Spark gives to a batch read, and the reader that takes them."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import Any

from pyspark.sql.datasource import DataSourceReader

from pyspark_upsert_kafka.core.errors import OptionError
from pyspark_upsert_kafka.core.options import ReadOptions
from pyspark_upsert_kafka.core.positions.conditions import Condition
from pyspark_upsert_kafka.core.table import Table
from pyspark_upsert_kafka.source.planning.batch import BatchReader
from pyspark_upsert_kafka.source.planning.narrowing import Narrowing

_WORKER = "pyspark.sql.worker.data_source_pushdown_filters"
"""The program of the process that Spark starts to give filters to a reader; it does so only while its setting
``spark.sql.python.filterPushdown.enabled`` is true."""


def batch_reader(table: Table, options: ReadOptions) -> BatchReader:
    """The reader of a batch: one that takes filters, if that is asked and if this process was started for it.

    In every other process Spark plans without filters, and there it rejects a reader that could take them while its setting
    is off.

    Raises:
        OptionError: Filters are asked for, and this PySpark gives none.
    """
    if options.takes_filters and not hasattr(DataSourceReader, "pushFilters"):
        raise OptionError(
            "'scan.filter-pushdown' needs PySpark 4.1 or newer: the Python data source API of 4.0 does not pass filters. "
            "Leave the option out."
        )
    reader = FilteredReader if options.takes_filters and _is_given_filters() else BatchReader
    return reader(table, options)


def _is_given_filters() -> bool:
    """Whether this process was started to give filters to a reader: as a program, or by Spark's daemon for Python."""
    spec = getattr(sys.modules.get("__main__"), "__spec__", None)
    return _WORKER in sys.modules or getattr(spec, "name", None) == _WORKER


class FilteredReader(BatchReader):
    """Reads what the filters of a query leave; Spark applies each of them again."""

    def pushFilters(self, filters: list[Any]) -> Iterable[Any]:
        """Notes the filters, and returns all of them: those that Spark has to apply."""
        self._narrowing = Narrowing(self._table, self._options, conditions(filters))
        return filters


def conditions(filters: Sequence[Any]) -> tuple[Condition, ...]:
    """Spark's filters on whole columns, as conditions. PySpark 4.0 has no such classes, so they are known by their names."""
    found = []
    for each in filters:
        is_negated = type(each).__name__ == "Not"
        test = each.child if is_negated else each
        if len(test.attribute) == 1:
            (column,), name = test.attribute, type(test).__name__
            found.append(Condition(column, name, _constants(test), is_negated))
    return tuple(found)


def _constants(test: Any) -> tuple[Any, ...]:
    if not hasattr(test, "value"):
        return ()
    return tuple(test.value) if type(test).__name__ == "In" else (test.value,)
