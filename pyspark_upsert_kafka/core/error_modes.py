"""What can be done with a message that cannot be decoded: the values of ``error-handling.mode``, and what each means.

Who asks what becomes of such a message asks this table; `error_handler` in ``connector/bad_messages.py`` does it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

ErrorMode = Literal["fail", "ignore", "log", "column"]

BadMessages = Literal["fail", "column", "skip"]
"""What becomes of a bad message: the query fails, it is a row with ``_error``, or it is left out. Checkpoints have these words."""


@dataclass(frozen=True)
class Meaning:
    """What a mode does.

    Args:
        becomes: What becomes of a bad message.
        in_words: The same in words, for the page of options.
    """

    becomes: BadMessages
    in_words: str


ERROR_MODES: Mapping[ErrorMode, Meaning] = MappingProxyType(
    {
        "fail": Meaning("fail", "an error"),
        "ignore": Meaning("skip", "it is skipped, and a warning is logged"),
        "log": Meaning("skip", "it is sent to the dead-letter topic"),
        "column": Meaning("column", "a row with `_error`"),
    }
)


def modes_that(*become: BadMessages) -> str:
    """The modes with which a bad message becomes one of these, as a part of a sentence.

    >>> modes_that("skip", "column")
    "'ignore', 'log' or 'column'"
    """
    *others, last = (
        repr(mode) for mode, meaning in ERROR_MODES.items() if meaning.becomes in become
    )
    return f"{', '.join(others)} or {last}" if others else last
