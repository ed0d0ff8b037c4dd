"""The arguments of ``show``: their texts, and which of them contradict each other."""

from __future__ import annotations

import argparse
from datetime import datetime, timedelta, timezone

from pyspark_upsert_kafka.core.errors import OptionError

ALL = -1
"""The value of ``--limit all``."""

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)

_CONTRADICTIONS = {
    ("count", "follow"): "--count ends with a number, and --follow does not end",
    ("count", "limit"): "--count counts all of it",
    ("count", "key"): "--count counts all keys",
    ("at", "follow"): "--at looks back, and --follow forward",
}

_TEXTS = ("topic", "schema", "primary_key", "key")


def a_key(text: str) -> str:
    """The text of a key; its columns are checked when the table is known."""
    if "=" not in text:
        raise argparse.ArgumentTypeError(f"expected COLUMN=VALUE, but is {text!r}")
    return text


def a_limit(text: str) -> int:
    """A number of rows.

    >>> a_limit("20"), a_limit("all") == ALL
    (20, True)
    """
    if text.lower() == "all":
        return ALL
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"expected a number from 1 on, or 'all', but is {text!r}")
    return int(text)


def a_time(text: str) -> int:
    """A time with a zone as milliseconds since the epoch, rounded up, so that a message before it stays before it.

    >>> a_time("1970-01-01T01:00:01+01:00"), a_time("1970-01-01T00:00:00.0001Z")
    (1000, 1)
    """
    try:
        time = _parsed(text)
    except (ValueError, OverflowError):
        raise argparse.ArgumentTypeError(
            f"expected a time such as 2026-01-31T12:00:00Z, but is {text!r}"
        ) from None
    if time.tzinfo is None:
        raise argparse.ArgumentTypeError(
            f"{text!r} has no zone: write {text}Z for UTC, or an offset as in {text}+01:00"
        )
    since = -((_EPOCH - time) // timedelta(milliseconds=1))
    if since < 0:
        raise argparse.ArgumentTypeError(f"expected a time from 1970 on, but is {text!r}")
    return since


def _parsed(text: str) -> datetime:
    """The time, rounded up to microseconds. Raises ValueError if it is no time, or a date without a time.

    Python 3.10 does not read Z, and reads a fraction of three or six digits only.
    """
    if text[10:11] not in {"T", "t", " "}:
        raise ValueError(text)
    begin, zone = (text[:-1], "+00:00") if text[-1] in "Zz" else (text, "")
    whole, dot, rest = begin.partition(".")
    offset = rest.lstrip("0123456789")
    fraction = rest[: len(rest) - len(offset)]
    micros = f".{fraction[:6].ljust(6, '0')}" if dot else ""
    time = datetime.fromisoformat(f"{whole}{micros}{offset}{zone}")
    return time + timedelta(microseconds=1) if fraction[6:].strip("0") else time


def check_arguments(given: argparse.Namespace) -> None:
    """Raises OptionError for two arguments that contradict each other, and for a text that is not valid Unicode."""
    for name in _TEXTS:
        text = getattr(given, name) or ""
        if any("\ud800" <= letter <= "\udfff" for letter in text):
            raise OptionError(f"--{name.replace('_', '-')} is not valid Unicode: {text!r}.")
    for (one, other), why in _CONTRADICTIONS.items():
        if is_given(given, one) and is_given(given, other):
            raise OptionError(f"--{one} and --{other} contradict each other: {why}. Leave one out.")


def is_given(given: argparse.Namespace, name: str) -> bool:
    """Whether an argument stands on the command line; a time may be 0."""
    value = getattr(given, name)
    return value is not None and value is not False


def output_of(given: argparse.Namespace, *, terminal: bool) -> str:
    """The value of ``--output``, or its default; a live table is drawn on a terminal only.

    Raises:
        OptionError: A live table is wanted where none can be drawn.
    """
    if given.follow and given.output == "table" and not terminal:
        raise OptionError(
            "--follow redraws its table, which needs a terminal: into a pipe or a file, give --output json or csv."
        )
    if given.output is not None:
        return str(given.output)
    return "json" if given.follow and not terminal else "table"


def prints_changes(given: argparse.Namespace) -> bool:
    """Whether ``--follow`` prints each change as a line, and redraws no table."""
    return bool(given.follow) and given.output != "table"
