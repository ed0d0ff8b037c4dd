"""Texts of Flink's SQL as tokens; those of Spark's columns are in tests/unit/core/ddl/test_spark_columns.py."""

from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from pyspark_upsert_kafka.core.ddl.tokens import Token, Tokens, place_in, places_in, tokenize
from pyspark_upsert_kafka.core.errors import OptionError

TOKENS = {
    "a _b c1 größe $x a€": "word:a word:_b word:c1 word:größe word:$x word:a€",
    "`a b` `a``b` ```` ``": "name:a b name:a`b name:` name:",
    '"a b" "a""b" "`"': 'name:a b name:a"b name:`',
    "'a b' 'it''s' '''' '' '`\"\\'": "text:a b text:it's text:' text: text:`\"\\",
    "'a''b''c' 'd'": "text:a'b'c text:d",
    "1 23 1.5 1. 1e5 1.5E-3 1e+2": "number:1 number:23 number:1.5 number:1. number:1e5 number:1.5E-3 number:1e+2",
    "12abc 0x1F 3e 1-2": "number:12 word:abc number:0 word:x1F number:3e number:1 mark:- number:2",
    "(a.b,c)<d>;=": "mark:( word:a mark:. word:b mark:, word:c mark:) mark:< word:d mark:> mark:; mark:=",
    "a-b*c||d::e": "word:a mark:- word:b mark:* word:c mark:| mark:| word:d mark:: mark:: word:e",
    "x'1f'N'a'b`c`": "word:x text:1f word:N text:a word:b name:c",
    "a--b'\nc//d`\re/*f\n'*/g/**/h": "word:a word:c word:e word:g word:h",
    "a - -b / /c": "word:a mark:- mark:- word:b mark:/ mark:/ word:c",
    "'--' '/*' `//`": "text:-- text:/* name://",
    "{# a #}": "mark:{ mark:# word:a mark:# mark:}",
    "a\u00a0b\tc\x1cd": "word:a word:b word:c word:d",
    "-- nothing": "",
}
"""Texts, and each of their tokens with its kind."""


@pytest.mark.parametrize(("sql", "tokens"), TOKENS.items())
def test_tokens(sql: str, tokens: str) -> None:
    """Words, names, texts, numbers and marks are distinguished as Flink does; comments are left out."""
    *found, end = tokenize(sql)

    assert " ".join(f"{token.kind}:{token.text}" for token in found) == tokens
    assert end == Token("end", "", place_in(sql, len(sql)), len(sql))


def test_each_token_has_its_place() -> None:
    """Lines and columns count from 1; what is quoted or left out counts as it is written."""
    sql = "a `b``c`\n/* d\n */ 'e\nf' g"

    places = [(token.text, token.place.line, token.place.column) for token in tokenize(sql)]

    assert places == [("a", 1, 1), ("b`c", 1, 3), ("e\nf", 3, 5), ("g", 4, 4), ("", 4, 5)]


@pytest.mark.parametrize(
    "marked",
    [
        "→'a",
        "→`a",
        '→"a',
        "→/* a",
        "→/*/",
        "a →'b''",
        "a 'b' →'",
        "-- '\n→/*/",
        "'/*' →/* '",
        "/* ' */ →' /* */",
    ],
)
def test_what_does_not_end(marked: str) -> None:
    """The place is that of the quote or comment that is open, not of one within it."""
    place = place_in(marked, marked.index("→"))

    with pytest.raises(OptionError) as error:
        tokenize(marked.replace("→", ""))

    assert str(error.value) == f"{place}: the quote or comment that begins here does not end."


@given(
    st.lists(st.sampled_from(["a", "é", "1", ".", "e", "-", "/", "*", "(", "=", "$", " ", "\n"]))
)
def test_nothing_is_lost(parts: list[str]) -> None:
    """Without quotes and comments, each character but a blank is in a token, and the tokens are in order."""
    sql = "".join(parts)
    assume(not any(comment in sql for comment in ("--", "//", "/*")))

    tokens = tokenize(sql)

    assert "".join(token.text for token in tokens) == "".join(sql.split())


@given(st.text("a\n\r ", max_size=12))
def test_places_of_all_characters(text):
    """Lines that are looked for once give the places that looking for each gives."""
    found = places_in(text)
    assert [found(at) for at in range(len(text) + 1)] == [
        place_in(text, at) for at in range(len(text) + 1)
    ]


@pytest.mark.parametrize("text", ["1.5", "1e3", "`5`", "'5'", "x", "", "²"])
def test_what_is_no_whole_number(text: str) -> None:
    """With what was expected, and where."""
    assert Tokens("007").number("a length") == 7
    with pytest.raises(OptionError, match="expected a length, a whole number, but found"):
        Tokens(text).number("a length")
