"""Messages of each CDC format in JSON, good and odd, which the tests of all of them read: a new format gets an entry in each table."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import strategies as st

INSERTS = {
    "canal-json": b'{"type":"INSERT","data":[%b],"old":null}',
    "debezium-json": b'{"op":"c","before":null,"after":%b}',
    "maxwell-json": b'{"type":"insert","data":%b}',
    "ogg-json": b'{"op_type":"I","after":%b}',
}
"""An insert of each format, around its row."""

ADA = {"id": 1, "name": "Ada"}
UPDATES: dict[str, list[dict[str, Any]]] = {
    "canal-json": [{"type": "UPDATE", "data": [ADA, {**ADA, "id": 2}], "old": [{}, {}]}],
    "debezium-json": [{"op": "u", "before": ADA, "after": ADA}],
    "maxwell-json": [{"type": "update", "data": ADA, "old": {}}],
    "ogg-json": [{"op_type": "U", "before": ADA, "after": ADA}],
}
"""Updates that change nothing; of a format whose messages hold several rows, one of two rows."""

METADATA = [
    "database", "table", "sqlType", "pkNames", "ts", "es", "ts_ms", "source", "schema",
    "primary_key_columns", "primary_keys", "current_ts", "op_ts",
]  # fmt: skip
"""The fields that hold metadata in one format or another."""

IDS = st.integers(1, 3)
VALUES = {
    "id": IDS | st.sampled_from([None, "x", "2"]),
    "name": st.sampled_from([None, "a", "null", 7, {"b": 1}]),
    "n": st.sampled_from([None, 1, 2, "3", 1.5, [1]]),
}
GOOD = st.fixed_dictionaries(
    {"id": IDS, "name": st.sampled_from([None, "a", "null"]), "n": st.sampled_from([None, 1])}
)
ROWS = GOOD | GOOD | st.fixed_dictionaries({}, optional=VALUES) | st.sampled_from([None, [], 1])
PARTS = (
    st.fixed_dictionaries(
        {},
        optional={"id": IDS, "name": st.sampled_from([None, "a"]), "n": st.sampled_from([None, 1])},
    )
    | st.none()
)
RUBBISH = st.sampled_from(
    [b"", b"{}", b"[", b"null", b'{"op":"c","type":"insert"}', b"\xff", b'{"a":1}{"a":2}']
)


def as_json(message: Any) -> bytes:
    """A message of some fields."""
    return json.dumps(message).encode()


def envelopes(ops: list[Any], **fields: st.SearchStrategy[Any]) -> st.SearchStrategy[bytes]:
    """Messages of a format: an operation, and other fields that may be missing."""
    name, *values = ops
    messages = st.fixed_dictionaries({name: st.sampled_from(values)}, optional=fields)
    return messages.map(as_json) | RUBBISH


BEFORE_AFTER = {"before": ROWS, "after": ROWS}
MESSAGES: dict[str, st.SearchStrategy[bytes]] = {
    "debezium-json": envelopes(["op", "c", "r", "u", "d", "u", "t", "x", None], **BEFORE_AFTER),
    "ogg-json": envelopes(["op_type", "I", "U", "D", "T", "x"], **BEFORE_AFTER),
    "maxwell-json": envelopes(
        ["type", "insert", "update", "update", "delete", "bootstrap-insert", "bootstrap-start", "x"],
        data=ROWS, old=PARTS,
    ),
    "canal-json": envelopes(
        ["type", "INSERT", "UPDATE", "UPDATE", "DELETE", "ALTER", "x"],
        data=st.lists(ROWS, max_size=3) | st.none(), old=st.lists(PARTS, max_size=3) | st.none(),
    ),
}  # fmt: skip


ROW: dict[str, Any] = {"id": 1, "name": "a", "n": 1}
ODD_ROWS: list[Any] = [
    None, [], 1, "x", {}, ROW, {**ROW, "id": 2}, {**ROW, "name": None}, {"id": 1}, {"id": None}, {"id": "x"}, {"id": "2", "name": "null"},
    {**ROW, "name": 7, "n": "3"}, {**ROW, "name": {"b": 1}}, {**ROW, "n": 1.5}, {**ROW, "n": [1]}, {**ROW, "other": "}{"},
]  # fmt: skip
ODD_PARTS: list[Any] = [
    None,
    {},
    {"id": 2},
    {"id": None},
    {"name": None},
    {"name": "b", "n": None},
    {"other": 1},
    [],
    1,
]
ODD_PAIRS = [
    *({"before": row, "after": ROW} for row in ODD_ROWS),
    *({"before": ROW, "after": row} for row in ODD_ROWS),
    *({"before": row} for row in ODD_ROWS),
    *({"after": row} for row in ODD_ROWS),
]
ODD_CHANGES = [
    *({"data": row} for row in ODD_ROWS),
    *({"data": row, "old": {"name": "b"}} for row in ODD_ROWS),
    *({"data": ROW, "old": part} for part in ODD_PARTS),
]
ODD_LISTS = [
    *({name: value if value in (None, 1) else [value] for name, value in change.items()} for change in ODD_CHANGES),
    *({"data": [ROW, row], "old": [{"n": 2}, {"n": 2}]} for row in ODD_ROWS),
    *({"data": rows, "old": old} for rows in ([], [ROW], [ROW, ROW]) for old in ([], [{}], [{}, {"id": 2}], [None, None])),
]  # fmt: skip
ODD_MESSAGES: dict[str, st.SearchStrategy[bytes]] = {
    "debezium-json": [{"op": op, **pair} for op in ("c", "r", "u", "d", "t", "x", "", None, 1) for pair in ODD_PAIRS],
    "ogg-json": [{"op_type": op, **pair} for op in ("I", "U", "D", "T", "x", None) for pair in ODD_PAIRS],
    "maxwell-json": [
        {"type": kind, **change}
        for kind in ("insert", "update", "delete", "bootstrap-insert", "bootstrap-start", "x", None)
        for change in ODD_CHANGES
    ],
    "canal-json": [{"type": kind, **change} for kind in ("INSERT", "UPDATE", "DELETE", "ALTER", "CREATE", "x", None) for change in ODD_LISTS],
}  # fmt: skip
ODD_BYTES = [
    b"", b" ", b"{}", b"[", b"[]", b"null", b"\xff", b'{"a":1}{"a":2}', b'{"a":1}\n{"a":2}', b'{"op":"c"', b'{"op":"c","type":"insert","op_type":"I"}',
    b'\xef\xbb\xbf{"op":"c","after":{"id":1}}', b' {"op":"c","after":{"id":1}}', b'{"op":"c","after":{"id":1}} ', b'{"op":"c","after":{"id":1,"id":2}}',
    b'{"op":"c","op":"d","before":{"id":1},"after":{"id":2}}', b'{"op":"c","after":{"id":1},"after":null}', b'{"op":"c","after":{"id":-0}}',
    b'{"op":"c","after":{"id":NaN}}', b'{"op":"c","after":{"name":"\xff"}}', b'{"op":"c","after":{"id":1},"z":NaN}', b'{"op":"c","after":{"n":1.0}}',
    b'{"op":"c","after":{"name":"\\ud800"}}', b'{"\\u006fp":"c","after":{"id":1}}', b'{"op":"c","z":%b%b,"after":{"id":1}}' % (b"[" * 249, b"]" * 249),
    b'{"op":"c","z":%b%b,"after":{"id":1}}' % (b"[" * 250, b"]" * 250),
]  # fmt: skip


def odd(name: str) -> list[bytes]:
    """Messages of a format with each odd operation and each odd row, and bytes that are none."""
    return [*map(as_json, ODD_MESSAGES[name]), *ODD_BYTES]
