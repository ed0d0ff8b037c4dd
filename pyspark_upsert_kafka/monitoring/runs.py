"""Runs of queries: when Spark last reported on each, and how many have failed."""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True)
class QueryRuns:
    """The runs of a query in this program.

    Args:
        name: The query's name; without one its id.
        query_id: The query's id, which a restart keeps.
        reported_at: When Spark last reported a micro-batch, or that there was nothing to do, in seconds since 1970; None =
            the query does not run.
        failures: How many of its runs have ended with an error.
    """

    name: str
    query_id: str
    reported_at: float | None = None
    failures: int = 0

    def reported(self, at: float) -> QueryRuns:
        """After a report of Spark.

        >>> QueryRuns("copy", "7").reported(12.5)
        QueryRuns(name='copy', query_id='7', reported_at=12.5, failures=0)
        """
        return replace(self, reported_at=at)

    def ended(self, *, with_error: bool) -> QueryRuns:
        """After the end of a run.

        >>> QueryRuns("copy", "7", 12.5, failures=1).ended(with_error=True)
        QueryRuns(name='copy', query_id='7', reported_at=None, failures=2)
        """
        return replace(self, reported_at=None, failures=self.failures + with_error)
