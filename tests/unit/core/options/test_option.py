"""What one option takes, what it gives, and what it says of anything else."""

from __future__ import annotations

import re

import pytest

from pyspark_upsert_kafka.core.errors import OptionError
from pyspark_upsert_kafka.core.options.catalog import Option
from pyspark_upsert_kafka.core.options.parsers import (
    any_text,
    boolean,
    column_list,
    duration,
    json_topic_list,
    one_of,
    regular_expression,
    specific_offsets,
    text,
    topic_list,
    topic_name,
    whole_number,
)

FORM = "should follow the format 'partition:0,offset:42;partition:1,offset:300'"
DURATION = (
    "expected a duration such as '5 min', '10s' or '500 ms' (units: ns, us, ms, s, min, h, d)"
)
TOPIC = "expected a topic's name, of at most 249 letters, digits, '.', '_' and '-'"


@pytest.mark.parametrize(
    ("parse", "given", "value"),
    [
        (text, "a b", "a b"),
        (any_text, "", ""),
        (any_text, "a", "a"),
        (boolean, "true", True),
        (boolean, " FALSE ", False),
        (whole_number(), "0", 0),
        (whole_number(), " 42 ", 42),
        (whole_number(1), "1", 1),
        (whole_number(-5), "-5", -5),
        (whole_number(), "9223372036854775807", 2**63 - 1),
        (one_of("ALL", "EXCEPT_KEY"), " except_key ", "EXCEPT_KEY"),
        (one_of("fail"), "FAIL", "fail"),
        (specific_offsets, "partition:0,offset:42", ((0, 42),)),
        (specific_offsets, "partition:10,offset:1;partition:9,offset:2;", ((9, 2), (10, 1))),
        (specific_offsets, " partition:0,offset:1 ; partition:1,offset:2; ", ((0, 1), (1, 2))),
        (topic_name, "a.B_c-9", "a.B_c-9"),
        (topic_name, "a" * 249, "a" * 249),
        (topic_list, "a", ("a",)),
        (topic_list, " a ; b;a;", ("a", "b")),
        (topic_list, "", ()),
        (json_topic_list, '["a", "b"]', ("a", "b")),
        (column_list(","), "b, a", ("b", "a")),
        (column_list(";"), "a;b,c", ("a", "b,c")),
        (column_list(","), " , ", ()),
    ],
)
def test_a_parser_gives_the_value_of_a_text(parse, given, value):
    """Each kind of text has one value; blanks around it and, for words, its case do not matter."""
    assert parse(given) == value


@pytest.mark.parametrize(
    ("parse", "given", "expected"),
    [
        (text, "", "expected a value"),
        (boolean, "yes", "expected 'true' or 'false'"),
        (boolean, "", "expected 'true' or 'false'"),
        (whole_number(), "-1", "expected a whole number of at least 0"),
        (whole_number(1), "0", "expected a whole number of at least 1"),
        (whole_number(), "1.0", "expected a whole number of at least 0"),
        (whole_number(), "1_000", "expected a whole number of at least 0"),
        (whole_number(), "٣", "expected a whole number of at least 0"),
        (whole_number(), "9223372036854775808", "expected a whole number of at least 0"),
        (whole_number(), "9" * 5000, "expected a whole number of at least 0"),
        (one_of("a", "b"), "c", "expected one of 'a', 'b'"),
        (regular_expression, "(", "expected a regular expression (missing ), unterminated "),
        (specific_offsets, "", FORM),
        (specific_offsets, "0:42", FORM),
        (specific_offsets, "partition:0,offset:42 or so", FORM),
        (specific_offsets, "partition:0,offset:-1", FORM),
        (specific_offsets, "partition:0,offset:1;;partition:1,offset:1", FORM),
        (specific_offsets, "partition:0,offset:1;partition:0,offset:2", FORM),
        (topic_name, "", TOPIC),
        (topic_name, "a b", TOPIC),
        (topic_name, "..", TOPIC),
        (topic_name, "a" * 250, TOPIC),
        (topic_list, "a;b/c", TOPIC),
        (json_topic_list, '"a"', "expected a JSON list"),
        (json_topic_list, "[1, 2.5, null, {}]", TOPIC),
        (column_list(","), "a,b,A", "expected each column once"),
    ],
)
def test_a_parser_says_what_it_expected(parse, given, expected):
    """Anything else is a ValueError whose text says what was expected."""
    with pytest.raises(ValueError, match="^" + re.escape(expected)):
        parse(given)


