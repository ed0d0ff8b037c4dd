"""The Java client's properties as kafka-python's arguments, and which kafka-python it may be."""

from __future__ import annotations

import selectors
import sys

import pytest
from kafka.errors import KafkaConnectionError

from pyspark_upsert_kafka.core import errors
from pyspark_upsert_kafka.core.delivery_guarantee import DeliveryGuarantee
from pyspark_upsert_kafka.core.errors import OptionError
from pyspark_upsert_kafka.core.options.properties import Properties
from pyspark_upsert_kafka.kafka.clients import load_client
from pyspark_upsert_kafka.kafka.kafka_python import installed, sender
from pyspark_upsert_kafka.kafka.kafka_python.properties import client_config, open_client

ADAPTER = "pyspark_upsert_kafka.kafka.kafka_python."
PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"
KERBEROS = "com.sun.security.auth.module.Krb5LoginModule required useTicketCache=true;"
KEYTAB = "com.sun.security.auth.module.Krb5LoginModule required keyTab='/geheim';"
TLS = {"security.protocol": "SSL"}


def config(given):
    """What one role gets of these properties."""
    made = client_config(Properties(given), "reader", {})
    assert made.pop("client_id") == "pyspark-upsert-kafka-reader"
    return made


@pytest.mark.parametrize(
    ("given", "arguments"),
    [
        ({"bootstrap.servers": "a:1,b:2"}, {"bootstrap_servers": "a:1,b:2"}),
        ({"linger.ms": "7"}, {"linger_ms": 7}),
        ({"queue.buffering.max.ms": "7"}, {"linger_ms": 7}),
        ({"fetch.wait.max.ms": "9"}, {"fetch_max_wait_ms": 9}),
        ({"receive.buffer.bytes": "9"}, {"receive_buffer_bytes": 9}),
        ({"message.timeout.ms": "9"}, {"delivery_timeout_ms": 9}),
        ({"enable.idempotence": "False"}, {"enable_idempotence": False}),
        ({"acks": "-1"}, {"acks": "all"}),
        ({"acks": "1"}, {"acks": 1}),
        ({"compression.type": "none"}, {"compression_type": None}),
        ({"compression.codec": "lz4"}, {"compression_type": "lz4"}),
        ({"queue.buffering.max.kbytes": "4"}, {"buffer_memory": 4096}),
        ({"auto.offset.reset": "latest", "max.poll.records": "5"}, {}),
        ({"security.protocol": "sasl_plaintext"}, {"security_protocol": "SASL_PLAINTEXT"}),
        ({"sasl.mechanism": "GSSAPI"}, {"sasl_mechanism": "GSSAPI"}),
        (
            {"sasl.username": "ana", "sasl.password": "pw"},
            {"sasl_plain_username": "ana", "sasl_plain_password": "pw"},
        ),
        (
            {"sasl.jaas.config": f'{PLAIN} username="an\'a" password="p w";'},
            {"sasl_plain_username": "an'a", "sasl_plain_password": "p w"},
        ),
        ({"sasl.kerberos.service.name": "k"}, {"sasl_kerberos_service_name": "k"}),
        ({"sasl.jaas.config": KERBEROS}, {}),
        ({"ssl.ca.location": "/no/tls/no/file"}, {}),
    ],
)
def test_java_names_mean_what_they_mean_in_java(given, arguments):
    """Java's and librdkafka's names are understood, with values of the type that kafka-python wants."""
    assert config(given) == arguments


@pytest.mark.parametrize(
    ("given", "remedy"),
    [
        ({**TLS, "ssl.truststore.location": "/no/ca.pem"}, "'/no/ca.pem': No such file"),
        ({**TLS, "ssl.truststore.type": "BCFKS"}, "JKS, PKCS12, PEM, but is 'BCFKS'"),
        ({**TLS, "ssl.ca.pem": "geheim"}, "'properties.ssl.ca.pem' cannot be used"),
        ({**TLS, "ssl.key.pem": "geheim"}, "A certificate and its key belong together"),
        (
            {**TLS, "ssl.keystore.key": "geheim", "ssl.certificate.pem": "x"},
            "keystore.key' cannot be used",
        ),
        ({**TLS, "ssl.cipher.suites": "geheim"}, "ssl.cipher.suites' cannot be used"),
        ({"ssl.cafile": "/geheim"}, "'kafka.client' to 'librdkafka'"),
        ({"ssl.engine.factory.class": "x.Y"}, "'kafka.client' to 'librdkafka'"),
        ({"enable.ssl.certificate.verification": "false"}, "ssl.ca.location"),
        (
            {"sasl.mechanism": "OAUTHBEARER"},
            "needs 'properties.sasl.oauthbearer.token.endpoint.url'",
        ),
        ({"sasl.mechanisms": "PLAIN"}, "needs 'properties.sasl.username'"),
        ({"sasl.oauthbearer.client.assertion": "geheim"}, "'kafka.client' to 'librdkafka'"),
        ({"sasl.kerberos.keytab": "/geheim"}, "kinit"),
        ({"sasl.jaas.config": KEYTAB}, "KRB5_CLIENT_KTNAME"),
        ({"sasl.jaas.config": "geheim"}, "sasl.username"),
        ({"linger.ms": "soon"}, "'properties.linger.ms': expected a whole number, but is 'soon'"),
        ({"enable.idempotence": "no"}, "expected 'true' or 'false', but is 'no'"),
        ({"acks": "2"}, "expected 'all', '1' or '0'"),
    ],
)
def test_what_has_no_equivalent_is_refused_with_a_remedy(given, remedy):
    """Dropping a security setting could open a connection that is not secure; secrets are not shown."""
    with pytest.raises(OptionError, match=remedy) as error:
        config(given)

    assert "geheim" not in str(error.value)


