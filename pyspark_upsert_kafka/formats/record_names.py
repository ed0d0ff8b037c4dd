"""The names of record types, as a user gives them and as schemas have them."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from pyspark_upsert_kafka.core.errors import OptionError


class RecordNames:
    """The names of the wanted record types: full names, and simple ones, each of which means one type.

    Args:
        names: The names; one that begins with a dot has no namespace.

    >>> names = RecordNames(["com.acme.Order", "Refund"])
    >>> [names.has(name) for name in ("com.acme.Order", "com.acme.Refund", "com.acme.Customer", "org.shop.Order")]
    [True, True, False, False]
    """

    def __init__(self, names: Sequence[str]) -> None:
        self._full = {name.removeprefix(".") for name in names if "." in name}
        self._simple = {name for name in names if "." not in name}
        self._meant: dict[str, str] = {}

    def has(self, name: str) -> bool:
        """Whether the type of this full name is wanted.

        Raises:
            OptionError: It has a simple name that meant another type before.
        """
        simple = name.rpartition(".")[2]
        if name in self._full:
            return True
        if simple not in self._simple:
            return False
        meant = self._meant.setdefault(simple, name)
        if meant != name:
            raise OptionError(
                f"{simple!r} in 'scan.record-names' may mean {meant!r} or {name!r}, and there are schemas of both: give full names. "
                "One without a namespace is written with a dot before it."
            )
        return True


def names_without(names: Sequence[str], types: Collection[str]) -> list[str]:
    """Those of the names that mean none of the types, which are full names.

    >>> names_without(["com.acme.Order", "Refund", "Return"], ["com.acme.Order", "com.acme.Refund", "com.acme.Item"])
    ['Return']
    """
    return [name for name in names if not any(map(RecordNames([name]).has, types))]
