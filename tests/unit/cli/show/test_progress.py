"""The bar that shows how far a read is."""

from __future__ import annotations

import sys

import pytest

from tools.terminal import Terminal

PROGRAM = """
from pyspark_upsert_kafka.cli.show import topic_reading
now = 5.0
bar = topic_reading.ReadProgress(100, prints={prints}, clock=lambda: now)
bar.advance(10)
now += {seconds}
bar.advance(40)
print("half")
input()
bar.close()
print("done")
input()
"""


@pytest.mark.parametrize(
    ("seconds", "prints", "is_there"), [(0.6, False, True), (0.4, False, False), (0.6, True, False)]
)
def test_a_bar_on_a_terminal(seconds: float, prints: bool, is_there: bool) -> None:
    """It is there when reading takes long and nothing is printed meanwhile, and leaves nothing behind."""
    program = PROGRAM.format(seconds=seconds, prints=prints)
    with Terminal([sys.executable, "-c", program]) as terminal:
        terminal.wait_until(lambda: "half" in terminal.text)
        if is_there:
            terminal.wait_until(lambda: "50/100 offsets" in terminal.text)
        assert ("offsets" in terminal.text) == is_there
        terminal.type("\n")
        terminal.wait_until(lambda: "done" in terminal.text)

        assert "offsets" not in terminal.text
        assert not terminal.screen.cursor.hidden
