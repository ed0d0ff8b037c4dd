"""The schema registry of AWS Glue: one request over botocore, and whether it is sent again (needs the extra ``aws``).

Credentials are those that botocore finds where this process runs. What Glue refuses for good is either the fault of a
schema, which the caller tells by the code of the error, or that of the credentials and their rights, a BrokerError.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec
from itertools import count
from typing import Any

from pyspark_upsert_kafka.core.clock import is_about_time, now_ms, shown_time
from pyspark_upsert_kafka.core.errors import BrokerError, OptionError, RetriableBrokerError
from pyspark_upsert_kafka.core.masking import OutsideText
from pyspark_upsert_kafka.http_request import Deadline
from pyspark_upsert_kafka.registry.rest import PATIENCE, Patience

_BUSY = frozenset(
    {
        "ConcurrentModificationException",
        "InternalFailure",
        "InternalServiceException",
        "OperationTimeoutException",
        "RequestLimitExceeded",
        "ServiceUnavailable",
        "ServiceUnavailableException",
        "ThrottledException",
        "Throttling",
        "ThrottlingException",
        "TooManyRequestsException",
    }
)
"""Codes of errors after which the same request may succeed. Those with the status 429 and from 500 on are like them."""

_NOT_ALLOWED = frozenset({"AccessDenied", "AccessDeniedException"})

_NOT_KNOWN = frozenset(
    {
        "ExpiredToken",
        "ExpiredTokenException",
        "IncompleteSignature",
        "InvalidClientTokenId",
        "InvalidSignatureException",
        "MissingAuthenticationToken",
        "SignatureDoesNotMatch",
        "UnrecognizedClientException",
    }
)

_UNREADABLE = (AttributeError, LookupError, RecursionError, TypeError, ValueError)
"""What botocore raises, beside its own errors, of answers that are none of Amazon's."""

_CREDENTIALS = (
    "Give credentials of AWS to the driver and to each executor: by the role of the machine or the pod, by environment "
    "variables, or by a profile ('AWS_PROFILE')"
)

_EXAMPLE = "'eu-central-1'"


@dataclass(frozen=True)
class GlueAccess:
    """How to get at Glue's registries.

    Args:
        option_prefix: What option names begin with, for errors.
        region: The region, if an option names it.
        endpoint: The address, if it is not Amazon's.
    """

    option_prefix: str
    region: str | None = None
    endpoint: str | None = None

    def check(self) -> None:
        """Refuses what no client can be made of.

        Raises:
            OptionError: botocore is not installed, or nothing says the region.
        """
        if find_spec("botocore") is None:
            raise OptionError(
                f"Options '{self.option_prefix}...' need botocore: pip install 'pyspark-upsert-kafka[aws]'"
            )
        if self.found_region() is None:
            raise OptionError(
                f"Option '{self.option_prefix}region' is required, such as {_EXAMPLE}: neither the environment variable "
                "'AWS_REGION' nor the profile of AWS says where the registry is."
            )

    def found_region(self) -> str | None:
        """The region that the option names, or else this process; None = none."""
        return self.region or region_here()

    def __str__(self) -> str:
        where = f"at {self.endpoint}" if self.endpoint else f"in {self.found_region()}"
        return f"AWS Glue {where}"


def region_here() -> str | None:
    """The region that this process is in, as it is told to; None = it is not told."""
    named = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
    if named:
        return named
    from botocore.exceptions import ProfileNotFound
    from botocore.session import Session

    try:
        found = Session().get_config_variable("region")
    except ProfileNotFound:  # that is told when credentials are looked for
        return None
    return str(found) if found else None


Refusals = Mapping[str, Callable[[str], Exception]]
"""The errors for refusals that are no fault of the access, by Glue's codes of them, from what Glue says."""


def call(  # noqa: PLR0913
    access: GlueAccess,
    action: str,
    asked: Mapping[str, Any],
    refusals: Refusals,
    *,
    on: str,
    patience: Patience = PATIENCE,
) -> Mapping[str, Any]:
    """What Glue answers to a request.

    Args:
        access: How to get at it.
        action: The action, as IAM calls it behind ``glue:``.
        asked: Its parameters.
        refusals: Errors for refusals, by their codes.
        on: What IAM must allow the action on, for errors.
        patience: How long Glue is waited for.

    Raises:
        BrokerError: Glue does not answer, or refuses for a reason that ``refusals`` does not have.
    """
    from botocore.exceptions import BotoCoreError, ClientError
    from botocore.parsers import ResponseParserError

    deadline = time.monotonic() + patience.all_s
    for attempt in count():
        silent_s = patience.silent_s
        until = Deadline(max(deadline, time.monotonic() + silent_s), silent_s)
        try:
            return _answer(access, action, asked, until)
        except (BotoCoreError, ClientError, ResponseParserError, *_UNREADABLE) as error:
            seen = error
        # From here on, so that what it says is nowhere in the chain of what is raised as it was said.
        if isinstance(seen, ClientError):
            code, said = str(seen.response.get("Error", {}).get("Code")), _said(seen)
            if code in refusals:
                raise refusals[code](said)
            if not _is_busy(seen, code):
                raise _refused(access, action, code, said, on)
        elif isinstance(seen, BotoCoreError):
            said = _shown(str(seen)).rstrip(".")
            _raise_if_final(access, seen, said)
        else:
            said = _shown(f"{type(seen).__name__}: {seen}").rstrip(".")
            raise BrokerError(
                f"{access} gives an answer to {action} that cannot be read: {said}. {_is_it_glue(access)}"
            )
        pause_s = patience.backoff.pause_s(attempt)
        if time.monotonic() + pause_s >= deadline:
            break
        time.sleep(pause_s)
    raise RetriableBrokerError(
        f"{access} gives no answer to {action}; asked {attempt + 1} times in {patience.all_s:.0f} s, at last: {said}. "
        "Can it be reached from here, and does the account ask for no more than its limits allow?"
    )


