"""Texts from outside: no secret of ours is in them when they are shown, nor anything that a terminal executes."""

from __future__ import annotations

import base64
import json
import unicodedata
from collections.abc import Callable
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyspark_upsert_kafka.core.errors import printable
from pyspark_upsert_kafka.core.masking import OutsideText, outside_text

USER, SECRET = "an@a", "pä55/w+rd"
SETTINGS = [
    {"basic-auth.user-info": f"{USER}:{SECRET}"},
    {"bearer-auth.token": SECRET},
    {"sasl.username": USER, "sasl.password": SECRET},
    {"sasl_plain_password": SECRET, "sasl_oauth_token_provider": object(), "ssl_context": None},
    {"sasl.oauthbearer.client.secret": SECRET, "linger.ms": 5},
    {"sasl.oauthbearer.config": f"region=eu clientSecret={SECRET}"},
    {
        "sasl.oauthbearer.token.endpoint.url": f"https://{USER}:{SECRET.replace('/', '|')}@host/token"
    },
    {"url": f"http://{quote(USER)}:{SECRET.replace('/', '|')}@host/"},
    {"bootstrap.servers": f"a:1,SASL_SSL://{USER}:{SECRET}@b:2"},
    {"security.protocol": f"PlainLoginModule required password={SECRET}"},
]
"""Where a secret may stand; the last one by mistake."""

ENCODINGS: dict[str, Callable[[str], str]] = {
    "as it is": str,
    "in an address": lambda secret: quote(secret, safe=""),
    "in JSON": json.dumps,
    "in JSON, with all letters": lambda secret: json.dumps(secret, ensure_ascii=False),
    "Basic": lambda secret: base64.b64encode(f"{USER}:{secret}".encode()).decode(),
    "Basic of another user": lambda secret: base64.b64encode(f"b:{secret}".encode()).decode(),
    "SASL PLAIN": lambda secret: base64.b64encode(f"\0{USER}\0{secret}".encode()).decode(),
    "base64 of addresses": lambda secret: base64.urlsafe_b64encode(f"x{secret}".encode()).decode(),
    "base64 without padding": lambda secret: (
        base64.b64encode(f"xy{secret}".encode()).decode().rstrip("=")
    ),
}


def secret_of(settings: dict[str, object]) -> str:
    """The secret as it stands there."""
    return SECRET.replace("/", "|") if "|" in str(settings) else SECRET


@pytest.mark.parametrize("settings", SETTINGS, ids=",".join)
@pytest.mark.parametrize("encoding", ENCODINGS)
def test_a_secret_of_the_options_is_not_shown(settings, encoding):
    """However a server spells it when it repeats what it was sent."""
    told = ENCODINGS[encoding](secret_of(settings))

    found = OutsideText(settings).shown(f"refused: {told} is wrong")

    assert told not in found
    assert found.startswith("refused: ")
    assert found.endswith(" is wrong")
    assert "***" in found


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Authorization: Basic bWU6czNjcmV0", "Authorization: Basic ***"),
        ("authorization: basic YTpi", "authorization: basic ***"),
        ("Bearer eyJhbGciOi.J9.c2ln is expired", "Bearer *** is expired"),
        ("Basic authentication is required", "Basic authentication is required"),
        ("Basic words are no login", "Basic words are no login"),  # five characters are no base64
        ("Bearer authentication is required", "Bearer authentication is required"),
        ("http://me:pa/ss@host/ and https://me:pass@host/", "http://me:pa/ss@host/ and https://***@host/"),
        ("SASL_SSL://me:pass@host:9092", "SASL_SSL://***@host:9092"),
        ("write to ana@example.org", "write to ana@example.org"),
        ("", ""),
    ],
)  # fmt: skip
def test_logins_that_nobody_here_knows(text, shown):
    """What is a login by its looks is not shown; what merely speaks of logins is."""
    assert outside_text(text) == shown


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\x1b[2Jb", r"a\x1b[2Jb"),
        ("\x1b]0;title\x07", r"\x1b]0;title\x07"),
        ("\x9b2J", r"\x9b2J"),
        ("one\nERROR two\r\n", r"one\nERROR two\r\n"),
        ("a\tb\x0b\x0c\x00\x7f", r"a\tb\x0b\x0c\x00\x7f"),
        ("\u202egnp.exe\u2066", r"\u202egnp.exe\u2066"),
        ("a\u2028b\u2029c\x85d", r"a\u2028b\u2029c\x85d"),
        ("half \ud83d", r"half \ud83d"),
        ("Zürich 東京 🙂", "Zürich 東京 🙂"),
    ],
)
def test_controls_are_written_as_escapes(text, shown):
    """A terminal executes none, a log has no more lines, and a word is not shown in another order."""
    assert printable(text) == shown
    assert outside_text(text) == shown


