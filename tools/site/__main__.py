"""``make site``: builds the site into build/site. ``make site-version``: adds it to the published folder as a version.

The pages are gathered, Zensical makes HTML of them, each lies beside its HTML as Markdown too, and every link is followed.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from shutil import copyfile, rmtree

from tools.site.api import Api, with_api
from tools.site.html_links import BuiltSite
from tools.site.pages import (
    IN_NO_GROUP,
    Group,
    Page,
    SiteError,
    contents,
    files_on_the_site,
    with_links_of_the_site,
)
from tools.site.settings import ADDRESS, DESCRIPTION, NAME, settings
from tools.site.versions import publish

ROOT = Path(__file__).parents[2]


def main() -> None:
    """Builds the site, and publishes it if a folder is named."""
    arguments = parser().parse_args()
    begin = time.monotonic()
    try:
        site = build(ROOT, ROOT / "build")
        if arguments.publish is not None:
            publish(site, arguments.publish, arguments.version)
    except SiteError as error:
        sys.exit(str(error))
    pages = sum(1 for _ in site.rglob("*.html"))
    print(f"{site.relative_to(ROOT)}: {pages} pages in {time.monotonic() - begin:.0f} s")


def parser() -> argparse.ArgumentParser:
    """The arguments."""
    arguments = argparse.ArgumentParser(prog="python -m tools.site", description=__doc__)
    arguments.add_argument("--publish", type=Path, help="the folder that is published")
    arguments.add_argument("--version", default="dev", help="the version that it is; %(default)s")
    return arguments


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
        cwd=ROOT,  # the settings name a function of this package
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


if __name__ == "__main__":
    main()
