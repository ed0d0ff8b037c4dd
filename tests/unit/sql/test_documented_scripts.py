"""Scripts as Flink's documentation writes them, in `scripts/`: what each does, or why it is refused.

A file ``x.sql`` has what is expected of it in ``x.json``: its steps with the query as Spark runs it, or the sentence of
the error.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pyspark_upsert_kafka.core.errors import OptionError
from pyspark_upsert_kafka.sql.script_compiler import compile_script

SCRIPTS = sorted(Path(__file__).with_name("scripts").glob("*.sql"))


@pytest.mark.parametrize("file", SCRIPTS, ids=lambda file: file.stem)
def test_a_script_as_it_stands(file: Path) -> None:
    """Each script becomes queries of Spark, or is refused with its place."""
    expected = json.loads(file.with_suffix(".json").read_text(encoding="utf-8"))
    script = file.read_text(encoding="utf-8")

    if "error" in expected:
        with pytest.raises(OptionError) as error:
            compile_script(script)
        assert str(error.value) == expected["error"]
        return
    steps = [
        {
            "reads": sorted(table.name for table in job.query.tables.values()),
            "writes": job.table.name if job.table else None,
            "stream": job.is_stream,
            "sql": job.query.sql,
        }
        for job in compile_script(script).jobs
    ]

    assert steps == expected["steps"]


def test_there_are_scripts() -> None:
    """The test above does not run over nothing, and each script says what is expected."""
    assert len(SCRIPTS) > 12
    assert all(file.with_suffix(".json").is_file() for file in SCRIPTS)
