"""The site is built: its pages are gathered, Zensical makes HTML of them, and every link is followed."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from shutil import copyfile, rmtree

from tools.site.api_pages import Api
from tools.site.api_topics import with_api
from tools.site.contents import Group, SiteError, contents, files_on_the_site
from tools.site.html_links import BuiltSite
from tools.site.markdown_copies import write_markdown
from tools.site.repository_links import with_links_of_the_site
from tools.site.settings import ADDRESS, settings

_ROOT = Path(__file__).parents[2]
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_STYLE = Path(__file__).with_name("style.css")


def build(root: Path, folder: Path) -> Path:
    """Builds the site.

    Args:
        root: The repository.
        folder: Where the site's folder is made, and what it is made of.

    Returns:
        The site's folder.

    Raises:
        SiteError: A page or a link is wrong, or Zensical warns.
    """
    own_pages = contents(root)
    groups = with_api(own_pages)
    configuration = settings(groups)
    pages, site = folder / configuration["docs_dir"], folder / configuration["site_dir"]
    rmtree(site, ignore_errors=True)
    gather(root, own_pages, pages)
    file = folder / "site.yml"
    file.write_text(json.dumps(configuration, indent=2), encoding="utf-8")  # JSON is YAML
    _run_zensical(file)
    write_markdown(groups, pages, site)
    problems = BuiltSite(site, ADDRESS).problems()
    if problems:
        raise SiteError("\n".join(problems))
    return site


def gather(root: Path, groups: tuple[Group, ...], pages: Path) -> None:
    """Puts everything that the site is made of into a folder.

    Args:
        root: The repository.
        groups: Its pages.
        pages: The folder, which is made anew.

    Raises:
        SiteError: A link leads nowhere, or the API is not described.
    """
    rmtree(pages, ignore_errors=True)
    files = files_on_the_site(groups)
    texts = Api.of(root).pages()
    for source, file in files.items():
        text = (root / source).read_text(encoding="utf-8")
        texts[file] = with_links_of_the_site(text, source, files, root)
    for file, text in texts.items():
        (pages / file).parent.mkdir(parents=True, exist_ok=True)
        (pages / file).write_text(text, encoding="utf-8")
    for picture in (root / "docs").glob("*.svg"):
        copyfile(picture, pages / picture.name)
    copyfile(_STYLE, pages / _STYLE.name)


def _run_zensical(configuration: Path) -> None:
    command = [sys.executable, "-m", "zensical", "build", "--strict", "--clean"]
    done = subprocess.run(
        [*command, "--config-file", str(configuration)],
        cwd=_ROOT,  # the settings name a function of this package
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise SiteError(what_is_wrong(f"{done.stdout}{done.stderr}"))


def what_is_wrong(printed: str) -> str:
    """What Zensical printed, without colours, and without a traceback of its own after warnings."""
    text = _COLOUR.sub("", printed)
    warnings = text.partition("Traceback (most recent call last)")[0]
    return warnings if "Warning:" in warnings else text
