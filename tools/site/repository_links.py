"""Links of pages in the repository, as they are on the site."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from posixpath import dirname, join, normpath, relpath

from tools.site.contents import HOME, SiteError

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