@given(st.text())
def test_whatever_comes_is_printable(text):
    """Each character of the result is visible, or a space; and it can be sent."""
    for made in (printable(text), outside_text(text)):
        assert all(each == " " or unicodedata.category(each)[0] not in "CZ" for each in made)
        made.encode()


def test_a_long_text_is_cut():
    """A reason of megabytes says no more than its beginning; a secret that stands at the cut is not shown by half."""
    assert outside_text("x" * 5_000) == "x" * 1_000 + "…"
    assert outside_text("x" * 5_000, 10) == "x" * 10 + "…"
    assert outside_text("x" * 1_000) == "x" * 1_000
    cut_in_secret = "x" * 995 + SECRET
    assert OutsideText(SETTINGS[1]).shown(cut_in_secret) == "x" * 995 + "***"


def test_what_is_not_looked_through_is_not_shown():
    """However much of a text is wanted: a secret may stand there."""
    known = OutsideText(SETTINGS[1])

    assert known.shown("x" * 65_536 + SECRET, 1_000_000) == "x" * 65_536
    assert known.shown("x" * 65_500 + SECRET, 1_000_000) == "x" * 65_500 + "***"


@pytest.mark.parametrize("part", ["A", "=", "Basic ", "://", "a@", "Bearer a", "\x1b"])
def test_a_text_of_megabytes(part):
    """What is looked through is bounded, and each character is looked at a few times: else this would take minutes."""
    assert len(OutsideText(SETTINGS[0]).shown(part * 4_000_000)) <= 1_001


def test_a_secret_that_is_part_of_every_word():
    """Where it is so short, stars would show it."""
    assert OutsideText({"sasl.password": "e"}).shown("refused") == "refused"


@pytest.mark.parametrize(
    "secret", ["s3cret-word\n", "tab\tand'quote\"", "back\\slash&more", "pässwörter", 'pä"ss']
)
def test_each_spelling_of_a_secret_is_hidden_to_its_last_character(secret: str):
    """As Python, a query of a URL and JSON write it."""
    spellings = (
        repr(secret)[1:-1],
        quote(secret, safe=""),
        quote_plus(secret, safe=""),
        json.dumps(secret)[1:-1],
        json.dumps(secret, ensure_ascii=False)[1:-1],
    )
    for told in spellings:
        shown = OutsideText({"ssl.key.password": secret}).shown(f"it is <{told}> here")
        assert shown == "it is <***> here"


@pytest.mark.parametrize("before", range(4))
@pytest.mark.parametrize("after", range(4))
def test_base64_of_a_secret_amid_other_bytes_is_hidden(before: int, after: int):
    """Wherever it stands; what is left of it are characters that depend on the bytes beside it, three at each end at most."""
    whole = b"x" * before + SECRET.encode() + b"y" * after
    known = OutsideText({"ssl.key.password": SECRET})
    for encoded in (base64.b64encode(whole), base64.urlsafe_b64encode(whole)):
        begin, stars, end = known.shown(f"<{encoded.decode()}>").partition("***")
        assert stars
        assert len(begin) <= 1 + -(-before * 4 // 3)
        assert len(end) <= 1 + 2 + -(-after * 4 // 3) + 2


@pytest.mark.parametrize("user", ["m", "me", "you", "them"])
def test_a_login_without_padding_is_one(user: str):
    """And what has no colon is another word, whatever its length."""
    login = base64.b64encode(f"{user}:s3cret".encode()).decode().rstrip("=")
    word = base64.b64encode(f"{user}-s3cret".encode()).decode().rstrip("=")

    assert outside_text(f"Basic {login} is wrong") == "Basic *** is wrong"
    assert outside_text(f"Basic {word} is wrong") == f"Basic {word} is wrong"


@pytest.mark.parametrize(
    ("secret", "told", "shown"),
    [
        ("abc", "<abc>", "<***>"),
        ("ab", "<ab>", "<ab>"),
        # Three bytes are four characters of base64; where they do not begin a group, fewer depend on them alone.
        ("abc", "<YWJj>", "<***>"),
        ("abcd", f"<{base64.b64encode(b'xabcd').decode()}>", "<***>"),
        ("abcd", f"<{base64.b64encode(b'xyabcd').decode()}>", "<***>"),
        ("abcd", f"<{base64.b64encode(b'xyzbcd').decode()}>", "<eHl6YmNk>"),
        ("abcde", "<abcde>", "<***>"),
    ],
)
def test_how_short_a_secret_may_be(secret: str, told: str, shown: str):
    """Shorter ones are in other words, where stars would tell them."""
    assert OutsideText({"ssl.key.password": secret}).shown(told) == shown
