"""Whether every link of the built site leads somewhere, headings too, and whether a page loads anything from another site."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

_LOADING_TAGS = {"audio", "embed", "iframe", "img", "input", "object", "script", "source", "track", "video"}  # fmt: skip
_LOADING_RELS = {
    "dns-prefetch", "icon", "manifest", "modulepreload", "preconnect", "prefetch", "preload", "stylesheet",
}  # fmt: skip
_FROM_OUTSIDE = re.compile(r"""(?:url\(|@import)\s*["']?(?P<address>(?:https?:)?//[^"')\s]+)""")


@dataclass(frozen=True)
class Link:
    """A link of a page.

    Args:
        address: As it is written in the page.
        loads: Whether a browser loads it with the page.
    """

    address: str
    loads: bool


@dataclass
class HtmlPage(HTMLParser):
    """A page: its links, and the names of its places."""

    text: str
    links: list[Link] = field(default_factory=list)
    places: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        super().__init__()
        self.feed(self.text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Called by the parser."""
        values = {name: value or "" for name, value in attrs}
        self.places |= {values[name] for name in ("id", "name") if name in values}
        loads = tag in _LOADING_TAGS or (
            tag == "link" and not _LOADING_RELS.isdisjoint(values.get("rel", "").split())
        )
        addresses = (values[name] for name in ("href", "src", "data") if name in values)
        self.links += [Link(address, loads) for address in addresses]


@dataclass(frozen=True)
class BuiltSite:
    """The files of a site.

    Args:
        folder: Where they are.
        address: Where the site will be; its own pages may be linked by it.
    """

    folder: Path
    address: str

    @cached_property
    def pages(self) -> Mapping[Path, HtmlPage]:
        """Its pages, by file."""
        files = sorted(self.folder.rglob("*.html"))
        return {file: HtmlPage(file.read_text(encoding="utf-8")) for file in files}

    def problems(self) -> list[str]:
        """What is wrong with links, a line for each: page, address, and what is wrong with it."""
        of_pages = (
            f"{file.relative_to(self.folder)}: {link.address}: {problem}"
            for file, page in self.pages.items()
            for link in page.links
            if (problem := self._problem(file, link)) is not None
        )
        return [*of_pages, *self._of_stylesheets()]

    def _problem(self, file: Path, link: Link) -> str | None:
        address = link.address
        if address.startswith(self.address):
            address = f"/{address.removeprefix(self.address)}"
        parts = urlsplit(address)
        if parts.scheme or parts.netloc:
            is_outside = link.loads and parts.scheme != "data"
            return "is loaded from another site" if is_outside else None
        target = self._file(file, unquote(parts.path))
        if target is None:
            return "leads nowhere"
        page = self.pages.get(target)
        if page is not None and parts.fragment and unquote(parts.fragment) not in page.places:
            return "no such heading"
        return None

    def _file(self, page: Path, path: str) -> Path | None:
        """The file that a path means on a page; a path from the root may begin with the site's own."""
        root = urlsplit(self.address).path
        if path.startswith("/"):
            file = self.folder / path.removeprefix(root).lstrip("/")
        else:
            file = page.parent / path if path else page
        file = Path(file.resolve() / "index.html" if file.is_dir() else file.resolve())
        return file if file.is_file() else None

    def _of_stylesheets(self) -> Iterator[str]:
        for file in sorted(self.folder.rglob("*.css")):
            for found in _FROM_OUTSIDE.finditer(file.read_text(encoding="utf-8")):
                name = file.relative_to(self.folder)
                yield f"{name}: {found['address']}: is loaded from another site"
