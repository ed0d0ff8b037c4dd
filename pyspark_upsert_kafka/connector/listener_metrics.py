"""What a listener knows, as metrics for ``prometheus_client``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from pyspark_upsert_kafka.connector.listener import QueryRuns
from pyspark_upsert_kafka.core.positions.progress import QueryTotals, SourceBatch

_QUERY = ("query", "query_id")
_SOURCE = (*_QUERY, "source")
_PARTITION = (*_SOURCE, "topic", "partition")


class Metrics(Collector):
    """Collects the metrics of all running queries; what is not known has no sample.

    Labels: ``query`` is the query's name, or its id; ``query_id`` its id, which tells queries of one name in several
    sessions apart; ``source`` counts its sources of the format ``upsert-kafka`` from 0.

    Args:
        queries: Gives the running queries.
        runs: Gives the runs of these queries, and of those that have failed.
    """

    def __init__(
        self,
        queries: Callable[[], Iterable[QueryTotals]],
        runs: Callable[[], Iterable[QueryRuns]],
    ) -> None:
        self._queries, self._runs = queries, runs

    def collect(self) -> Iterator[Metric]:
        """The metrics as of now."""
        queries = list(self._queries())
        yield _seconds(queries)
        yield from _counters(queries)
        yield from _written(queries)
        yield from _gauges(queries)
        yield from _runs(list(self._runs()))


def _seconds(queries: Iterable[QueryTotals]) -> Metric:
    seconds = GaugeMetricFamily(
        "upsert_kafka_batch_seconds", "How long the newest micro-batch took", labels=_QUERY
    )
    for query in queries:
        seconds.add_metric(_labels(query), query.newest.seconds)
    return seconds


def _counters(queries: Iterable[QueryTotals]) -> tuple[Metric, Metric]:
    rows = CounterMetricFamily(
        "upsert_kafka_rows", "Rows that Spark took from a source", labels=_SOURCE
    )
    bad = CounterMetricFamily(
        "upsert_kafka_bad_messages", "Messages that could not be decoded", labels=_SOURCE
    )
    for query in queries:
        for number, totals in enumerate(query.sources):
            labels = [*_labels(query), str(number)]
            rows.add_metric(labels, totals.rows)
            if totals.bad_messages is not None:
                bad.add_metric(labels, totals.bad_messages)
    return rows, bad


def _written(queries: Iterable[QueryTotals]) -> tuple[Metric, ...]:
    rows = CounterMetricFamily(
        "upsert_kafka_written_rows", "Messages with a value that brokers confirmed", labels=_QUERY
    )
    tombstones = CounterMetricFamily(
        "upsert_kafka_written_tombstones", "Tombstones that brokers confirmed", labels=_QUERY
    )
    size = CounterMetricFamily(
        "upsert_kafka_written_bytes", "Bytes of the keys and values of both", labels=_QUERY
    )
    for query in queries:
        if query.written is not None:
            rows.add_metric(_labels(query), query.written.rows)
            tombstones.add_metric(_labels(query), query.written.tombstones)
            size.add_metric(_labels(query), query.written.size)
    return rows, tombstones, size


def _gauges(queries: Iterable[QueryTotals]) -> tuple[Metric, Metric, Metric]:
    position = GaugeMetricFamily(
        "upsert_kafka_position", "Next offset after the newest micro-batch", labels=_PARTITION
    )
    lag = GaugeMetricFamily(
        "upsert_kafka_lag",
        "Offsets that were there when the newest micro-batch was planned, and that it left",
        labels=_PARTITION,
    )
    waiting = GaugeMetricFamily(
        "upsert_kafka_lag_in_open_transactions",
        "How many of these wait for transactions that were open then",
        labels=_PARTITION,
    )
    for query, number, source in _sources(queries):
        for tp, behind in source.lag.items():
            labels = [*_labels(query), str(number), tp.topic, str(tp.partition)]
            if tp in source.positions:
                position.add_metric(labels, source.positions[tp])
            if behind is not None:
                lag.add_metric(labels, behind)
            if (waits := source.waiting.get(tp)) is not None:
                waiting.add_metric(labels, waits)
    return position, lag, waiting


def _runs(runs: Iterable[QueryRuns]) -> tuple[Metric, Metric]:
    reported = GaugeMetricFamily(
        "upsert_kafka_last_report_timestamp_seconds",
        "When Spark last reported a micro-batch, or that there was nothing to do",
        labels=_QUERY,
    )
    failures = CounterMetricFamily(
        "upsert_kafka_query_failures", "Runs that have ended with an error", labels=_QUERY
    )
    for each in runs:
        failures.add_metric([each.name, each.query_id], each.failures)
        if each.reported_at is not None:
            reported.add_metric([each.name, each.query_id], each.reported_at)
    return reported, failures


def _sources(queries: Iterable[QueryTotals]) -> Iterator[tuple[QueryTotals, int, SourceBatch]]:
    for query in queries:
        for number, source in enumerate(query.newest.sources):
            yield query, number, source


def _labels(query: QueryTotals) -> list[str]:
    return [query.newest.name, query.newest.query_id]
