"""Tokens that nobody's code gives: those of an OpenID Connect endpoint, for a client's id and secret, and unsecured ones.

librdkafka asks such an endpoint itself for its own logins. Whoever else needs a token asks here: kafka-python, and a schema registry.
"""

from __future__ import annotations

import base64
import json
import re
import ssl
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.client import HTTPException
from typing import Any
from urllib.parse import urlencode, urlsplit
from urllib.request import Request

from pyspark_upsert_kafka.core.errors import OptionError
from pyspark_upsert_kafka.core.masking import OutsideText
from pyspark_upsert_kafka.core.options.properties import PREFIX
from pyspark_upsert_kafka.http_request import Answer, AnswerTooLargeError, Deadline, answer_to
from pyspark_upsert_kafka.logins.login_tokens import ANSWERS_S, LoginTokens, shared_tokens
from pyspark_upsert_kafka.logins.token_providers import PROVIDER

_OIDC = "sasl.oauthbearer."
NAMES = frozenset({
    "enable.sasl.oauthbearer.unsecure.jwt", "https.ca.location", f"{_OIDC}client.id",
    f"{_OIDC}client.secret", f"{_OIDC}config", f"{_OIDC}extensions", f"{_OIDC}method", f"{_OIDC}scope",
    f"{_OIDC}token.endpoint.url", PROVIDER,
})  # fmt: skip
"""The properties that say where a client's tokens come from, and are followed here."""

_ERROR_CODE = re.compile("[a-z_]{1,50}")
"""An error's code (RFC 6749, section 5.2): words for which the provider may put in nothing else."""


class TokenEndpointError(Exception):
    """An endpoint gives no token.

    Args:
        text: Why.
        retriable: Whether asking again may help.
    """

    def __init__(self, text: str, *, retriable: bool) -> None:
        super().__init__(text)
        self.retriable = retriable


@dataclass(frozen=True)
class TokenEndpoint:
    """An endpoint that gives tokens for a client's credentials (RFC 6749, section 4.4), and these.

    Args:
        url: Its address, of ``http`` or ``https``.
        client_id: Who asks.
        client_secret: The client's secret.
        scope: What the token is for.
        authorities: File of certificates, PEM: the only ones that are trusted.
        more_authorities: Certificates, PEM, that are trusted beside those of the system.
    """

    url: str = field(repr=False)
    client_id: str
    client_secret: str = field(repr=False)
    scope: str | None = None
    authorities: str | None = None
    more_authorities: str | None = None

    def tokens(self, extensions: tuple[tuple[str, str], ...] = ()) -> LoginTokens:
        """Its tokens, which all of this process share that ask it with the same credentials.

        Args:
            extensions: SASL extensions that go with each token.
        """

        def ask() -> object:
            return (*self.token(), "", dict(extensions))

        return shared_tokens((self, extensions), lambda: LoginTokens("OpenID Connect", ask))

    def token(self, timeout_s: float = ANSWERS_S) -> tuple[str, float]:
        """A token, and when it ends in seconds since 1970.

        Args:
            timeout_s: How long the answer is waited for as a whole, in seconds.

        Raises:
            TokenEndpointError: It does not answer, or refuses.
        """
        began, deadline = time.time(), Deadline(time.monotonic() + timeout_s, timeout_s)
        shown = OutsideText({"client.secret": self.client_secret, "url": self.url}).shown
        try:
            answer = answer_to(self._request(), self._trusted(), deadline)
        except (OSError, HTTPException) as error:
            reason = getattr(error, "reason", error)
            if isinstance(reason, TimeoutError):
                raise TokenEndpointError(
                    f"The token endpoint {self._shown} did not answer within {timeout_s:g} seconds",
                    retriable=True,
                ) from None
            raise TokenEndpointError(
                f"The token endpoint {self._shown} cannot be asked: {shown(str(reason) or type(reason).__name__)}",
                retriable=not isinstance(reason, (ssl.SSLError, AnswerTooLargeError)),
            ) from None
        if 200 <= answer.status < 300:
            return self._token_in(answer.content, began)
        said = f"answered {answer.status} {shown(answer.reason + _code_in(answer))}"
        if 300 <= answer.status < 400:
            said += (
                ", a redirect, which is not followed: another server would get the client's secret"
            )
        raise TokenEndpointError(
            f"The token endpoint {self._shown} {said}",
            retriable=answer.status >= 500 or answer.status == 429,
        )

    def _request(self) -> Request:
        client = f"{self.client_id}:{self.client_secret}"
        form = {"grant_type": "client_credentials"}
        if self.scope is not None:
            form["scope"] = self.scope
        headers = {
            "Accept": "application/json",
            "Authorization": f"Basic {base64.b64encode(client.encode()).decode()}",
        }
        return Request(self.url, urlencode(form).encode(), headers)  # noqa: S310 - whoever makes it has checked the scheme

    def _trusted(self) -> ssl.SSLContext:
        context = ssl.create_default_context(cafile=self.authorities)
        if self.more_authorities is not None:
            context.load_verify_locations(cadata=self.more_authorities)
        return context

    @property
    def _shown(self) -> str:
        """Its address without a user, a password or a query."""
        parts = urlsplit(self.url)
        return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"

    def _token_in(self, answer: bytes, began: float) -> tuple[str, float]:
        try:
            found = json.loads(answer)
            token = _text(found["access_token"])
            # How long it lives does not depend on whose clock is right, as the time in it does.
            if (life_s := _positive(found.get("expires_in"))) is not None:
                return token, began + life_s
            return token, _expiry(token) or began + float(found["expires_in"])
        except (ValueError, LookupError, TypeError, OverflowError, RecursionError):
            raise TokenEndpointError(
                f"The token endpoint {self._shown} answered without an access_token that says when it expires",
                retriable=False,
            ) from None


