"""What the vectorised parser would get wrong never reaches it."""

from __future__ import annotations

import pyarrow as pa
import pytest

from pyspark_upsert_kafka.formats.json.pyarrow_columns import line_parser

NUMBER = line_parser(pa.schema([("c", pa.int64())]))
DECIMAL = line_parser(pa.schema([("c", pa.list_(pa.struct([("d", pa.decimal256(38, 2))])))]))

PLAIN = [
    b"{}",
    b'{"c":1}',
    b'{ "c" : 1 ,\r\n "x" : [{}] }',
    b'{"c":1,"x":"NaN and Inf; Infinity"}',
    b'{"c":1,"x":' + b"[" * 249 + b"]" * 249 + b"}",
    b'{"c":1,"x":"' + b"[" * 1000 + b'"}',
    b'{"c":1,"x":' + b'{"":' * 249 + b"1" + b"}" * 250,
]

NOT_PLAIN = [
    b"",
    b"null",
    b' {"c":1}',
    b'{"c":1} ',
    b'{"c":1}{"c":2}',
    b'{"c":1}null{"c":2}',
    b'{"x":NaN}',
    b'{"x":[-Inf ]}',
    b'{"x":Infinity\n}',
    b'{"x":"\xff"}',
    b'{"x":' + b"[" * 250 + b"]" * 250 + b"}",
    b'{"":' * 251 + b"1" + b"}" * 251,
]


def test_plain_messages_are_parsed():
    """One row a message, fields of no column ignored."""
    (numbers,), left = NUMBER(PLAIN)
    assert not left.any()
    assert numbers.to_pylist() == [None, 1, 1, 1, 1, 1, 1]


@pytest.mark.parametrize("message", NOT_PLAIN)
def test_one_that_is_not_plain_is_left(message):
    """What is not surely one object that the parser reads well is kept from it; or the whole batch is."""
    try:
        (numbers,), left = NUMBER([b'{"c":1}', message, b'{"c":2}'])
    except ValueError:
        return
    assert left[1]
    assert [numbers[at].as_py() for at in (0, 2)] == [1, 2]


@pytest.mark.parametrize("one_in", [900, 50, 5])
def test_messages_that_are_no_json_are_left_however_many(one_in):
    """A few are found where the parser stops; of many orjson tells which they are, and the others are still parsed together."""
    messages = [b'{"c":%d}' % at for at in range(2_000)]
    messages[one_in // 2 :: one_in] = [b'{"c" 7}'] * len(messages[one_in // 2 :: one_in])
    (numbers,), left = NUMBER(messages)

    assert left.nonzero()[0].tolist() == [*range(one_in // 2, 2_000, one_in)]
    assert [n for n, is_left in zip(numbers.to_pylist(), left, strict=True) if not is_left] == [
        at for at in range(2_000) if at % one_in != one_in // 2
    ]


@pytest.mark.parametrize("first", [b'{"c" 7}', b'{"c":"x"}', b'{"c":1,"c":1}', b'{"c":1,"x":"\t"}'])
def test_whatever_stops_the_parser_first_the_others_are_found_too(first):
    """What is no JSON, a value of another kind, a name that occurs twice: beside each other, in any order."""
    messages = [b'{"c":%d}' % at for at in range(2_000)]
    bad = {300: b'{"c" 7}', 700: b'{"c":"x"}', 1_100: b'{"c":7 "x":8}', 1_999: b'{"c"}'}
    for at, message in {100: first, **bad}.items():
        messages[at] = message
    (numbers,), left = NUMBER(messages)

    assert {*left.nonzero()[0].tolist()} - {100} == {*bad}
    assert [numbers[at].as_py() for at in range(101, 300)] == [*range(101, 300)]


@pytest.mark.parametrize(
    ("messages", "why"),
    [
        ([b'{"c" 7}', b'{"c":1}'] * 50, "expected"),  # most of the first are no JSON
        ([b'{"c":1}', b'{"c":99999999999999999999}'] * 600, "int64"),  # they are JSON
    ],
)
def test_what_orjson_cannot_tell_is_refused(messages, why):
    """Where it takes none out, or too many, the batch is for other paths."""
    with pytest.raises(ValueError, match=why):
        NUMBER(messages)


def test_string_across_messages_is_refused():
    """Two messages whose ends make one string are not one document."""
    with pytest.raises(ValueError):
        NUMBER([b'{"x":"}', b'{"}', b'{"c":1}{"c":2}'])


@pytest.mark.parametrize(
    "text",
    [
        "1e-77",
        "1.5E-400",
        '"1e-80"',
        "0." + "0" * 80 + "5",
        r'"1\u0065-80"',
        r'"1e\u002d80"',
        r'"1e-8\u0030"',
    ],
)
def test_decimals_beyond_the_powers_of_ten_are_left(text):
    """Decimals that pyarrow would scale with whatever stands behind its table take the row path."""
    _, left = DECIMAL([b"{}", b'{"c":[{"d":%b}]}' % text.encode()])
    assert left.tolist() == [False, True]
    NUMBER([b'{"x":[{"d":%b}]}' % text.encode()])


@pytest.mark.parametrize("text", ["1", "-0.25", "1e3", "1.5e-1", '"12.5"', '"1e1"'])
def test_ordinary_decimals_are_parsed(text):
    """Decimals take the vectorised path, with a small exponent too."""
    (column,), _ = DECIMAL([b'{"x":"5e-12 \\u003c","c":[{"d":%b}]}' % text.encode()])
    assert float(column[0].as_py()[0]["d"]) == float(text.strip('"'))
