"""The site: which pages it has, how links change, what is wrong with a built one, and the folder of its versions."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from markdown import markdown

from tests.git import WHO, needs_git
from tools.site.__main__ import llms_txt, what_is_wrong, write_markdown
from tools.site.api import TOPICS, with_api
from tools.site.html_links import BuiltSite
from tools.site.pages import (
    REPOSITORY,
    Group,
    Page,
    SiteError,
    contents,
    listed,
    with_links_of_the_site,
)
from tools.site.settings import ADDRESS, EscapedPipes, github_anchor, navigation, settings
from tools.site.versions import AT_THE_ROOT, in_order, publish, published

ROOT = Path(__file__).parents[2]
START = Page("Install", "docs/install.md", "install.md", "what you need")
OPTIONS = Page("Options", "docs/options.md", "options.md")
GROUPS = (Group("Start", (START,)), Group("Reference", (OPTIONS,)), Group("Project", ()))
FILES = f"{REPOSITORY}/blob/main"
LIST = """\
# All pages

## Start

- [Install](install.md): what you need

## Reference

- [Options](options.md)

A line that is no page, and [a link](install.md) in it.
"""


def repository(folder: Path, **pages: str) -> Path:
    """A repository with pages in docs/."""
    (folder / "docs").mkdir()
    for name, text in pages.items():
        (folder / "docs" / f"{name}.md").write_text(text, encoding="utf-8")
    return folder


def test_the_list_of_pages_is_read() -> None:
    """A group for each heading, and a page for each line of its list."""
    assert listed(LIST) == GROUPS[:2]


def test_the_pages_of_the_project_end_the_last_group(tmp_path: Path) -> None:
    """CHANGELOG and CONTRIBUTING are pages, though docs/README.md does not list them."""
    root = repository(tmp_path, README=LIST, index="", install="", options="")

    last = contents(root)[-1]

    assert [page.file for page in last.pages] == ["options.md", "changelog.md", "contributing.md"]


@pytest.mark.parametrize(
    ("pages", "problem"),
    [
        ({"README": LIST, "install": ""}, "lists docs/options.md, which is not there"),
        (
            {"README": LIST, "install": "", "options": "", "show": ""},
            "does not list docs/show.md",
        ),
        (
            {"README": f"{LIST}\n- [Again](install.md)", "install": "", "options": ""},
            "lists docs/install.md twice",
        ),
    ],
)
def test_the_list_and_the_pages_are_the_same(
    tmp_path: Path, pages: dict[str, str], problem: str
) -> None:
    """No page is without a place in the navigation, and no place without its page."""
    with pytest.raises(SiteError, match=problem):
        contents(repository(tmp_path, **pages))


def test_the_api_stands_after_the_reference() -> None:
    """Its pages are a group of their own."""
    titles = [group.title for group in with_api(GROUPS)]

    assert titles == ["Start", "Reference", "Python API", "Project"]


def test_the_navigation_has_every_page() -> None:
    """It is made of the groups, after the first page."""
    assert navigation(GROUPS)[1:3] == [
        {"Start": [{"Install": "install.md"}]},
        {"Reference": [{"Options": "options.md"}]},
    ]


@pytest.mark.parametrize(
    ("source", "text", "on_the_site"),
    [
        ("docs/reading.md", "[b](writing.md#there)", "[b](writing.md#there)"),
        ("docs/reading.md", "[here](#here)", "[here](#here)"),
        ("docs/reading.md", "[what is new](../CHANGELOG.md)", "[what is new](changelog.md)"),
        ("CHANGELOG.md", "[b](docs/writing.md#in-a-batch)", "[b](writing.md#in-a-batch)"),
        ("docs/reading.md", "[here](../README.md)", "[here](index.md)"),
        (
            "docs/reading.md",
            "[licence](../README.md#licence)",
            f"[licence]({FILES}/README.md#licence)",
        ),
        ("docs/reading.md", "![picture](show.svg)", "![picture](show.svg)"),
        ("docs/reading.md", "[web](https://kafka.apache.org)", "[web](https://kafka.apache.org)"),
        ("docs/reading.md", "[`b`](writing.md)", "[`b`](writing.md)"),
        ("docs/reading.md", "`[b](../no.md)`", "`[b](../no.md)`"),
        ("docs/reading.md", "```text\n[b](../no.md)\n```", "```text\n[b](../no.md)\n```"),
        ("docs/reading.md", "[job](../examples/job.py)", f"[job]({FILES}/examples/job.py)"),
    ],
)
def test_links_lead_to_the_site_or_to_the_repository(
    tmp_path: Path, source: str, text: str, on_the_site: str
) -> None:
    """A page of the site is linked as such, anything else on GitHub, and code is left alone."""
    root = repository(tmp_path, reading="", writing="")
    for file in ("README.md", "CHANGELOG.md", "examples/job.py", "docs/show.svg"):
        (root / file).parent.mkdir(exist_ok=True)
        (root / file).touch()
    files = {
        "docs/reading.md": "reading.md",
        "docs/writing.md": "writing.md",
        "CHANGELOG.md": "changelog.md",
    }

    assert with_links_of_the_site(text, source, files, root) == on_the_site


def test_a_link_to_nothing_is_an_error(tmp_path: Path) -> None:
    """It names the page and the link."""
    root = repository(tmp_path, reading="")

    with pytest.raises(SiteError, match=r"docs/reading\.md: the link 'writing\.md' leads nowhere"):
        with_links_of_the_site(
            "[b](writing.md)", "docs/reading.md", {"docs/reading.md": "reading.md"}, root
        )


def test_llms_txt_lists_the_markdown_of_each_page() -> None:
    """It has the form of llmstxt.org: title, summary, and links with notes."""
    title, summary, start, *_ = llms_txt(GROUPS).split("\n\n")

    assert title.startswith("# ")
    assert summary.startswith("> ")
    assert start == "## Start"
    assert f"\n- [Install]({ADDRESS}install.md): what you need\n" in llms_txt(GROUPS)


def test_each_page_lies_beside_its_folder_as_markdown(tmp_path: Path) -> None:
    """And llms-full.txt has the text of all, in the order of the navigation."""
    pages, site = tmp_path / "pages", tmp_path / "site"
    for file in ("index.md", "install.md", "options.md"):
        pages.mkdir(exist_ok=True)
        (pages / file).write_text(f"# {file}\n", encoding="utf-8")

    write_markdown(GROUPS, pages, site)

    assert (site / "install.md").read_text(encoding="utf-8") == "# install.md\n"
    full = (site / "llms-full.txt").read_text(encoding="utf-8")
    assert [line for line in full.splitlines() if line.startswith("# ")] == [
        "# index.md",
        "# install.md",
        "# options.md",
    ]


@pytest.mark.parametrize(
    ("body", "problems"),
    [
        ('<a href="../other/#there">', []),
        ('<a href="../other/">', []),
        ('<a href="../other.md">', []),
        ('<a href="https://example.org/x">', []),
        (f'<a href="{ADDRESS}other/">', []),
        ('<img src="data:image/png;base64,AA==">', []),
        ('<a href="../other/#gone">', ["page/index.html: ../other/#gone: no such heading"]),
        ('<a href="#gone">', ["page/index.html: #gone: no such heading"]),
        ('<a href="../none/">', ["page/index.html: ../none/: leads nowhere"]),
        (
            '<script src="https://cdn.example.org/x.js"></script>',
            ["page/index.html: https://cdn.example.org/x.js: is loaded from another site"],
        ),
        (
            '<link rel="stylesheet" href="//fonts.example.org/css">',
            ["page/index.html: //fonts.example.org/css: is loaded from another site"],
        ),
    ],
)
def test_links_of_a_built_site(tmp_path: Path, body: str, problems: list[str]) -> None:
    """A link leads to a file and to a heading in it, and a page loads nothing from elsewhere."""
    for file, text in {
        "page/index.html": body,
        "other/index.html": '<h2 id="there">',
        "other.md": "",
    }.items():
        (tmp_path / file).parent.mkdir(exist_ok=True)
        (tmp_path / file).write_text(text, encoding="utf-8")

    assert BuiltSite(tmp_path, ADDRESS).problems() == problems


def test_a_stylesheet_loads_nothing_from_elsewhere(tmp_path: Path) -> None:
    """Fonts are what themes load so."""
    (tmp_path / "main.css").write_text("@font-face{src:url(https://fonts.example.org/a)}")

    assert BuiltSite(tmp_path, ADDRESS).problems() == [
        "main.css: https://fonts.example.org/a: is loaded from another site"
    ]


def built(folder: Path, text: str) -> Path:
    """A built site that says something."""
    folder.mkdir(exist_ok=True)
    for file in ("index.html", *AT_THE_ROOT):
        (folder / file).write_text(text)
    return folder


def test_versions_stand_beside_each_other(tmp_path: Path) -> None:
    """Each has its folder, ``latest`` is the newest release, and the menu has the newest first."""
    folder = tmp_path / "published"
    for version in ("0.9.0", "0.10.0", "dev", "0.2.0"):
        publish(built(tmp_path / "site", version), folder, version)

    assert (folder / "0.9.0" / "index.html").read_text() == "0.9.0"
    assert (folder / "latest" / "index.html").read_text() == "0.10.0"
    assert (folder / "llms.txt").read_text() == "0.10.0"
    menu = json.loads((folder / "versions.json").read_text())
    assert [each["version"] for each in menu] == ["0.10.0", "0.9.0", "0.2.0", "dev"]
    assert [each["version"] for each in menu if each["aliases"] == ["latest"]] == ["0.10.0"]
    assert "url=latest/" in (folder / "index.html").read_text()


def test_a_version_is_replaced_as_a_whole(tmp_path: Path) -> None:
    """A page that is gone is gone from its folder, and the menu has the version once."""
    folder = tmp_path / "published"
    site = built(tmp_path / "site", "first")
    (site / "gone.html").touch()
    publish(site, folder, "0.2.0")
    (site / "gone.html").unlink()
    publish(built(site, "second"), folder, "0.2.0")

    assert not (folder / "0.2.0" / "gone.html").exists()
    assert (folder / "latest" / "index.html").read_text() == "second"
    assert len(json.loads((folder / "versions.json").read_text())) == 1


@pytest.mark.parametrize("version", ["latest", "../up", "a/b", ""])
def test_a_version_is_the_name_of_a_folder(tmp_path: Path, version: str) -> None:
    """Nothing outside the published folder is written, and ``latest`` is no version."""
    with pytest.raises(SiteError, match="A version is a number"):
        publish(built(tmp_path / "site", ""), tmp_path / "published", version)


def test_numbers_are_compared_as_numbers() -> None:
    """0.10 is newer than 0.9; names come last."""
    assert in_order({"0.9.0", "dev", "0.10.0", "1.0"}) == ["1.0", "0.10.0", "0.9.0", "dev"]


def test_topics_have_files_of_their_own() -> None:
    """No page of the API takes the place of another."""
    files = [topic.file for topic in TOPICS]

    assert len(files) == len({*files})


@pytest.mark.parametrize(
    ("heading", "anchor"),
    [
        ("Where a change goes", "where-a-change-goes"),
        ("metadata.<column>: metadata", "metadatacolumn-metadata"),
        ("Flink's CREATE TABLE", "flinks-create-table"),
        ("sink.header.<name> _and_ more-", "sinkheadername-_and_-more-"),
    ],
)
def test_anchors_are_those_of_github(heading: str, anchor: str) -> None:
    """A link to a heading works on GitHub and on the site."""
    assert github_anchor(heading) == anchor


def test_what_zensical_warns_of_is_told() -> None:
    """Its traceback is left out after warnings, and told where it is all that there is."""
    traceback = "Traceback (most recent call last):\n  ...\n"

    assert (
        what_is_wrong(f"\x1b[33mWarning:\x1b[0m no anchor\n{traceback}") == "Warning: no anchor\n"
    )
    assert what_is_wrong(traceback) == traceback


def test_a_reader_asks_no_other_site() -> None:
    """The theme's link to the repository, with this name, would ask GitHub for its stars."""
    theme = Path(settings.__code__.co_filename).with_name("theme")

    assert settings(GROUPS)["theme"]["font"] is False
    assert settings(GROUPS)["theme"]["custom_dir"] == str(theme)
    assert "data-md-component" not in (theme / "partials" / "source.html").read_text()


