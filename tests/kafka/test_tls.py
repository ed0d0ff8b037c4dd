"""TLS: who the broker says it is must be true, whichever client asks."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
import trustme
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)

from pyspark_upsert_kafka import LocalKafka
from pyspark_upsert_kafka.core.errors import BrokerError
from pyspark_upsert_kafka.core.offsets import Range
from pyspark_upsert_kafka.core.options import Topics
from pyspark_upsert_kafka.kafka.local import ports
from tests.conftest import broker_at
from tests.kafka.conftest import CLIENTS, Edge, numbered

# kafka-python-ng makes its own context.
pytestmark = pytest.mark.filterwarnings("ignore:ssl.PROTOCOL_TLS is deprecated:DeprecationWarning")

PROTOCOLS = "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,GOOD:SSL,EXPIRED:SSL,OTHER:SSL"


@dataclass(frozen=True)
class Secured:
    """A broker with three addresses over TLS, each with a certificate of its own.

    Args:
        plain: Its address without TLS.
        servers: Its other addresses, by what is to be said of the certificate there.
        authority: The file of the authority that signed them.
        stranger: That of an authority that signed nothing.
    """

    plain: str
    servers: dict[str, str]
    authority: str
    stranger: str


def pkcs8(certificate: trustme.LeafCert) -> bytes:
    """The certificate's key in the only form that Java reads."""
    key = load_pem_private_key(certificate.private_key_pem.bytes(), None)
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    """The broker."""
    folder = tmp_path_factory.mktemp("tls")
    authority, stranger = trustme.CA(), trustme.CA()
    yesterday = dt.datetime.now(dt.timezone.utc) - dt.timedelta(days=1)
    certificates = {
        "GOOD": authority.issue_cert("127.0.0.1"),
        "EXPIRED": authority.issue_cert("127.0.0.1", not_after=yesterday),
        "OTHER": authority.issue_cert("other.example"),
    }
    config = {
        "listener.security.protocol.map": PROTOCOLS,
        "inter.broker.listener.name": "PLAINTEXT",
    }
    servers = {name: f"127.0.0.1:{ports.free_port()}" for name in certificates}
    config["listeners"] = ",".join(f"{name}://{address}" for name, address in servers.items())
    for name, certificate in certificates.items():
        store = folder / f"{name}.pem"
        store.write_bytes(pkcs8(certificate) + certificate.cert_chain_pems[0].bytes())
        config[f"listener.name.{name.lower()}.ssl.keystore.type"] = "PEM"
        config[f"listener.name.{name.lower()}.ssl.keystore.location"] = str(store)
    for name, each in (("authority", authority), ("stranger", stranger)):
        each.cert_pem.write_to_path(str(folder / f"{name}.pem"))
    with LocalKafka(config=config) as kafka:
        yield Secured(
            kafka.bootstrap_servers,
            servers,
            str(folder / "authority.pem"),
            str(folder / "stranger.pem"),
        )


@pytest.fixture(params=CLIENTS)
def client(request: pytest.FixtureRequest) -> str:
    """The client's name."""
    return str(request.param)


def test_a_certificate_that_is_good_is_taken(secured: Secured, client: str) -> None:
    """Signed by the given authority, for this host: for asking, sending and reading."""
    topic = broker_at(secured.plain).topic()
    tls = {"security.protocol": "SSL", "ssl.ca.location": secured.authority}
    edge = Edge(client, secured.servers["GOOD"]).given(tls)

    edge.send(topic, *numbered(3))

    assert edge.offsets(Range(topic, 0, 0, 3)) == [0, 1, 2]


@pytest.mark.parametrize("what", ["EXPIRED", "OTHER", "stranger", "plain"])
def test_a_certificate_that_is_not_good_is_refused(
    secured: Secured, client: str, what: str
) -> None:
    """Expired, of another host, signed by a stranger, or not asked for: the error says where to look."""
    tls = {
        "security.protocol": "PLAINTEXT" if what == "plain" else "SSL",
        "ssl.ca.location": secured.stranger if what == "stranger" else secured.authority,
        "request.timeout.ms": 2_000,
        "default.api.timeout.ms": 6_000,
    }
    edge = Edge(client, secured.servers.get(what, secured.servers["GOOD"])).given(tls)

    with edge.cluster() as cluster, pytest.raises(BrokerError) as error:
        cluster.topics(Topics(("t",)))

    assert edge.servers in str(error.value)
    if what != "plain":
        # kafka-python-ng keeps to itself what was wrong with a certificate.
        said = "certificate verify failed" if client == "librdkafka" else "properties.ssl.*"
        assert said in str(error.value)
