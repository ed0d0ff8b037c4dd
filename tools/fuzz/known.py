"""Finds that are known: what is meant to be so, with the reason.

What a generator does not make in the first place, and what a peer has no say about, is told where that stands:

- JSON: Python's json is lenient about lone surrogates and numbers out of range, and is asked for values of JSON's own
  types only (`json_cases.py`). A message of Python's csv is asked for texts without line breaks, and quotes only
  around whole fields (`csv_cases.py`).
- fastavro takes longer numbers, other booleans and blocks than the specification has: of a message that it would
  write otherwise only the value counts (`avro_peer.py`).
- In keys -0.0 is 0.0 and one NaN is all, so that equal keys have equal bytes.
- With `read-default-values` every member of a oneof has a value, of which only one can be written (`proto_cases.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tools.fuzz.case import Case
from tools.fuzz.reading import BrokenLawError


@dataclass(frozen=True)
class Known:
    """A difference that is no find.

    Args:
        name: What it is, and why.
        subjects: The formats, as the fuzzer names them.
        holds: Whether a broken law is this one.
    """

    name: str
    subjects: tuple[str, ...]
    holds: Callable[[BrokenLawError, Case], bool]

    def matches(self, subject: str, broken: BrokenLawError, case: Case) -> bool:
        """Whether a find in a case is this difference."""
        return subject in self.subjects and self.holds(broken, case)


KNOWN: tuple[Known, ...] = ()
