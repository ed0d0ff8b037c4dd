"""The supervisor of docs/operating.md, and what it does with a query that ends."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql.streaming import StreamingQuery

from pyspark_upsert_kafka import why_it_ended
from pyspark_upsert_kafka.core.query_end import QueryEnd
from tests.spark.pages import ROOT, snippets

Start = Callable[[], StreamingQuery]


def supervisor() -> Callable[..., None]:
    """The function of the page."""
    page = (ROOT / "docs" / "operating.md").read_text(encoding="utf-8")
    names: dict[str, Any] = {}
    exec(snippets(page)[0].code, names)
    supervise: Callable[..., None] = names["supervise"]
    return supervise


def supervised_end(start: Start) -> QueryEnd:
    """Why a query has ended that the supervisor of the page did not start again.

    Args:
        start: Starts the query, and sees to it that it ends.
    """
    started: list[StreamingQuery] = []

    def counted() -> StreamingQuery:
        started.append(start())
        return started[-1]

    try:
        with pytest.raises(PySparkException) as raised:
            supervisor()(counted, pause_s=0.1)
    finally:
        for query in started:
            query.stop()
    assert len(started) == 1
    reported = started[0].exception()
    assert reported is not None
    end, again = why_it_ended(raised.value), why_it_ended(reported)
    assert (again.error, again.restart) == (end.error, end.restart), "both ways to the exception"
    assert end.error is None or again.text == end.text  # Spark begins its own text in two ways
    return end