def _answer(
    access: GlueAccess, action: str, asked: Mapping[str, Any], until: Deadline
) -> Mapping[str, Any]:
    from botocore import xform_name

    from pyspark_upsert_kafka.logins.aws_requests import answered_until

    with answered_until(until):
        answer: Mapping[str, Any] = getattr(_client(access), xform_name(action))(**asked)
    return answer


@lru_cache(maxsize=100)
def _client(access: GlueAccess) -> Any:
    from botocore.config import Config

    # `call` sends a request again, as it is done for other registries.
    once = Config(retries={"total_max_attempts": 1}, user_agent_extra="pyspark-upsert-kafka")
    region, endpoint = access.found_region(), access.endpoint
    return _session().create_client("glue", region, endpoint_url=endpoint, config=once)


@lru_cache(maxsize=1)
def _session() -> Any:
    """One for all clients: its credentials are asked for once, and renewed before they end."""
    from pyspark_upsert_kafka.logins.aws_requests import bounded_session

    return bounded_session()


def forget_clients() -> None:
    """Lets the next request find its credentials anew. A process that was forked has no use for the clients of the other one."""
    _client.cache_clear()
    _session.cache_clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=forget_clients)


def _said(error: Any) -> str:
    """What Glue says of an error."""
    details = error.response.get("Error", {})
    status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode")
    text = (
        f"{details.get('Code') or f'HTTP {status}'}: {details.get('Message') or 'no more is said'}"
    )
    return _shown(text).rstrip(".")


def _shown(text: str) -> str:
    """What is said, as it may be shown: of a request with a wrong signature Glue repeats what was signed."""
    from botocore.exceptions import BotoCoreError

    try:
        credentials = _session().get_credentials()
        frozen = credentials and credentials.get_frozen_credentials()
    except BotoCoreError:
        frozen = None
    secrets = {"secret": frozen.secret_key, "token": frozen.token} if frozen else {}
    return OutsideText(secrets).shown(text)


def _is_busy(error: Any, code: str) -> bool:
    status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    return code in _BUSY or status == 429 or status >= 500


def _refused(access: GlueAccess, action: str, code: str, said: str, on: str) -> BrokerError:
    if code in _NOT_ALLOWED:
        advice = f"Allow the action 'glue:{action}' on {on} to this identity, in a policy of IAM."
    elif code in _NOT_KNOWN:
        advice = (
            f"These credentials are refused. {_CREDENTIALS}, and see that they have not expired."
        )
        if "Signature" in code and is_about_time(said):
            advice = (
                f"The clock here says {shown_time(now_ms())}: is it right? A request is signed with its time. If it is, see that the "
                "credentials have not expired."
            )
    else:
        advice = _is_it_glue(access)
    return BrokerError(f"{access} refuses {action}: {said}. {advice}")


def _is_it_glue(access: GlueAccess) -> str:
    prefix = access.option_prefix
    return f"Is it a registry of AWS Glue that '{prefix}endpoint' and '{prefix}region' name?"


def _raise_if_final(access: GlueAccess, error: Exception, said: str) -> None:
    """Raises what another attempt cannot change."""
    from botocore.exceptions import ConnectionError as NotConnected
    from botocore.exceptions import HTTPClientError, SSLError

    from pyspark_upsert_kafka.logins.aws_requests import NoAnswerError

    if isinstance(error, SSLError):
        raise BrokerError(
            f"{access} is not trusted: {said}. Name the certificate of its authority by the environment variable "
            "'AWS_CA_BUNDLE'."
        ) from None
    if isinstance(error, NoAnswerError):
        raise BrokerError(f"{access} cannot be asked: {said}. {_is_it_glue(access)}") from None
    if not isinstance(error, (HTTPClientError, NotConnected)):
        raise BrokerError(f"{access} cannot be asked: {said}. {_CREDENTIALS}.") from None
