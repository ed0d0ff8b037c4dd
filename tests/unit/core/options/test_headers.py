"""The value of ``scan.headers``."""

from __future__ import annotations

import pytest

from pyspark_upsert_kafka.core.errors import OptionError
from pyspark_upsert_kafka.core.options.catalog import OPTIONS
from pyspark_upsert_kafka.core.options.parsers import header_values

EXAMPLE = "expected a name and a value for each header, such as 'type=Order;tenant=7'"


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("type=Order", {"type": b"Order"}),
        ("type=Order;tenant=7", {"type": b"Order", "tenant": b"7"}),
        (" type = Order ; tenant=7 ; ", {"type": b"Order", "tenant": b"7"}),
        ("Type=Order;type=order", {"Type": b"Order", "type": b"order"}),
        ("filter=a=b", {"filter": b"a=b"}),
        ("region=Köln", {"region": "Köln".encode()}),
    ],
)
def test_headers_and_their_values(text, wanted):
    """Pairs separated by semicolons; names have their case, values may hold an equals sign, and are UTF-8."""
    assert dict(header_values(text)) == wanted
    assert header_values(text) == tuple(sorted(wanted.items()))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", EXAMPLE),
        (" ; ", EXAMPLE),
        ("type", f"{EXAMPLE} ('type' is none)"),
        ("type=", f"{EXAMPLE} ('type=' is none)"),
        ("type=Order;tenant= ", f"{EXAMPLE} ('tenant=' is none)"),
        ("=Order", f"{EXAMPLE} ('=Order' is none)"),
        ("type=Order;type=Invoice", "expected header 'type' once, since a message must have all values"),
    ],
)  # fmt: skip
def test_a_header_without_a_value_is_refused(text, expected):
    """What is no pair, and a header with two values, which no message would have, are told with the text."""
    with pytest.raises(OptionError) as error:
        OPTIONS["scan.headers"].read({"scan.headers": text})

    assert str(error.value) == (
        f"Invalid value for option 'scan.headers': {expected}, but is {text!r}."
    )