def only_librdkafka(given: Mapping[str, str]) -> str | None:
    """The property by which librdkafka alone gets a client's tokens; None = there is none, and they can be had here too."""
    begins = ("sasl.oauthbearer.assertion.", "sasl.oauthbearer.metadata.")
    return next((name for name in sorted(given) if name.startswith(begins)), None)


def own_tokens(given: Mapping[str, str]) -> LoginTokens:
    """The tokens of a client's properties that name no provider: of the endpoint that they name, or unsecured.

    Args:
        given: The properties, references replaced.

    Raises:
        OptionError: Something is missing or malformed.
    """
    extensions = _pairs(f"{_OIDC}extensions", given.get(f"{_OIDC}extensions", ""), ",")
    if given.get("enable.sasl.oauthbearer.unsecure.jwt", "false").lower() != "true":
        return _endpoint(given).tokens(tuple(extensions.items()))
    claims = _pairs(f"{_OIDC}config", given.get(f"{_OIDC}config", ""), " ")

    def ask() -> object:
        return (*_unsecured(claims, time.time()), "", extensions)

    settings = tuple((name, given[name]) for name in sorted(NAMES & given.keys()))
    return shared_tokens(settings, lambda: LoginTokens("unsecured", ask))


def _endpoint(given: Mapping[str, str]) -> TokenEndpoint:
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
    client, secret = given[f"{_OIDC}client.id"], given[f"{_OIDC}client.secret"]
    return TokenEndpoint(
        url, client, secret, given.get(f"{_OIDC}scope"), given.get("https.ca.location")
    )


def _pairs(name: str, value: str, separator: str) -> dict[str, str]:
    parts = [part.partition("=") for part in value.split(separator) if part.strip()]
    if not all(key.strip() and equals for key, equals, _ in parts):
        raise OptionError(
            f"Invalid value for option '{PREFIX}{name}': expected '<name>=<value>', separated by {separator!r}."
        )
    return {key.strip(): text for key, _, text in parts}


def _unsecured(claims: Mapping[str, str], now: float) -> tuple[str, float]:
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


def _text(value: object) -> str:
    """The value, if it is a text. Raises TypeError."""
    if not isinstance(value, str):
        raise TypeError
    return value


def _positive(value: object) -> float | None:
    """A number above 0, also as a text; None = it is something else."""
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    try:
        found = float(value)
    except (ValueError, OverflowError):
        return None
    return found if found > 0 else None


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
