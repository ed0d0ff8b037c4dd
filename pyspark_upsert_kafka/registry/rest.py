"""Confluent's REST API of a schema registry: one request.

It is sent again for a while when the registry is away or busy. What the registry refuses for good is either the
fault of a schema, a SchemaError, or that of its address or of the credentials, a BrokerError.
"""

from __future__ import annotations

import json
import re
import ssl
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from http.client import HTTPException
from itertools import count
from typing import Any, TypeVar
from urllib.request import Request

from pyspark_upsert_kafka.core import key_stores
from pyspark_upsert_kafka.core.clock import Backoff
from pyspark_upsert_kafka.core.errors import (
    BrokerError,
    OptionError,
    RetriableBrokerError,
    SchemaError,
)
from pyspark_upsert_kafka.core.masking import OutsideText
from pyspark_upsert_kafka.http_request import Answer, AnswerTooLargeError, Deadline, answer_to
from pyspark_upsert_kafka.logins.login_tokens import LoginTokens, Token
from pyspark_upsert_kafka.registry.access import Access

_BACKOFF = Backoff(first_s=0.25, most_s=4.0)


@dataclass(frozen=True)
class Patience:
    """How long a registry is waited for.

    Args:
        silent_s: How long it may be silent, in seconds.
        all_s: The time for all attempts of a request, in seconds.
        backoff: The pauses between attempts.
    """

    silent_s: float = 10.0
    all_s: float = 30.0
    backoff: Backoff = _BACKOFF


PATIENCE = Patience()
_RETRIABLE = frozenset({408, 429, 500, 502, 503, 504})
_NOT_ALLOWED = frozenset({401, 403})
_JSON = "application/vnd.schemaregistry.v1+json"

_TRUST, _TRUST_PASSWORD = "ssl.truststore.location", "ssl.truststore.password"
_KEY, _KEY_PASSWORD = "ssl.keystore.location", "ssl.keystore.password"

T = TypeVar("T")


def request(  # noqa: PLR0913
    access: Access,
    path: str,
    refusals: Mapping[int, str],
    body: Mapping[str, Any] | None = None,
    *,
    refused: type[Exception] = SchemaError,
    no_path: type[Exception] | None = None,
    turn: int = 0,
    patience: Patience = PATIENCE,
) -> dict[str, Any]:
    """What a registry answers to a request about a schema.

    Args:
        access: The registry.
        path: What is requested, below the registry's address.
        refusals: What a refusal by the registry means, by its status.
        body: What is sent; None = nothing, which makes it a GET.
        refused: The error for one of the refusals.
        no_path: The error for a 404 that is no registry's word on a schema, since not every registry has the path; None = it is
            refused as by any other server.
        turn: Which of the addresses is asked first, of which each may be that of another node.
        patience: How long the registry is waited for.

    Raises:
        SchemaError: One of the refusals, if ``refused`` is not another error.
        BrokerError: The registry does not answer, or refuses for another reason.
        OptionError: Credentials or certificates cannot be used.
    """
    tls, sent = tls_context(access), _Sent(access)
    headers = {"Accept": f"{_JSON}, application/json", "Content-Type": _JSON, **access.headers()}
    data = None if body is None else json.dumps(body).encode()
    deadline = time.monotonic() + patience.all_s
    for attempt in count():
        url = access.urls[(turn + attempt) % len(access.urls)]
        silent_s = patience.silent_s
        until = Deadline(max(deadline, time.monotonic() + silent_s), silent_s)
        lost: RetriableBrokerError | None = None
        seen: object = None
        try:
            asked = Request(url + path, data, headers)  # noqa: S310 - http(s) only
            return _found(sent.answer(asked, tls, until))
        except RetriableBrokerError as error:
            lost = error  # who gives tokens is away, and is waited for as the registry is
        except (_RefusalError, OSError, HTTPException) as error:
            seen = getattr(error, "reason", error)
        # From here on, so that what it says is nowhere in the chain of what is raised as it was said.
        if seen is not None:
            said = sent.shown(str(seen) or type(seen).__name__).rstrip(".")
            if isinstance(seen, _RefusalError) and seen.by_a_registry and seen.status in refusals:
                raise refused(f"{refusals[seen.status]} ({url}: {said}).")
            if no_path is not None and isinstance(seen, _RefusalError) and seen.status == 404:
                raise no_path(f"{url}: {said}")
            _raise_if_fatal(access, url, seen, said, sent)
        pause_s = patience.backoff.pause_s(attempt)
        if time.monotonic() + pause_s >= deadline:
            break
        time.sleep(pause_s)
    raise lost or RetriableBrokerError(
        f"The schema registry at {', '.join(access.urls)} gives no answer; asked {attempt + 1} times "
        f"in {patience.all_s:.0f} s, at last {url}: {said}. Is it up, and "
        "can it be reached from here?"
    )


