"""What becomes of Ctrl-C; that it gets through at any moment is in tests/kafka/test_interrupts.py."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

PROGRAM = """
import sys
from pyspark_upsert_kafka.cli.terminal import interrupts

interrupts.begin(of_client=True)
try:
    exec("raise KeyboardInterrupt")
except KeyboardInterrupt:
    interrupts.settled()
sys.exit(3)
"""


def test_the_exit_code_is_that_of_the_command(tmp_path: Path) -> None:
    """Also where Ctrl-C came while Python ran a text, as it does to make a dataclass: it would end by SIGINT."""
    (tmp_path / "program.py").write_text(PROGRAM)
    path = os.pathsep.join([str(tmp_path), *filter(None, sys.path)])

    ended = subprocess.run(
        [sys.executable, "-m", "program"], env={**os.environ, "PYTHONPATH": path}, check=False
    )

    assert ended.returncode == 3