def test_tuning_without_an_equivalent_is_dropped_with_one_warning(caplog, monkeypatch):
    """It makes nothing wrong."""
    monkeypatch.setattr(errors, "_warned", set())
    given = {"metadata.recovery.strategy": "none"}

    assert config(given) == config(given) == {}
    (warning,) = [record.getMessage() for record in caplog.records]
    assert "Option 'properties.metadata.recovery.strategy' has no equivalent" in warning


def test_a_connection_closed_while_it_is_opened_can_be_tried_again():
    """kafka-python-ng then fails with a ValueError of its selector, which is no wrong option."""

    def client() -> None:
        selectors.DefaultSelector().unregister(None)

    client.DEFAULT_CONFIG = {}

    with pytest.raises(KafkaConnectionError, match="Invalid file object"):
        open_client(client, {})


@pytest.mark.parametrize(
    ("found", "ng", "is_3"),
    [("3.0.12", None, True), ("2.2.3", "2.2.3", False), ("3.1.0", "2.2.3", True)],
)
def test_what_the_installed_library_can_do(found, ng, is_3):
    """kafka-python 3 has transactions, kafka-python-ng has not."""
    assert installed.is_kafka_python_3(found, ng) is is_3


@pytest.mark.parametrize(("found", "ng"), [("2.0.2", None), ("2.2.3", None), ("2.3.0", "2.3.0")])
def test_other_versions_are_refused(found, ng):
    """What they return for transaction markers is not known."""
    with pytest.raises(OptionError, match=f"{found}.*kafka-python>=3"):
        installed.is_kafka_python_3(found, ng)


def test_a_missing_library_is_said_with_the_command_that_installs_it(monkeypatch):
    """It is an extra of the package, and missing at the first use."""
    for name in [name for name in sys.modules if f"{name}.".startswith(("kafka.", ADAPTER))]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "kafka", None)

    with pytest.raises(OptionError, match=r"pip install 'pyspark-upsert-kafka\[kafka-python\]'"):
        load_client("kafka-python")


def writer(monkeypatch, given, *, is_3, guarantee=DeliveryGuarantee.AT_LEAST_ONCE):
    """The producer's arguments."""
    monkeypatch.setattr(sender, "IS_KAFKA_PYTHON_3", is_3)
    return sender.producer_config(Properties({"bootstrap.servers": "a:1", **given}), guarantee)


def test_a_writer_is_idempotent_unless_fewer_acks_are_wanted(monkeypatch):
    """As in the Java client; without idempotence one request at a time keeps the order."""
    made = writer(monkeypatch, {}, is_3=True)
    assert (made["acks"], made["enable_idempotence"]) == ("all", True)
    assert "max_in_flight_requests_per_connection" not in made

    made = writer(monkeypatch, {"acks": "1"}, is_3=True)
    assert (made["acks"], made["enable_idempotence"]) == (1, False)
    assert made["max_in_flight_requests_per_connection"] == 1


def test_kafka_python_ng_writes_only_for_those_who_need_no_idempotence(monkeypatch):
    """Asked for nothing, the connector asks for idempotence: its absence is for the user to accept."""
    for given in ({}, {"acks": "all"}, {"enable.idempotence": "true"}):
        with pytest.raises(OptionError, match=r"enable\.idempotence' = 'false'"):
            writer(monkeypatch, given, is_3=False)

    made = writer(monkeypatch, {"enable.idempotence": "false"}, is_3=False)
    assert (made["acks"], made["max_in_flight_requests_per_connection"]) == ("all", 1)
    assert writer(monkeypatch, {}, is_3=False, guarantee=DeliveryGuarantee.NONE)["acks"] == 0


def test_no_acknowledgement_confirms_nothing(monkeypatch):
    """It contradicts the guarantee."""
    with pytest.raises(OptionError, match=r"acks' = '0'.*delivery-guarantee"):
        writer(monkeypatch, {"acks": "0"}, is_3=True)
