"""A driver that is killed at each step of a change of columns, with a table of Iceberg or Delta Lake as the target."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import Broker, options
from tests.lakehouse.engines import Lake
from tests.local_registry import Registry
from tests.spark.columns_program import Job
from tests.spark.killed_columns import PLACES, Story


@pytest.mark.timeout(1800)
@pytest.mark.long("kills a program at each step")
def test_a_table(lake: Lake, broker: Broker, registry: Registry, tmp_path: Path) -> None:
    """Each row has its columns, also if the table got the column before the kill, or its rows; one more comes while no query runs."""
    # Only names in a catalog of files are the same in two programs.
    table = lake.table() if lake.engine.name == "iceberg" else str(tmp_path / "lake" / "rows")
    formats = {"key.format": "json", "value.format": "avro-confluent"}
    formats["value.avro-confluent.url"] = registry.url
    reading = {
        **options(broker, broker.topic(3), **formats),
        "scan.schema-changes": "restart",
        "metadata._partition": "partition",
        "metadata._offset": "offset",
    }

    def changed(column: str) -> bool:
        return f"{column}:" in lake.columns(table)

    job = Job(str(tmp_path), reading, {}, table, str(lake.folder))
    story = Story(lake.session, job, changed)
    story.write()
    for place in PLACES:
        story.killed_at(place)
        if place == "changed":
            column = f"c{story.columns}"
            assert lake.read(table).where(f"{column} IS NOT NULL").isEmpty()
    story.widen()
    story.to_end()

    assert lake.rows(table) == story.table()
