"""docs/cluster.md, command by command, as on machines that have Python and Java alone: ``make test-cluster``."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from pyspark_upsert_kafka import LocalKafka
from pyspark_upsert_kafka.kafka.local.ports import free_port
from tests.conftest import broker_at
from tests.spark.pages import CLUSTER, ROOT

_BLOCK = re.compile(r"^```(sh|python|text)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_FILE = re.compile(r"# (\w+\.py)$", re.MULTILINE)
_OF_TESTS = ("SPARK_", "PYSPARK_", "PYTHON", "VIRTUAL_ENV", "LOCAL_KAFKA_OPTS")


@dataclass(frozen=True)
class Commands:
    """A block for a shell, where it stands, and what the page says that it prints."""

    text: str
    line: int
    output: str = ""


def commands_and_files(page: str) -> tuple[list[Commands], dict[str, str]]:
    """What a page has typed into a shell, and the programs that it has saved."""
    commands: list[Commands] = []
    files: dict[str, str] = {}
    end = -1
    for block in _BLOCK.finditer(page):
        kind, text = block.groups()
        if kind == "sh":
            commands.append(Commands(text, page.count("\n", 0, block.start()) + 2))
            end = block.end()
        elif kind == "python":
            name = _FILE.match(text)
            assert name, f"{text!r} does not begin with its name"
            files[name[1]] = text
        elif not page[end : block.start()].strip():
            commands[-1] = Commands(commands[-1].text, commands[-1].line, text)
    return commands, files


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """This package, as users get it."""
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    (found,) = folder.glob("*.whl")
    return found


@pytest.fixture
def machine(wheel: Path, tmp_path: Path) -> dict[str, str]:
    """The environment of a machine that has Python and Java alone, whose pip finds the wheel by the package's name."""
    path = tmp_path / "bin"
    path.mkdir()
    (path / "python").symlink_to(Path(sys.executable).resolve())
    constraint = tmp_path / "constraint.txt"
    constraint.write_text(f"pyspark-upsert-kafka @ {wheel.as_uri()}\n")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(_OF_TESTS)}
    return {
        **kept,
        "PATH": f"{path}{os.pathsep}{os.defpath}",
        "PIP_CONSTRAINT": str(constraint),
        "PIP_QUIET": "1",
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "SPARK_LOCAL_HOSTNAME": "localhost",
        "SPARK_WORKER_DIR": str(tmp_path / "work"),
        "SPARK_LOCAL_DIRS": str(tmp_path / "local"),
    }


@pytest.mark.timeout(5400)
def test_the_page_runs_and_prints_what_it_says(
    own_kafka: Callable[..., LocalKafka], machine: dict[str, str], tmp_path: Path
) -> None:
    """What a user pastes into a shell, top to bottom, works: each command ends well, and prints what the page says."""
    page = CLUSTER.read_text(encoding="utf-8")
    commands, files = commands_and_files(page)
    folder = tmp_path / "job"
    folder.mkdir()
    servers = own_kafka().bootstrap_servers
    broker_at(servers).create("users", partitions=2)
    broker_at(servers).create("users_copy", partitions=2)
    master, connect = free_port(), free_port()
    instead = {
        "/opt/": f"{tmp_path}/opt/",
        "/tmp/checkpoints": f"{tmp_path}/checkpoints",
        "localhost:9092": servers,
        "7077": str(master),
        "15002": str(connect),
    }

    def here(text: str) -> str:
        for name, value in instead.items():
            text = text.replace(name, value)
        return text

    for name, text in files.items():
        (folder / name).write_text(here(text))
    steps = "".join(f"echo '>>> {each.line}'\n{here(each.text)}" for each in commands)
    (folder / "steps").write_text(f"set -eu\n{steps}echo '>>> end'\n")

    printed, errors = tmp_path / "printed", tmp_path / "errors"
    with printed.open("w") as out, errors.open("w") as err:
        shell = subprocess.Popen(
            ["bash", "steps"], cwd=folder, env=machine, stdin=subprocess.DEVNULL, stdout=out, stderr=err,
            start_new_session=True,
        )  # fmt: skip
        try:
            shell.wait(5000)
        finally:
            os.killpg(shell.pid, signal.SIGKILL)  # what runs in the background

    text = printed.read_text()
    assert text.endswith(">>> end\n"), f"{text[-2000:]}\n{errors.read_text()[-5000:]}"
    by_line = dict(re.findall(r"^>>> (\d+)\n(.*?)(?=^>>>)", text, re.DOTALL | re.MULTILINE))
    for each in commands:
        assert each.output.strip() in by_line[str(each.line)], f"line {each.line}"
