"""Every Python snippet of README and docs runs, and prints what the page says.

What a page says and a test cannot have is replaced: the addresses ``localhost:9092`` and
``http://localhost:8081``, the folder ``/tmp/checkpoints``, and the names of topics (wherever they stand in
quotes) by unique ones, which exist unless the page creates them. A block of ``text`` right after one of
``python`` is what that prints.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.streaming.listener import StreamingQueryListener

from tests.conftest import Broker
from tests.local_registry import LocalRegistry

ROOT = Path(__file__).parents[2]
PAGES = [
    page
    for page in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
    if "```python" in page.read_text(encoding="utf-8")
]

_BLOCK = re.compile(r"^```(python|text)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_TOPIC = re.compile(
    r"""["'](?:topic|error-handling\.log\.target)["']\s*[,:=]\s*["']([^"']+)["']|NewTopic\("([^"]+)\""""
)


@dataclass(frozen=True)
class Snippet:
    """A block of Python, and what it prints where the page says so."""

    code: str
    output: str | None
    line: int


def snippets(page: str) -> list[Snippet]:
    """The snippets of a page, in order."""
    found: list[Snippet] = []
    end = -1
    for block in _BLOCK.finditer(page):
        kind, text = block.groups()
        if kind == "python":
            found.append(Snippet(text, None, page[: block.start()].count("\n") + 2))
            end = block.end()
        elif found and not page[end : block.start()].strip():
            found[-1] = Snippet(found[-1].code, text, found[-1].line)
    return found


def topics_in(code: str) -> set[str]:
    """The topics that options name, or that the code creates."""
    lists = [first or second for first, second in _TOPIC.findall(code)]
    return {name for names in lists for name in names.split(";")}


@dataclass(frozen=True)
class World:
    """What stands here for the addresses, the folder and the topics of a page."""

    servers: str
    registry: str
    checkpoints: Path
    topics: dict[str, str]

    def translated(self, code: str) -> str:
        """The code as it runs here."""
        for name, unique in self.topics.items():
            code = re.sub(rf"""(?<=["';]){re.escape(name)}(?=["';])""", unique, code)
        code = code.replace("http://localhost:8081", self.registry)
        code = code.replace("localhost:9092", self.servers)
        return code.replace("/tmp/checkpoints", str(self.checkpoints))

    def as_on_the_page(self, output: str) -> str:
        """What was printed, in the page's names."""
        for name, unique in self.topics.items():
            output = output.replace(unique, name)
        return output.replace(self.servers, "localhost:9092")


@pytest.fixture
def namespace(spark: SparkSession) -> Iterator[dict[str, object]]:
    """Where the snippets of a page run; what they leave running, defined or set is ended."""
    names: dict[str, object] = {"__name__": "__main__"}
    yield names
    for each in names.values():
        if isinstance(each, StreamingQueryListener):
            spark.streams.removeListener(each)
    for query in spark.streams.active:
        query.stop()
    for table in spark.catalog.listTables():
        spark.sql(f"DROP {'VIEW' if table.isTemporary else 'TABLE'} {table.name}")
    spark.conf.unset("spark.sql.streaming.stateStore.providerClass")


@pytest.mark.timeout(900)
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_snippets_run_and_print_what_the_page_says(
    page: Path,
    namespace: dict[str, object],
    broker: Broker,
    registry: LocalRegistry,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """What a user pastes from a page, top to bottom, works and prints what stands there."""
    found = snippets(page.read_text(encoding="utf-8"))
    code = "\n".join(snippet.code for snippet in found)
    world = World(
        broker.servers,
        registry.url,
        tmp_path,
        {name: f"{name}-{uuid.uuid4().hex[:8]}" for name in topics_in(code)},
    )
    for name, unique in world.topics.items():
        if f'NewTopic("{name}"' not in code:
            broker.create(unique)
    for snippet in found:
        lines = "\n" * (snippet.line - 1) + world.translated(snippet.code)
        capsys.readouterr()
        exec(compile(lines, str(page), "exec"), namespace)
        printed = world.as_on_the_page(capsys.readouterr().out)

        if snippet.output is not None:
            assert snippet.output.strip() == printed.strip(), f"{page.name}, line {snippet.line}"
