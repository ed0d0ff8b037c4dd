"""What botocore asks, with a bound on each answer (needs botocore): of services, as STS and Glue, and of endpoints for a machine's keys.

botocore waits for the next byte for a limited time only, but for as many of them as come, and keeps them all. So it gets another way to
send, by `answer_to`.
"""

from __future__ import annotations

import re
import ssl
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from http.client import HTTPException
from typing import Any
from urllib.error import URLError
from urllib.request import Request

from botocore.awsrequest import AWSResponse
from botocore.credentials import ContainerProvider, InstanceMetadataProvider
from botocore.exceptions import (
    BotoCoreError,
    ConnectionClosedError,
    ConnectTimeoutError,
    EndpointConnectionError,
    HTTPClientError,
    ReadTimeoutError,
    SSLError,
)
from botocore.httpsession import get_cert_path
from botocore.session import Session
from botocore.utils import ContainerMetadataFetcher

from pyspark_upsert_kafka.http_request import (
    MOST_BYTES,
    AnswerTooLargeError,
    Deadline,
    answer_to,
    trusting,
)

_UNTIL: ContextVar[Deadline | None] = ContextVar("until", default=None)
_ALL_S = 30.0
"""For an answer that nobody has set a deadline for, in seconds."""

_USUAL_PORT = re.compile(r"^(?:(http://[^/?#]*):80|(https://[^/?#]*):443)(?=[/?#]|$)")


class NoAnswerError(HTTPClientError):  # type: ignore[misc]
    """What is answered cannot be meant, and will be answered again."""

    fmt = 'The answer of "{endpoint_url}" {what}'


class LateAnswerError(HTTPClientError):  # type: ignore[misc]
    """The deadline is over. botocore does not ask again at once, as it does after a timeout."""

    fmt = 'The answer of "{endpoint_url}" did not come in time'


_TOO_LARGE = f"has more than {MOST_BYTES // 1024 // 1024} MB"
_REDIRECT = "is a redirect, which is not followed: another server would get what is secret"


@contextmanager
def answered_until(deadline: Deadline) -> Iterator[None]:
    """What a session of `bounded_session` asks in here is answered by then, or fails: keys that it needs for a request too."""
    token = _UNTIL.set(deadline)
    try:
        yield
    finally:
        _UNTIL.reset(token)


def bounded_session(profile: str | None = None) -> Session:
    """A session of botocore, whose answers are bounded.

    Args:
        profile: The profile of AWS; None = what the environment says.

    Raises:
        ProfileNotFound: There is no such profile.
    """
    session = Session(profile=profile)
    authorities = session.get_config_variable("ca_bundle") or get_cert_path(True)
    services = _Sending(authorities)
    session.register("before-send", lambda request, **_: services.send(request))
    for provider in session.get_component("credential_provider").providers:
        if isinstance(provider, ContainerProvider):
            silence_s = ContainerMetadataFetcher.TIMEOUT_SECONDS
            sending = _Sending(get_cert_path(True), silence_s, by_proxy=False)
            provider._fetcher = ContainerMetadataFetcher(sending)  # noqa: SLF001 - others hold this provider too
        elif isinstance(provider, InstanceMetadataProvider):
            silence_s = session.get_config_variable("metadata_service_timeout")
            provider._role_fetcher._session = _Sending(get_cert_path(True), silence_s)  # noqa: SLF001 - it takes none
    return session


@dataclass(frozen=True)
class _Sending:
    """Sends a request of botocore, as its ``URLLib3Session`` does.

    Args:
        authorities: File of the certificates that are trusted.
        silence_s: How long nothing may come, in seconds; None = what the deadline says.
        by_proxy: Whether the environment may name a proxy.
    """

    authorities: str
    silence_s: float | None = None
    by_proxy: bool = True

    def send(self, request: Any) -> AWSResponse:
        """The answer, also of an error. Raises HTTPClientError, as botocore expects it."""
        url, body = request.url, request.body
        data = body.encode() if isinstance(body, str) else body
        # What is signed does not have the usual port in its header 'Host'.
        url_as_signed = _USUAL_PORT.sub(r"\1\2", url)
        headers = dict(request.headers.items())
        asked = Request(url_as_signed, data, headers, method=request.method)  # noqa: S310 - http(s)
        deadline = self._deadline()
        try:
            answer = answer_to(asked, trusting(self.authorities), deadline, by_proxy=self.by_proxy)
        except AnswerTooLargeError:
            raise NoAnswerError(endpoint_url=url, what=_TOO_LARGE) from None
        except URLError as error:
            raise _not_connected(url, error.reason) from error
        except TimeoutError as error:
            late = LateAnswerError if deadline.clock() >= deadline.at_s else ReadTimeoutError
            raise late(endpoint_url=url, error=error) from error
        except (HTTPException, OSError) as error:
            raise ConnectionClosedError(endpoint_url=url, error=error) from error
        if 300 <= answer.status < 400:
            raise NoAnswerError(endpoint_url=url, what=_REDIRECT)
        return AWSResponse(url, answer.status, answer.headers, _Whole(answer.content))

    def _deadline(self) -> Deadline:
        found = _UNTIL.get() or Deadline(time.monotonic() + _ALL_S, _ALL_S)
        if self.silence_s is None:
            return found
        return replace(found, silence_s=min(found.silence_s, self.silence_s))


@dataclass(frozen=True)
class _Whole:
    """What has been read of an answer, where botocore expects a stream."""

    content: bytes

    def stream(self) -> Iterator[bytes]:
        """All of it."""
        yield self.content


def _not_connected(url: str, reason: object) -> BotoCoreError:
    if isinstance(reason, TimeoutError):
        return ConnectTimeoutError(endpoint_url=url, error=reason)
    if isinstance(reason, ssl.SSLError):
        return SSLError(endpoint_url=url, error=reason)
    return EndpointConnectionError(endpoint_url=url, error=reason)
