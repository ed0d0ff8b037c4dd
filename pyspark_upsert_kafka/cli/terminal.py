"""Standard output and standard error."""

from __future__ import annotations

import os
import sys

from pyspark_upsert_kafka.core.errors import UpsertKafkaError

_PIECE = 32 * 1024
"""Characters; half of what a pipe holds."""

_STANDARD_ERROR = 2


class _OutputError(UpsertKafkaError):
    """Standard output does not take what is written."""


def echo(text: str = "") -> None:
    """Prints a line and flushes it: a person waits for it."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def write_text(text: str) -> None:
    """Writes a text in pieces: of one large write to a closed pipe, Python reports nothing.

    Raises:
        BrokenPipeError: Nobody reads any more.
        UpsertKafkaError: The disk is full, or the encoding lacks a character.
    """
    try:
        for at in range(0, len(text), _PIECE):
            sys.stdout.write(text[at : at + _PIECE])
            sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        drop_output()
        raise _OutputError(f"Standard output cannot be written: {error.strerror}.") from None
    except UnicodeEncodeError as error:
        letter = ascii(error.object[error.start])
        raise _OutputError(
            f"Standard output has the encoding {error.encoding!r}, which has no {letter}: "
            "set PYTHONIOENCODING=utf-8, or give --output json, which escapes it."
        ) from None


def open_standard_error() -> None:
    """Drops what is written to a standard error that was closed before Python began (``2>&-``).

    Its number would be that of the next file or connection, and libraries in C write to it.
    """
    if sys.stderr is None:
        dropped = os.open(os.devnull, os.O_WRONLY)
        if dropped != _STANDARD_ERROR:
            os.dup2(dropped, _STANDARD_ERROR)
            os.close(dropped)
        sys.stderr = os.fdopen(_STANDARD_ERROR, "w", closefd=False)


def drop_output() -> None:
    """Drops what standard output still buffers: to write it would fail again when Python ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
