"""Values that must not be shown, the references that keep them out of programs and plans, and texts from outside as they may be shown.

Such texts, as a server answers them, are shown without secrets, on one line, and not at any length.
"""

from __future__ import annotations

import base64
import binascii
import json
import os
import re
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from urllib.parse import quote, quote_plus

from pyspark_upsert_kafka.core.errors import OptionError, printable
from pyspark_upsert_kafka.core.pages import page

_SECRET = re.compile(
    r"password|passphrase|secret|token(?!\.provider$)|oauthbearer\.config|jaas|user[-.]?info|credential"
    r"|ssl\.key(?!\.location|store\.(?:location|type|certificate))|keystore\.key"
    r"|private\.key|(?:api|access)[-.]?key|^ddl$"
)
_HIDDEN_BY_SPARK = re.compile(r"secret|password|token|access[.]?key|url", re.IGNORECASE)
"""The defaults of ``spark.redaction.regex`` and ``spark.sql.redaction.options.regex``, which Spark holds
against names and values."""

USER_INFO = re.compile(r"(://)([^/\s]*)@")
"""User and password in an address."""

_IN_SERVERS = re.compile(r"((?:^|,)\s*(?:\w+://)?)([^,]*)@")
"""The same in a list of servers, which needs no ``://``."""

_IS_SERVERS = re.compile(r"(?:bootstrap[._]servers|broker[._]list)$")
_IS_USER_INFO = re.compile(r"user[-.]?info$")

_REFERENCE = re.compile(r"\$\{(env|file):([^}]*)\}")
_WHOLE_REFERENCE = re.compile(r"\$\{(?:env:[^}\s]+|file:[^}]+:[^}]+)\}")
_MISSPELT = re.compile(r"\$\{\s*(?:env|file)\s*:[^}]*\}", re.IGNORECASE)
"""A reference, or what was meant as one."""
_ENTRY = re.compile(r"((?:\\.|[^\\=: \t\f])*)[ \t\f]*[=:]?[ \t\f]*(.*)")
_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


_LOGIN = re.compile(r"LoginModule|password\s*=\s*[\"']?([^\"'\s;]*)", re.IGNORECASE)
"""A login looks like this, which may stand in the wrong setting by mistake."""


_CONFIG = "oauthbearer.config"
"""How the name ends of a setting that may hold secrets among what is none: it is a text that a provider of tokens understands."""

_ENTRY_OF_CONFIG = re.compile(r"([\w.-]+)[\"']?\s*[=:]\s*[\"']?([^\s,;&\"'}]+)")


def secrets_in(name: str, value: str) -> list[str]:
    """What is secret in a setting: nothing, the whole value, or some of its entries.

    >>> secrets_in("sasl.oauthbearer.config", "region=eu client_secret=s3cret"), secrets_in("sasl.password", "a=b")
    (['s3cret'], ['a=b'])
    """
    entries = _ENTRY_OF_CONFIG.findall(value) if name.endswith(_CONFIG) else []
    if entries:
        return [each for key, each in entries if is_secret(key)]
    return [value] if is_secret(name) else []


def is_secret(name: str) -> bool:
    """Whether the value of this option must never be shown.

    >>> is_secret("properties.sasl.jaas.config"), is_secret("properties.linger.ms")
    (True, False)
    """
    return _SECRET.search(name.lower()) is not None


def masked(given: Mapping[str, str]) -> dict[str, str]:
    """Options as they may be shown: what may be secret is starred out.

    >>> masked({"topic": "t", "properties.sasl.password": "s3cret", "url": "http://me:s3cret@host"})
    {'topic': 't', 'properties.sasl.password': '***', 'url': 'http://***@host'}
    """
    return {
        name: "***" if is_secret(name) else without_users(name, value)
        for name, value in given.items()
    }


def without_users(name: str, value: str) -> str:
    """The value of a setting with users and passwords in addresses starred out.

    >>> without_users("properties.bootstrap.servers", "me:s3cret@host:9092")
    '***@host:9092'
    """
    pattern = _IN_SERVERS if _IS_SERVERS.search(name.lower()) else USER_INFO
    return pattern.sub(r"\1***@", value)


def user_infos(name: str, value: str) -> list[str]:
    """Users with their passwords in a setting: ``<user>:<password>``.

    >>> user_infos("url", "https://me:s3cret@host"), user_infos("bootstrap.servers", "a:1,me:s3cret@b:1")
    (['me:s3cret'], ['me:s3cret'])
    """
    if _IS_USER_INFO.search(name.lower()):
        return [value]
    pattern = _IN_SERVERS if _IS_SERVERS.search(name.lower()) else USER_INFO
    return [found[2] for found in pattern.finditer(value)]


def secrets_of(settings: Mapping[str, object]) -> Iterator[str]:
    """What is secret in some settings, users with their passwords and passwords alone among it.

    >>> [*secrets_of({"sasl_password": "s3cret", "url": "http://me:pass@host", "client_id": "a"})]
    ['s3cret', 'me:pass', 'pass']
    """
    for name, value in settings.items():
        if not isinstance(value, str):
            continue
        logins = list(_LOGIN.finditer(value))
        if logins:
            yield value
        yield from secrets_in(name.replace("_", "."), value)
        yield from (login[1] or "" for login in logins)
        for user in user_infos(name, value):
            yield user
            yield user.partition(":")[2]


