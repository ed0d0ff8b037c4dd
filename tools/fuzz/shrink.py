"""Makes a case smaller: fewer messages, and fewer columns for the reader."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from random import Random

from tools.fuzz.case import Case
from tools.fuzz.laws import Codecs, check
from tools.fuzz.reading import BrokenLawError
from tools.fuzz.rounds import Find, compiled

COPIES = 300
"""So many messages take every path; a message that is found alone is repeated as often."""

Breaks = Callable[[Sequence[int]], bool]


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
    for copies in (1, COPIES):
        if _broken(whole.only(suspects, copies), codecs, law):
            return whole.only(suspects, copies)

    def repeated(chosen: Sequence[int]) -> bool:
        return bool(_broken(whole.only(chosen, -(-COPIES // len(chosen))), codecs, law))

    def once(chosen: Sequence[int]) -> bool:
        return bool(_broken(whole.only(chosen), codecs, law))

    if repeated(every[-COPIES:]):
        few = bisected(every[-COPIES:], repeated)
        return whole.only(few, -(-COPIES // len(few)))
    return whole.only(bisected(every, once)) if once(every) else whole


def bisected(every: Sequence[int], breaks: Breaks) -> Sequence[int]:
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
