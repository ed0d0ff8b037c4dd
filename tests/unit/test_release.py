"""What make release-check demands before anything is uploaded."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

from tools.release.changelog import NotReadyError, check_tag, notes
from tools.release.distributions import built, check_same

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
