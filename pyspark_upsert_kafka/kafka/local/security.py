"""Authentication and ACLs of `LocalKafka`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pyspark_upsert_kafka.core.errors import OptionError
from pyspark_upsert_kafka.kafka.connections import jaas
from pyspark_upsert_kafka.kafka.local.certificates import LocalCertificates
from pyspark_upsert_kafka.kafka.local.ports import HOST

_MODULES = "org.apache.kafka.common.security"
_SCRAM = f"{_MODULES}.scram.ScramLoginModule required;"
_MECHANISMS = "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER"


@dataclass(frozen=True)
class LocalAcl:
    """A right of a user, as in Kafka's ACLs.

    Args:
        user: The user's name.
        operation: Kafka's name of the operation: ``READ``, ``WRITE``, ``DESCRIBE``, ``CREATE``, ``ALL``, ...
        resource: The type of the resource: ``topic``, ``group``, ``transactional_id`` or ``cluster``.
        name: The name of the resource; ``orders-*`` for all names with that prefix; ``*`` for all names.

    Example::

        LocalAcl("ana", "READ", "topic", "orders-*")
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

        security = LocalSecurity(users={"ana": "open sesame"}, acls=[LocalAcl("ana", "READ", "topic", "*")])
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
