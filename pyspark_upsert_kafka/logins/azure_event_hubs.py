"""Tokens for Azure Event Hubs: those of Microsoft Entra ID, for the identity that azure-identity finds where this process runs."""

from __future__ import annotations

import io
import logging
import os
import threading
import time
from collections.abc import Mapping
from http.client import HTTPException
from typing import Any
from urllib.error import URLError
from urllib.request import Request

import certifi
import requests
from azure.core.exceptions import AzureError
from azure.core.pipeline.transport import RequestsTransport
from azure.identity import DefaultAzureCredential
from requests.adapters import HTTPAdapter

from pyspark_upsert_kafka.core.errors import OptionError
from pyspark_upsert_kafka.core.options.properties import PREFIX
from pyspark_upsert_kafka.http_request import AnswerTooLargeError, Deadline, answer_to, trusting
from pyspark_upsert_kafka.logins.login_tokens import ANSWERS_S
from pyspark_upsert_kafka.logins.rented_kafka import event_hubs_host
from pyspark_upsert_kafka.logins.token_providers import CONFIG, PROVIDER, Ask, config_entries

_NAMES = ("scope", "clientId")
"""Of the entries in ``sasl.oauthbearer.config``."""

_AUTHORITIES = {
    "servicebus.usgovcloudapi.net": "login.microsoftonline.us",
    "servicebus.chinacloudapi.cn": "login.chinacloudapi.cn",
}
"""Who gives tokens for namespaces of a cloud of its own, unless the environment variable ``AZURE_AUTHORITY_HOST`` says it."""

_IN_TIME = {"retry_total": 1, "connection_timeout": 2, "read_timeout": 3.5}
"""What azure-identity may take for a request, so that its error is there before a token is not waited for any more."""


class _EntraError(Exception):
    """There is no token; azure-identity's text has a line for each way to log in that it has tried."""


def provider(given: Mapping[str, str]) -> Ask:
    """Gives tokens for the namespace in a client's properties.

    Raises:
        OptionError: The namespace is not known, or the configuration is malformed.
    """
    config = config_entries(given, _NAMES)
    host = event_hubs_host(given.get("bootstrap.servers", ""))
    scope = config.get("scope") or (host and f"https://{host}/.default")
    if not scope:
        raise OptionError(
            f"Option '{PREFIX}{PROVIDER}' = 'azure': the namespace is not known, as '{PREFIX}bootstrap.servers' are no names "
            f"of Azure Event Hubs: set '{PREFIX}{CONFIG}' = 'scope=https://<namespace>.servicebus.windows.net/.default'."
        )

    def ask(_: str) -> tuple[str, float]:
        _silent.threads.add(threading.get_ident())
        try:
            with _credential(host, config.get("clientId")) as credential:
                token = credential.get_token(scope)
        except AzureError as error:
            raise _EntraError(" ".join(str(error).split())) from None
        finally:
            _silent.threads.discard(threading.get_ident())
        return token.token, token.expires_on

    return ask


def _credential(host: str | None, client_id: str | None) -> DefaultAzureCredential:
    more: dict[str, Any] = {"transport": _transport(), **_IN_TIME}
    authority = _AUTHORITIES.get((host or "").partition(".")[2])
    if authority is not None and "AZURE_AUTHORITY_HOST" not in os.environ:
        more["authority"] = authority
    if client_id is not None:
        more |= {"managed_identity_client_id": client_id, "workload_identity_client_id": client_id}
    return DefaultAzureCredential(**more)


def _transport() -> RequestsTransport:
    """Sends what azure-identity asks, so that the answers are bounded in size, and in time all together."""
    session = requests.Session()
    for scheme in ("http://", "https://"):
        session.mount(scheme, _InTime())
    return RequestsTransport(session=session, session_owner=False)


class _InTime(HTTPAdapter):
    """Sends a request by `answer_to`: requests reads an answer to its end, however long that takes."""

    def __init__(self) -> None:
        super().__init__()
        self._ends_at = time.monotonic() + ANSWERS_S

    def send(self, request: Any, *_: object, **more: Any) -> requests.Response:
        body, headers = request.body, {**request.headers, "Accept-Encoding": "identity"}
        data = body.encode() if isinstance(body, str) else body
        asked = Request(request.url, data, headers, method=request.method)  # noqa: S310 - http(s) alone is mounted
        verify, silence_s = more["verify"], more["timeout"][1]
        authorities = verify if isinstance(verify, str) else certifi.where()
        try:
            answer = answer_to(asked, trusting(authorities), Deadline(self._ends_at, silence_s))
        except AnswerTooLargeError as error:
            raise requests.RequestException(str(error)) from None
        except URLError as error:
            is_late = isinstance(error.reason, TimeoutError)
            kind = requests.ConnectTimeout if is_late else requests.ConnectionError
            raise kind(str(error.reason)) from None
        except TimeoutError as error:
            raise requests.ReadTimeout(str(error)) from None
        except (HTTPException, OSError) as error:
            raise requests.ConnectionError(str(error) or type(error).__name__) from None
        response = requests.Response()
        response.status_code, response.reason = answer.status, answer.reason
        response.headers.update(answer.headers.items())
        response.raw, response.request, response.url = (
            io.BytesIO(answer.content),
            request,
            request.url,
        )
        return response


class _SilentThreads(logging.Filter):
    """Keeps azure-identity from logging its errors a second time, as they came, where they are told by us."""

    def __init__(self) -> None:
        super().__init__()
        self.threads: set[int] = set()

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether somebody else has asked."""
        return record.thread not in self.threads


_silent = _SilentThreads()
for _name in ("_credentials.chained", "_internal.decorators"):
    logging.getLogger(f"azure.identity.{_name}").addFilter(_silent)
