"""The broker that asks who its clients are, and what they tell it."""

from __future__ import annotations

import base64
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from pathlib import Path
from traceback import clear_frames

from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    ResourcePatternType,
    ResourceType,
)
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.serialization import pkcs12

from pyspark_upsert_kafka import LocalAcl, LocalCertificates, LocalKafka, LocalSecurity
from pyspark_upsert_kafka.kafka.local import ports
from pyspark_upsert_kafka.logins.jaas import quoted
from tests.conftest import Broker, broker_at
from tests.kafka.conftest import Edge
from tests.processes import NEVER_FENCED
from tests.token_endpoint import TokenEndpoint

PASSWORD = "op\"en \\ses'ame\n\tü€ ,=;]"
LONG_PASSWORD = base64.b64encode(bytes(range(256)) * 9).decode()
"""As long as a key file of Google's in base64."""
CLIENT = ("an id", "geheim:%/ü")
STORE_PASSWORD = "st0re"

# As Flink's SQL client wants it, whose jar has Kafka's classes under another name.
MODULES = "org.apache.flink.kafka.shaded.org.apache.kafka.common.security"

# Certificates that are not to be trusted, by the listener that shows them.
_TLS = ("EXPIRED", "ELSEWHERE", "UNKNOWN")
_PROTOCOLS = (
    "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT,SASL_SSL:SASL_SSL,"
    + ",".join(f"{name}:SSL" for name in _TLS)
)


@dataclass(frozen=True)
class Secured:
    """A broker that lets ana in by each mechanism, and gives her every right.

    Args:
        kafka: The broker.
        broker: What tests do with it by plain clients, as the superuser.
        certificates: Its authority.
        strangers: An authority that it does not know.
        bad: Addresses whose certificate is not to be trusted.
        endpoint: Gives tokens of ana.
        folder: For stores.
    """

    kafka: LocalKafka
    broker: Broker
    certificates: LocalCertificates
    strangers: LocalCertificates
    bad: Mapping[str, str]
    endpoint: TokenEndpoint
    folder: Path

    def edge(self, client: str, protocol: str, properties: Mapping[str, object]) -> Edge:
        """The seam over one of its addresses."""
        edge = Edge(client, self.kafka.address(protocol))
        return edge.given({"security.protocol": protocol, **properties})

    def as_user(self, client: str, user: str, **more: object) -> Edge:
        """The seam as somebody who says to be this user, and need not prove it."""
        login = f'OAuthBearerLoginModule required unsecuredLoginStringClaim_sub="{user}";'
        properties = {
            "sasl.mechanism": "OAUTHBEARER",
            "sasl.jaas.config": f"{MODULES}.oauthbearer.{login}",
            **{name.replace("_", "."): value for name, value in more.items()},
        }
        return self.edge(client, "SASL_PLAINTEXT", properties)

    def user(self, *acls: tuple[str, str, str]) -> str:
        """A new user, who may do so much: operation, kind of resource, its name."""
        name = f"u-{uuid.uuid4().hex[:12]}"
        bindings = [
            AclBinding(
                ResourceType[kind],
                resource,
                ResourcePatternType.LITERAL,
                f"User:{name}",
                "*",
                AclOperation[operation],
                AclPermissionType.ALLOW,
            )
            for operation, kind, resource in acls
        ]
        if bindings:
            for future in self.broker.admin.create_acls(bindings).values():
                future.result()
            self._wait_for_acls(f"User:{name}", len(bindings))
        return name

    def _wait_for_acls(self, principal: str, number: int) -> None:
        """The controller has new ACLs first; whoever asks the broker is to be allowed."""
        everything = AclBindingFilter(
            ResourceType.ANY, None, ResourcePatternType.ANY, principal, None,
            AclOperation.ANY, AclPermissionType.ANY,
        )  # fmt: skip
        while len(self.broker.admin.describe_acls(everything).result()) < number:
            time.sleep(0.05)

    def trust(self) -> dict[str, str]:
        """Whom to trust, as in a Flink table: a store that is called JKS and is PKCS#12, as keytool makes them."""
        file = self.folder / "trust.jks"
        ca = x509.load_pem_x509_certificate(self.certificates.authority.read_bytes())
        locked = serialization.BestAvailableEncryption(STORE_PASSWORD.encode())
        file.write_bytes(
            pkcs12.serialize_java_truststore([pkcs12.PKCS12Certificate(ca, b"ca")], locked)
        )
        return {
            "ssl.truststore.location": str(file),
            "ssl.truststore.password": STORE_PASSWORD,
            "ssl.truststore.type": "JKS",
        }

    def key_store(self, pem: Path) -> dict[str, str]:
        """A key and its certificate as a PKCS#12 store."""
        file = pem.with_suffix(".p12")
        key = serialization.load_pem_private_key(pem.read_bytes(), None)
        certificate = x509.load_pem_x509_certificate(pem.read_bytes())
        locked = serialization.BestAvailableEncryption(STORE_PASSWORD.encode())
        file.write_bytes(
            pkcs12.serialize_key_and_certificates(b"me", key, certificate, None, locked)
        )
        return {"ssl.keystore.location": str(file), "ssl.keystore.password": STORE_PASSWORD}


