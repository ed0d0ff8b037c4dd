"""What the long tests with faults share: the arguments of their programs, what has grown, and the rules for copies."""

from __future__ import annotations

import re
import sys

import pytest

from tools.faults import BrokenRuleError, listed, peaks, repeated
from tools.kills.__main__ import check_exact, check_plain
from tools.verdict import Held

SENT = {1: [0, 2, 3], 2: [1]}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [([], r"7 times"), (["3"], r"3 times"), (["3", "11"], r"3 times, seed 11\b")],
)
def test_a_proof_is_told_how_often_and_its_seed(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    said: str,
) -> None:
    """Both may be given; a seed that is not given is drawn, and told of a failure."""
    monkeypatch.setattr(sys, "argv", ["program", *arguments])

    def proof(times: int, seed: int) -> Held:
        raise BrokenRuleError(f"{times} times, seed {seed}")

    assert repeated("some", proof, 7) == 1
    assert re.search(
        rf"^some: FAILED BrokenRuleError: {said}.* \(seed \d+\)$", capsys.readouterr().out
    )


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [([9, 9, 1, 2, 4, 3], (2, 4)), ([9, 9, 1, 2, 5, 4, 3], (5, 4)), ([1, 2], (0, 0))],
)
def test_the_last_third_is_compared_with_the_second(
    sizes: list[float], expected: tuple[float, float]
) -> None:
    """The first third is for warming up; what is too short has not grown."""
    assert peaks(sizes) == expected


def test_counts_are_listed() -> None:
    """In the order in which they were counted first."""
    assert listed({"rows": 3, "found_late": 1}) == "3 rows, 1 found late"


@pytest.mark.parametrize(
    ("found", "exact", "plain"),
    [
        (SENT, None, None),
        ({1: [0, 2, 2, 3], 2: [1]}, "0 changes lost, 1 repeated", None),
        ({1: [0, 2, 0, 2, 3], 2: [1]}, "0 changes lost, 2 repeated", None),
        ({1: [2, 0, 3], 2: [1]}, "their order is another", None),
        ({1: [0, 2], 2: [1]}, "1 changes lost, 0 repeated", "1 changes lost"),
        ({1: [0, 2, 3, 0], 2: [1]}, "1 repeated", "0 is the last, not 3"),
        ({1: [0, 2, 3]}, "key 2, exactly once: 1 changes lost", "key 2, at least once"),
    ],
)
def test_copies_are_held_to_what_was_sent(
    found: dict[int, list[int]], exact: str | None, plain: str | None
) -> None:
    """Exactly once: each change, once, in order. At least once: none is lost, and the last is the last."""
    for check, what in ((check_exact, exact), (check_plain, plain)):
        if what is None:
            check(SENT, found)
        else:
            with pytest.raises(BrokenRuleError, match=what):
                check(SENT, found)
