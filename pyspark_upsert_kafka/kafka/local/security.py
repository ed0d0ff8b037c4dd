"""Authentication, ACLs and certificates of `LocalKafka`: what its settings say, and what the running broker is told."""

from __future__ import annotations

import datetime as dt
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path
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
from pyspark_upsert_kafka.kafka.local.ports import HOST
from pyspark_upsert_kafka.logins import jaas

_NO_HOST = "client.invalid"
"""Java rejects a certificate whose list of hosts is empty."""


class LocalCertificates:
    """A private certificate authority, and certificates that it signs, in PEM files.

    It needs the package trustme: ``pip install 'pyspark-upsert-kafka[local-tls]'``.

    Args:
        folder: The folder for the files; it must exist. The keys in the files have no password.

    Raises:
        OptionError: The package trustme is not installed.

    Example::

        from tempfile import TemporaryDirectory

        from pyspark_upsert_kafka import LocalCertificates, LocalKafka, LocalSecurity

        with TemporaryDirectory() as folder:
            certificates = LocalCertificates(folder)
            with LocalKafka(security=LocalSecurity(certificates=certificates)) as kafka:
                options = {
                    "properties.bootstrap.servers": kafka.address("SSL"),
                    "properties.security.protocol": "SSL",
                    "properties.ssl.ca.location": str(certificates.authority),
                    "properties.ssl.keystore.type": "PEM",
                    "properties.ssl.keystore.location": str(certificates.issue(user="ana")),
                }
    """

    def __init__(self, folder: Path | str) -> None:
        try:
            import trustme
        except ImportError:
            raise OptionError(
                "LocalCertificates needs a package that is not installed: "
                "pip install 'pyspark-upsert-kafka[local-tls]'"
            ) from None
        self._folder = Path(folder)
        self._authority = trustme.CA()
        self.authority = self._written("authority", self._authority.cert_pem.bytes())
        """The file with the authority's certificate, which clients must trust."""

    def __repr__(self) -> str:
        return f"LocalCertificates({str(self._folder)!r})"

    def issue(
        self,
        *,
        host: str | None = None,
        user: str | None = None,
        not_after: dt.datetime | None = None,
    ) -> Path:
        """Makes a file with a new key and its certificate, in the format of Java's PEM key stores (KIP-651).

        Args:
            host: For a server: its name or address.
            user: For a client: the user's name, which is the certificate's ``CN``.
            not_after: The end of its validity, with a time zone. A time in the past makes an expired certificate.
        """
        issued = self._authority.issue_cert(
            host or _NO_HOST, common_name=user or host, not_after=not_after
        )
        chain = b"".join(part.bytes() for part in issued.cert_chain_pems)
        return self._written("server" if host else "client", _pkcs8(issued) + chain)

    def _written(self, name: str, content: bytes) -> Path:
        file = self._folder / f"{name}-{secrets.token_hex(4)}.pem"
        file.touch(mode=0o600)
        file.write_bytes(content)
        return file


def _pkcs8(issued: Any) -> bytes:
    """The key in the only form that Java reads."""
    from cryptography.hazmat.primitives import serialization

    key = serialization.load_pem_private_key(issued.private_key_pem.bytes(), None)
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )


_MODULES = "org.apache.kafka.common.security"
_SCRAM = f"{_MODULES}.scram.ScramLoginModule required;"
_MECHANISMS = "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER"

_WAIT_S = 300.0
"""A broker on a busy machine may take minutes for what takes it milliseconds."""

_ITERATIONS = 4096
_SCRAM_MECHANISMS = (ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512)
_ANY_ACL = AclBindingFilter(
    ResourceType.ANY, None, ResourcePatternType.ANY, None, None, AclOperation.ANY, AclPermissionType.ANY
)  # fmt: skip

_RESOURCES = {"CLUSTER": "BROKER"}
"""As librdkafka calls them."""


@dataclass(frozen=True)
class LocalAcl:
    """A right of a user, as in Kafka's ACLs.

    Args:
        user: The user's name.
        operation: Kafka's name of the operation: ``READ``, ``WRITE``, ``DESCRIBE``, ``CREATE``, ``ALL``, ...
        resource: The type of the resource: ``topic``, ``group``, ``transactional_id`` or ``cluster``.
        name: The name of the resource; ``orders-*`` for all names with that prefix; ``*`` for all names.

    Example::

        from pyspark_upsert_kafka import LocalAcl

        may_read = LocalAcl(user="ana", operation="READ", resource="topic", name="orders-*")
    """

    user: str
    operation: str
    resource: str
    name: str


