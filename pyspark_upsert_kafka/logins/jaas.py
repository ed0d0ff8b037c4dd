r"""Java's ``sasl.jaas.config``: its syntax, and what it says in librdkafka's properties.

The syntax is that of Kafka's class ``JaasConfig``, which reads it with ``java.io.StreamTokenizer``: values
stand in double or single quotes, within which a backslash begins an escape.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from pyspark_upsert_kafka.core.errors import OptionError
from pyspark_upsert_kafka.core.options.properties import PREFIX
from pyspark_upsert_kafka.logins.token_providers import CONFIG, PROVIDER

_JAAS = "sasl.jaas.config"
_HANDLER = "sasl.login.callback.handler.class"
_HANDLERS = ("OAuthBearerLoginCallbackHandler", "OAuthBearerUnsecuredLoginCallbackHandler")
_CLIENT_HANDLER = "sasl.client.callback.handler.class"
_CLOUDS = {
    "AWS_MSK_IAM": "aws-msk",
    "IAMOAuthBearerLoginCallbackHandler": "aws-msk",
    "GcpLoginCallbackHandler": "gcp",
}
"""Amazon's mechanism, and the handlers of clouds for logins by token: the provider that gives the same tokens."""
_TUNING = frozenset({"awsDebugCreds", "awsMaxRetries", "awsMaxBackOffTimeMs"})
"""Of Amazon's login module: who looks for credentials here knows nothing of it."""
_FLAGS = frozenset({"required", "requisite", "sufficient", "optional"})

_TOKEN = re.compile(
    r"""\s*(?:(?://[^\n]*|/\*.*?\*/)\s*)*"""
    r"""(?:"(?P<double>(?:[^"\\\r\n]|\\[^\r\n])*)"|'(?P<single>(?:[^'\\\r\n]|\\[^\r\n])*)'"""
    r"""|(?P<mark>[=;])|(?P<word>[^\s"'=;]+)|(?P<end>\Z))""",
    re.DOTALL,
)
_ESCAPE = re.compile(r"\\([0-3][0-7]{0,2}|[4-7][0-7]?|.)", re.DOTALL)
_ESCAPED = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_TO_ESCAPE = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n", "\r": r"\r"})

_EXTENSION, _UNSECURED = "extension_", "unsecuredLogin"


@dataclass(frozen=True)
class Login:
    """A login module and what it is given.

    Args:
        module: The class without its package.
        given: Its settings, which may be secret.
    """

    module: str
    given: Mapping[str, str] = field(default_factory=dict, repr=False)


def without_jaas(given: Mapping[str, str]) -> dict[str, str]:
    """Properties in which ``sasl.jaas.config`` is replaced by librdkafka's properties for the same.

    A property that is given as well wins. Java's own handlers of OAUTHBEARER need not be named here.

    Raises:
        OptionError: It is not understood.

    >>> without_jaas({"sasl.jaas.config": "o.a.k.PlainLoginModule required username='ana' password='x y';"})
    {'sasl.username': 'ana', 'sasl.password': 'x y'}
    """
    properties = {name: value for name, value in given.items() if name != _JAAS}
    handler = properties.get(_HANDLER, "").rpartition(".")[2]
    provider = _CLOUDS.get(properties.get("sasl.mechanism", "")) or _CLOUDS.get(handler)
    if provider is not None:
        return _by_provider(provider, given)
    if handler in _HANDLERS:
        del properties[_HANDLER]
    if _JAAS not in given:
        return properties
    found = login(given[_JAAS])
    translate = _TRANSLATIONS.get(found.module) if found else None
    if found is None or translate is None:
        raise OptionError(
            f"Option '{PREFIX}{_JAAS}' is not understood: expected '<module> required <name>=\"<value>\" ...;', "
            f"where the module is one of {', '.join(_TRANSLATIONS)}; a backslash stands before a quote "
            f"or a backslash. Or set '{PREFIX}sasl.username' and '{PREFIX}sasl.password'."
        )
    translated = {**translate(found.given), **properties}
    if translate is _by_password:
        _check_whole(found, translated)
    return translated


def _by_provider(provider: str, given: Mapping[str, str]) -> dict[str, str]:
    """For a cloud's own login: the provider of its tokens is told what the login module is given."""
    found = login(given[_JAAS]) if _JAAS in given else Login("")
    entries = {} if found is None else {n: v for n, v in found.given.items() if n not in _TUNING}
    if found is None or any(re.search(r"\s", each) for pair in entries.items() for each in pair):
        raise OptionError(
            f"Option '{PREFIX}{_JAAS}' is not understood: expected '<module> required <name>=\"<value>\" ...;', without spaces "
            "in names and values."
        )
    dropped = (_JAAS, _HANDLER, _CLIENT_HANDLER)
    return {
        PROVIDER: provider,
        CONFIG: " ".join(f"{name}={value}" for name, value in entries.items()),
        **{name: value for name, value in given.items() if name not in dropped},
        "sasl.mechanism": "OAUTHBEARER",
    }


