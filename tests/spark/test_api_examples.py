"""The example of each public name runs: what the pages of the Python API show works as it stands there."""

from __future__ import annotations

import inspect
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.streaming import StreamingQuery

import pyspark_upsert_kafka
from tests.conftest import Broker
from tests.spark.conftest import eventually
from tests.spark.pages import check_page
from tools.site.api import ALIASES, examples

ON_A_LAKE = {"merge_sink"}
"""tests/lakehouse/test_example.py runs these."""

PROGRAMS = {
    name: programs
    for name in pyspark_upsert_kafka.__all__
    if name not in {*ON_A_LAKE, *ALIASES}
    and (programs := examples(inspect.getdoc(getattr(pyspark_upsert_kafka, name)) or ""))
}


LONG = {
    **dict.fromkeys(
        ("LocalAcl", "LocalCertificates", "LocalKafka", "LocalSecurity"), "starts a broker"
    ),
    **dict.fromkeys(
        ("ProgressListener", "UpsertKafkaDataSource", "normalize_changelog", "run_sql"), "a query"
    ),
}
"""Why they take long."""


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.long(LONG[name])) if name in LONG else name
        for name in PROGRAMS
    ],
)
def test_the_example_of_a_public_name_runs(
    name: str,
    spark: SparkSession,
    namespace: dict[str, object],
    broker: Broker,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """With nothing but a session, and topics that are there; a query that it starts does not fail."""
    page = tmp_path / f"{name}.md"
    page.write_text("".join(f"```python\n{program}```\n" for program in PROGRAMS[name]))
    namespace["spark"] = spark

    check_page(page, namespace, broker, tmp_path, lambda: capsys.readouterr().out)

    for query in spark.streams.active:
        eventually(lambda: _has_run(query), "a batch")  # noqa: B023
        query.stop()
        if error := query.exception():
            raise error


def _has_run(query: StreamingQuery) -> bool:
    """It has read rows, or found none.

    ``processAllAvailable`` is no answer here: where the source is ``rate`` and a batch takes longer than a second, as on a
    busy machine, there are always new rows, and it waits forever.
    """
    waits = query.status["message"] == "Waiting for data to arrive"
    return waits or not query.isActive or any(each.numInputRows for each in query.recentProgress)
