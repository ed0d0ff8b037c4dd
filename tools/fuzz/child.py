"""A process that runs rounds, and prints a line when it starts a round and a line for each find."""

from __future__ import annotations

import contextlib
import faulthandler
import json
import resource
import sys
import traceback

from tools.fuzz.program import program_of
from tools.fuzz.reading import BrokenLawError
from tools.fuzz.rounds import Find, round_of
from tools.fuzz.shrink import smallest

MEMORY = 12 << 30
"""Bytes of addresses that the process may have: what needs more is a MemoryError, which is a find."""


def main(subject: str, seed: int, first: int, messages: int) -> None:
    """Runs rounds until so many messages were read."""
    faulthandler.enable()
    sys.set_int_max_str_digits(0)  # Python's json, as a peer, has no limit of its own
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    with contextlib.suppress(ValueError):
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    number, done = first, 0
    while done < messages:
        say(begins=number)
        count, found = _round(subject, seed, number)
        done += count
        say(ends=number, messages=count, **_told(found))
        number += 1


def _round(subject: str, seed: int, number: int) -> tuple[int, Find | str | dict[str, str] | None]:
    try:
        return round_of(subject, seed, number)
    except Exception:  # noqa: BLE001 - the fuzzer's own fault is a find too
        return 0, {"law": "the fuzzer itself works", "text": traceback.format_exc()}


def _told(found: Find | str | dict[str, str] | None) -> dict[str, str]:
    if isinstance(found, Find):
        try:
            small = smallest(found)
        except Exception as why:  # noqa: BLE001 - a find is told even when it cannot be made smaller
            small = Find(
                found.case, BrokenLawError(found.broken.law, f"{found.broken.text}\n{why!r}")
            )
        return {
            "law": small.broken.law,
            "text": small.broken.text,
            "kind": small.broken.kind(),
            "program": program_of(small),
        }
    if isinstance(found, str):
        return {"note": found}
    return found or {}


def say(**what: object) -> None:
    """One line for the parent."""
    print(json.dumps(what), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], *(int(each) for each in sys.argv[2:5]))
