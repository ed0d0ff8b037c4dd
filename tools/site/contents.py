"""Which pages the site has, and in which groups: docs/README.md says it, and the site's navigation is made from that."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from posixpath import join, normpath

_GROUP = re.compile(r"^## +(.+)$")
_PAGE = re.compile(r"^- \[(?P<title>[^\]]+)\]\((?P<file>[^)#\s]+\.md)\)(?:: *(?P<summary>.+))?$")

HOME = "docs/index.md"
LIST_OF_PAGES = "docs/README.md"

IN_NO_GROUP = {HOME: "index.md", LIST_OF_PAGES: "pages.md"}
"""The first page, and docs/README.md itself, by the name of their file on the site. A folder's README would be its first page."""


class SiteError(Exception):
    """The pages do not fit together."""


@dataclass(frozen=True)
class Page:
    """A page of the site.

    Args:
        title: Its name in the navigation.
        source: Its file, from the repository's root.
        file: Its Markdown on the site.
        summary: What it is about, in one line.
    """

    title: str
    source: str
    file: str
    summary: str = ""


@dataclass(frozen=True)
class Group:
    """Pages that stand together in the navigation."""

    title: str
    pages: tuple[Page, ...]


OF_THE_PROJECT = (
    Page("What is new", "CHANGELOG.md", "changelog.md", "the changes of each version"),
    Page(
        "Contributing", "CONTRIBUTING.md", "contributing.md", "commands for development, and rules"
    ),
)
"""Pages at the repository's root. They stand at the end of the last group."""


def contents(root: Path) -> tuple[Group, ...]:
    """The groups that docs/README.md lists.

    Args:
        root: The repository.

    Raises:
        SiteError: A page is listed and not there, is there and not listed, or is listed twice.
    """
    groups = listed((root / LIST_OF_PAGES).read_text(encoding="utf-8"))
    sources = [page.source for group in groups for page in group.pages]
    there = {file.relative_to(root).as_posix() for file in (root / "docs").rglob("*.md")}
    wrong = [
        *(f"{LIST_OF_PAGES} lists {name}, which is not there" for name in {*sources} - there),
        *(f"{LIST_OF_PAGES} does not list {name}" for name in there - {*sources, *IN_NO_GROUP}),
        *(f"{LIST_OF_PAGES} lists {name} twice" for name in sources if sources.count(name) > 1),
    ]
    if wrong:
        raise SiteError("\n".join(sorted({*wrong})))
    *others, last = groups
    return (*others, Group(last.title, (*last.pages, *OF_THE_PROJECT)))


def listed(text: str) -> tuple[Group, ...]:
    """The groups of a list of pages: ``## Group``, and a line ``- [Title](file.md): summary`` for each page."""
    return tuple(Group(title, tuple(pages)) for title, pages in _groups(text) if pages)


def _groups(text: str) -> Iterator[tuple[str, list[Page]]]:
    title, pages = "", list[Page]()
    for line in text.splitlines():
        if heading := _GROUP.match(line):
            yield title, pages
            title, pages = heading[1], []
        elif found := _PAGE.match(line):
            source = normpath(join("docs", found["file"]))
            file = str(PurePosixPath(source).relative_to("docs"))
            pages.append(Page(found["title"], source, file, found["summary"] or ""))
    yield title, pages


def files_on_the_site(groups: tuple[Group, ...]) -> dict[str, str]:
    """The Markdown of each page on the site, by the file in the repository that it is made of."""
    return IN_NO_GROUP | {page.source: page.file for group in groups for page in group.pages}
