"""The text of a file with SQL that the command line names."""

from __future__ import annotations

import sys
from pathlib import Path

from pyspark_upsert_kafka.core.errors import OptionError


def text_of(file: str, of_option: str = "") -> str:
    """The text of a file; ``-`` is standard input.

    Args:
        file: Its path.
        of_option: The option that names it, for errors, if an option does.

    Raises:
        OptionError: The file cannot be read, or is no text.
    """
    if file == "-":
        return sys.stdin.read()
    named = f"The file {file!r} of {of_option}" if of_option else f"The file {file!r}"
    try:
        return Path(file).read_text(encoding="utf-8-sig")
    except OSError as error:
        raise OptionError(f"{named} cannot be read: {error.strerror}.") from None
    except UnicodeDecodeError:
        raise OptionError(f"{named} is not UTF-8.") from None
