"""Texts from outside, such as what a server answers: they are shown without secrets, on one line, and not at any length."""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Iterator, Mapping
from functools import cached_property
from types import MappingProxyType
from urllib.parse import quote, quote_plus

from pyspark_upsert_kafka.core.errors import printable
from pyspark_upsert_kafka.core.masking import USER_INFO, secrets_of

_MOST = 1_000
"""So many characters of a text are shown."""

_LOOKED_AT = 64 * 1024
"""What is behind these characters cannot be shown, and is not looked through for secrets."""

_STARS = "***"


_BASIC = re.compile(r"\b(basic\s+)([a-z0-9+/_-]{4,}={0,2})", re.IGNORECASE)
_BEARER = re.compile(r"\b(bearer\s+)(?=[a-z]*[0-9+/_=.~-])[a-z0-9+/_=.~-]{8,}", re.IGNORECASE)
"""A login as HTTP sends it, in an answer that repeats the request."""

_JWT = re.compile(r"\beyJ[\w-]{4,}(?:\.[\w-]*){1,4}")
"""A JSON Web Token, which begins with an object in base64, or the begin of one that was cut."""

_IN_BASE64 = re.compile(r"[A-Za-z0-9+/_-]{4,}={0,2}")
_LEAST, _LEAST_CORE = 3, 4
"""With fewer characters, parts of words would be starred out, and show what the secret is."""


class OutsideText:
    """Makes texts from outside fit to be shown.

    Args:
        settings: The settings of whoever got the texts, such as a client's, with their references replaced. What is secret
            among them is starred out, and so is a login that contains it, as HTTP or SASL encodes it.

    >>> settings = {"sasl_plain_password": "s3cret", "client_id": "key"}
    >>> OutsideText(settings).shown("no such key: s3cret")
    'no such key: ***'
    """

    def __init__(self, settings: Mapping[str, object] = MappingProxyType({})) -> None:
        self._settings = settings

    def shown(self, text: str, most: int = _MOST) -> str:
        """The text as it may be shown.

        Args:
            text: The text.
            most: How many characters of it are shown at most.
        """
        text = text[:_LOOKED_AT]
        if self._spelt:
            text = self._spelt.sub(_STARS, text)
        if self._encoded:
            text = _IN_BASE64.sub(self._without_encoded, text)
        text = USER_INFO.sub(rf"\1{_STARS}@", text)
        text = _BEARER.sub(rf"\1{_STARS}", _BASIC.sub(_without_basic, text))
        text = _JWT.sub(_STARS, text)
        text = printable(text)
        return text if len(text) <= most else f"{text[:most]}…"

    @cached_property
    def _secrets(self) -> set[str]:
        return {each for each in secrets_of(self._settings) if len(each) >= _LEAST}

    @cached_property
    def _spelt(self) -> re.Pattern[str] | None:
        """The secrets, and how a server may write them in its answer."""
        return _any_of(each for secret in self._secrets for each in _spellings(secret))

    @cached_property
    def _encoded(self) -> re.Pattern[str] | None:
        """What only a text in base64 has in it that contains one of the secrets."""
        return _any_of(each for secret in self._secrets for each in _cores(secret))

    def _without_encoded(self, found: re.Match[str]) -> str:
        return _STARS if self._encoded and self._encoded.search(found[0]) else found[0]


def outside_text(text: str, most: int = _MOST) -> str:
    r"""A text as it may be shown that comes from where no secret of ours is known, such as the reason for a bad message.

    Args:
        text: The text.
        most: How many characters of it are shown at most.

    >>> outside_text("no" + chr(27) + "[2J, http://me:s3cret@host refuses: Authorization: Basic bWU6czNjcmV0")
    'no\\x1b[2J, http://***@host refuses: Authorization: Basic ***'
    """
    return _KNOWS_NO_SECRET.shown(text, most)


_KNOWS_NO_SECRET = OutsideText()


def _spellings(secret: str) -> Iterator[str]:
    yield secret
    yield repr(secret)[1:-1]
    for escape in (quote, quote_plus):
        yield escape(secret, safe="", errors="surrogateescape")
    for ascii_ in (True, False):
        yield json.dumps(secret, ensure_ascii=ascii_)[1:-1]


def _cores(secret: str) -> Iterator[str]:
    """The characters that base64 has for a secret wherever it stands: they depend on its place among groups of three bytes."""
    data = secret.encode(errors="surrogateescape")
    for before in range(3):
        encoded = base64.b64encode(bytes(before) + data).decode()
        core = encoded[-(-before * 4 // 3) : (before + len(data)) * 4 // 3]
        if len(core) >= _LEAST_CORE:
            yield core
            yield core.translate(_URL_SAFE)


_URL_SAFE = str.maketrans("+/", "-_")


def _any_of(texts: Iterator[str]) -> re.Pattern[str] | None:
    longest_first = sorted({text for text in texts if text}, key=lambda text: (-len(text), text))
    return re.compile("|".join(map(re.escape, longest_first))) if longest_first else None


def _without_basic(found: re.Match[str]) -> str:
    """Basic, without the user and the password behind it; another word may stand there."""
    encoded = found[2].rstrip("=").replace("-", "+").replace("_", "/")
    try:
        is_login = b":" in base64.b64decode(encoded + "=" * (-len(encoded) % 4))
    except binascii.Error:
        is_login = False
    return f"{found[1]}{_STARS}" if is_login else found[0]


def is_unicode(text: str) -> bool:
    """Whether a text has no half of a surrogate pair, which JSON can spell and nobody can send.

    >>> is_unicode("Ü"), is_unicode(chr(0xD800))
    (True, False)
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
