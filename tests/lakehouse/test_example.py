"""The example of `merge_sink` runs: with Iceberg, which has a catalog of that name."""

from __future__ import annotations

import inspect

import pytest

from pyspark_upsert_kafka import merge_sink
from tests.conftest import Broker
from tests.lakehouse.engines import ICEBERG, Lake
from tests.spark.pages import check_page
from tools.site.api import examples


@pytest.mark.skipif(not ICEBERG.fits, reason="the example's catalog is one of Iceberg")
def test_the_example_of_merge_sink_runs(
    lake: Lake, broker: Broker, capsys: pytest.CaptureFixture[str]
) -> None:
    """What the page of the Python API shows works as it stands there."""
    (program,) = examples(inspect.getdoc(merge_sink) or "")
    page = lake.folder / "merge_sink.md"
    page.write_text(f"```python\n{program}```\n")

    names: dict[str, object] = {"spark": lake.session}
    # A folder of its own: a page has a query of the same name.
    check_page(page, names, broker, lake.folder / "example", lambda: capsys.readouterr().out)

    for query in lake.session.streams.active:
        query.processAllAvailable()
        query.stop()
