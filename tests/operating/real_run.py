"""A real Prometheus with the folder `operating` beside a real query: ``make test-operating`` (apt-get install prometheus).

Not part of ``make test``.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlencode
from urllib.request import urlopen

import pytest
from prometheus_client import CollectorRegistry, start_http_server
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.streaming import StreamingQuery

from pyspark_upsert_kafka import ProgressListener, upsert_sink
from pyspark_upsert_kafka.kafka.local.ports import free_port
from tests.conftest import Broker, options
from tests.spark.conftest import eventually, spark  # noqa: F401 - a fixture
from tests.spark.streams import SCHEMA, message, read
from tests.unit.test_operating import expressions, rules

ROOT = Path(__file__).parents[2]
ERROR = "_error STRUCT<stage: STRING, message: STRING, key: BINARY, value: BINARY>"
CONFIG = """
global: {{scrape_interval: 1s, evaluation_interval: 1s}}
rule_files: ["{rules}"]
scrape_configs: [{{job_name: pyspark_upsert_kafka, static_configs: [{{targets: ["127.0.0.1:{metrics}"]}}]}}]
"""


class Prometheus:
    """A server that answers at an address."""

    def __init__(self, address: str) -> None:
        self._address = address

    def asked(self, path: str, **parameters: str) -> Any:
        """What its API answers; None = it does not answer yet."""
        try:
            with urlopen(f"{self._address}/api/v1/{path}?{urlencode(parameters)}") as answer:
                return json.load(answer)["data"]
        except OSError:
            return None

    def values(self, expression: str) -> list[Any]:
        """The result of an expression, now."""
        return list((self.asked("query", query=expression) or {"result": []})["result"])

    def alerts(self) -> dict[str, str]:
        """The alerts that fire, or will fire when their time is over."""
        found = (self.asked("alerts") or {"alerts": []})["alerts"]
        return {alert["labels"]["alertname"]: alert["state"] for alert in found}


@contextmanager
def prometheus(folder: Path, metrics: int) -> Iterator[Prometheus]:
    """A server with the alerts that reads the metrics at a port every second."""
    port = free_port()
    config = folder / "prometheus.yml"
    config.write_text(CONFIG.format(rules=ROOT / "operating" / "alerts.yml", metrics=metrics))
    command = [
        str(shutil.which("prometheus")), f"--config.file={config}", f"--storage.tsdb.path={folder / 'data'}",
        f"--web.listen-address=127.0.0.1:{port}",
    ]  # fmt: skip
    with (folder / "log").open("wb") as log, subprocess.Popen(command, stderr=log) as process:
        try:
            yield Prometheus(f"http://127.0.0.1:{port}")
        finally:
            process.terminate()


def test_dashboard_and_alerts_beside_a_query(
    spark: SparkSession,  # noqa: F811
    broker: Broker,
    tmp_path: Path,
) -> None:
    """Each panel shows something; bad messages and a failure raise their alerts, and nothing else does."""
    topic = broker.topic(partitions=2)
    for partition in (0, 1):
        broker.produce(topic, *[message(1)] * 10, partition=partition)
    listener, registry, port = (
        ProgressListener(),
        CollectorRegistry(auto_describe=True),
        free_port(),
    )
    registry.register(listener.metrics)
    server, serving = start_http_server(port, addr="127.0.0.1", registry=registry)
    spark.streams.addListener(listener)
    rows = read(
        spark, broker, topic, f"{SCHEMA}, {ERROR}",
        **{"error-handling.mode": "column", "maxOffsetsPerTrigger": 5},
    ).observe("quality", f.count("_error").alias("bad_messages"))  # fmt: skip
    try:
        with prometheus(tmp_path, port) as asked:
            query = (
                rows.writeStream.foreachBatch(_copies_until(7, options(broker, broker.topic())))
                .queryName("copy")
                .option("checkpointLocation", str(tmp_path / "checkpoint"))
                .start()
            )
            eventually(lambda: _are_shown(query, asked), "values in each panel")
            eventually(lambda: _lag(listener, query) == 0, "the last batch")
            assert asked.alerts() == {}
            reported, number = _reported(registry, query.id), listener.batches[query.id].number
            eventually(
                lambda: _reported(registry, query.id) > reported, "a report of an idle query"
            )
            assert listener.batches[query.id].number == number
            broker.produce(topic, ("{", "{"), partition=0)
            eventually(
                lambda: asked.alerts() == {"UpsertKafkaBadMessages": "firing"}, "bad messages"
            )
            broker.produce(topic, message(7), partition=0)
            with pytest.raises(StreamingQueryException):
                query.awaitTermination()
            eventually(
                lambda: (
                    asked.alerts()
                    == {
                        "UpsertKafkaQueryFailed": "firing",
                        "UpsertKafkaQueryGone": "pending",
                        "UpsertKafkaBadMessages": "firing",
                    }
                ),
                "the failure",
            )
            groups = asked.asked("rules")["groups"]
            health = {rule["name"]: rule["health"] for group in groups for rule in group["rules"]}
            assert health == dict.fromkeys(rules(), "ok")
    finally:
        spark.streams.removeListener(listener)
        server.shutdown()
        server.server_close()
        serving.join()


def _are_shown(query: StreamingQuery, asked: Prometheus) -> bool:
    """Whether each panel has something to show."""
    assert query.isActive, query.exception()
    return all(map(asked.values, map(_without_variables, expressions())))


def _lag(listener: ProgressListener, query: StreamingQuery) -> int | None:
    (source,) = listener.batches[query.id].sources
    return source.total_lag


def _reported(registry: CollectorRegistry, query: str) -> float:
    labels = {"query": "copy", "query_id": query}
    found = registry.get_sample_value("upsert_kafka_last_report_timestamp_seconds", labels)
    assert found is not None
    return found


def _without_variables(expression: str) -> str:
    """As Grafana asks when all queries and topics are chosen."""
    return re.sub(r"\$__\w+", "30s", re.sub(r"\$(query|topic)", ".*", expression))


def _copies_until(id_: int, target: dict[str, str]) -> Callable[[DataFrame, int], None]:
    """Writes to a topic, and fails when it meets a row."""
    sink = upsert_sink(target)

    def write(batch: DataFrame, number: int) -> None:
        if id_ in [row["id"] for row in batch.collect()]:
            raise RuntimeError("the sink fails as it was told to")
        sink(batch.where("id IS NOT NULL").select("id", "name"), number)

    return write
