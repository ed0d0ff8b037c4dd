"""The first and the last text that each parser takes, and the next ones, which it does not."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pyspark_upsert_kafka.core.options import parsers
from pyspark_upsert_kafka.core.options.parsers import Parser

MOST = 2**63 - 1

TAKEN: list[tuple[Parser, str, Any]] = [
    (parsers.text, " ", " "),
    (parsers.any_text, "", ""),
    (parsers.addresses, "host", "host"),
    (parsers.addresses, "host:1, [::1]:65535", "host:1, [::1]:65535"),
    (parsers.addresses, "[::1]", "[::1]"),
    (parsers.addresses, "${env:HOST}:port", "${env:HOST}:port"),
    (parsers.boolean, " TRUE", True),
    (parsers.boolean, "false ", False),
    (parsers.whole_number(), "0", 0),
    (parsers.whole_number(3), " 3 ", 3),
    (parsers.whole_number(-1), "-1", -1),
    (parsers.whole_number(), str(MOST), MOST),
    (parsers.whole_number_or_auto(2), "2", 2),
    (parsers.whole_number_or_auto(2), " Auto ", "auto"),
    (parsers.one_of("in-task", "By-Key"), " by-key ", "By-Key"),
    (parsers.duration, "1 ns", 1e-9),
    (parsers.duration, "2us", 2e-6),
    (parsers.duration, "2 µs", 2e-6),
    (parsers.duration, "0", 0.0),
    (parsers.duration, "3", 0.003),
    (parsers.duration, "3 S", 3.0),
    (parsers.duration, "2 min", 120.0),
    (parsers.duration, "2 h", 7200.0),
    (parsers.duration, "2 days", 172_800.0),
    (parsers.duration, "9" * 18 + " ns", pytest.approx(1e9)),
    (parsers.positive_duration, "1 ms", 0.001),
    (parsers.positive_duration, "36500 d", 36_500 * 86_400.0),
    (parsers.memory_size, "1", 1),
    (parsers.memory_size, "3 k", 3 * 2**10),
    (parsers.memory_size, "3mb", 3 * 2**20),
    (parsers.memory_size, "3 GB", 3 * 2**30),
    (parsers.memory_size, "3 tebibytes", 3 * 2**40),
    (parsers.memory_or_auto, "AUTO", None),
    (parsers.memory_or_auto, "1 kb", 1024),
    (parsers.specific_offsets, "partition:0,offset:42", ((0, 42),)),
    (parsers.specific_offsets, "partition:10,offset:0; partition:2,offset:7 ;", ((2, 7), (10, 0))),
    (
        parsers.specific_offsets,
        f"partition:{'9' * 9},offset:{'9' * 18}",
        ((999_999_999, 10**18 - 1),),
    ),
    (parsers.topic_name, "a" * 249, "a" * 249),
    (parsers.topic_name, "...", "..."),
    (parsers.topic_name, "A.b_c-9", "A.b_c-9"),
    (parsers.topic_list, " t ; u;t;", ("t", "u")),
    (parsers.json_topic_list, '["t", "u"]', ("t", "u")),
    (parsers.id_prefix, "!~" * 100, "!~" * 100),
    (parsers.column_list(";"), "a; b ;;c", ("a", "b", "c")),
    (parsers.names_as_written, '{"id": "Id"}', {"id": "Id"}),
    (parsers.names_as_written, "{}", {}),
]

REFUSED: list[tuple[Parser, str]] = [
    (parsers.text, ""),
    (parsers.addresses, ""),
    (parsers.addresses, "http://host:9092"),
    (parsers.addresses, "HTTPS://host:9092"),
    (parsers.addresses, "host:0"),
    (parsers.addresses, "host:65536"),
    (parsers.addresses, "host:"),
    (parsers.addresses, "host:port"),
    (parsers.addresses, "host:1;other:2"),
    (parsers.addresses, "host:1 other:2"),
    (parsers.addresses, "host:1,other:x"),
    (parsers.addresses, "[::1]:x"),
    (parsers.boolean, "yes"),
    (parsers.whole_number(), "-1"),
    (parsers.whole_number(3), "2"),
    (parsers.whole_number(), "1.0"),
    (parsers.whole_number(), ""),
    (parsers.whole_number(), str(MOST + 1)),
    (parsers.whole_number(), "0" * 20),
    (parsers.whole_number_or_auto(2), "1"),
    (parsers.one_of("a", "b"), "c"),
    (parsers.duration, ""),
    (parsers.duration, "-1"),
    (parsers.duration, "1.5 s"),
    (parsers.duration, "1 week"),
    (parsers.duration, "9" * 19),
    (parsers.positive_duration, "0"),
    (parsers.positive_duration, "999 us"),
    (parsers.positive_duration, "36501 d"),
    (parsers.memory_size, "0"),
    (parsers.memory_size, "1 s"),
    (parsers.memory_or_auto, "0"),
    (parsers.regular_expression, "("),
    (parsers.specific_offsets, ""),
    (parsers.specific_offsets, "partition:0,offset:-1"),
    (parsers.specific_offsets, "partition:0,offset:1;partition:0,offset:2"),
    (parsers.specific_offsets, "partition:0,offset:1;;partition:1,offset:2"),
    (parsers.specific_offsets, f"partition:{'1' * 10},offset:1"),
    (parsers.specific_offsets, f"partition:1,offset:{'1' * 19}"),
    (parsers.topic_name, ""),
    (parsers.topic_name, "a" * 250),
    (parsers.topic_name, "."),
    (parsers.topic_name, ".."),
    (parsers.topic_name, "a b"),
    (parsers.topic_list, "t,u"),
    (parsers.topic_list, "t;u v"),
    (parsers.json_topic_list, '"t"'),
    (parsers.json_topic_list, "t"),
    (parsers.id_prefix, ""),
    (parsers.id_prefix, "a" * 201),
    (parsers.id_prefix, "a b"),
    (parsers.id_prefix, "ä"),
    (parsers.column_list(","), "a, A"),
    (parsers.names_as_written, "[]"),
    (parsers.names_as_written, '{"id": 1}'),
    (parsers.names_as_written, '{"Id": "Id"}'),
]


@pytest.mark.parametrize(("parse", "given", "value"), TAKEN)
def test_what_is_taken(parse: Parser, given: str, value: Any) -> None:
    """And what it means."""
    found = parse(given)

    assert (found, type(found)) == (value, type(found))


@pytest.mark.parametrize(("parse", "given"), REFUSED)
def test_what_is_refused(parse: Parser, given: str) -> None:
    """With a sentence that does not show the text, which may be a secret."""
    with pytest.raises(ValueError) as error:
        parse(given)

    assert isinstance(error.value, json.JSONDecodeError) or str(error.value)


def test_a_port_is_told_by_its_host() -> None:
    """As the user has written it."""
    with pytest.raises(ValueError, match=r"^expected a port from 1 to 65535 after 'host:'$"):
        parsers.addresses("host:99999")
    with pytest.raises(ValueError, match=r"^expected a port from 1 to 65535 after 'host:'$"):
        parsers.addresses("host:")


def test_a_pattern_matches_names() -> None:
    """As Python's regular expressions do."""
    assert parsers.regular_expression("t[0-9]+").fullmatch("t12")
