"""How findings are printed."""

from __future__ import annotations

import json

import pytest

from pyspark_upsert_kafka.cli import main
from pyspark_upsert_kafka.cli.doctor.doctor_command import json_line, summary, text_line
from pyspark_upsert_kafka.cli.doctor.findings import Finding, Level


def test_a_finding_is_one_line() -> None:
    """Whatever it holds, and a terminal executes none of it."""
    line = text_line(Finding("columns", Level.ERROR, "a\n\n  b\x1b[2J", "c\nd"))

    assert line == "✗ error        columns                a b\\x1b[2J. What to do: c d"


def test_a_finding_is_an_object() -> None:
    """The names of checks and levels are those of the page."""
    found = json.loads(json_line(Finding("rights", Level.NOT_CHECKED, "a\nb", topic="t")))

    assert found == {
        "check": "rights", "level": "not-checked", "topic": "t", "text": "a\nb", "advice": "",
    }  # fmt: skip


def test_the_summary_has_the_worst_first() -> None:
    """And no level that there is none of."""
    levels = [Level.OK, Level.NOT_CHECKED, Level.WARNING, Level.WARNING, Level.ERROR]

    assert summary([Finding("a", each, "") for each in levels]) == (
        "1 error, 2 warnings, 1 not checked, 1 ok."
    )


def test_a_wrong_option_is_a_finding(capsys: pytest.CaptureFixture[str]) -> None:
    """Without a broker being asked; the exit code is 2."""
    assert (
        main(
            [
                "doctor",
                "--topic",
                "t",
                "--option",
                "no-such=1",
                "--schema",
                "a INT",
                "--primary-key",
                "a",
            ]
        )
        == 2
    )
    lines = capsys.readouterr().out.splitlines()

    assert lines[0].startswith("✗ error        options")
    assert lines[-1] == "1 error."


@pytest.mark.parametrize("arguments", [["--sample", "-1"], ["--sample", "x"], ["--output", "csv"]])
def test_wrong_arguments(arguments: list[str]) -> None:
    """They are refused as those of other commands are."""
    with pytest.raises(SystemExit) as ended:
        main(["doctor", "--topic", "t", *arguments])

    assert ended.value.code == 2
