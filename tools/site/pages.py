"""Which pages the site has and in which groups, as docs/README.md says it, and where their links lead."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from posixpath import dirname, join, normpath, relpath

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


_README = "README.md"

REPOSITORY = "https://github.com/pyspark-upsert-kafka/pyspark-upsert-kafka"

# Code is taken first, so that nothing in it is a link.
_CODE_OR_LINK = re.compile(
    r"^```.*?^```|`[^`\n]+`|\]\((?P<target>[^)#\s]+)(?P<heading>#[^)\s]*)?\)",
    re.DOTALL | re.MULTILINE,
)


def with_links_of_the_site(text: str, source: str, files: Mapping[str, str], root: Path) -> str:
    """The text of a page whose links lead to other pages of the site, or else to the repository on GitHub.

    Args:
        text: The page.
        source: Its file, from the repository's root.
        files: The Markdown of each page on the site, by its file in the repository.
        root: The repository.

    Raises:
        SiteError: A link leads nowhere.
    """

    def changed(found: re.Match[str]) -> str:
        target = found["target"]
        if target is None or "://" in target or target.startswith("mailto:"):
            return found[0]
        path = normpath(join(dirname(source), target))
        if not (root / path).exists():
            raise SiteError(f"{source}: the link {target!r} leads nowhere")
        heading = found["heading"] or ""
        if path == _README and not heading:  # the site says the same on its first page
            path = HOME
        return f"]({_address(path, files, files[source], root)}{heading})"

    return _CODE_OR_LINK.sub(changed, text)


def _address(path: str, files: Mapping[str, str], page: str, root: Path) -> str:
    """Where a file of the repository is, seen from a page of the site."""
    if path in files:
        return relpath(files[path], dirname(page) or ".")
    if path.startswith("docs/"):
        return relpath(path.removeprefix("docs/"), dirname(page) or ".")
    kind = "tree" if (root / path).is_dir() else "blob"
    return f"{REPOSITORY}/{kind}/main/{path}"
