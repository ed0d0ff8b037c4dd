"""Each page as Markdown beside its HTML, and llms.txt: what programs read instead of HTML (https://llmstxt.org)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tools.site.contents import IN_NO_GROUP, Group, Page
from tools.site.settings import ADDRESS, DESCRIPTION, NAME

_HOME = Page("Home", "docs/index.md", IN_NO_GROUP["docs/index.md"])


def write_markdown(groups: Sequence[Group], pages: Path, site: Path) -> None:
    """Writes ``page.md`` beside the folder ``page/`` of each page, llms.txt and llms-full.txt.

    Args:
        groups: The groups of pages.
        pages: The folder with the Markdown of the site.
        site: The folder of the site.
    """
    for page in pages.rglob("*.md"):
        copy = site / page.relative_to(pages)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(page.read_bytes())
    (site / "llms.txt").write_text(llms_txt(groups), encoding="utf-8")
    (site / "llms-full.txt").write_text(llms_full_txt(groups, pages), encoding="utf-8")


def llms_txt(groups: Sequence[Group]) -> str:
    """The list of all pages, as llmstxt.org has it: a title, a summary, and links with notes under headings."""
    lists = (f"## {group.title}\n\n{''.join(map(_line, group.pages))}" for group in groups)
    return "\n".join([f"# {NAME}\n", f"> {DESCRIPTION}\n", *lists])


def _line(page: Page) -> str:
    note = f": {page.summary}" if page.summary else ""
    return f"- [{page.title}]({ADDRESS}{page.file}){note}\n"


def llms_full_txt(groups: Sequence[Group], pages: Path) -> str:
    """The text of all pages, each after its address."""
    in_order = [_HOME, *(page for group in groups for page in group.pages)]
    texts = ((page, (pages / page.file).read_text(encoding="utf-8")) for page in in_order)
    return "\n".join(f"<!-- {ADDRESS}{page.file} -->\n\n{text}" for page, text in texts)