@pytest.mark.parametrize(
    ("given", "seconds"),
    [
        ("0", 0),
        ("0s", 0),
        ("1500", 1.5),
        ("10s", 10),
        (" 10  sec ", 10),
        ("1 second", 1),
        ("2 seconds", 2),
        ("5 min", 300),
        ("15m", 900),
        ("1 MINUTE", 60),
        ("2 hours", 7200),
        ("1h", 3600),
        ("1 d", 86400),
        ("3 days", 259200),
        ("250ms", 0.25),
        ("250 millis", 0.25),
        ("7 µs", 7e-6),
        ("7us", 7e-6),
        ("3 nanos", 3e-9),
    ],
)
def test_a_duration_is_written_as_in_flink(given, seconds):
    """Number and unit, with any blanks; a bare number is milliseconds."""
    assert duration(given) == pytest.approx(seconds)


@pytest.mark.parametrize("given", ["", "min", "-1 s", "1.5 s", "1 week", "5 5", "PT5M", "9" * 400])
def test_what_is_no_duration_is_refused(given):
    """Signs, fractions, unknown units and endless numbers are no durations."""
    with pytest.raises(ValueError, match=re.escape(DURATION)):
        duration(given)


NUMBER = Option("scan.someNumber", whole_number(1), 7, "a number")
TOKEN = Option("bearer-auth.token", whole_number(), None, "the token for the registry")


@pytest.mark.parametrize(
    ("option", "given", "prefix", "value"),
    [
        (NUMBER, {}, "", 7),
        (NUMBER, {"scan.somenumber": "3"}, "", 3),
        (NUMBER, {"value.json.scan.somenumber": "3"}, "value.json.", 3),
        (NUMBER, {"scan.somenumber": "3"}, "value.json.", 7),
        (TOKEN, {}, "", None),
    ],
)
def test_an_option_reads_its_value_or_its_default(option, given, prefix, value):
    """Names arrive in lower case; a format's option is found under its prefix."""
    assert option.read(given, prefix) == value


def test_a_malformed_value_is_told_with_name_expectation_and_text():
    """The error names the option as it is declared, what was expected and what was seen."""
    with pytest.raises(OptionError) as error:
        NUMBER.read({"key.csv.scan.somenumber": "few"}, "key.csv.")

    assert str(error.value) == (
        "Invalid value for option 'key.csv.scan.someNumber': expected a whole number of at least 1, "
        "but is 'few'."
    )


def test_the_complaint_can_be_in_flinks_words():
    """An option may have a wording of its own."""
    option = Option("a", whole_number(), None, "", complaint="{seen} for '{name}': {expected}!")

    with pytest.raises(OptionError) as error:
        option.read({"a": "x{y}"})

    assert str(error.value) == "'x{y}' for 'a': expected a whole number of at least 0!"


def test_a_reference_is_replaced(monkeypatch):
    """The value may stand in the environment."""
    monkeypatch.setenv("SOME_NUMBER", "3")

    assert NUMBER.read({"scan.somenumber": "${env:SOME_NUMBER}"}) == 3


def test_a_malformed_referenced_value_is_not_shown(monkeypatch):
    """What a reference stands for may be secret: the error shows the reference."""
    monkeypatch.setenv("SOME_NUMBER", "geheim")

    with pytest.raises(OptionError, match=re.escape("but is '${env:SOME_NUMBER}'.")) as error:
        NUMBER.read({"scan.somenumber": "${env:SOME_NUMBER}"})

    assert "geheim" not in str(error.value)


def test_a_malformed_secret_is_not_shown():
    """Of a secret the error says what the option is, and not a letter of its value."""
    with pytest.raises(OptionError) as error:
        TOKEN.read({"value.avro-confluent.bearer-auth.token": "geheim"}, "value.avro-confluent.")

    assert str(error.value) == (
        "Invalid value for option 'value.avro-confluent.bearer-auth.token'; it is not shown here, "
        "since it may be secret. The option says: the token for the registry"
    )
    assert error.value.__cause__ is None
    assert error.value.__suppress_context__


def test_a_secret_stays_a_reference():
    """A secret is looked up where it is used: what is planned holds the reference."""
    option = Option("password", text, None, "a password")

    assert option.read({"password": "${env:NOT_SET_ANYWHERE}"}) == "${env:NOT_SET_ANYWHERE}"