class _Sent:
    """Sends requests to a registry, by a token where its login has one; knows what of that must not be shown."""

    def __init__(self, access: Access) -> None:
        self._access = access
        self._tokens: LoginTokens | None = None
        self._secrets = access.secrets()
        if access.login is not None:
            self._tokens = access.login.tokens(access.option_prefix, _more_authorities(access))

    def answer(self, asked: Request, tls: ssl.SSLContext, until: Deadline) -> Answer:
        """What is answered. For a token that is refused although it should be good another is asked for, once.

        Raises:
            BrokerError: There is no token.
        """
        if self._tokens is None:
            return answer_to(asked, tls, until)
        try:
            token = self._tokens.fresh()
            answer = self._by(token, asked, tls, until)
            if answer.status == 401:
                answer = self._by(self._tokens.instead_of(token), asked, tls, until)
        except BrokerError as error:
            raise type(error)(
                f"There is no login to the schema registry at {', '.join(self._access.urls)}, with "
                f"{self._named()}. {error}"
            ) from None
        return answer

    def _by(self, token: Token, asked: Request, tls: ssl.SSLContext, until: Deadline) -> Answer:
        self._secrets[f"token.{len(self._secrets)}"] = token.text
        asked.add_header("Authorization", f"Bearer {token.text}")
        return answer_to(asked, tls, until)

    def shown(self, text: str) -> str:
        """What a registry says, as it may be shown."""
        return OutsideText(self._secrets).shown(text)

    def advice(self, status: int) -> str:
        """What to do when the registry does not let us in."""
        prefix = self._access.option_prefix
        if self._tokens is None:
            given = "these credentials are refused." if self._access.headers() else "none is given."
            return f"See '{prefix}basic-auth.user-info' and '{prefix}bearer-auth.token': {given}"
        twice = ", and so is the one that was asked for then" if status == 401 else ""
        return (
            f"With {self._named()} {self._tokens.described()}. It is refused{twice}: is it for this registry, by its scope, and "
            f"by '{prefix}bearer-auth.logical.cluster' where that is needed?"
        )

    def _named(self) -> str:
        login, prefix = self._access.login, self._access.option_prefix
        return "" if login is None else login.named(prefix)


@dataclass
class _RefusalError(Exception):
    """An answer that is of no use, of a registry or of another server at its address."""

    status: int
    message: str
    by_a_registry: bool = False

    def __str__(self) -> str:
        return f"HTTP {self.status}, {self.message}"


def _raise_if_fatal(access: Access, url: str, seen: object, said: str, sent: _Sent) -> None:
    """Raises what another attempt cannot change."""
    if isinstance(seen, ssl.SSLCertVerificationError):
        raise BrokerError(
            f"The schema registry at {url} is not trusted: {said}. Name its certificate, or "
            f"that of its authority, in '{access.option_prefix}ssl.truststore.location'."
        ) from None
    is_final = isinstance(seen, _RefusalError) and seen.status not in _RETRIABLE
    if is_final or isinstance(seen, AnswerTooLargeError):
        raise _refused(access, url, seen, said, sent) from None


