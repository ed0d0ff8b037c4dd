"""The page of options is made from the declarations, and the pages hang together."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from datetime import date
from functools import lru_cache
from pathlib import Path
from zipfile import ZipFile

import pyspark_upsert_kafka
from pyspark_upsert_kafka.cli import parser
from pyspark_upsert_kafka.connector.format_catalog import FORMATS, format_options
from pyspark_upsert_kafka.core.options.catalog import OPTIONS
from tests.kafka import fault_table
from tests.kafka.fault_table import PLACES
from tools.fault_table import shown_table
from tools.options_page import format_options_page, options_page

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").glob("*.md"))]

_LINK = re.compile(r"\]\(([^)#\s]*)(?:#([^)\s]+))?\)")
_TEST = re.compile(r"`(\S+\.py)::(\w+)`")
_OUTCOME = re.compile(r"goes on, \d+\.\d s|`\w+Error`")
_SHELL = re.compile(r"^```sh\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)


def test_pages_of_options_are_fresh() -> None:
    """They are what ``make docs`` writes; run it after changing an option."""
    docs = ROOT / "docs"

    assert options_page() == (docs / "options.md").read_text(encoding="utf-8")
    assert format_options_page() == (docs / "format-options.md").read_text(encoding="utf-8")


def test_pages_of_options_have_every_option() -> None:
    """No option is left out: neither the connector's nor a format's."""
    page, of_formats = options_page(), format_options_page()

    for name in OPTIONS:
        assert f"| `{name}` |" in page
    for format_ in FORMATS:
        assert f"\n## Format `{format_}`\n" in of_formats
        for option in format_options(format_, "value"):
            assert f"| `{option.name}` |" in of_formats


def leads_somewhere(page: Path, target: str, heading: str) -> bool:
    """Whether a link of a page names a file that is there, and a heading in it."""
    file = (page.parent / target) if target else page
    return file.is_file() and (not heading or heading in anchors(file))


def test_links_between_pages_lead_somewhere() -> None:
    """Each relative link names a file that is there, and a heading in it."""
    links = [
        (page, target, heading)
        for page in PAGES
        for target, heading in _LINK.findall(page.read_text(encoding="utf-8"))
        if not target.startswith(("http://", "https://"))
    ]

    assert len(links) > 300
    assert [
        f"{page.name}: {target}#{heading}"
        for page, target, heading in links
        if not leads_somewhere(page, target, heading)
    ] == []


def test_every_error_is_explained() -> None:
    """docs/errors.md has a row for each error that users can meet."""
    page = (ROOT / "docs" / "errors.md").read_text(encoding="utf-8")

    for name in pyspark_upsert_kafka.__all__:
        if name.endswith("Error") and name != "UpsertKafkaError":
            assert f"| `{name}` |" in page


def test_the_changelog_has_dates() -> None:
    """Each heading is a version, the newest first, with its day; only the newest may be unreleased."""
    page = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    first, *others = re.findall(r"^## (.*)$", page, re.MULTILINE)
    headings = [first.replace("Unreleased", str(date.max)), *others]
    releases = [re.fullmatch(r"\[(\d+)\.(\d+)\.(\d+)\] - (\d{4}-\d\d-\d\d)", h) for h in headings]

    assert all(releases), headings
    order = [(date.fromisoformat(r[4]), int(r[1]), int(r[2]), int(r[3])) for r in releases if r]
    assert order == sorted(order, reverse=True)


def is_understood(arguments: str) -> bool:
    """Whether the command line takes these arguments."""
    try:
        parser().parse_args(shlex.split(arguments, comments=True))
    except SystemExit:
        return False
    return True


def test_commands_on_pages_are_understood() -> None:
    """Each call of the command line in a block for a shell has a command and arguments that there are."""
    called = [
        (page, arguments)
        for page in PAGES
        for block in _SHELL.findall(page.read_text(encoding="utf-8"))
        for line in block.replace("\\\n", " ").splitlines()
        if (arguments := line.partition("python -m pyspark_upsert_kafka ")[2])
    ]

    assert len(called) > 10
    assert [
        f"{page.name}: {arguments}" for page, arguments in called if not is_understood(arguments)
    ] == []


def test_the_commands_that_put_bytecode_into_pysparks_zip_do_so(tmp_path: Path) -> None:
    """docs/tuning.md: the zip keeps its modules, and Python imports them from bytecode."""
    page = (ROOT / "docs" / "tuning.md").read_text(encoding="utf-8")
    (commands,) = (block for block in _SHELL.findall(page) if "pyspark.zip" in block)
    library = tmp_path / "pyspark" / "python" / "lib"
    library.mkdir(parents=True)
    (tmp_path / "pyspark" / "__init__.py").touch()
    zipped = library / "pyspark.zip"
    with ZipFile(zipped, "w") as archive:
        archive.writestr("pyspark/__init__.py", "print(__file__)")
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"

    def run(*command: str, where: Path) -> str:
        environment = {**os.environ, "PATH": path, "PYTHONPATH": str(where)}
        return subprocess.check_output(command, env=environment, text=True)

    run("sh", "-ec", commands, where=tmp_path)

    loaded = run(sys.executable, "-c", "import pyspark", where=zipped)
    assert loaded.strip() == str(zipped / "pyspark" / "__init__.pyc")
    assert "pyspark/__init__.py" in ZipFile(zipped).namelist()
    assert [*library.iterdir()] == [zipped]


def test_the_list_of_all_pages_can_be_found_from_the_readme() -> None:
    """README links to docs/README.md, which tests/unit/test_pages.py holds complete."""
    assert "(docs/README.md)" in (ROOT / "README.md").read_text(encoding="utf-8")


MAPS = [ROOT / "docs" / name for name in ("modules.md", "modules-inside.md")]


def rooms() -> dict[str, str]:
    """What the maps of all modules say of each folder of the package, by its path in it."""
    found: dict[str, str] = {}
    for page in MAPS:
        map_ = page.read_text(encoding="utf-8").partition("```text\n")[2].partition("```\n")[0]
        for part in re.split(r"^(?:  )?(?=\w[\w/]*/  )", map_, flags=re.MULTILINE)[1:]:
            folder, _, text = part.partition("/  ")
            found["" if folder == "pyspark_upsert_kafka" else folder] = text
    return found


def folders() -> list[str]:
    """The folders of the package that hold modules."""
    package = ROOT / "pyspark_upsert_kafka"
    found = {file.parent for file in package.rglob("*.py") if file.stem != "__init__"}
    # A folder that is one module has its place too.
    found |= {file.parent for file in package.rglob("__init__.py") if file.stat().st_size > 200}
    return sorted("/".join(folder.relative_to(package).parts) for folder in found)


def test_the_map_names_each_room() -> None:
    """They say of each folder with modules what it is for, and of no other."""
    assert sorted(rooms()) == folders()


def named_in(room: str) -> set[str]:
    """The modules that the map of a room names."""
    lines = room.splitlines()[1:]
    return {word for line in lines for word in re.split(r"\s{2,}", line.strip())[0].split()}


def modules_of(folder: str) -> set[str]:
    """The modules of a folder of the package."""
    files = (ROOT / "pyspark_upsert_kafka" / folder).glob("*.py")
    return {file.stem for file in files if folder == "" or file.stem != "__init__"}


def test_the_map_of_each_room_is_whole() -> None:
    """It has a place for each module, and for nothing that is not there."""
    differs = {folder: named_in(room) ^ modules_of(folder) for folder, room in rooms().items()}
    wrong = {folder: modules for folder, modules in differs.items() if modules}

    assert not wrong, f"docs/modules.md or docs/modules-inside.md: {wrong}"


def test_places_of_changes_exist() -> None:
    """The places that docs/where-a-change-goes.md names for a change are there."""
    table = (ROOT / "docs" / "where-a-change-goes.md").read_text(encoding="utf-8")
    places = set(re.findall(r"`([\w/-]+(?:\.py|\.md|/))`", table)) - {"pyspark_upsert_kafka/"}

    assert len(places) > 30
    assert {
        place
        for place in places
        if not any((ROOT / top / place).exists() for top in ("", "pyspark_upsert_kafka"))
    } == set()


def test_every_fault_names_a_test_that_exists() -> None:
    """Each row of docs/reliability.md names the tests that prove it, or the text above its table does that for all rows."""
    page = (ROOT / "docs" / "reliability.md").read_text(encoding="utf-8")
    rows = 0
    for section in page.split("\n## "):
        before, is_table, lines = section.partition("\n| ")
        table = [line for line in lines.splitlines()[2:] if line.startswith("| ")]
        if is_table and " | test |" not in lines.splitlines()[0]:
            assert _TEST.search(before), before
            continue
        rows += len(table)
        for row in table:
            assert _TEST.search(row.split("|")[-2]), row

    assert rows > 40
    for file, test in _TEST.findall(page):
        source = (ROOT / "tests" / file).read_text(encoding="utf-8")
        assert f"\ndef {test}(" in source, f"{file}::{test}"


def test_the_table_of_faults_has_the_rows_and_columns_of_its_test() -> None:
    """It is what ``make fault-table`` writes; a test that takes minutes finds what the cells say, but for their times."""
    page = (ROOT / "docs" / "reliability.md").read_text(encoding="utf-8")
    head, rule, *rows = shown_table(page).splitlines()
    cells = [row.strip("| ").split(" | ") for row in rows]

    assert f"{head}\n{rule}" == fault_table.head()
    assert [tuple(row[:2]) for row in cells] == [fault_table.place(*each) for each in PLACES]
    for row in cells:
        outcomes = row[2:]
        assert len(outcomes) == len(fault_table.faults(*PLACES[0]))
        assert all(_OUTCOME.fullmatch(each) for each in outcomes), row


@lru_cache
def anchors(file: Path) -> set[str]:
    """The names by which GitHub knows a page's headings."""
    headings = _HEADING.findall(file.read_text(encoding="utf-8"))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
