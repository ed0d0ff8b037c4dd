"""Running a script: what it prints, and which names and checkpoints its streams have."""

from __future__ import annotations

import pytest

from pyspark_upsert_kafka.core.errors import CheckpointError
from pyspark_upsert_kafka.sql import script_running
from pyspark_upsert_kafka.sql.script_compiler import compile_script
from pyspark_upsert_kafka.sql.script_running import folders_of, names_of
from tests.unit.sql.tables import TABLES

COUNT = "SELECT region, COUNT(*) FROM views GROUP BY region"


def test_rows_that_are_printed_do_not_control_a_terminal(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Spark prints values as they are; here what is not printable is escaped, and lines stay lines."""

    class Rows:
        def _show_string(self, count: int, *, truncate: bool) -> str:
            return "+---+\n|\x1b[2J\u202e\x9b|\n+---+\n"

    script_running._show(Rows(), 0)  # type: ignore[arg-type]

    assert capsys.readouterr().out == "+---+\n|\\x1b[2J\\u202e\\x9b|\n+---+\n\n"


def test_names_of_queries_are_unique() -> None:
    """Each query has the name of its table, with a number where another has it."""
    script = f"{TABLES}INSERT INTO counts {COUNT}; INSERT INTO counts {COUNT}; {COUNT}"
    steps = compile_script(script).jobs

    assert names_of(steps, []) == ["counts", "counts-2", "select"]
    assert names_of(steps, ["counts", "select"]) == ["counts-2", "counts-3", "select-2"]
    assert names_of(steps, ["counts-2"]) == ["counts", "counts-3", "select"]


def test_two_queries_have_no_checkpoint_in_common() -> None:
    """Names that differ only in what a folder's name cannot hold are refused before anything runs."""
    folder = "SET 'execution.checkpointing.dir' = '/c'; "
    name = "SET 'pipeline.name' = "
    steps = compile_script(f"{TABLES}{folder}{name}'a$b'; {COUNT}; {name}'a_b'; {COUNT}").jobs

    assert folders_of(steps[:1]) == ["/c/a_b"]
    with pytest.raises(
        CheckpointError, match="'a_b' and another of this script have one checkpoint, '/c/a_b'"
    ):
        folders_of(steps)


@pytest.mark.parametrize("name", [".", "..", "../..", "/"])
def test_no_checkpoint_is_outside_of_the_folder_of_checkpoints(name: str) -> None:
    """A name of dots is none of a folder, and one with slashes is one folder."""
    script = (
        f"{TABLES}SET 'execution.checkpointing.dir' = '/c'; SET 'pipeline.name' = '{name}'; {COUNT}"
    )

    assert folders_of(compile_script(script).jobs) == [f"/c/{'.._..' if name == '../..' else '_'}"]