def shown_by_spark(given: Mapping[str, str]) -> list[str]:
    """The options whose literal secrets Spark would show when it prints a streaming plan.

    >>> shown_by_spark({"properties.ssl.key.pem": "-----BEGIN", "properties.sasl.password": "s"})
    ['properties.ssl.key.pem']
    """
    return [
        name
        for name, value in sorted(given.items())
        if _is_literal_secret(name, value)
        and not _HIDDEN_BY_SPARK.search(name)
        and not _HIDDEN_BY_SPARK.search(value)
    ]


def literal_secrets(given: Mapping[str, str]) -> list[str]:
    """The warning about literal secrets that Spark would show; an empty list when there are none.

    >>> literal_secrets({"properties.ssl.key.pem": "${env:KEY}"})
    []
    """
    names = shown_by_spark(given)
    if not names:
        return []
    text = (
        f"Spark can print the options of a query with its plan, and does not know by itself that these hold "
        f"a secret: {', '.join(map(repr, names))}. Give a reference in place of the secret, as in "
        "'${env:NAME}' or '${file:/path:key}', or widen Spark's setting "
        f"'spark.sql.redaction.options.regex' (see {page('security.md')})."
    )
    return [text]


def has_literal_secret(given: Mapping[str, str]) -> bool:
    """Whether one of the options holds a secret itself, not a reference to it.

    >>> has_literal_secret({"properties.sasl.password": "${env:P}"}), has_literal_secret({"a.password": "p"})
    (False, True)
    """
    return any(_is_literal_secret(name, value) for name, value in given.items())


def _is_literal_secret(name: str, value: str) -> bool:
    if name.lower().endswith("credentials-source"):  # says where they are
        return False
    if is_secret(name):
        return any(not _REFERENCE.fullmatch(each.strip()) for each in secrets_in(name, value))
    return any(not _REFERENCE.search(user) for user in user_infos(name, value))


def refers(value: str) -> bool:
    """Whether the value holds a reference.

    >>> refers("${env:NAME}"), refers("plain")
    (True, False)
    """
    return _REFERENCE.search(value) is not None


def resolve(option: str, value: str) -> str:
    """The value with ``${env:NAME}`` and ``${file:/path:key}`` (KIP-297) replaced.

    Raises:
        OptionError: An environment variable, a file or a key in it does not exist, or a reference is misspelt.
    """
    for written in _MISSPELT.findall(value):
        if not _WHOLE_REFERENCE.fullmatch(written):
            raise OptionError(
                f"Option '{option}': {written!r} is no reference; they are spelt '${{env:NAME}}' and '${{file:/path:key}}'."
            )

    def replacement(match: re.Match[str]) -> str:
        kind, reference = match.groups()
        return (
            _from_environment(option, reference) if kind == "env" else _from_file(option, reference)
        )

    return _REFERENCE.sub(replacement, value)


def _from_environment(option: str, name: str) -> str:
    if name not in os.environ:
        raise OptionError(
            f"Option '{option}' refers to the environment variable {name!r}, which is not set where "
            "it is used (on the driver, and on each executor)."
        )
    return os.environ[name]


def _from_file(option: str, reference: str) -> str:
    path, _, key = reference.rpartition(":")
    try:
        entries = java_properties(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise OptionError(
            f"Option '{option}' refers to the file {path!r}: {error.strerror}."
        ) from None
    except UnicodeDecodeError:
        raise OptionError(f"Option '{option}' refers to the file {path!r}: not UTF-8.") from None
    if key not in entries:
        raise OptionError(
            f"Option '{option}' refers to {key!r} in the file {path!r}, which has no such key."
        )
    return entries[key]


def java_properties(text: str) -> dict[str, str]:
    r"""The entries of a Java properties file, which is what KIP-297's file provider reads.

    >>> java_properties("# who\nuser = me\npass: a\\=b")
    {'user': 'me', 'pass': 'a=b'}
    """
    found = (_ENTRY.fullmatch(line) for line in _logical_lines(text) if line)
    return {_unescaped(match[1]): _unescaped(match[2]) for match in found if match}


def _logical_lines(text: str) -> Iterator[str]:
    """Lines without comments; one that ends with a backslash goes on in the next."""
    begun = ""
    for line in re.split(r"\r\n?|\n", text):
        content = line.lstrip(" \t\f")
        if not begun and content.startswith(("#", "!")):
            continue
        begun += content
        if (len(begun) - len(begun.rstrip("\\"))) % 2:
            begun = begun[:-1]
        else:
            yield begun
            begun = ""
    yield begun


def _unescaped(text: str) -> str:
    def character(match: re.Match[str]) -> str:
        return chr(int(match[1], 16)) if match[1] else _ESCAPES.get(match[2], match[2])

    return re.sub(r"\\(?:u([0-9a-fA-F]{4})|(.))", character, text)


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
