"""Unusual texts and numbers, mixed with random ones."""

from __future__ import annotations

from random import Random

TEXTS = [
    "", " ", "a", "null", "NULL", "NaN", "true", "0", "1.5", "-0", "é", "😀", "\x7f", "\x01", "\0", "\t", "\r",
    "\n", "a\nb", "a\r\nb", "\\", "\\n", '"', '""', '"a"', "'", "''", ",", ";", "a,b", "a;b", "#", "#a", "{}", "[]",
    "{", "}{", "x" * 70, "é" * 24, "😀" * 13, "\ufeff", "\ufeffa", "\u2028", "\ufffd", "\ufffe", "\U0010ffff", " a ",
    "2024-01-31", "QUJD", "a\\", "*", "a*", "\x85", "\x1f", "İ", "ǅ",
]  # fmt: skip

DOUBLES = [
    0.0, -0.0, 1.0, -1.0, 0.1, 1.5, 1e7, 1e-3, 9999999.0, 1e16, 1e22, 1e23, 123456789012345680.0, 2.0**53, 2.0**63,
    5e-324, 2.2250738585072014e-308, 1.7976931348623157e308, float("nan"), float("inf"), float("-inf"), 1e21, 1e-7,
]  # fmt: skip


def integers(rng: Random, low: int, high: int) -> list[int]:
    """Whole numbers within bounds, of all lengths."""
    powers = [sign * (1 << rng.randrange(high.bit_length() + 1)) - off for sign in (1, -1) for off in (0, 1) for _ in range(6)]  # fmt: skip
    tens = [sign * 10 ** rng.randrange(len(str(high))) for sign in (1, -1) for _ in range(4)]
    every = [
        low,
        high,
        0,
        1,
        -1,
        63,
        64,
        -64,
        -65,
        *powers,
        *tens,
        *(rng.randint(low, high) for _ in range(12)),
    ]
    return [number for number in every if low <= number <= high]


def texts(rng: Random) -> list[str]:
    """Odd texts and random ones."""

    def one() -> str:
        top = rng.choice([0x80, 0x250, 0xD800, 0x110000])
        return "".join(
            chr(c)
            for c in (rng.randrange(top) for _ in range(rng.randrange(9)))
            if not 0xD800 <= c < 0xE000
        )

    return [*rng.sample(TEXTS, 25), *(one() for _ in range(20)), *(f"k{i}" for i in range(15))]
