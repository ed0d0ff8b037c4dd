"""All that an error brings with it."""

from __future__ import annotations

from collections.abc import Iterator


def texts_of(error: BaseException) -> str:
    """The texts of an error, of those that it stands for and of those that it came up in, shown by Python or not."""
    return "\n".join(f"{each}\n{each!r}\n{each.args!r}\n{vars(each)!r}" for each in _chain(error))


def _chain(error: BaseException) -> Iterator[BaseException]:
    seen, left = set[int](), [error]
    while left:
        each = left.pop()
        if id(each) not in seen:
            seen.add(id(each))
            yield each
            left += [more for more in (each.__cause__, each.__context__) if more is not None]
