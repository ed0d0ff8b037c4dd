"""``make site``: builds the site into build/site. ``make site-version``: adds it to the published folder as a version."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from tools.site.build import build
from tools.site.contents import SiteError
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


if __name__ == "__main__":
    main()
