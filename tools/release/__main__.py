"""Checks what `make dist` and `make test-wheel` have made, and writes what else belongs to a release.

Usage: ``python -m tools.release PROGRAMS [TAG]``. PROGRAMS is the folder with twine and the like. With a tag, this commit
must be its release. The last line is the verdict; what is made is in ``build/release``.
"""

from __future__ import annotations

import subprocess
import sys
from datetime import datetime, timezone
from pathlib import Path

from pyspark_upsert_kafka.version import newest_release, version_of_tree
from tools.release.changelog import NotReadyError, check_tag, notes
from tools.release.distributions import build_again, built, check_same, sha256
from tools.release.index_page import with_addresses
from tools.site.pages import REPOSITORY

ROOT = Path(__file__).parents[2]
OUTPUT = ROOT / "build" / "release"


def main(programs: Path, tag: str = "") -> None:
    """Runs all checks, the cheap ones first.

    Raises:
        NotReadyError: Something is not as it must be.
        CalledProcessError: A program found something, and has printed it.
    """
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    version = version_of_tree()
    if tag:
        check_tag(changelog, version, tag, datetime.now(timezone.utc).date())
    OUTPUT.mkdir(parents=True, exist_ok=True)
    lines = with_addresses(notes(changelog, newest_release(changelog)), REPOSITORY, version)
    (OUTPUT / "notes.md").write_text(lines, encoding="utf-8")
    files = built(ROOT / "dist", version)

    def run(program: str, *arguments: object) -> None:
        print(f"{program} {' '.join(map(str, arguments))}", flush=True)
        subprocess.run([programs / program, *map(str, arguments)], check=True, cwd=ROOT)

    run("twine", "check", "--strict", *files.files)
    run("check-wheel-contents", files.wheel)
    run("pyroma", "--min", "8", files.sdist)  # of 10: the authors have no common mail address
    run("python", "tools/release/sbom.py", newest_environment(), version, OUTPUT / "sbom.cdx.json")
    run("python", "tools/release/recipe.py", version, OUTPUT / "recipe.yaml")
    conda = OUTPUT.with_name("conda")
    run("python", "-m", "tools.release.conda_package", version, conda)
    again = OUTPUT.with_name("again")
    build_again(again)
    check_same(files, again)
    for file in files.files:
        print(f"{sha256(file)}  {file.name}")
    print(
        f"{version} can be released."
        if tag
        else f"{version} passes every step but those of a tag and the upload."
    )


def newest_environment() -> Path:
    """The fresh environment that `make test-wheel` has made with the newest Python: what a user installs today."""
    found = sorted(
        (ROOT / ".venv-wheel").glob("3.*"), key=lambda folder: int(folder.name.partition(".")[2])
    )
    if not found:
        raise NotReadyError(
            "There is no environment in which the wheel was tried: run make test-wheel."
        )
    return found[-1]


if __name__ == "__main__":
    try:
        main(Path(sys.argv[1]).absolute(), *sys.argv[2:])
    except NotReadyError as error:
        sys.exit(f"Not ready: {error}")
    except subprocess.CalledProcessError as error:
        sys.exit(f"Not ready: {error}")
