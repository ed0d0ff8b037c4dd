"""The value of ``scan.headers``: the headers that a message must have to be read."""

from __future__ import annotations

WantedHeaders = tuple[tuple[str, bytes], ...]
"""Names of headers and the value of each, which a message must all have."""

_FORM = "expected a name and a value for each header, such as 'type=Order;tenant=7'"


def header_values(value: str) -> WantedHeaders:
    """Headers with their values, in UTF-8; blanks around both do not count.

    >>> header_values("type=Order; tenant=7")
    (('tenant', b'7'), ('type', b'Order'))
    """
    wanted: dict[str, bytes] = {}
    for part in filter(str.strip, value.split(";")):
        name, _, text = (each.strip() for each in part.partition("="))
        if not name or not text:
            raise ValueError(f"{_FORM} ({part.strip()!r} is none)")
        if name in wanted:
            raise ValueError(f"expected header {name!r} once, since a message must have all values")
        wanted[name] = text.encode()
    if not wanted:
        raise ValueError(_FORM)
    return tuple(sorted(wanted.items()))
