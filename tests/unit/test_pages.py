"""What holds for all pages of docs: each is short, is listed, and can be found from where it is named."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.test_docs import anchors

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
LIST = DOCS / "README.md"
FIRST_PAGE = DOCS / "index.md"
PAGES = [page for page in sorted(DOCS.glob("*.md")) if page not in (LIST, FIRST_PAGE)]
THE_PROJECT = "The project"
"""The group of pages for those who change the connector."""

_GROUP = re.compile(r"^## (.+)$", re.MULTILINE)
_ENTRY = re.compile(r"^- \[([^]]+)\]\(([\w-]+\.md)\): \S.*$", re.MULTILINE)
_NAMED = re.compile(r"\bdocs/([\w-]+\.md)(?:#([\w-]+))?")
_TEST = re.compile(r"\btests/|\btest_\w+\.py\b")
_BENCHMARK = re.compile(r"(?<!python )benchmarks/")


def groups() -> dict[str, list[str]]:
    """The files of each group of docs/README.md, in order."""
    _, *parts = _GROUP.split(LIST.read_text(encoding="utf-8"))
    return {
        title: [file for _, file in _ENTRY.findall(entries)]
        for title, entries in zip(parts[::2], parts[1::2], strict=True)
    }


def test_the_groups_are_what_a_user_comes_for() -> None:
    """docs/README.md has one list for each of these, in this order."""
    wanted = ["Start", "Read", "Write", "SQL", "Operate", "Reference", "Migrate", THE_PROJECT]
    assert [*groups()] == wanted


def test_every_page_is_listed_once() -> None:
    """docs/README.md names each page, in one group, and no page that is not there."""
    listed = [file for files in groups().values() for file in files]
    there = {page.name for page in PAGES}

    assert sorted(listed) == sorted(there)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_no_page_is_long(page: Path) -> None:
    """A page has at most 200 lines: a longer one has two subjects."""
    assert len(page.read_text(encoding="utf-8").splitlines()) <= 200


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_says_first_what_it_is_for(page: Path) -> None:
    """A heading, then a sentence, before any list, table or code."""
    lines = page.read_text(encoding="utf-8").splitlines()
    text = [line for line in lines[1:] if line and not line.startswith("<!--")]

    assert re.fullmatch(r"# \S.*", lines[0])
    assert re.match(r"[\w`\[]", text[0])


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_pages_for_users_name_no_tests(page: Path) -> None:
    """Where the tests are is for those who change the connector; a benchmark is named by the command that runs it."""
    if page.name in groups()[THE_PROJECT]:
        return
    text = page.read_text(encoding="utf-8")

    assert _TEST.findall(text) == []
    assert _BENCHMARK.findall(text) == []


@pytest.mark.parametrize(
    "page", [*PAGES, FIRST_PAGE, ROOT / "README.md"], ids=lambda page: page.stem
)
def test_a_page_makes_its_topics_itself(page: Path) -> None:
    """It begins with the lines that create them: no page sends its reader to another one for that."""
    text = page.read_text(encoding="utf-8")

    assert "#make-a-topic" not in text
    assert "#create-the-topics" not in text


def files_that_name_pages() -> Iterator[Path]:
    """The sources of the package and its tools, and the other files in which a page may be named."""
    for folder in ("pyspark_upsert_kafka", "tools", "tests", "benchmarks", "examples"):
        yield from (ROOT / folder).rglob("*.py")
    yield from (ROOT / name for name in ("Makefile", "pyproject.toml", "CONTRIBUTING.md"))


def test_pages_that_the_code_names_are_there() -> None:
    """Errors, docstrings and comments that name ``docs/page.md#heading`` lead to a heading of a page."""
    named = {
        found
        for file in files_that_name_pages()
        for found in _NAMED.findall(file.read_text(encoding="utf-8"))
        if file != Path(__file__)
    }
    wrong = {
        (page, heading)
        for page, heading in named
        if not (DOCS / page).is_file() or (heading and heading not in anchors(DOCS / page))
    }

    assert len({page for page, _ in named}) > 20
    assert wrong == set()


def test_twenty_questions_have_an_answer() -> None:
    """docs/faq.md has a line for each question, with a link; tests/unit/test_docs.py follows the links."""
    page = (DOCS / "faq.md").read_text(encoding="utf-8")
    rows = [line for line in page.splitlines() if line.startswith("| ") and "?" in line]
    answers = [row.split("? | ", 1)[1] for row in rows]

    assert len(rows) >= 20
    assert all(re.search(r"\]\([\w./-]+\.md", answer) for answer in answers)
