"""The text of a file with SQL that the command line names."""

from __future__ import annotations

import sys
from pathlib import Path

from pyspark_upsert_kafka.core.errors import OptionError


def text_of(file: str) -> str:
    """The text of a file; ``-`` is standard input.

    Raises:
        OptionError: The file cannot be read, or is no text.
    """
    if file == "-":
        return sys.stdin.read()
    try:
        return Path(file).read_text(encoding="utf-8-sig")
    except OSError as error:
        raise OptionError(f"The file {file!r} cannot be read: {error.strerror}.") from None
    except UnicodeDecodeError:
        raise OptionError(f"The file {file!r} is not UTF-8.") from None