def test_a_pipe_in_the_code_of_a_table() -> None:
    """Markdown of GitHub wants it escaped there, and shows it without the backslash."""
    html = markdown(
        "| a | b |\n|---|---|\n| `x\\|y` | c |\n\n`x\\|y`", extensions=["tables", EscapedPipes()]
    )

    assert "<td><code>x|y</code></td>" in html
    assert r"<p><code>x\|y</code></p>" in html


class Origin:
    """A repository, and a clone of it in which sites are published.

    Args:
        folder: Where both are made.
        build: Commands of the shell that make the site of ``$version`` in ``$folder``.
    """

    def __init__(self, folder: Path, build: str) -> None:
        self.address, self._clone, self._python = (
            folder / "origin",
            folder / "clone",
            folder / "builds",
        )
        needs_git()
        # -m tools.site.versions SITE FOLDER VERSION
        self._python.write_text(f"#!/bin/sh\nset -e\nfolder=$4 version=$5\n{build}\n")
        self._python.chmod(0o700)
        self._git("init", "--quiet", "--bare", self.address)
        self._git("init", "--quiet", self._clone)
        self._git("-C", self._clone, "remote", "add", "origin", self.address)

    def publish(self, version: str) -> None:
        """Runs ``tools/publish-site``."""
        self._run("sh", ROOT / "tools" / "publish-site", self._python, version)

    def pushed(self) -> list[str]:
        """The messages of the commits, newest first."""
        return self._git("-C", self.address, "log", "--format=%s", "gh-pages").splitlines()

    def files(self) -> list[str]:
        """What is published."""
        return self._git("-C", self.address, "ls-tree", "--name-only", "gh-pages").splitlines()

    def _git(self, *arguments: object) -> str:
        return self._run("git", *arguments)

    def _run(self, *command: object) -> str:
        environment = {"PATH": os.environ["PATH"], "HOME": str(self.address.parent), **WHO}
        where = self._clone if self._clone.is_dir() else self.address.parent
        return subprocess.check_output(
            [str(word) for word in command], cwd=where, env=environment, text=True
        )


