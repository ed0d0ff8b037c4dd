"""A process that runs rounds, and prints a line when it starts a round and a line for each find, made small, with its program."""

from __future__ import annotations

import base64
import contextlib
import faulthandler
import json
import resource
import sys
import traceback
import zlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import groupby
from random import Random

from tools.fuzz.case import Case
from tools.fuzz.laws import Codecs, check
from tools.fuzz.reading import BrokenLawError
from tools.fuzz.rounds import Find, compiled, round_of

_COPIES = 300
"""So many messages take every path; a message that is found alone is repeated as often."""

_Breaks = Callable[[Sequence[int]], bool]


def smallest(find: Find) -> Find:
    """The find with as few messages as are needed."""
    codecs = compiled(find.case)
    if isinstance(codecs, BrokenLawError) or not find.case.messages:
        return find
    case = _with_few(find, codecs)
    broken = _broken(case, codecs, find.broken.law)
    return Find(case, broken) if broken else find


def _with_few(find: Find, codecs: Codecs) -> Case:
    whole, law = find.case, find.broken.law
    every = range(len(whole.messages))
    suspects = find.broken.places[:1] or [*every][:1]
    for copies in (1, _COPIES):
        if _broken(whole.only(suspects, copies), codecs, law):
            return whole.only(suspects, copies)

    def repeated(chosen: Sequence[int]) -> bool:
        return bool(_broken(whole.only(chosen, -(-_COPIES // len(chosen))), codecs, law))

    def once(chosen: Sequence[int]) -> bool:
        return bool(_broken(whole.only(chosen), codecs, law))

    if repeated(every[-_COPIES:]):
        few = bisected(every[-_COPIES:], repeated)
        return whole.only(few, -(-_COPIES // len(few)))
    return whole.only(bisected(every, once)) if once(every) else whole


def bisected(every: Sequence[int], breaks: _Breaks) -> Sequence[int]:
    """Few of them that still break a law: parts are left out, ever smaller ones, while they do."""
    chosen, size = list(every), max(1, len(every) // 2)
    while True:
        at, before = 0, len(chosen)
        while at < len(chosen) and len(chosen) > 1:
            rest = chosen[:at] + chosen[at + size :]
            if rest and breaks(rest):
                chosen = rest
            else:
                at += size
        if size == 1 and len(chosen) == before:
            return chosen
        size = max(1, size // 2)


def _broken(case: Case, codecs: Codecs, law: str) -> BrokenLawError | None:
    for seed in range(2):
        try:
            check(replace(case, messages=list(case.messages)), codecs, Random(seed))
        except BrokenLawError as broken:
            return broken if broken.law == law else None
    return None


_PROGRAM = """\
# {about}
from base64 import b85decode
from zlib import decompress

from pyspark.sql.types import StructType

from tools.fuzz.case import Table
from tools.fuzz.codecs import decoder_of, encoder_of

SCHEMA = {schema!r}
TABLE = Table(
    format={format!r},
    schema=StructType.fromJson(__import__("json").loads(SCHEMA)),
    side={side!r},
    options={options!r},
    files={{name: decompress(b85decode(data)) for name, data in {files!r}.items()}},
    schemas={schemas!r},
    required=frozenset({required!r}),
)
MESSAGES = {messages}

decode = decoder_of(TABLE).decode
together = decode(MESSAGES)
print(len(MESSAGES), "messages together:", together.rows.num_rows, "rows", dict(list(together.errors.items())[:5]))
alone = decode(MESSAGES[:1])
print("the first row of them:", [str(column[:1].to_pylist()) for column in together.rows.columns])
print("the first alone:", [str(column[:1].to_pylist()) for column in alone.rows.columns], alone.errors)
try:
    print("written again:", encoder_of(TABLE).encode(alone.rows).to_pylist()[:1])
except ValueError as why:
    print("it cannot be written:", why)
"""


def program_of(find: Find) -> str:
    """The program."""
    table = find.case.table
    files = {name: base64.b85encode(zlib.compress(data)) for name, data in table.files.items()}
    return _PROGRAM.format(
        about=str(find.broken).replace("\n", "\n# "),
        schema=json.dumps(table.schema.jsonValue(), ensure_ascii=True),
        format=table.format,
        side=table.side,
        options=dict(table.options),
        files=files,
        schemas=dict(table.schemas),
        required=sorted(table.required),
        messages=_messages(find.case),
    )


def _messages(case: Case) -> str:
    runs = [(message, sum(1 for _ in run)) for message, run in groupby(case.messages)]
    return " + ".join(f"[{message!r}] * {count}" for message, count in runs) or "[]"


_MEMORY = 12 << 30
"""Bytes of addresses that the process may have: what needs more is a MemoryError, which is a find."""


def main(subject: str, seed: int, first: int, messages: int) -> None:
    """Runs rounds until so many messages were read."""
    faulthandler.enable()
    sys.set_int_max_str_digits(0)  # Python's json, as a peer, has no limit of its own
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
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
