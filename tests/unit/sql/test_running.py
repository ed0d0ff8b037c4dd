"""What running a script prints."""

from __future__ import annotations

import pytest

from pyspark_upsert_kafka.sql import running


def test_rows_that_are_printed_do_not_control_a_terminal(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Spark prints values as they are; here what is not printable is escaped, and lines stay lines."""

    class Rows:
        def _show_string(self, count: int, *, truncate: bool) -> str:
            return "+---+\n|\x1b[2J\u202e\x9b|\n+---+\n"

    running._show(Rows(), 0)  # type: ignore[arg-type]

    assert capsys.readouterr().out == "+---+\n|\\x1b[2J\\u202e\\x9b|\n+---+\n\n"
