"""The command line: what it takes, what it says, and the parts of the demo that need no Spark."""

from __future__ import annotations

import shlex
import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from pyspark.errors import AnalysisException

import pyspark_upsert_kafka
from pyspark_upsert_kafka.cli import main, parser, user_message
from pyspark_upsert_kafka.cli.chart import Chart, ticks
from pyspark_upsert_kafka.cli.demo_example import (
    REGIONS,
    compare,
    generate_waves,
    over_batches,
    user_with_most_changes,
)
from pyspark_upsert_kafka.core.errors import BrokerError, UpsertKafkaError

COMMANDS = ("ddl", "demo", "doctor", "local-kafka", "replay", "show", "sql")
SVG = "{http://www.w3.org/2000/svg}"


def test_help_names_every_command_and_what_it_does(capsys: pytest.CaptureFixture[str]) -> None:
    """``--help`` is enough to find a command."""
    with pytest.raises(SystemExit) as ended:
        main(["--help"])
    said = capsys.readouterr().out

    assert ended.value.code == 0
    for command in COMMANDS:
        assert command in said


def test_the_version_is_that_of_the_package(capsys: pytest.CaptureFixture[str]) -> None:
    """``--version`` is what a report of a bug needs."""
    with pytest.raises(SystemExit) as ended:
        main(["--version"])

    assert ended.value.code == 0
    assert capsys.readouterr().out == f"pyspark-upsert-kafka {pyspark_upsert_kafka.__version__}\n"


