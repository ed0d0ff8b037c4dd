"""The Python snippets of README and docs, and how they run in tests.

What a page says and a test cannot have is replaced: the addresses ``localhost:9092`` and
``http://localhost:8081``, that of AWS Glue, the folders ``/tmp/checkpoints`` and ``/tmp/lake``, and the names of topics (wherever
they stand in quotes) by unique ones, which exist unless the page creates them. A block of ``text`` right after one of
``python`` is what that prints. In a block of ``sh`` the programs of this repository run (``python -m tools....``), and
the command ``doctor``.
"""

from __future__ import annotations

import ast
import re
import uuid
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from tests.conftest import Broker, broker_at
from tests.spark.conftest import eventually
from tools.recorded_debezium import TOPIC as RECORDED

ROOT = Path(__file__).parents[2]
LAKEHOUSE = ROOT / "docs" / "lakehouse.md"
LAKEHOUSE_TABLES = ROOT / "docs" / "lakehouse-tables.md"
LAKEHOUSE_ORDER = ROOT / "docs" / "lakehouse-order.md"
GLUE = "http://localhost:5000"
CLUSTER = ROOT / "docs" / "cluster.md"
MANY_TABLES = ROOT / "docs" / "many-tables.md"
DATABASE_TO_ICEBERG = ROOT / "docs" / "database-to-iceberg.md"

_BLOCK = re.compile(r"^```(python|sh|text)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_DOCTOR = re.compile(r"^python -m pyspark_upsert_kafka doctor (?:.*\\\n)*.*$", re.MULTILINE)
_RUN_AND_PRINT = (
    "print(run([executable, *split({!r})[1:]], capture_output=True, encoding='utf-8', env={{**environ, "
    "'PYTHONIOENCODING': 'utf-8', 'KAFKA_BOOTSTRAP_SERVERS': 'localhost:9092'}}).stdout, end='')"
)
_OF_THE_MACHINE = re.compile(r"(?<=confluent-kafka )[0-9.]+|[0-9,]+(?= MB, half)")
"""What ``doctor`` prints of the machine where it runs."""

_NEW_TOPIC = re.compile(r"""NewTopic\("([^"]+)\"""")
_HEADING = re.compile(r"^##+ (.*)$", re.MULTILINE)
_TOPIC = re.compile(
    r"""["'](?:topic|error-handling\.log\.target)["']\s*[,:=]\s*["']([^"']+)["']|NewTopic\("([^"]+)\""""
)


@dataclass(frozen=True)
class Snippet:
    """A block of Python, what it prints where the page says so, and the heading above it."""

    code: str
    output: str | None
    line: int
    heading: str = ""


def snippets(page: str) -> list[Snippet]:
    """The snippets of a page, in order."""
    found: list[Snippet] = []
    end = -1
    for block in _BLOCK.finditer(page):
        kind, text = block.groups()
        if kind == "sh":
            text = _programs(text)
        if kind == "python" or (kind == "sh" and text):
            before = page[: block.start()]
            heading = ["", *_HEADING.findall(before)][-1]
            found.append(Snippet(text, None, before.count("\n") + 2, heading))
            end = block.end()
        elif kind == "text" and found and not page[end : block.start()].strip():
            found[-1] = replace(found[-1], output=text)
    return found


def _programs(commands: str) -> str:
    """Python that runs those commands that are programs of this repository, by the Python that runs the tests."""
    programs = re.findall(r"^python -m tools\..*$", commands, re.MULTILINE)
    calls = [f"run([executable, *{program!r}.split()[1:]], check=True)" for program in programs]
    calls += [_RUN_AND_PRINT.format(each) for each in _DOCTOR.findall(commands)]
    imports = [
        "from os import environ",
        "from shlex import split",
        "from subprocess import run",
        "from sys import executable",
    ]
    return "\n".join([*imports, *calls]) if calls else ""


def topics_in(code: str) -> set[str]:
    """The topics that options name, or that the code creates."""
    lists = [first or second for first, second in _TOPIC.findall(code)]
    return {name for names in lists for name in names.split(";")}


@dataclass(frozen=True)
class World:
    """What stands here for the addresses, the folders and the topics of a page."""

    servers: str
    folder: Path
    topics: dict[str, str]
    registry: str = ""
    glue: str = ""

    def translated(self, code: str) -> str:
        """The code as it runs here."""
        for name, unique in self.topics.items():
            code = re.sub(rf"""(?<=["';]){re.escape(name)}(?=["';])""", unique, code)
            code = re.sub(rf"(?<=--topic ){re.escape(name)}\b", unique, code)
        code = code.replace("http://localhost:8081", self.registry)
        code = code.replace(GLUE, self.glue)
        code = code.replace("localhost:9092", self.servers)
        return re.sub("/tmp/(?=checkpoints|lake)", f"{self.folder}/", code)

    def run(self, snippet: Snippet, page: Path, namespace: dict[str, object]) -> None:
        """Runs a snippet, and waits for the topics that it creates; errors show its place on the page."""
        lines = "\n" * (snippet.line - 1) + self.translated(snippet.code)
        created = set(_NEW_TOPIC.findall(lines))
        for statement in ast.parse(lines).body:
            exec(compile(ast.Module([statement], []), str(page), "exec"), namespace)
            if "create_topics" in ast.unparse(statement):
                # Whoever asks the broker is to find them; on a busy machine it hears of them later.
                admin = broker_at(self.servers).admin
                eventually(lambda: created <= admin.list_topics(timeout=30).topics.keys(), "topics")  # noqa: B023

    def as_on_the_page(self, output: str) -> str:
        """What was printed, in the page's names."""
        for name, unique in self.topics.items():
            output = output.replace(unique, name)
        return output.replace(self.servers, "localhost:9092")


def check_page(
    page: Path,
    namespace: dict[str, object],
    broker: Broker,
    folder: Path,
    printed: Callable[[], str],
    registry: str = "",
    without: str | None = None,
    glue: str = "",
) -> None:
    """Runs all snippets of a page, from top to bottom, and compares what they print.

    Args:
        page: The page.
        namespace: Where they run.
        broker: Where its topics are.
        folder: For its checkpoints and tables.
        printed: Gives what was printed since it was last called.
        registry: Address of a schema registry.
        without: Snippets under headings with this word are left out.
        glue: Address of a registry of AWS Glue.
    """
    found = [
        snippet
        for snippet in snippets(page.read_text(encoding="utf-8"))
        if without is None or without not in snippet.heading
    ]
    code = "\n".join(snippet.code for snippet in found)
    # What the tool has recorded is in topics with Debezium's names.
    names = topics_in(code) - {RECORDED}
    topics = {name: f"{name}-{uuid.uuid4().hex[:8]}" for name in names}
    for name, unique in topics.items():
        if f'NewTopic("{name}"' not in code:
            broker.create(unique)
    world = World(broker.servers, folder, topics, registry, glue)
    for snippet in found:
        printed()
        world.run(snippet, page, namespace)
        output = world.as_on_the_page(printed())

        if snippet.output is not None:
            expected, seen = (_OF_THE_MACHINE.sub("?", each) for each in (snippet.output, output))
            assert expected.strip() == seen.strip(), f"{page.name}, line {snippet.line}"
