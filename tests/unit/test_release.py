"""What make release-check demands before anything is uploaded."""

from __future__ import annotations

import re
from datetime import date
from importlib.metadata import metadata
from pathlib import Path
from typing import Any

import pytest
import yaml

from tools.release.changelog import NotReadyError, check_tag, notes
from tools.release.distributions import built, check_same
from tools.release.index_page import with_addresses

ROOT = Path(__file__).parents[2]
TODAY = date(2026, 12, 1)
CHANGELOG = """# Changelog

## [0.2.0] - {}

### Added

- Two.

## [0.1.0] - 2026-11-21

- One.
"""
WHEEL = "pyspark_upsert_kafka-0.2.0-py3-none-any.whl"
SDIST = "pyspark_upsert_kafka-0.2.0.tar.gz"


@pytest.mark.parametrize(
    ("day", "version", "tag", "message"),
    [
        ("2026-12-01", "0.2.0", "v0.2.0", None),
        ("2026-11-30", "0.2.0", "v0.2.0", None),
        ("Unreleased", "0.2.0", "v0.2.0", "0.2.0] - Unreleased"),
        ("2026-12-02", "0.2.0", "v0.2.0", "2026-12-01 or earlier"),
        ("2026-11-31", "0.2.0", "v0.2.0", "0.2.0] - 2026-11-31"),
        ("20261130", "0.2.0", "v0.2.0", "0.2.0] - 20261130"),
        ("", "0.2.0", "v0.2.0", "Write the day of the release"),
        ("2026-12-01", "0.2.0", "v0.3.0", "The tag is v0.3.0"),
        (
            "2026-12-01",
            "0.2.0.dev7+g12345678",
            "v0.2.0",
            "the version of this commit is 0.2.0.dev7",
        ),
    ],
)
def test_a_tag_is_that_of_a_dated_release(
    day: str, version: str, tag: str, message: str | None
) -> None:
    """Tag, version and CHANGELOG.md say the same, and the day is not to come."""
    changelog = CHANGELOG.format(day)
    if message is None:
        check_tag(changelog, version, tag, TODAY)
        return
    with pytest.raises(NotReadyError) as refused:
        check_tag(changelog, version, tag, TODAY)
    assert message in str(refused.value)


def test_notes_are_the_lines_of_the_release() -> None:
    """All of its headings, and nothing of other releases."""
    assert notes(CHANGELOG.format("Unreleased"), "0.2.0") == "### Added\n\n- Two.\n"
    assert notes(CHANGELOG.format("Unreleased"), "0.1.0") == "- One.\n"
    with pytest.raises(NotReadyError, match=r"no lines under '## \[0\.3\.0\]"):
        notes(CHANGELOG, "0.3.0")


def test_a_release_is_one_wheel_and_one_sdist(tmp_path: Path) -> None:
    """A file of an earlier build would be uploaded too."""
    for name in (WHEEL, SDIST):
        (tmp_path / name).touch()
    assert [file.name for file in built(tmp_path, "0.2.0").files] == [WHEEL, SDIST]
    (tmp_path / WHEEL.replace("0.2.0", "0.1.0")).touch()
    with pytest.raises(NotReadyError, match=r"not the wheel and the sdist of 0\.2\.0"):
        built(tmp_path, "0.2.0")
    with pytest.raises(NotReadyError, match="run make dist"):
        built(tmp_path / "missing", "0.2.0")


@pytest.mark.parametrize("second", ["the same", "other bytes", None])
def test_a_second_build_has_the_same_bytes(second: str | None, tmp_path: Path) -> None:
    """Whoever builds the commit gets the files that were released."""
    first, again = tmp_path / "dist", tmp_path / "again"
    for folder, text in ((first, "the same"), (again, second)):
        folder.mkdir()
        for name in (WHEEL, SDIST):
            if text is not None:
                (folder / name).write_text(text)
    files = built(first, "0.2.0")

    if second == "the same":
        check_same(files, again)
    else:
        with pytest.raises(NotReadyError, match="not the same when it is built again"):
            check_same(files, again)


def installed() -> Any:
    """The metadata of the distribution, as its build makes them."""
    return metadata("pyspark-upsert-kafka")


@pytest.mark.parametrize(
    ("version", "commit"), [("0.2.0", "v0.2.0"), ("0.2.0.dev7+g12345678", "main")]
)
def test_links_of_the_readme_lead_to_the_files_of_the_version(version: str, commit: str) -> None:
    """A package index shows README.md without the files beside it; addresses and headings stay."""
    text = "[a](pages/a.md#b) ![c](pages/c.svg) [d](https://host/d) [e](#e)"

    assert with_addresses(text, "https://host/repo", version) == (
        f"[a](https://host/repo/blob/{commit}/pages/a.md#b) ![c](https://host/repo/raw/{commit}/pages/c.svg)"
        " [d](https://host/d) [e](#e)"
    )


def test_the_description_of_the_distribution_has_only_whole_addresses() -> None:
    """The build makes it of README.md (after a change: pip install --editable .)."""
    description = str(installed()["Description"] or installed().get_payload())
    targets = re.findall(r"\]\(([^)\s]+)\)", description)

    assert len(targets) > 20
    assert [target for target in targets if not target.startswith("https://")] == []


def test_the_version_of_the_metadata_is_one_that_uploaders_know() -> None:
    """It is fixed: an uploader that does not know a newer one, as that of a pinned workflow, refuses the files."""
    assert installed()["Metadata-Version"] == "2.4"


def test_classifiers_name_the_versions_of_python_that_ci_tries() -> None:
    """All of them, and no other."""
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text("utf-8"))
    tried = workflow["jobs"]["test"]["strategy"]["matrix"]["python"]
    named = [each.rpartition(" ")[2] for each in installed().get_all("Classifier") if " 3." in each]

    assert named == tried
