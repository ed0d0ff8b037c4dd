"""The folder that is published: a site for each version, and the menu of versions.

It has the layout of mike (https://github.com/jimporter/mike), which the theme's menu reads: a folder for each version,
``latest`` with a copy of the newest release, versions.json, and a first page that leads to ``latest``.

As a program it does so with a site that is built already, without any package: python -m tools.site.versions SITE FOLDER VERSION
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from shutil import copyfile, copytree, rmtree

from tools.site.pages import SiteError

LATEST = "latest"

AT_THE_ROOT = ("404.html", "llms.txt", "llms-full.txt", "sitemap.xml")
"""Files of the newest release that are looked for above the versions too."""

_VERSION = re.compile(r"[\w][\w.+-]*")
_RELEASE = re.compile(r"\d+(?:\.\d+)*")
_FIRST_PAGE = """\
<!doctype html>
<title>To the newest version</title>
<meta http-equiv="refresh" content="0; url={version}/">
<a href="{version}/">To the newest version</a>
"""


def publish(site: Path, folder: Path, version: str) -> None:
    """Puts a built site into the published folder as one version, in the place of what that version had.

    Args:
        site: The built site.
        folder: The published folder, such as a checkout of the branch ``gh-pages``; it may be new.
        version: ``0.2.0``, or a name such as ``dev``. Only a number can be the newest release.

    Raises:
        SiteError: The version cannot be the name of a folder, or there is no built site.
    """
    if not _VERSION.fullmatch(version) or version == LATEST:
        raise SiteError(
            f"A version is a number such as 0.2.0, or a name such as dev, and not {version!r}"
        )
    if not (site / "index.html").is_file():
        raise SiteError(f"There is no site in {site}: run `make site` first")
    _replace(site, folder / version)
    versions = in_order({version, *published(folder)})
    releases = [each for each in versions if is_release(each)]
    newest = (releases or versions)[0]
    if version == newest:
        _replace(site, folder / LATEST)
        for name in AT_THE_ROOT:
            copyfile(site / name, folder / name)
    (folder / "versions.json").write_text(menu(versions, newest), encoding="utf-8")
    (folder / "index.html").write_text(_FIRST_PAGE.format(version=LATEST), encoding="utf-8")
    (folder / ".nojekyll").touch()


def _replace(site: Path, folder: Path) -> None:
    rmtree(folder, ignore_errors=True)
    copytree(site, folder)


def published(folder: Path) -> list[str]:
    """The versions that a published folder has."""
    file = folder / "versions.json"
    known = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else []
    return [each["version"] for each in known]


def is_release(version: str) -> bool:
    """Whether it is a number, and not a name such as ``dev``."""
    return _RELEASE.fullmatch(version) is not None


def in_order(versions: set[str]) -> list[str]:
    """The newest release first, names last."""
    names = sorted(version for version in versions if not is_release(version))
    numbers = versions - {*names}
    return [*sorted(numbers, key=lambda each: [*map(int, each.split("."))], reverse=True), *names]


def menu(versions: list[str], newest: str) -> str:
    """The text of versions.json."""
    entries: list[Mapping[str, object]] = [
        {"version": each, "title": each, "aliases": [LATEST] if each == newest else []}
        for each in versions
    ]
    return json.dumps(entries, indent=2) + "\n"


if __name__ == "__main__":
    try:
        publish(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3])
    except SiteError as error:
        sys.exit(str(error))
