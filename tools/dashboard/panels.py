"""The panels of the dashboard: what each asks Prometheus, and what a person should know who looks at it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

QUERY = 'query=~"$query"'
"""The queries that are chosen at the top of the dashboard."""

_TOPIC = f'{QUERY},topic=~"$topic"'
_STEP = "$__rate_interval"


@dataclass(frozen=True)
class Panel:
    """A panel.

    Args:
        title: What it shows.
        description: What a person should know who looks at it.
        expressions: In PromQL, with the name of their series in the legend.
        unit: Grafana's name of the unit.
        width: Of 24.
        type: Grafana's name of the kind of panel.
        defaults: More of its fields.
    """

    title: str
    description: str
    expressions: dict[str, str]
    unit: str = "short"
    width: int = 12
    type: str = "timeseries"
    defaults: dict[str, Any] | None = None


def _stat(title: str, description: str, expression: str, unit: str = "short") -> Panel:
    return Panel(title, description, {"": expression}, unit, width=6, type="stat")


PANELS = (
    _stat(
        "Running queries",
        "Queries that have a sample now.",
        f"count(count by (query_id) (upsert_kafka_batch_seconds{{{QUERY}}})) or vector(0)",
    ),
    _stat(
        "Lag",
        "Offsets that were there when the newest micro-batches were planned, and that these left.",
        f"sum(upsert_kafka_lag{{{_TOPIC}}})",
    ),
    _stat(
        "Failures",
        "Runs of queries that ended with an error in the time that is shown.",
        f"sum(increase(upsert_kafka_query_failures_total{{{QUERY}}}[$__range]))",
    ),
    _stat(
        "Bad messages",
        "In the time that is shown. No data = 'error-handling.mode' does not let a query count them.",
        f"sum(increase(upsert_kafka_bad_messages_total{{{QUERY}}}[$__range]))",
    ),
    Panel(
        "State of queries",
        "'reports' = a micro-batch was finished, or there was nothing to do, in the last 15 minutes. A gap = it does not run.",
        {"{{query}}": f"time() - upsert_kafka_last_report_timestamp_seconds{{{QUERY}}} < bool 900"},
        width=24,
        type="state-timeline",
        defaults={
            "mappings": [
                {
                    "type": "value",
                    "options": {
                        "0": {"text": "silent", "color": "red", "index": 0},
                        "1": {"text": "reports", "color": "green", "index": 1},
                    },
                }
            ]
        },
    ),
    Panel(
        "Lag per partition",
        "Without a limit on micro-batches it is 0 after each: look at rows and at the duration of micro-batches.",
        {
            "{{query}} {{topic}} {{partition}}": f"max by (query, topic, partition) (upsert_kafka_lag{{{_TOPIC}}})"
        },
    ),
    Panel(
        "Lag in open transactions",
        "Offsets that cannot be read before a transaction ends, after the newest micro-batch.",
        {
            "{{query}} {{topic}} {{partition}}": "max by (query, topic, partition) "
            f"(upsert_kafka_lag_in_open_transactions{{{_TOPIC}}})"
        },
    ),
    Panel(
        "Lag per topic",
        "The sum over the partitions.",
        {"{{query}} {{topic}}": f"sum by (query, topic) (upsert_kafka_lag{{{_TOPIC}}})"},
    ),
    Panel(
        "Rows per second",
        "Rows that Spark took from each source. A DataFrame that is read twice in a micro-batch counts twice.",
        {
            "{{query}} source {{source}}": f"sum by (query, source) (rate(upsert_kafka_rows_total{{{QUERY}}}[{_STEP}]))"
        },
        unit="rowsps",
    ),
    Panel(
        "Messages written per second",
        "What brokers have confirmed to the sinks of each query. No data = the listener does not run on the driver's machine.",
        {
            "{{query}} rows": f"sum by (query) (rate(upsert_kafka_written_rows_total{{{QUERY}}}[{_STEP}]))",
            "{{query}} tombstones": f"sum by (query) (rate(upsert_kafka_written_tombstones_total{{{QUERY}}}[{_STEP}]))",
        },
        unit="mps",
    ),
    Panel(
        "Bytes written per second",
        "Of their keys and values.",
        {
            "{{query}}": f"sum by (query) (rate(upsert_kafka_written_bytes_total{{{QUERY}}}[{_STEP}]))"
        },
        unit="Bps",
    ),
    Panel(
        "Duration of micro-batches",
        "Of the newest micro-batch of each query.",
        {"{{query}}": f"max by (query) (upsert_kafka_batch_seconds{{{QUERY}}})"},
        unit="s",
    ),
    Panel(
        "Bad messages per minute",
        "Messages that could not be decoded, where they are counted.",
        {
            "{{query}} source {{source}}": f"60 * sum by (query, source) (rate(upsert_kafka_bad_messages_total{{{QUERY}}}[{_STEP}]))"
        },
    ),
    Panel(
        "Time since the last report",
        "Of a micro-batch, or that there was nothing to do, which Spark says every ten seconds.",
        {
            "{{query}}": f"time() - max by (query) (upsert_kafka_last_report_timestamp_seconds{{{QUERY}}})"
        },
        unit="s",
    ),
    Panel(
        "Offsets per second",
        "How fast the position in each topic moves.",
        {
            "{{query}} {{topic}}": f"sum by (query, topic) (deriv(upsert_kafka_position{{{_TOPIC}}}[{_STEP}]))"
        },
    ),
    Panel(
        "Position",
        "The next offset to read in each partition.",
        {"": f"max by (query, topic, partition) (upsert_kafka_position{{{_TOPIC}}})"},
        unit="none",
        type="table",
    ),
)