def by_password(mechanism: str, password: str = PASSWORD) -> dict[str, str]:
    """A login of ana's."""
    module = "plain.PlainLoginModule" if mechanism == "PLAIN" else "scram.ScramLoginModule"
    login = f'required username="ana" password={quoted(password)};'
    return {"sasl.mechanism": mechanism, "sasl.jaas.config": f"{MODULES}.{module} {login}"}


def by_token(secured: Secured, secret: str = CLIENT[1]) -> dict[str, str]:
    """A login by a token of the provider."""
    login = f'required clientId="{CLIENT[0]}" clientSecret="{secret}" scope="all of it";'
    return {
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.login.callback.handler.class": (
            f"{MODULES}.oauthbearer.OAuthBearerLoginCallbackHandler"
        ),
        "sasl.oauthbearer.token.endpoint.url": secured.endpoint.url,
        "sasl.jaas.config": f"{MODULES}.oauthbearer.OAuthBearerLoginModule {login}",
    }


def _forget_locals(error: BaseException | None) -> None:
    """Empties the frames of an error: a client that is left in them goes on and logs in again and again."""
    while error is not None:
        clear_frames(error.__traceback__)
        error = error.__cause__ or error.__context__


def errors_of(actions: Mapping[str, Callable[[], object]]) -> dict[str, Exception | None]:
    """What each of the actions raises, all at the same time."""

    def error(action: Callable[[], object]) -> Exception | None:
        try:
            action()
        except Exception as raised:  # noqa: BLE001 - the test looks at what it is
            _forget_locals(raised)
            return raised
        return None

    with ThreadPoolExecutor(len(actions)) as threads:
        return dict(zip(actions, threads.map(error, actions.values()), strict=True))


@contextmanager
def secured_broker(folder: Path) -> Iterator[Secured]:
    """Starts it."""
    certificates, strangers = LocalCertificates(folder), LocalCertificates(folder)
    yesterday = datetime.now(timezone.utc) - timedelta(days=1)
    shown = {
        "EXPIRED": certificates.issue(host="127.0.0.1", not_after=yesterday),
        "ELSEWHERE": certificates.issue(host="other.example"),
        "UNKNOWN": strangers.issue(host="127.0.0.1"),
    }
    bad = {name: f"127.0.0.1:{port}" for name, port in zip(shown, ports.free_ports(3), strict=True)}
    config = {
        **NEVER_FENCED,
        "listeners": ",".join(f"{name}://{address}" for name, address in bad.items()),
        "listener.security.protocol.map": _PROTOCOLS,
        # A connection lasts no longer than the token by which it was opened.
        "listener.name.sasl_plaintext.oauthbearer.connections.max.reauth.ms": "3600000",
    }
    for name, file in shown.items():
        config[f"listener.name.{name.lower()}.ssl.keystore.location"] = str(file)
    security = LocalSecurity(
        users={"ana": PASSWORD, "bob": "no rights", "key": LONG_PASSWORD},
        certificates=certificates,
        acls=[
            LocalAcl(user, "ALL", kind, "*")
            for user in ("ana", "key")
            for kind in ("topic", "group", "transactional_id")
        ],
    )
    with (
        LocalKafka(security=security, config=config) as kafka,
        TokenEndpoint("ana", CLIENT) as endpoint,
    ):
        broker = broker_at(kafka.bootstrap_servers)
        yield Secured(kafka, broker, certificates, strangers, bad, endpoint, folder)
