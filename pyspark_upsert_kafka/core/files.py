"""Files that options name."""

from __future__ import annotations

from pathlib import Path

from pyspark_upsert_kafka.core.errors import OptionError


def content_of(option: str, file: str) -> bytes:
    """What is in a file.

    Args:
        option: The whole name of the option that names it.
        file: Its path.

    Raises:
        OptionError: It cannot be read.
    """
    try:
        return Path(file).read_bytes()
    except OSError as error:
        raise OptionError(
            f"Option '{option}' names the file {file!r}: {error.strerror}. It must be there on the "
            "driver and on each executor."
        ) from None
