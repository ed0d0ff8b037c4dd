"""The command ``sql``: what it takes, and what it refuses before Spark is started."""

from __future__ import annotations

from pathlib import Path

import pytest

from pyspark_upsert_kafka.cli import main, parser
from pyspark_upsert_kafka.cli.sql import wait_for


def test_what_it_takes() -> None:
    """Options for each table may be repeated, and hold ``=``."""
    given = parser().parse_args(
        ["sql", "x.sql", "--set", "Topic=a", "--set", "properties.x=b=c", "--timeout", "3"]
    )

    assert given.option == [("topic", "a"), ("properties.x", "b=c")]
    assert (given.file, given.timeout, given.mode, given.checkpoint) == ("x.sql", 3.0, None, None)


@pytest.mark.parametrize(
    ("script", "sentence"),
    [
        ("this is no SQL", "SQL, line 1, column 1: 'this': expected CREATE TABLE,"),
        ("SELECT 1;\nSELECT * FROM t", "SQL, line 2, column 15: there is no table or view 't'"),
        ("CREATE TABLE t (a INT)\nWITH ('connector' = 'datagen')", "SQL, line 2, column 7: connector 'datagen'"),
    ],
)  # fmt: skip
def test_a_script_is_refused_before_spark_starts(
    script: str, sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One sentence with line and column, and an exit code that is not 0."""
    file = tmp_path / "script.sql"
    file.write_text(script, encoding="utf-8")

    code = main(["sql", str(file)])
    said = capsys.readouterr()

    assert code == 1
    assert said.err.startswith(sentence)
    assert said.out == ""


def test_a_file_that_is_not_there(capsys: pytest.CaptureFixture[str]) -> None:
    """The sentence names the file."""
    assert main(["sql", "no-such.sql"]) == 1
    assert "The file 'no-such.sql' cannot be read" in capsys.readouterr().err


def test_an_option_without_a_value(capsys: pytest.CaptureFixture[str]) -> None:
    """``--set`` takes NAME=VALUE."""
    with pytest.raises(SystemExit) as ended:
        main(["sql", "x.sql", "--set", "topic"])

    assert ended.value.code == 2
    assert "expected NAME=VALUE, but is 'topic'" in capsys.readouterr().err


class EndlessQuery:
    """A query that runs until it is stopped."""

    isActive = True  # noqa: N815 - as Spark has it

    def exception(self) -> None:
        """It has not failed."""

    def stop(self) -> None:
        """Ends it."""
        self.isActive = False


def test_the_streams_end_when_their_time_is_over(capsys: pytest.CaptureFixture[str]) -> None:
    """``--timeout`` stops them, and says so."""
    queries = [EndlessQuery(), EndlessQuery()]

    wait_for(queries, 0.1)  # type: ignore[arg-type]

    assert [query.isActive for query in queries] == [False, False]
    assert capsys.readouterr().out == "Stopped.\n"
