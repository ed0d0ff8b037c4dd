"""What holds for all pages of docs: each is short, is listed, and can be found from where it is named."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

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
_NAMED = re.compile(r"(?:\bdocs/|\bpage\([\"'])([\w-]+\.md)(?:#([\w-]+))?")
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


def text_of(page: Path) -> str:
    """What a page says."""
    return page.read_text(encoding="utf-8")


def test_no_page_is_long() -> None:
    """A page has at most 200 lines: a longer one has two subjects."""
    lengths = {page.name: len(text_of(page).splitlines()) for page in PAGES}

    assert {name: length for name, length in lengths.items() if length > 200} == {}


def says_first_what_it_is_for(page: Path) -> bool:
    """Whether a page begins with a heading and a sentence."""
    lines = text_of(page).splitlines()
    text = [line for line in lines[1:] if line and not line.startswith("<!--")]
    return bool(re.fullmatch(r"# \S.*", lines[0]) and re.match(r"[\w`\[]", text[0]))


def test_a_page_says_first_what_it_is_for() -> None:
    """A heading, then a sentence, before any list, table or code."""
    assert [page.name for page in PAGES if not says_first_what_it_is_for(page)] == []


def test_pages_for_users_name_no_tests() -> None:
    """Where the tests are is for those who change the connector; a benchmark is named by the command that runs it."""
    for_users = [page for page in PAGES if page.name not in groups()[THE_PROJECT]]
    named = {
        page.name: [*_TEST.findall(text_of(page)), *_BENCHMARK.findall(text_of(page))]
        for page in for_users
    }

    assert len(for_users) > 30
    assert {page: names for page, names in named.items() if names} == {}


def test_a_page_makes_its_topics_itself() -> None:
    """It begins with the lines that create them: no page sends its reader to another one for that."""
    elsewhere = re.compile(r"#make-a-topic|#create-the-topics")
    pages = [*PAGES, FIRST_PAGE, ROOT / "README.md"]

    assert [page.name for page in pages if elsewhere.search(text_of(page))] == []


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


def test_texts_of_the_package_name_pages_by_their_address() -> None:
    """An installed package has no folder docs: its texts use `page`, whose address is that in pyproject.toml."""
    from pyspark_upsert_kafka.core import pages

    declared = re.search(
        r'^Documentation = "(.*)"$', text_of(ROOT / "pyproject.toml"), re.MULTILINE
    )
    strings = {
        (file.name, node.value)
        for file in (ROOT / "pyspark_upsert_kafka").rglob("*.py")
        for node in ast.walk(without_docstrings(ast.parse(text_of(file))))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }

    assert declared is not None
    assert pages.page("index.md") == f"{declared[1]}/index.md"
    assert [each for each in strings if re.search(r"(?<![\w/])docs/[\w-]+\.md", each[1])] == []


def without_docstrings(tree: ast.Module) -> ast.Module:
    """What a module says to people who use it: not to those who read its code."""
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list):
            node.body = [each for each in body if not is_text(each)] or [ast.Pass()]  # type: ignore[attr-defined]
    return tree


def is_text(node: ast.AST) -> bool:
    """Whether a statement is a text alone."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
