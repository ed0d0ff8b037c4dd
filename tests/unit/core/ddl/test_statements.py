"""Statements as Flink's documentation writes them, in `statements/`: what each means, or why it is refused.

A file ``x.sql`` has what is expected of it in ``x.json``: columns as Spark's DDL, options, watermark and virtual
columns, or the sentence of the error.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pyspark_upsert_kafka.core.ddl.definition import table_definition
from pyspark_upsert_kafka.core.ddl.spark_columns import columns_as_ddl
from pyspark_upsert_kafka.core.errors import OptionError

STATEMENTS = sorted(Path(__file__).with_name("statements").glob("*.sql"))


@pytest.mark.parametrize("file", STATEMENTS, ids=lambda file: file.stem)
def test_a_statement_as_it_stands(file: Path) -> None:
    """Each statement gives its columns and options, or is refused with its place."""
    expected = json.loads(file.with_suffix(".json").read_text(encoding="utf-8"))
    sql = file.read_text(encoding="utf-8")

    if "error" in expected:
        with pytest.raises(OptionError) as error:
            table_definition(sql)
        assert str(error.value).startswith(expected["error"])
        assert "n0t-sh0wn" not in str(error.value)
        return
    found = table_definition(sql)

    assert columns_as_ddl(found.columns) == expected["columns"]
    assert found.options == expected["options"]
    assert found.watermark == (tuple(expected["watermark"]) if "watermark" in expected else None)
    assert found.virtual == {*expected.get("virtual", ())}
    if "name" in expected:
        assert found.name == expected["name"]


def test_there_are_statements() -> None:
    """The test above does not run over nothing, and each statement says what is expected."""
    assert len(STATEMENTS) > 8
    assert all(file.with_suffix(".json").is_file() for file in STATEMENTS)
