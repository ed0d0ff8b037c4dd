"""The last line of a long test, which shows at once how it ended."""

from __future__ import annotations

from collections.abc import Callable


def verdict(name: str, proof: Callable[[], str], about: str = "") -> int:
    """Runs a proof and prints how it ended; returns the exit code.

    Args:
        name: What is proved.
        proof: Returns what is said when it holds, and raises what is wrong.
        about: What is said of a failure besides.
    """
    try:
        said = proof()
    except Exception as error:  # noqa: BLE001 - whatever ends it is its verdict
        print(f"{name}: FAILED {type(error).__name__}: {error}{about}", flush=True)
        return 1
    print(f"{name}: PASSED {said}", flush=True)
    return 0
