"""From the arguments of ``show`` to the connector's options and the columns."""

from __future__ import annotations

from pathlib import Path

import pytest

from pyspark_upsert_kafka.cli import parser
from pyspark_upsert_kafka.cli.arguments import statement_in
from pyspark_upsert_kafka.cli.show.show_command import connector_options, request_of

DDL = """
CREATE TABLE users (id BIGINT, name STRING, PRIMARY KEY (id) NOT ENFORCED) WITH (
  'connector' = 'upsert-kafka', 'topic' = 'users', 'properties.bootstrap.servers' = 'theirs:1',
  'key.format' = 'csv', 'value.format' = 'csv')
"""
VIEWS = """
CREATE TABLE views (id BIGINT) WITH (
  'connector' = 'kafka', 'topic' = 'views', 'properties.bootstrap.servers' = 'theirs:1', 'format' = 'csv')
"""
TABLE = ["--topic", "t", "--schema", "id BIGINT, name STRING", "--primary-key", "id"]
KEYED = {"topic": "t", "primary-key": "id", "key.format": "json", "value.format": "json"}
HERE = {"properties.bootstrap.servers": "localhost:9092"}


@pytest.mark.parametrize(
    ("arguments", "options"),
    [
        (TABLE, {**KEYED, **HERE, "read.mode": "snapshot"}),
        ([*TABLE, "--changelog"], {**KEYED, **HERE, "read.mode": "changelog"}),
        ([*TABLE, "--follow", "--output", "json"], {**KEYED, **HERE, "read.mode": "changelog"}),
        ([*TABLE, "--follow", "--output", "table"], {**KEYED, **HERE, "read.mode": "snapshot"}),
        (["--topic", "t", "--append"], {"topic": "t", "value.format": "json", **HERE, "read.mode": "append"}),
        ([*TABLE, "--at", "1970-01-01T00:00:01Z"],
         {**KEYED, **HERE, "read.mode": "snapshot", "scan.bounded.mode": "timestamp",
          "scan.bounded.timestamp-millis": "1000"}),
        ([*TABLE, "--option", "Value.Format=raw"], {**KEYED, **HERE, "value.format": "raw", "read.mode": "snapshot"}),
        (["--ddl", DDL], {"ddl": DDL, "read.mode": "snapshot"}),
        (["--ddl", DDL, "--value-format", "json", "--bootstrap-servers", "ours:1"],
         {"ddl": DDL, "read.mode": "snapshot", "value.format": "json", "properties.bootstrap.servers": "ours:1"}),
        (["--ddl", VIEWS], {"ddl": VIEWS, "read.mode": "append"}),
    ],
)  # fmt: skip
def test_options(
    arguments: list[str], options: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """An argument becomes an option; ``--option`` goes before all, and defaults come after a statement."""
    monkeypatch.delenv("KAFKA_BOOTSTRAP_SERVERS", raising=False)

    assert connector_options(parser().parse_args(["show", *arguments])) == options


def test_the_address_may_stand_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """KAFKA_BOOTSTRAP_SERVERS stands in where nothing else says where Kafka is."""
    monkeypatch.setenv("KAFKA_BOOTSTRAP_SERVERS", "elsewhere:9092")
    found = connector_options(parser().parse_args(["show", *TABLE]))

    assert found["properties.bootstrap.servers"] == "elsewhere:9092"
    assert "properties.bootstrap.servers" not in connector_options(
        parser().parse_args(["show", "--ddl", DDL])
    )


@pytest.mark.parametrize(
    ("arguments", "columns"),
    [
        (TABLE, "id name"),
        (["--ddl", DDL], "id name"),
        ([*TABLE, "--changelog"], "_change_type id name _timestamp _partition _offset"),
        (["--ddl", DDL, "--changelog"], "id name _change_type _timestamp _partition _offset"),
        (["--ddl", VIEWS], "id _timestamp _partition _offset"),
        (["--topic", "t", "--schema", "_offset BIGINT, a INT, _PARTITION INT", "--append"],
         "_offset a _PARTITION _timestamp"),
        ([*TABLE, "--changelog", "--option", "error-handling.mode=column"],
         "_change_type id name _timestamp _partition _offset _error"),
    ],
)  # fmt: skip
def test_columns(arguments: list[str], columns: str) -> None:
    """Changes and messages show what happened, when and where, unless the columns do."""
    request = request_of(parser().parse_args(["show", *arguments]))

    assert request.table.schema.names == columns.split()


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
@pytest.mark.parametrize("name", ["users.sql", "users (1).sql"])
def test_a_statement_in_a_file(tmp_path: Path, name: str, encoding: str) -> None:
    """``--ddl`` takes a file, whatever its name and with a byte order mark or without, or the statement itself, however long."""
    (tmp_path / name).write_text(DDL, encoding=encoding)
    request = request_of(parser().parse_args(["show", "--ddl", str(tmp_path / name)]))
    long = f"-- {'x' * 5_000}{DDL}"
    assert statement_in(long) == long

    assert request.table.key_names == ("id",)
    assert request.options.table.topics.names == ("users",)
