"""README.md as a package index shows it: the index has no other file, so its links lead to the repository.

The build runs this file alone (``tool.hatch.metadata.hooks.custom`` in pyproject.toml).
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

_LINK = re.compile(r"(?P<picture>!?)\[(?P<text>[^\]]*)\]\((?![a-z]+:|#)(?P<target>[^)\s]+)\)")


class IndexPage(MetadataHookInterface):
    """Makes the description of the distribution."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Sets the description.

        Args:
            metadata: That of the project, with its version.
        """
        text = Path(self.root, "README.md").read_text(encoding="utf-8")
        text = with_addresses(text, metadata["urls"]["Source"], metadata["version"])
        metadata["readme"] = {"content-type": "text/markdown", "text": text}


def with_addresses(text: str, repository: str, version: str) -> str:
    """A text whose links to files of the repository are addresses, for a page that is not in the repository.

    The files are those of the version; if it is no release, those of ``main``.
    """
    commit = f"v{version}" if re.fullmatch(r"[\d.]+", version) else "main"

    def changed(link: re.Match[str]) -> str:
        kind = "raw" if link["picture"] else "blob"
        return f"{link['picture']}[{link['text']}]({repository}/{kind}/{commit}/{link['target']})"

    return _LINK.sub(changed, text)
