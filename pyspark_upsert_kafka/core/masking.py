"""Values that must not be shown, and the references that keep them out of programs and plans."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from pyspark_upsert_kafka.core.errors import OptionError
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
