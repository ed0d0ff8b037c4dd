"""What a running `LocalKafka` is told about its users: SCRAM credentials and ACLs."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from typing import Any

from confluent_kafka import KafkaException
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from pyspark_upsert_kafka.core.errors import BrokerError, OptionError
from pyspark_upsert_kafka.kafka.local.security import LocalAcl, LocalSecurity

_WAIT_S = 60.0
_ITERATIONS = 4096
_SCRAM = (ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512)
_ANY_ACL = AclBindingFilter(
    ResourceType.ANY, None, ResourcePatternType.ANY, None, None, AclOperation.ANY, AclPermissionType.ANY
)  # fmt: skip


def create_accounts(security: LocalSecurity, servers: str) -> None:
    """Creates the users' SCRAM credentials and ACLs, and waits until they count.

    Args:
        security: The users, and what they may do.
        servers: Where the superuser is let in.

    Raises:
        BrokerError: The broker does not take them.
        OptionError: An ACL names an operation or a resource that Kafka does not know.
    """
    admin = AdminClient({"bootstrap.servers": servers, "log_level": 0})
    acls = {_binding(acl) for acl in security.acls or ()}
    try:
        if security.users:
            _create_users(admin, security.users)
        if acls:
            _confirm(admin.create_acls(list(acls)))
            _wait_for(lambda: acls <= set(admin.describe_acls(_ANY_ACL).result()))
    except (KafkaException, ValueError) as error:
        raise BrokerError(f"Apache Kafka refused a user or an ACL: {error}") from None


def _create_users(admin: AdminClient, users: Mapping[str, str]) -> None:
    for mechanism in _SCRAM:  # a request alters one credential of a user
        info = ScramCredentialInfo(mechanism, _ITERATIONS)
        credentials = [
            UserScramCredentialUpsertion(name, info, password.encode())
            for name, password in users.items()
        ]
        _confirm(admin.alter_user_scram_credentials(credentials))

    def all_there() -> bool:
        found = admin.describe_user_scram_credentials().result(_WAIT_S)
        counted = {name: len(user.scram_credential_infos) for name, user in found.items()}
        return all(counted.get(name) == len(_SCRAM) for name in users)

    # What the controller has confirmed, the broker follows a moment later.
    _wait_for(all_there)


def _binding(acl: LocalAcl) -> AclBinding:
    is_prefix = acl.name.endswith("*") and acl.name != "*"
    try:
        return AclBinding(
            ResourceType[_RESOURCES.get(acl.resource.upper(), acl.resource.upper())],
            acl.name.removesuffix("*") if is_prefix else acl.name,
            ResourcePatternType.PREFIXED if is_prefix else ResourcePatternType.LITERAL,
            f"User:{acl.user}",
            "*",
            AclOperation[acl.operation.upper()],
            AclPermissionType.ALLOW,
        )
    except KeyError as error:
        raise OptionError(f"Kafka knows no {error} for an ACL: {acl}.") from None


_RESOURCES = {"CLUSTER": "BROKER"}
"""As librdkafka calls them."""


def _confirm(futures: dict[Any, Future[Any]]) -> None:
    for future in futures.values():
        future.result(_WAIT_S)


def _wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + _WAIT_S
    while not condition():
        if time.monotonic() > deadline:
            raise BrokerError(f"Apache Kafka did not apply users and ACLs within {_WAIT_S:.0f} s.")
        time.sleep(0.02)
