"""The options of a table, as all tests build them."""

from __future__ import annotations


def table_options(**more: object) -> dict[str, str]:
    """Options of a JSON table with the key ``id`` in topic ``t``, at a broker that nobody asks.

    ``primary_key="k"`` sets ``primary-key``, ``key__format="csv"`` sets ``key.format``, and names with
    dots or dashes go in a dict: ``**{"scan.deletes": "drop"}``. None leaves an option out.
    """
    given: dict[str, object] = {
        "topic": "t",
        "properties.bootstrap.servers": "nowhere:9092",
        "primary-key": "id",
        "key.format": "json",
        "value.format": "json",
    }
    given.update({_option_name(name): value for name, value in more.items()})
    return {name: str(value) for name, value in given.items() if value is not None}


def _option_name(name: str) -> str:
    return name.replace("__", ".").replace("_", "-") if name.isidentifier() else name
