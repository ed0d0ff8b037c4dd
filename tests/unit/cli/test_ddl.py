"""`ddl FILE.sql`: the Python that it prints says what the statement says, and holds no secret."""

from __future__ import annotations

import ast
import io
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.types import StructField, StructType

from pyspark_upsert_kafka.cli import main
from pyspark_upsert_kafka.cli.ddl import table_code
from pyspark_upsert_kafka.connector.format_catalog import format_options
from pyspark_upsert_kafka.core.ddl.definition import table_definition
from pyspark_upsert_kafka.core.options.read import read_options

SECRET = "pl4nted"
SCRIPT = f"""
-- Two tables of a shop
CREATE TABLE `page views` (
  user_id BIGINT NOT NULL, viewtime TIMESTAMP(3), r ROW<`a b` INT NOT NULL, c ARRAY<STRING>>,
  WATERMARK FOR viewtime AS viewtime - INTERVAL '2' SECOND
) WITH (
  'connector' = 'kafka', 'topic' = 'views', 'properties.bootstrap.servers' = 'localhost:9092', 'format' = 'json',
  'properties.sasl.jaas.config' = 'o.a.k.PlainLoginModule required username="u" password="{SECRET}";'
);
CREATE TABLE regions (
  region STRING, pages MULTISET<STRING>, seen TIMESTAMP_LTZ(3) METADATA FROM 'timestamp' VIRTUAL,
  PRIMARY KEY (region) NOT ENFORCED
) WITH (
  'connector' = 'upsert-kafka', 'topic' = 'regions', 'properties.bootstrap.servers' = 'localhost:9092',
  'key.format' = 'json', 'value.format' = 'json', 'value.json.ignore-parse-errors' = 'true'
);
"""


def printed(script: str, file: Path, capsys: pytest.CaptureFixture[str]) -> str:
    """What the command prints for a script."""
    file.write_text(script, encoding="utf-8")
    assert main(["ddl", str(file)]) == 0
    return capsys.readouterr().out


def options_in(code: str) -> dict[str, dict[str, str]]:
    """The dicts of options by their variables' names."""
    found: dict[str, Any] = {}
    for node in ast.parse(code).body:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Dict):
            (target,) = node.targets
            assert isinstance(target, ast.Name)
            found[target.id] = ast.literal_eval(node.value)
    return found


def test_the_code_of_two_tables(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It is Python, with the options of each statement, which a reader takes; a secret becomes a reference."""
    code = printed(SCRIPT, tmp_path / "shop.sql", capsys)
    first, second = SCRIPT.split(";\nCREATE")
    variable = {"properties.sasl.jaas.config": "${env:PROPERTIES_SASL_JAAS_CONFIG}"}

    compile(code, "shop.py", "exec")
    found = options_in(code)

    assert SECRET not in code
    assert found == {
        "page_views_options": {**table_definition(first).options, **variable},
        "regions_options": table_definition("CREATE" + second).options,
    }
    for options in found.values():
        read_options(options, format_options, stream=True)
    assert '.withColumn("viewtime", col("viewtime").cast("timestamp"))' in code
    assert '.withWatermark("viewtime", "2 seconds")' in code
    assert (
        '.schema("user_id BIGINT NOT NULL, viewtime TIMESTAMP_NTZ, '
        'r STRUCT<`a b`: INT NOT NULL, c: ARRAY<STRING>>")' in code
    )
    # Spark's DDL cannot say that a multiset's counts are NOT NULL.
    assert "StructField('pages', MapType(StringType(), IntegerType(), False), True)" in code
    assert 'rows.drop("seen").writeStream' in code
    assert code.count("foreachBatch(upsert_sink(") == 1


def test_a_statement_from_standard_input(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """`-` reads it there."""
    monkeypatch.setattr("sys.stdin", io.StringIO(SCRIPT))

    assert main(["ddl", "-"]) == 0
    assert "page_views_options" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("script", "sentence"),
    [
        ("SELECT 1", "SQL, line 1, column 1: expected the text of a CREATE TABLE statement, but found 'SELECT'.\n"),
        (SCRIPT + "INSERT INTO regions SELECT 1", "SQL, line 17, column 1: expected the text of a CREATE TABLE statement"),
        (SCRIPT.replace("'format' = 'json'", "'format' = 'xml'"), "Unknown value format 'xml'"),
        (SCRIPT.replace("'topic' = 'views', ", ""), "Either 'topic' or 'topic-pattern' must be set."),
        (SCRIPT.replace("'topic' = 'views'", "'topics' = 'views'"), "'topics' (SQL, line 7, column 26) (Did you mean"),
    ],
)  # fmt: skip
def test_bad_scripts(
    script: str, sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One sentence, nothing printed, and an exit code that is not 0."""
    (tmp_path / "bad.sql").write_text(script, encoding="utf-8")

    assert main(["ddl", str(tmp_path / "bad.sql")]) == 1
    said = capsys.readouterr()
    assert said.out == ""
    assert sentence in said.err
    assert SECRET not in said.err


def test_files_that_cannot_be_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The file is named."""
    (tmp_path / "latin.sql").write_bytes(b"\xe4")

    assert main(["ddl", str(tmp_path / "none.sql")]) == 1
    assert "none.sql' cannot be read: No such file or directory." in capsys.readouterr().err
    assert main(["ddl", str(tmp_path / "latin.sql")]) == 1
    assert "latin.sql' is not UTF-8." in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "variable"),
    [
        ("t", "t"),
        ("class", "class_"),
        ("spark", "spark_"),
        ("2nd", "table_2nd"),
        ("größe", "größe"),
        ("a-b.c", "a_b_c"),
    ],
)
def test_names_of_variables(name: str, variable: str) -> None:
    """Whatever a table is called, its variable is a name in Python."""
    sql = f"CREATE TABLE `{name}` (id INT) WITH ('connector' = 'kafka', 'topic' = 't', 'format' = 'json')"
    code = table_code(table_definition(sql), StructType([StructField("id", StructType())]))

    compile(code, "table.py", "exec")
    assert f"\n{variable} = (\n" in code
