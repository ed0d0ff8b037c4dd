r"""An extension of Python-Markdown: ``\|`` in the code of a table is a pipe, as on GitHub."""

from __future__ import annotations

from xml.etree.ElementTree import Element

from markdown import Markdown
from markdown.extensions import Extension
from markdown.treeprocessors import Treeprocessor
from markdown.util import AtomicString


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
