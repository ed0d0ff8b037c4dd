"""Tokens for Azure Event Hubs: those of Microsoft Entra ID, for the identity that azure-identity finds where this process runs."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Mapping
from typing import Any

from azure.core.exceptions import AzureError
from azure.identity import DefaultAzureCredential

from pyspark_upsert_kafka.core.errors import OptionError
from pyspark_upsert_kafka.core.options.properties import PREFIX
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
    more: dict[str, Any] = {**_IN_TIME}
    authority = _AUTHORITIES.get((host or "").partition(".")[2])
    if authority is not None and "AZURE_AUTHORITY_HOST" not in os.environ:
        more["authority"] = authority
    if client_id is not None:
        more |= {"managed_identity_client_id": client_id, "workload_identity_client_id": client_id}
    return DefaultAzureCredential(**more)


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
