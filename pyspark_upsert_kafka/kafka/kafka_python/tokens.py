"""Tokens for OAUTHBEARER with kafka-python, which has the mechanism but leaves the tokens to us."""

from __future__ import annotations

import base64
import json
import re
import ssl
import time
from collections.abc import Callable, Mapping
from http.client import HTTPException
from typing import Any
from urllib.parse import urlencode, urlsplit
from urllib.request import Request

from kafka.errors import KafkaError

from pyspark_upsert_kafka.core.errors import BrokerError, OptionError, RetriableBrokerError
from pyspark_upsert_kafka.core.options.properties import PREFIX
from pyspark_upsert_kafka.core.outside_text import OutsideText
from pyspark_upsert_kafka.http_request import Answer, AnswerTooLargeError, Deadline, answer_to
from pyspark_upsert_kafka.kafka.connections.failures import ClientErrors
from pyspark_upsert_kafka.kafka.connections.login_tokens import (
    AsksItself,
    LoginTokens,
    Token,
    shared_tokens,
)
from pyspark_upsert_kafka.kafka.connections.token_providers import PROVIDER, tokens_of
from pyspark_upsert_kafka.kafka.kafka_python.installed import IS_KAFKA_PYTHON_3

if IS_KAFKA_PYTHON_3:
    from kafka.net.sasl.oauth import AbstractTokenProvider
else:
    from kafka.oauth import AbstractTokenProvider

_OIDC = "sasl.oauthbearer."
NAMES = frozenset({
    "enable.sasl.oauthbearer.unsecure.jwt", "https.ca.location", f"{_OIDC}client.id",
    f"{_OIDC}client.secret", f"{_OIDC}config", f"{_OIDC}extensions", f"{_OIDC}method", f"{_OIDC}scope",
    f"{_OIDC}token.endpoint.url", PROVIDER,
})  # fmt: skip
"""The properties that `token_provider` follows."""

_TIMEOUT_S = 10.0
"""For a whole answer of the provider."""
_ERROR_CODE = re.compile("[a-z_]{1,50}")
"""An error's code (RFC 6749, section 5.2): words for which the provider may put in nothing else."""


class TokenError(KafkaError):  # type: ignore[misc]
    """A token cannot be had.

    Args:
        text: Why.
        retriable: Whether asking again may help.
    """

    def __init__(self, text: str, *, retriable: bool) -> None:
        super().__init__(text)
        self.retriable = retriable


class TokenProvider(AbstractTokenProvider):  # type: ignore[misc]
    """Gives kafka-python a token that is good, for each new connection.

    Args:
        tokens: The tokens.
        errors: Where it is reported that there is none.
    """

    def __init__(self, tokens: LoginTokens, errors: ClientErrors) -> None:
        self._tokens, self._errors = tokens, errors
        self._given: Token | None = None

    def token(self) -> str:
        """A token.

        Raises:
            TokenError: There is none.
        """
        try:
            if self._given is None:
                self._tokens.serve(AsksItself(self))
            self._given = self._tokens.token()
        except BrokerError as error:
            passes = isinstance(error, RetriableBrokerError)
            # What the client asks itself may come back; of a provider that is named, a query that is started again.
            is_lost = self._errors.tokens is not None or not passes
            self._errors.add(str(error), security=is_lost)
            raise TokenError(str(error), retriable=passes) from None
        return self._given.text

    def extensions(self) -> dict[str, str]:
        """The SASL extensions of the token that was given last."""
        return {} if self._given is None else dict(self._given.extensions)


def token_provider(given: Mapping[str, str], errors: ClientErrors) -> TokenProvider:
    """Where tokens come from: a provider that is named, one of OpenID Connect, or the client itself.

    Args:
        given: The properties, references replaced.
        errors: Where it is reported that there is no token.

    Raises:
        OptionError: Something is missing or malformed.
    """
    errors.tokens = tokens_of(given)
    return TokenProvider(errors.tokens or _own_tokens(given), errors)


def _own_tokens(given: Mapping[str, str]) -> LoginTokens:
    extensions = _pairs(f"{_OIDC}extensions", given.get(f"{_OIDC}extensions", ""), ",")
    ask: Callable[[], object]
    if given.get("enable.sasl.oauthbearer.unsecure.jwt", "false").lower() == "true":
        claims = _pairs(f"{_OIDC}config", given.get(f"{_OIDC}config", ""), " ")
        provider, ask = "unsecured", lambda: (*unsecured(claims, time.time()), "", extensions)
    else:
        _check_oidc(given)
        provider, ask = "OpenID Connect", lambda: (*requested(given), "", extensions)
    settings = tuple((name, given[name]) for name in sorted(NAMES & given.keys()))
    return shared_tokens(settings, lambda: LoginTokens(provider, ask))


