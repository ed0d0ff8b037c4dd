"""What `make bench-quick` and `make proof` say of a ratio."""

from __future__ import annotations

import doctest

import pytest

from tools import ratios
from tools.ratios import Judgement, Measured, judgement


def test_examples_hold() -> None:
    """The examples in the docstrings of this module are no part of the package's."""
    failed, tried = doctest.testmod(ratios)

    assert (failed, tried > 0) == (0, True)


@pytest.mark.parametrize(
    ("ratio", "noise", "released", "said"),
    [
        (7.9, 0.02, Measured(10.0, 0.03), "slower"),
        (9.1, 0.02, Measured(10.0, 0.03), ""),  # by less than a tenth
        (7.9, 0.15, Measured(10.0, 0.1), ""),  # by less than the noise of both
        (1.5, 1.28, Measured(0.4, 0.08), "too noisy"),  # neither slower nor faster
        (1.5, 1.28, None, "too noisy"),
        (0.1, 0.02, None, ""),
    ],
)
def test_a_ratio_is_judged_only_if_it_is_larger_than_its_noise(
    ratio: float, noise: float, released: Measured | None, said: Judgement
) -> None:
    """A job with much noise is neither as fast as before nor slower: nobody knows."""
    assert judgement(Measured(ratio, noise), released) == said
