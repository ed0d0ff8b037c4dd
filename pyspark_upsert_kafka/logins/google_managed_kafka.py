"""Tokens for Google's Managed Service for Apache Kafka, and for its schema registry (needs google-auth).

Credentials are those that google-auth finds where this process runs. A broker takes their access token as the third part of what looks
like a JSON Web Token, as Google's ``GcpLoginCallbackHandler`` for Java makes it; the registry takes it as it is.
"""

from __future__ import annotations

import base64
import json
import ssl
import time
from collections.abc import Callable, Mapping
from datetime import timezone
from http.client import HTTPException
from typing import Any
from urllib.request import Request as HttpRequest

import google.auth
from google.auth import impersonated_credentials
from google.auth.exceptions import GoogleAuthError, TransportError
from google.auth.transport import Request, Response

from pyspark_upsert_kafka.core.masking import OutsideText
from pyspark_upsert_kafka.http_request import (
    Answer,
    AnswerTooLargeError,
    Deadline,
    answer_to,
)
from pyspark_upsert_kafka.logins.login_tokens import ANSWERS_S
from pyspark_upsert_kafka.logins.token_providers import Ask, config_entries

_NAMES = ("impersonate",)
"""Of the entries in ``sasl.oauthbearer.config``: the service account that is to be impersonated."""

_SCOPE = "https://www.googleapis.com/auth/cloud-platform"

_SECRETS = ("client_secret", "refresh_token", "token")
"""Of credentials: an answer may repeat them."""


class _GoogleError(Exception):
    """There is no token.

    Args:
        text: Why.
        retriable: Whether asking again may help.
    """

    def __init__(self, text: str, *, retriable: bool = False) -> None:
        super().__init__(text)
        self.retriable = retriable


def provider(given: Mapping[str, str]) -> Ask:
    """Gives tokens that brokers take.

    Raises:
        OptionError: The configuration is malformed.
    """
    return _asking(given, _for_brokers)


def access_tokens(given: Mapping[str, str]) -> Ask:
    """Gives tokens that the schema registry takes.

    Raises:
        OptionError: The configuration is malformed.
    """
    return _asking(given, lambda credentials, _: str(credentials.token))


def _asking(given: Mapping[str, str], text_of: Callable[[Any, float], str]) -> Ask:
    impersonated = config_entries(given, _NAMES).get("impersonate")
    found: list[Any] = []

    def ask(_: str) -> tuple[str, float]:
        request = _RequestInTime()
        try:
            if not found:
                found.append(_credentials(impersonated, request))
            found[0].refresh(request)
        except GoogleAuthError as error:
            raise _told(error, found) from None
        except (LookupError, TypeError, ValueError):  # as google-auth does not expect it
            raise _GoogleError("what Google's servers answer is no token") from None
        if found[0].expiry is None:
            raise _GoogleError("nobody says when the token ends")
        expires_at = found[0].expiry.replace(tzinfo=timezone.utc).timestamp()
        return text_of(found[0], expires_at), expires_at

    return ask


def _credentials(impersonated: str | None, request: Request) -> Any:
    found, _ = google.auth.default(scopes=[_SCOPE], request=request)
    if impersonated is None:
        return found
    return impersonated_credentials.Credentials(found, impersonated, [_SCOPE])


def _told(error: GoogleAuthError, found: list[Any]) -> _GoogleError:
    """The error without the whole answer, which google-auth puts into some, and without what is secret of credentials."""
    secrets = {name: getattr(each, name, None) for each in found for name in _SECRETS}
    cause: object = error
    while isinstance(cause, Exception):  # some stand in others
        cause = cause.args[0] if cause.args else type(cause).__name__
    return _GoogleError(OutsideText(secrets).shown(str(cause)), retriable=error.retryable)


def _for_brokers(credentials: Any, expires_at: float) -> str:
    account = (
        getattr(credentials, "service_account_email", None) or getattr(credentials, "account", None)
    )  # fmt: skip
    if not account:
        raise _GoogleError(
            f"what google-auth finds, {type(credentials).__module__}, belongs to no service account: set the environment "
            "variable 'GOOGLE_APPLICATION_CREDENTIALS', or 'impersonate=<address of one>' in 'sasl.oauthbearer.config'"
        )
    claims = {
        "exp": int(expires_at), "iat": int(time.time()), "iss": "Google", "scope": "kafka", "sub": account,
    }  # fmt: skip
    header = {"typ": "JWT", "alg": "GOOG_OAUTH2_TOKEN"}
    parts = json.dumps(header), json.dumps(claims), str(credentials.token)
    return ".".join(base64.urlsafe_b64encode(part.encode()).decode().rstrip("=") for part in parts)


class _Answered(Response):  # type: ignore[misc]
    """An answer as google-auth wants it."""

    def __init__(self, answer: Answer) -> None:
        self._answer = answer

    status = property(lambda self: self._answer.status)
    headers = property(lambda self: self._answer.headers)
    data = property(lambda self: self._answer.content)


class _RequestInTime(Request):  # type: ignore[misc]
    """How google-auth asks a server: an answer is neither endless nor late, and a redirect is not followed."""

    def __init__(self) -> None:
        self._ends_at = time.monotonic() + ANSWERS_S

    def __call__(
        self,
        url: str,
        method: str = "GET",
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        timeout: float | None = None,
        **_: object,
    ) -> _Answered:
        """The answer, whatever its status is.

        Raises:
            TransportError: There is none.
        """
        asked = HttpRequest(url, body, dict(headers or {}), method=method)  # noqa: S310 - from the file of credentials, which is trusted
        timeout_s = timeout or ANSWERS_S
        deadline = Deadline(min(self._ends_at, time.monotonic() + timeout_s), timeout_s)
        try:
            return _Answered(answer_to(asked, ssl.create_default_context(), deadline))
        except (OSError, HTTPException) as error:
            reason = getattr(error, "reason", error)
            passes = not isinstance(reason, (ssl.SSLError, AnswerTooLargeError))
            text = f"{asked.host} cannot be asked: {str(reason) or type(reason).__name__}"
            raise TransportError(text, retryable=passes) from None