def _check_whole(found: Login, translated: Mapping[str, str]) -> None:
    missing = [name for name in ("username", "password") if f"sasl.{name}" not in translated]
    if missing and found.given:
        raise OptionError(
            f"Option '{PREFIX}{_JAAS}' gives no {' and no '.join(map(repr, missing))}; it gives "
            f"{', '.join(map(repr, found.given))}."
        )


def login(value: str) -> Login | None:
    """The login that a value of ``sasl.jaas.config`` describes; None = it is not understood."""
    tokens = _tokens(value)
    if tokens and tokens[-1] == _END:
        tokens.pop()
    if tokens is None or len(tokens) < 2 or tokens[1].text.lower() not in _FLAGS:
        return None
    names, marks, values = tokens[2::3], tokens[3::3], tokens[4::3]
    are_pairs = len(names) == len(marks) == len(values) and all(mark == _IS for mark in marks)
    if not are_pairs or any(token.is_mark for token in names + values):
        return None
    given = {name.text: value.text for name, value in zip(names, values, strict=True)}
    return Login(tokens[0].text.rpartition(".")[2], given)


def quoted(text: str) -> str:
    r"""A text as a name or value in ``sasl.jaas.config``.

    >>> print(quoted('back\\slash "quoted"'))
    "back\\slash \"quoted\""
    """
    return f'"{text.translate(_TO_ESCAPE)}"'


class _Token(NamedTuple):
    text: str
    is_mark: bool = False


_IS, _END = _Token("=", is_mark=True), _Token(";", is_mark=True)


def _tokens(value: str) -> list[_Token] | None:
    """Words, quoted texts and marks; None = something else stands there."""
    tokens: list[_Token] = []
    position = 0
    while True:
        found = _TOKEN.match(value, position)
        if found is None:
            return None
        kind, position = found.lastgroup, found.end()
        if kind == "end":
            return tokens
        text = found[kind or "word"]
        is_quoted = kind in ("double", "single")
        tokens.append(_Token(_unescaped(text) if is_quoted else text, kind == "mark"))


def _unescaped(text: str) -> str:
    def character(match: re.Match[str]) -> str:
        code = match[1]
        return chr(int(code, 8)) if code[0] in "01234567" else _ESCAPED.get(code, code)

    return _ESCAPE.sub(character, text)


def _by_password(given: Mapping[str, str]) -> dict[str, str]:
    return _renamed(given, {"username": "sasl.username", "password": "sasl.password"})


def _by_token(given: Mapping[str, str]) -> dict[str, str]:
    """For a token of an OpenID Connect provider (KIP-768), or one without a signature."""
    if any(name.startswith(_UNSECURED) for name in given):
        return _unsecured(given)
    names = {
        "clientId": "sasl.oauthbearer.client.id",
        "clientSecret": "sasl.oauthbearer.client.secret",
        "scope": "sasl.oauthbearer.scope",
    }
    extensions = [
        f"{name.removeprefix(_EXTENSION)}={value}"
        for name, value in given.items()
        if name.startswith(_EXTENSION)
    ]
    more = {"sasl.oauthbearer.extensions": ",".join(extensions)} if extensions else {}
    return {**_renamed(given, names), **more}


def _unsecured(given: Mapping[str, str]) -> dict[str, str]:
    """A token that the client makes itself and nobody signs: for trials only."""
    names = {
        "unsecuredLoginStringClaim_sub": "principal",
        "unsecuredLoginLifetimeSeconds": "lifeSeconds",
    }
    config = [f"{names[name]}={value}" for name, value in given.items() if name in names]
    # librdkafka separates them by spaces and knows no quotes.
    if len(config) < len(given) or any(re.search(r"\s", entry) for entry in config):
        raise OptionError(
            f"Option '{PREFIX}{_JAAS}': of an unsecured token only {' and '.join(names)} are understood, without "
            "spaces in them."
        )
    return {
        "enable.sasl.oauthbearer.unsecure.jwt": "true",
        "sasl.oauthbearer.config": " ".join(config),
    }


def _by_ticket(given: Mapping[str, str]) -> dict[str, str]:
    return _renamed(
        given,
        {
            "keyTab": "sasl.kerberos.keytab",
            "principal": "sasl.kerberos.principal",
            "serviceName": "sasl.kerberos.service.name",
        },
    )


def _renamed(given: Mapping[str, str], names: Mapping[str, str]) -> dict[str, str]:
    return {names[name]: value for name, value in given.items() if name in names}


_TRANSLATIONS: dict[str, Callable[[Mapping[str, str]], dict[str, str]]] = {
    "Krb5LoginModule": _by_ticket,
    "OAuthBearerLoginModule": _by_token,
    "PlainLoginModule": _by_password,
    "ScramLoginModule": _by_password,
}
