"""What Zensical is told about the site, and what it calls here: anchors of headings and pipes in tables are those of GitHub."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element

from markdown import Markdown
from markdown.extensions import Extension
from markdown.treeprocessors import Treeprocessor
from markdown.util import AtomicString

from tools.site.pages import IN_NO_GROUP, REPOSITORY, Group

ADDRESS = "https://pyspark-upsert-kafka.github.io/pyspark-upsert-kafka/latest/"
"""Of the newest version, which search engines and readers of llms.txt are sent to."""

NAME = "pyspark_upsert_kafka"
DESCRIPTION = (
    "Kafka topics as tables in PySpark: read a keyed topic as a table, stream its changes, and write changes back, "
    "as Flink's upsert-kafka connector does."
)

_THEME = Path(__file__).with_name("theme")
_FEATURES = [
    "content.code.copy",
    "navigation.footer",
    "navigation.tabs",
    "navigation.top",
    "search.highlight",
    "toc.follow",
]
_PALETTE = [
    {
        "media": "(prefers-color-scheme: light)",
        "scheme": "default",
        "toggle": {"icon": "lucide/moon", "name": "Switch to dark mode"},
    },
    {
        "media": "(prefers-color-scheme: dark)",
        "scheme": "slate",
        "toggle": {"icon": "lucide/sun", "name": "Switch to light mode"},
    },
]

# What GitHub understands too: pages are read in both places.
_MARKDOWN = [
    "attr_list",
    "md_in_html",
    "sane_lists",
    "tables",
    # Headings have the anchors that they have on GitHub.
    {"toc": {"permalink": True, "slugify": {"object": "tools.site.settings.github_anchors"}}},
    "pymdownx.betterem",
    {"pymdownx.highlight": {"pygments_lang_class": True}},
    "pymdownx.superfences",
    "tools.site.settings",
]  # fmt: skip


def settings(groups: tuple[Group, ...]) -> dict[str, Any]:
    """The configuration, in which paths are relative to the folder of its file.

    Nothing is loaded from other sites: no fonts, no scripts.
    """
    return {
        "site_name": NAME,
        "site_url": ADDRESS,
        "site_description": DESCRIPTION,
        "repo_url": REPOSITORY,
        "edit_uri": "",
        "docs_dir": "site-pages",
        "site_dir": "site",
        "nav": navigation(groups),
        "theme": {
            "custom_dir": str(_THEME),
            "features": _FEATURES,
            "font": False,
            "palette": _PALETTE,
        },
        "extra_css": ["style.css"],
        # The menu of versions, from versions.json beside the folders of versions.
        "extra": {"version": {"provider": "mike", "alias": True}},
        "markdown_extensions": _MARKDOWN,
        "plugins": ["search"],
    }


def navigation(groups: tuple[Group, ...]) -> list[dict[str, Any]]:
    """The groups of pages, after the first page."""
    home = [{"Home": "index.md"}, {"All pages": IN_NO_GROUP["docs/README.md"]}]
    return [
        {"Home": home},
        *({group.title: [{page.title: page.file} for page in group.pages]} for group in groups),
    ]


_NOT_IN_ANCHORS = re.compile(r"[^\w\- ]")


def github_anchors() -> Callable[[str, str], str]:
    """What Markdown's table of contents calls with a heading and a separator."""
    return github_anchor


def github_anchor(heading: str, separator: str = "-") -> str:
    """The anchor of a heading.

    Args:
        heading: Its text, without markup.
        separator: What stands for a blank.
    """
    return _NOT_IN_ANCHORS.sub("", heading.lower()).replace(" ", separator)


class _InTables(Treeprocessor):
    def run(self, root: Element) -> None:
        """Called by Markdown, with a whole page."""
        for cell in (*root.iter("td"), *root.iter("th")):
            for code in cell.iter("code"):
                code.text = AtomicString((code.text or "").replace(r"\|", "|"))


class EscapedPipes(Extension):
    """It runs after code has become elements, whose priority is 20."""

    def extendMarkdown(self, md: Markdown) -> None:
        """Called by Markdown."""
        md.treeprocessors.register(_InTables(md), "escaped_pipes", 5)


def makeExtension(**_: object) -> EscapedPipes:
    """What Markdown looks for in the module."""
    return EscapedPipes()