@pytest.mark.parametrize("command", [each for each in COMMANDS if each != "ddl"])
def test_each_command_explains_itself(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    """``COMMAND --help`` begins with what the command is for and lists its arguments."""
    with pytest.raises(SystemExit) as ended:
        main([command, "--help"])
    said = capsys.readouterr().out

    assert ended.value.code == 0
    assert f"usage: python -m pyspark_upsert_kafka {command}" in said
    assert "default" in said


@pytest.mark.parametrize("command", COMMANDS)
def test_help_ends_with_examples(command: str) -> None:
    """Each is a whole command line, of arguments that there are."""
    (commands,) = (each for each in parser()._actions if each.choices)
    assert isinstance(commands.choices, dict)
    examples = str(commands.choices[command].description).split("\nFor example:\n")[1].splitlines()

    assert len(examples) >= 2
    for line in examples:
        words = shlex.split(line.partition(" < ")[0])
        assert words[:4] == ["python", "-m", "pyspark_upsert_kafka", command]
        parser().parse_args(words[3:])


def test_module_runs_as_a_program() -> None:
    """``python -m pyspark_upsert_kafka`` is the command line; without a command it says so."""
    run = subprocess.run(
        [sys.executable, "-m", "pyspark_upsert_kafka"], capture_output=True, text=True, check=False
    )

    assert run.returncode == 2
    assert "the following arguments are required: COMMAND" in run.stderr


def test_a_wrong_argument_is_told_before_anything_else(capsys: pytest.CaptureFixture[str]) -> None:
    """The list of all arguments, which is long, is left to ``--help``."""
    with pytest.raises(SystemExit) as ended:
        main(["show", "--key", "7"])

    assert ended.value.code == 2
    assert capsys.readouterr().err == (
        "python -m pyspark_upsert_kafka show: error: argument --key: expected COLUMN=VALUE, but is '7'\n"
        "'python -m pyspark_upsert_kafka show --help' tells more.\n"
    )


def test_show_without_a_topic_says_how_to_name_one(capsys: pytest.CaptureFixture[str]) -> None:
    """In the words of the command line, not of its options."""
    assert main(["show", "--schema", "id BIGINT", "--primary-key", "id"]) == 1
    assert capsys.readouterr().err.startswith("Which topic? Give --topic, or --ddl")


def test_show_takes_any_option_of_the_connector() -> None:
    """``--option name=value`` may be repeated, and a value may hold an equals sign."""
    given = parser().parse_args(
        ["show", "--topic", "t", "--option", "a=b=c", "--option", "scan.deletes=drop"]
    )

    assert given.option == [("a", "b=c"), ("scan.deletes", "drop")]


@pytest.mark.parametrize(
    "arguments",
    [
        ["show", "--topic", "t", "--option", "no-value"],
        ["show", "--topic", "t", "--key", "7"],
        ["show", "--topic", "t", "--at", "2026-01-31T12:00:00"],
        ["show", "--topic", "t", "--limit", "0"],
        ["show", "--topic", "t", "--changelog", "--append"],
        ["local-kafka", "--port", "many"],
        ["nothing"],
    ],
)
def test_wrong_arguments_are_refused(arguments: list[str]) -> None:
    """What the command line cannot mean ends with argparse's exit code 2."""
    with pytest.raises(SystemExit) as ended:
        main(arguments)

    assert ended.value.code == 2


def test_a_bad_port_is_one_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    """Errors of ours show no traceback and end with exit code 1."""
    assert main(["local-kafka", "--port", "70000"]) == 1
    assert "from 1 to 65535" in capsys.readouterr().err


def test_an_error_of_ours_is_its_text() -> None:
    """What this package raises on purpose says everything itself."""
    assert user_message(BrokerError("No topic.")) == "No topic."


@pytest.mark.parametrize(
    "end",
    [
        "",
        "\n SQLSTATE: 38000",
        "\n\tat org.apache.spark.Some.scala(1)",
        "\n\nJVM stacktrace:\nx",
    ],
)
def test_an_error_from_a_worker_is_found_in_what_spark_says(end: str) -> None:
    """Spark passes on a worker's error as text within its own; the sentence is taken out of it."""
    text = (
        "[PYTHON_DATA_SOURCE_ERROR] Failed to initialize: Traceback (most recent call last):\n"
        '  File "x.py", line 1, in reader\n    raise OptionError(\n'
        "pyspark_upsert_kafka.core.errors.OptionError: Missing.\n\nThese:\n\nvalue.format"
    )

    assert user_message(AnalysisException(text + end)) == "Missing.\n\nThese:\n\nvalue.format"


def test_what_spark_itself_refuses_is_told_in_its_words() -> None:
    """A type that does not exist is the user's mistake, not a bug."""
    text = '\n[UNSUPPORTED_DATATYPE] Unsupported data type "BIGNT". SQLSTATE: 0A000 (line 1)\n\n== SQL =='

    assert user_message(AnalysisException(text)) == 'Unsupported data type "BIGNT".'


@pytest.mark.parametrize(
    "error",
    [KeyError("x"), AnalysisException("[X] Traceback (most recent call last):\nKeyError: 1")],
)
def test_a_bug_keeps_its_traceback(error: Exception) -> None:
    """What nobody raised on purpose is not made into a sentence."""
    assert user_message(error) is None


def test_chart_has_a_line_and_a_name_for_each_region() -> None:
    """The picture is valid XML, with one line per region and its name in the legend."""
    lines = {region: [at, at * 2, at * 5] for at, region in enumerate(REGIONS, 1)}
    root = ET.fromstring(Chart("T & U", "batch", "PV", lines).svg())
    drawn = root.findall(f"{SVG}polyline")
    texts = [text.text for text in root.findall(f"{SVG}text")]

    assert [len(line.attrib["points"].split()) for line in drawn] == [3] * len(REGIONS)
    assert len({line.attrib["stroke"] for line in drawn}) == len(REGIONS)
    assert {"T & U", "batch", "PV", *REGIONS} <= set(texts)


@pytest.mark.parametrize("lines", [{}, {"A": []}, {"A": [0]}, {"A": [7], "<B>": [1, 2]}])
def test_chart_of_next_to_nothing_is_a_chart(lines: dict[str, list[int]]) -> None:
    """No data, or a single batch, is drawn without an error."""
    root = ET.fromstring(Chart("T", "x", "y", lines).svg())

    assert len(root.findall(f"{SVG}polyline")) == len(lines)


@pytest.mark.parametrize("largest", [0, 1, 6, 7, 99, 100, 101, 87_320, 10**9])
def test_ticks_are_few_and_reach_the_largest(largest: int) -> None:
    """An axis begins at zero, ends at or above the largest value, and has two to seven numbers."""
    found = ticks(largest)

    assert found[0] == 0
    assert found[-1] >= largest
    assert 2 <= len(found) <= 7


def test_a_batch_ends_where_a_region_is_seen_again() -> None:
    """The history of counts has one value per region and batch; an unchanged one keeps its value."""
    changes = [("Asia", 3), ("Europe", 1), ("Asia", 5), ("Asia", 9), ("Europe", 4)]

    assert over_batches(changes) == {"Asia": [3, 5, 9], "Europe": [1, 1, 4]}
    assert over_batches([]) == {}


def test_the_web_site_is_the_same_each_time() -> None:
    """The demo's data does not change from run to run."""
    assert list(generate_waves(600)) == list(generate_waves(600))


def test_who_left_views_no_page_and_nobody_changes_twice_in_a_wave() -> None:
    """Views agree with the table of users, and the changes of a wave need no order."""
    regions: dict[int, str | None] = {}
    last = None
    found = list(generate_waves(6_000))
    for wave in found:
        changed = [change.user_id for change in wave.changes]
        assert len(set(changed)) == len(changed)
        regions.update((change.user_id, change.user_region) for change in wave.changes)
        for view in wave.views:
            assert regions[view.user_id] == view.user_region
            assert last is None or view.view_time - last > timedelta(0)
            last = view.view_time

    assert {change.kind for wave in found for change in wave.changes} == {"upsert", "delete"}


def test_the_user_with_most_changes_user_has_left_once() -> None:
    """The demo shows a key that has a tombstone among its messages."""
    changes = [change for wave in generate_waves(6_000) for change in wave.changes]
    user = user_with_most_changes(changes)

    assert "delete" in {change.kind for change in changes if change.user_id == user}


def test_a_table_that_is_not_what_it_should_be_ends_the_demo() -> None:
    """A mismatch is an error that names the table, the key and both rows."""
    with pytest.raises(UpsertKafkaError, match=r"Table 't' has None for 2, where .* has 'b'"):
        compare("t", {1: "a"}, {1: "a", 2: "b"})


def test_the_demo_writes_where_it_is_told(tmp_path: Path) -> None:
    """Volume and folder are arguments."""
    given = parser().parse_args(["demo", "--messages", "5", "--folder", str(tmp_path)])

    assert (given.messages, given.folder) == (5, tmp_path)


@pytest.mark.parametrize(("messages", "count"), [(6, 3), (6_000, 3), (100_000, 4), (300_000, 12)])
def test_data_arrives_in_several_waves(messages: int, count: int) -> None:
    """However much there is, it comes bit by bit, and about as much of it as was asked for."""
    found = list(generate_waves(messages))

    assert len(found) == count
    assert sum(len(wave.views) for wave in found) == messages // count * count