def test_the_site_is_pushed_as_one_commit_more(tmp_path: Path) -> None:
    """To a branch that is new at first; a site that is published already is not pushed again."""
    origin = Origin(tmp_path, 'echo "$version" > "$folder/$version.html"')
    for version in ("0.1.0", "0.2.0", "0.2.0"):
        origin.publish(version)

    assert origin.pushed() == ["The site of 0.2.0", "The site of 0.1.0"]
    assert origin.files() == ["0.1.0.html", "0.2.0.html"]


def test_a_built_site_is_added_without_any_package(tmp_path: Path) -> None:
    """A job that may push installs nothing: the interpreter alone puts the site into the folder."""
    site, folder = tmp_path / "site", tmp_path / "published"
    site.mkdir()
    for name in ("index.html", *AT_THE_ROOT):
        (site / name).write_text(name)
    program = "import sys, runpy; sys.path.insert(0, '.'); runpy.run_module('tools.site.versions', run_name='__main__', alter_sys=True)"
    command = [sys.executable, "-I", "-S", "-c", program]
    subprocess.run([*command, str(site), str(folder), "0.1.0"], check=True, cwd=ROOT)
    refused = subprocess.run(
        [*command, str(site), str(folder), "../x"], check=False, capture_output=True, text=True
    )

    assert sorted(published(folder)) == ["0.1.0"]
    assert (folder / "0.1.0" / "index.html").is_file()
    assert "cannot be" not in refused.stdout
    assert refused.returncode == 1
    assert "'../x'" in refused.stderr


def test_a_version_that_is_pushed_meanwhile_stays(tmp_path: Path) -> None:
    """A release and main may publish at the same time: who is later adds its site to the other one."""
    meanwhile = """
    echo "$version" > "$folder/$version.html"
    if [ "$version" = dev ] && [ ! -e ../meanwhile ]; then
        git clone --quiet --branch gh-pages ../origin ../meanwhile
        touch ../meanwhile/0.2.0.html
        git -C ../meanwhile add 0.2.0.html
        git -C ../meanwhile commit --quiet --message "The site of 0.2.0"
        git -C ../meanwhile push --quiet origin gh-pages
    fi
    """
    origin = Origin(tmp_path, meanwhile)
    for version in ("0.1.0", "dev"):
        origin.publish(version)

    assert origin.pushed() == ["The site of dev", "The site of 0.2.0", "The site of 0.1.0"]
    assert origin.files() == ["0.1.0.html", "0.2.0.html", "dev.html"]
