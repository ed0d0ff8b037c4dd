"""Known differences that are not finds, because they are intended, with the reason.

Some differences are avoided elsewhere, because the generator does not make such messages, or because the other
implementation is not compared:

- JSON: Python's json accepts lone surrogates and numbers out of range, so it is compared only for values of JSON's own types
  (`json_cases.py`). Python's csv is compared only for texts without line breaks, with quotes only around whole fields
  (`csv_cases.py`).
- fastavro accepts longer numbers, other booleans and other blocks than the specification allows. If it would encode a message
  differently, only the values are compared (`avro_peer.py`).
- In keys -0.0 is 0.0, and there is only one NaN, so that equal keys have equal bytes.
- With `read-default-values` every member of a oneof has a value, but only one of them can be written (`proto_cases.py`).
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
