"""Tokens for Amazon MSK: a request that is signed with credentials of IAM, and sent to nobody (needs botocore).

The broker asks Amazon whether the signature is right, and lets in whose it is. The names of the settings are those of Java's
``IAMLoginModule``.
"""

from __future__ import annotations

import base64
import os
import time
from collections.abc import Mapping
from datetime import datetime
from functools import partial
from typing import Any

from botocore.auth import SigV4QueryAuth
from botocore.awsrequest import AWSRequest
from botocore.credentials import AssumeRoleCredentialFetcher, DeferredRefreshableCredentials
from botocore.session import Session

from pyspark_upsert_kafka.core.errors import OptionError
from pyspark_upsert_kafka.core.options.properties import PREFIX
from pyspark_upsert_kafka.http_request import Deadline
from pyspark_upsert_kafka.logins.aws_requests import answered_until, bounded_session
from pyspark_upsert_kafka.logins.login_tokens import ANSWERS_S
from pyspark_upsert_kafka.logins.rented_kafka import msk_region
from pyspark_upsert_kafka.logins.token_providers import PROVIDER, Ask, config_entries

_NAMES = (
    "awsProfileName", "awsRoleArn", "awsRoleSessionName", "awsRoleExternalId", "awsStsRegion",
)  # fmt: skip
"""Of the entries in ``sasl.oauthbearer.config``."""

_LIFE_S = 900
_SERVICE = "kafka-cluster"
_ACTION = "kafka-cluster:Connect"
_NAME = "pyspark-upsert-kafka"


class _NoCredentialsError(Exception):
    """botocore finds no credentials where this process runs."""


def provider(given: Mapping[str, str]) -> Ask:
    """Gives tokens for the brokers in a client's properties.

    Raises:
        OptionError: The region is not known, or the configuration is malformed.
    """
    config = config_entries(given, _NAMES)
    profile = config.get("awsProfileName")
    region = _region(given.get("bootstrap.servers", ""), Session(profile=profile))

    def ask(_: str) -> tuple[str, float]:
        with answered_until(Deadline(time.monotonic() + ANSWERS_S, ANSWERS_S)):
            session = bounded_session(
                profile
            )  # another one keeps what it read of files that change
            return token(_credentials(session, config), region)

    return ask


def token(credentials: Any, region: str) -> tuple[str, float]:
    """A token and when it ends: after 900 seconds, or with its credentials.

    Args:
        credentials: Of botocore.
        region: The region of the brokers.
    """
    request = AWSRequest(
        "GET", f"https://kafka.{region}.amazonaws.com/", params={"Action": _ACTION}
    )
    SigV4QueryAuth(
        credentials.get_frozen_credentials(), _SERVICE, region, expires=_LIFE_S
    ).add_auth(request)
    signed_at = datetime.strptime(request.context["timestamp"], "%Y%m%dT%H%M%S%z")
    expires_at = signed_at.timestamp() + _LIFE_S
    if (end := getattr(credentials, "_expiry_time", None)) is not None:  # of those that are renewed
        expires_at = min(expires_at, end.timestamp())
    address = f"{request.url}&User-Agent={_NAME}"
    return base64.urlsafe_b64encode(address.encode()).decode().rstrip("="), expires_at


def _credentials(session: Session, config: Mapping[str, str]) -> Any:
    """Those that botocore finds, or those of a role that they may take."""
    found = session.get_credentials()
    if found is None:
        raise _NoCredentialsError("botocore finds no credentials of AWS here")
    role = config.get("awsRoleArn")
    if role is None:
        return found
    more = {"RoleSessionName": config.get("awsRoleSessionName", _NAME)}
    if "awsRoleExternalId" in config:
        more["ExternalId"] = config["awsRoleExternalId"]
    region = config.get("awsStsRegion")
    client = partial(session.create_client, region_name=region) if region else session.create_client
    fetcher = AssumeRoleCredentialFetcher(client, found, role, extra_args=more)
    return DeferredRefreshableCredentials(fetcher.fetch_credentials, "assume-role")


def _region(servers: str, session: Session) -> str:
    region = (
        msk_region(servers) or os.environ.get("AWS_REGION") or session.get_config_variable("region")
    )
    if not region:
        raise OptionError(
            f"Option '{PREFIX}{PROVIDER}' = 'aws-msk': the region of the brokers is not known, as '{PREFIX}bootstrap.servers' "
            "are no names of Amazon's: set the environment variable 'AWS_REGION', on the driver and on each executor."
        )
    return str(region)