def _check_oidc(given: Mapping[str, str]) -> None:
    missing = [
        name for name in ("token.endpoint.url", "client.id", "client.secret") if f"{_OIDC}{name}" not in given
    ]  # fmt: skip
    if missing:
        raise OptionError(
            f"Option '{PREFIX}sasl.mechanism' = 'OAUTHBEARER' needs "
            f"{', '.join(f'{PREFIX}{_OIDC}{name}'.join(chr(39) * 2) for name in missing)}."
        )
    url = given[f"{_OIDC}token.endpoint.url"]
    if urlsplit(url).scheme not in ("http", "https"):
        raise OptionError(
            f"Invalid value for option '{PREFIX}{_OIDC}token.endpoint.url': expected an address that begins with "
            "'https://' or 'http://'."
        )


def _pairs(name: str, value: str, separator: str) -> dict[str, str]:
    parts = [part.partition("=") for part in value.split(separator) if part.strip()]
    if not all(key.strip() and equals for key, equals, _ in parts):
        raise OptionError(
            f"Invalid value for option '{PREFIX}{name}': expected '<name>=<value>', separated by {separator!r}."
        )
    return {key.strip(): text for key, _, text in parts}


def unsecured(claims: Mapping[str, str], now: float) -> tuple[str, float]:
    """A token without a signature, as librdkafka makes it (RFC 7515, appendix A.5): for trials only."""
    life_s = int(claims.get("lifeSeconds", "3600"))
    body: dict[str, Any] = {
        claims.get("principalClaimName", "sub"): claims.get("principal", ""),
        "iat": now,
        "exp": now + life_s,
    }
    if "scope" in claims:
        body[claims.get("scopeClaimName", "scope")] = claims["scope"].split(",")
    return f"{_encoded({'alg': 'none'})}.{_encoded(body)}.", now + life_s


def _encoded(part: Mapping[str, Any]) -> str:
    return base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=").decode()


def requested(given: Mapping[str, str]) -> tuple[str, float]:
    """A token of the OpenID Connect provider, by the client's credentials (RFC 6749, section 4.4).

    Raises:
        TokenError: It does not answer, or refuses.
    """
    url = given[f"{_OIDC}token.endpoint.url"]
    client = f"{given[f'{_OIDC}client.id']}:{given[f'{_OIDC}client.secret']}"
    form = {"grant_type": "client_credentials"}
    if f"{_OIDC}scope" in given:
        form["scope"] = given[f"{_OIDC}scope"]
    headers = {
        "Accept": "application/json",
        "Authorization": f"Basic {base64.b64encode(client.encode()).decode()}",
    }
    request = Request(url, urlencode(form).encode(), headers)  # noqa: S310 - the scheme is checked
    context = ssl.create_default_context(cafile=given.get("https.ca.location"))
    began, deadline = time.time(), Deadline(time.monotonic() + _TIMEOUT_S, _TIMEOUT_S)
    shown = OutsideText(given).shown
    try:
        answer = answer_to(request, context, deadline)
    except (OSError, HTTPException) as error:
        reason = getattr(error, "reason", error)
        raise TokenError(
            f"The token endpoint {_shown(url)} cannot be asked: {shown(str(reason))}",
            retriable=not isinstance(reason, (ssl.SSLError, AnswerTooLargeError)),
        ) from None
    if 200 <= answer.status < 300:
        return _token_in(url, answer.content, began)
    raise TokenError(
        f"The token endpoint {_shown(url)} answered {answer.status} {shown(answer.reason + _code_in(answer))}",
        retriable=answer.status >= 500 or answer.status == 429,
    )


def _shown(url: str) -> str:
    """An address without a user, a password or a query."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


def _token_in(url: str, answer: bytes, began: float) -> tuple[str, float]:
    try:
        found = json.loads(answer)
        token = found["access_token"]
        return str(token), _expiry(str(token)) or began + float(found["expires_in"])
    except (ValueError, LookupError, TypeError, OverflowError, RecursionError):
        raise TokenError(
            f"The token endpoint {_shown(url)} answered without an access_token that says when it expires",
            retriable=False,
        ) from None


def _expiry(token: str) -> float | None:
    """When a JWT expires; None = it is something else."""
    _, _, rest = token.partition(".")
    body = rest.partition(".")[0]
    try:
        return float(json.loads(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)))["exp"])
    except (ValueError, LookupError, TypeError, OverflowError, RecursionError):
        return None


def _code_in(answer: Answer) -> str:
    """The error's code in the answer, and no more of it."""
    try:
        code = json.loads(answer.content)["error"]
    except (ValueError, LookupError, TypeError, OverflowError, RecursionError):
        return ""
    return f" ({code})" if isinstance(code, str) and _ERROR_CODE.fullmatch(code) else ""