def _found(answer: Answer) -> dict[str, Any]:
    if not 200 <= answer.status < 300:
        raise _refusal(answer)
    found = _object(answer.content)
    if found.keys().isdisjoint({"id", "schema"}):
        raise _RefusalError(answer.status, "without a schema or its id")
    return found


def _refusal(answer: Answer) -> _RefusalError:
    """An answer with an error. A registry's own 404 has a code from 40401 on; one without comes from another server."""
    said = _object(answer.content)
    code = str(said.get("error_code"))
    if "message" not in said or (answer.status == 404 and not re.fullmatch("404[0-9]{2}", code)):
        return _RefusalError(answer.status, answer.reason)
    return _RefusalError(answer.status, str(said["message"]), by_a_registry=True)


def _object(content: bytes) -> dict[str, Any]:
    try:
        parsed = json.loads(content)
    except (ValueError, RecursionError):
        return {}
    return parsed if isinstance(parsed, dict) else {}


def _refused(access: Access, url: str, seen: object, said: str, sent: _Sent) -> BrokerError:
    if isinstance(seen, _RefusalError) and seen.status in _NOT_ALLOWED:
        advice = sent.advice(seen.status)
    else:
        advice = f"Is '{access.option_prefix}url' the address of a schema registry, with its path?"
    return BrokerError(f"The schema registry at {url} refuses: {said}. {advice}")


@lru_cache(maxsize=100)
def tls_context(access: Access) -> ssl.SSLContext:
    """The certificates that are trusted, and the client's own certificate and key.

    Raises:
        OptionError: A file is not there or is no store that is understood, or the password is wrong.
    """
    context = _trusting(access) if access.truststore is not None else ssl.create_default_context()
    if access.keystore is not None:
        _identify(context, access, access.keystore)
    return context


def _trusting(access: Access) -> ssl.SSLContext:
    option = access.option_prefix + _TRUST
    file = access.resolved(_TRUST, access.truststore or "")
    if not key_stores.is_pem(option, file):
        password = _password(access, _TRUST_PASSWORD, access.truststore_password)
        pem = key_stores.authorities(option, file, password)
        return ssl.create_default_context(cadata=pem)
    if access.truststore_password is not None:
        raise OptionError(
            f"Leave out '{access.option_prefix}{_TRUST_PASSWORD}': '{option}' names a PEM file, and its "
            "certificates have no password."
        )
    return _used(option, file, lambda: ssl.create_default_context(cafile=file))


def _more_authorities(access: Access) -> str | None:
    """The certificates of the registry's trust store, as PEM: who gives tokens may be of the same authority."""
    if access.truststore is None:
        return None
    option, file = access.option_prefix + _TRUST, access.resolved(_TRUST, access.truststore)
    if key_stores.is_pem(option, file):
        return key_stores.content_of(option, file).decode("ascii", "ignore")
    return key_stores.authorities(
        option, file, _password(access, _TRUST_PASSWORD, access.truststore_password)
    )


def _identify(context: ssl.SSLContext, access: Access, keystore: str) -> None:
    option, file = access.option_prefix + _KEY, access.resolved(_KEY, keystore)
    password = _password(access, _KEY_PASSWORD, access.keystore_password)
    if key_stores.is_pem(option, file):
        # Without a password OpenSSL would ask for one on the terminal.
        _used(option, file, lambda: context.load_cert_chain(file, password=password or ""))
    else:
        with key_stores.as_file(key_stores.key_and_chain(option, file, password)) as pem:
            context.load_cert_chain(pem)


def _password(access: Access, name: str, value: str | None) -> str | None:
    return None if value is None else access.resolved(name, value)


def _used(option: str, file: str, use: Callable[[], T]) -> T:
    try:
        return use()
    except ssl.SSLError as error:
        raise OptionError(
            f"Option '{option}' names the file {file!r}, which cannot be used "
            f"({error.reason or error}). Is it whole, and is its password the right one?"
        ) from None
