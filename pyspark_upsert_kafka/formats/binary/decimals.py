"""Unscaled numbers of decimals, each in two halves of 64 bits: the high one is signed."""

from __future__ import annotations

import numpy as np

from pyspark_upsert_kafka.formats.binary.numbers import Numbers


def signed(numbers: Numbers, lengths: Numbers) -> Numbers:
    """The last bytes of each number, the first bit of them being the sign."""
    unused = 8 * np.clip(8 - lengths, 0, 7)
    return np.asarray((numbers << unused) >> unused)


def beyond(high: Numbers, low: Numbers, precision: int) -> Numbers:
    """Which numbers have more digits; ``low`` is unsigned."""
    (over, over_low), (under, under_low) = (
        divmod(bound, 1 << 64) for bound in (10**precision, -(10**precision))
    )
    too_large = (high > over) | ((high == over) & (low >= np.uint64(over_low)))
    too_small = (high < under) | ((high == under) & (low <= np.uint64(under_low)))
    return np.asarray(too_large | too_small)