@dataclass(frozen=True)
class LocalSecurity:
    """Users, certificates and ACLs of `LocalKafka`. They add addresses to the one without authentication.

    With ``users`` there is an address for ``SASL_PLAINTEXT``: PLAIN, SCRAM-SHA-256 and SCRAM-SHA-512 with the user's
    password, and OAUTHBEARER with an unsecured token, whose ``sub`` is the user. With ``certificates`` there is an address
    for ``SSL``: the client needs a certificate, and its ``CN`` is the user. With both there is also one for ``SASL_SSL``.

    Args:
        users: The password of each user, by the user's name.
        certificates: The authority that signs the certificates of the broker and of clients.
        acls: The rights of users; None = all rights. The address without authentication has the superuser's rights.

    Raises:
        OptionError: Neither users nor certificates are given.

    Example::

        from pyspark_upsert_kafka import LocalAcl, LocalKafka, LocalSecurity

        may_read = LocalAcl(user="ana", operation="READ", resource="topic", name="*")
        security = LocalSecurity(users={"ana": "open sesame"}, acls=[may_read])
        with LocalKafka(security=security) as kafka:
            options = {
                "properties.bootstrap.servers": kafka.address("SASL_PLAINTEXT"),
                "properties.security.protocol": "SASL_PLAINTEXT",
                "properties.sasl.mechanism": "SCRAM-SHA-256",
                "properties.sasl.username": "ana",
                "properties.sasl.password": "open sesame",
            }
    """

    users: Mapping[str, str] = field(default_factory=dict, repr=False)
    certificates: LocalCertificates | None = None
    acls: Sequence[LocalAcl] | None = None

    def __post_init__(self) -> None:
        if not self.protocols:
            raise OptionError("LocalSecurity needs users, certificates, or both.")

    @property
    def protocols(self) -> tuple[str, ...]:
        """The security protocols for which there is an address."""
        sasl, tls = bool(self.users), self.certificates is not None
        offered = {"SASL_PLAINTEXT": sasl, "SASL_SSL": sasl and tls, "SSL": tls}
        return tuple(protocol for protocol, is_offered in offered.items() if is_offered)

    def settings(self) -> dict[str, str]:
        """Settings of the broker, as in ``server.properties``."""
        settings = {"sasl.enabled.mechanisms": _MECHANISMS}
        for protocol in self.protocols:
            if protocol.startswith("SASL"):
                settings |= self._sasl(f"listener.name.{protocol.lower()}")
        if self.certificates is not None:
            settings |= self._tls(self.certificates)
        if self.acls is not None:
            settings |= {
                "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
                "super.users": "User:ANONYMOUS",
            }
        return settings

    def _sasl(self, listener: str) -> dict[str, str]:
        users = " ".join(
            f"{jaas.quoted(f'user_{name}')}={jaas.quoted(password)}"
            for name, password in self.users.items()
        )
        login = 'required unsecuredLoginStringClaim_sub="broker";'
        return {
            f"{listener}.plain.sasl.jaas.config": f"{_MODULES}.plain.PlainLoginModule required {users};",
            f"{listener}.scram-sha-256.sasl.jaas.config": _SCRAM,
            f"{listener}.scram-sha-512.sasl.jaas.config": _SCRAM,
            f"{listener}.oauthbearer.sasl.jaas.config": (
                f"{_MODULES}.oauthbearer.OAuthBearerLoginModule {login}"
            ),
        }

    def _tls(self, certificates: LocalCertificates) -> dict[str, str]:
        return {
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(certificates.issue(host=HOST)),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(certificates.authority),
            "listener.name.ssl.ssl.client.auth": "required",
            "listener.name.ssl.ssl.principal.mapping.rules": "RULE:^.*?CN=([^,]+).*$/$1/",
        }


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
            _confirm(admin.create_acls(list(acls), request_timeout=_WAIT_S))
            _wait_for(
                lambda: acls <= set(admin.describe_acls(_ANY_ACL, request_timeout=_WAIT_S).result())
            )
    except (KafkaException, ValueError) as error:
        raise BrokerError(f"Apache Kafka refused a user or an ACL: {error}") from None


def _create_users(admin: AdminClient, users: Mapping[str, str]) -> None:
    for mechanism in _SCRAM_MECHANISMS:  # a request alters one credential of a user
        info = ScramCredentialInfo(mechanism, _ITERATIONS)
        credentials = [
            UserScramCredentialUpsertion(name, info, password.encode())
            for name, password in users.items()
        ]
        _confirm(admin.alter_user_scram_credentials(credentials, request_timeout=_WAIT_S))

    def all_there() -> bool:
        found = admin.describe_user_scram_credentials(request_timeout=_WAIT_S).result()
        counted = {name: len(user.scram_credential_infos) for name, user in found.items()}
        return all(counted.get(name) == len(_SCRAM_MECHANISMS) for name in users)

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


def _confirm(futures: dict[Any, Future[Any]]) -> None:
    for future in futures.values():
        future.result()


def _wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + _WAIT_S
    while not condition():
        if time.monotonic() > deadline:
            raise BrokerError(f"Apache Kafka did not apply users and ACLs within {_WAIT_S:.0f} s.")
        time.sleep(0.02)
