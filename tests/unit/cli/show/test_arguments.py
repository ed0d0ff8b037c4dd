"""The arguments of ``show``: texts that mean something, and those that contradict each other."""

from __future__ import annotations

import argparse
import time

import pytest

from pyspark_upsert_kafka.cli import main, parser
from pyspark_upsert_kafka.cli.show import ALL, a_limit, a_time
from pyspark_upsert_kafka.cli.show.show_command import output_of

TABLE = ["show", "--topic", "t", "--schema", "id BIGINT", "--primary-key", "id"]


def test_times() -> None:
    """A time with a zone, or how long ago it was, is milliseconds; what is no such time is refused (more of both: tests/unit/core/test_iso_time.py)."""
    assert a_time("1970-01-01T00:00:01Z") == 1_000
    assert a_time("-1 d") == pytest.approx(time.time() * 1000 - 86_400_000, abs=60_000)
    with pytest.raises(argparse.ArgumentTypeError, match="expected a time such as"):
        a_time("yesterday")


def test_limits() -> None:
    """A limit is a number of rows from 1 on, or all of them."""
    assert (a_limit("1"), a_limit("ALL")) == (1, ALL)
    for text in ("0", "-1", "many", ""):
        with pytest.raises(argparse.ArgumentTypeError):
            a_limit(text)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--count", "--follow"], "--count and --follow contradict each other"),
        (["--count", "--limit", "3"], "--count and --limit contradict each other"),
        (["--count", "--key", "id=1"], "--count and --key contradict each other"),
        (["--at", "1970-01-01T00:00:00Z", "--follow"], "--at and --follow contradict each other"),
        (["--follow", "--output", "table"], "--follow redraws its table, which needs a terminal"),
        (["--schema", "`a\udcff` INT"], "--schema is not valid Unicode: '`a\\udcff` INT'"),
        (["--key", "user=1"], "--key 'user=1' does not give one value for each column of the primary key"),
        (["--key", "id=one"], "--key: 'one' is not a value of column 'id', which is BIGINT"),
        (["--follow", "--option", "scan.bounded.mode=group-offsets", "--option", "properties.group.id=g"],
         "--follow has no end: leave out 'scan.bounded.mode'."),
        (["--option", "primry-key=id"], "Did you mean 'primary-key'?"),
        (["--option", "value.format=xml"], "Unknown value format 'xml'"),
        (["--ddl", "none.sql"], "The file 'none.sql' of --ddl cannot be read: No such file or directory."),
        (["--ddl", "CREATE TABLE t (id INT"], "SQL, line 1, column 23"),
        (["--schema", "id BIGNT"], "The columns cannot be read at character 4: expected a type of Spark"),
    ],
)  # fmt: skip
def test_what_cannot_be_meant(
    arguments: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is one sentence and exit code 1, before any broker is asked, and nothing is printed."""
    assert main([*TABLE, *arguments]) == 1
    said = capsys.readouterr()
    assert said.out == ""
    assert sentence in said.err
    assert "Traceback" not in said.err


@pytest.mark.parametrize(
    ("arguments", "terminal", "output"),
    [
        ([], True, "table"),
        ([], False, "table"),
        (["--follow"], True, "table"),
        (["--follow"], False, "json"),
        (["--follow", "--output", "csv"], True, "csv"),
        (["--output", "json"], True, "json"),
    ],
)
def test_outputs(arguments: list[str], terminal: bool, output: str) -> None:
    """A table, unless another output is wanted, or changes are followed into a pipe."""
    assert output_of(parser().parse_args([*TABLE, *arguments]), terminal=terminal) == output
