"""The Java client's properties as librdkafka's configuration."""

from __future__ import annotations

import confluent_kafka as ck
import pytest

from pyspark_upsert_kafka.core import errors
from pyspark_upsert_kafka.core.errors import OptionError, RetriableBrokerError
from pyspark_upsert_kafka.core.options.properties import Properties
from pyspark_upsert_kafka.kafka.librdkafka.errors import WithoutSecrets
from pyspark_upsert_kafka.kafka.librdkafka.properties import client_config, open_client
from pyspark_upsert_kafka.kafka.librdkafka.sender import transaction_config
from pyspark_upsert_kafka.kafka.native import MAY_BE_CALLED
from pyspark_upsert_kafka.logins.login_tokens import TOKENS

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"
OAUTH = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required"
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule required"

RECONNECTING = {"reconnect.backoff.ms": 20, "reconnect.backoff.max.ms": 1_000}


def config(**ours):
    """What one role gets of these properties (names with ``__`` for dots)."""
    given = Properties({name.replace("__", "."): value for name, value in ours.items()})
    made = client_config(given, "reader", {})
    assert made.pop("client.id") == "pyspark-upsert-kafka-reader"
    assert isinstance(made.pop("logger"), WithoutSecrets)
    made.pop("socket.timeout.ms")
    return {name: made[name] for name in made if made[name] != RECONNECTING.get(name)}


@pytest.mark.parametrize(
    ("given", "made"),
    [
        ({}, RECONNECTING),
        ({"reconnect__backoff__ms": "5000"}, {"reconnect.backoff.ms": "5000"}),
        ({"reconnect__backoff__max__ms": "5"}, {"reconnect.backoff.max.ms": "5"}),
    ],
)
def test_reconnecting_is_as_the_user_says(given, made):
    """One of the two times bounds the other: none of ours stands beside one that is given."""
    found = client_config(Properties({k.replace("__", "."): v for k, v in given.items()}), "x", {})
    assert {name: found[name] for name in RECONNECTING if name in found} == made


@pytest.mark.parametrize(
    ("given", "waited_ms"),
    [
        ({}, 30_000),
        ({"request.timeout.ms": "7000"}, 7_000),
        ({"request.timeout.ms": "500"}, 1_500),
        ({"request.timeout.ms": "500", "fetch.max.wait.ms": "20"}, 1_020),
        ({"request.timeout.ms": "500", "fetch.max.wait.ms": "9000"}, 10_000),
        ({"request.timeout.ms": "900000"}, 300_000),
        ({"request.timeout.ms": "7000", "socket.timeout.ms": "4000"}, "4000"),
    ],
)
def test_any_answer_is_waited_for_as_long_as_in_java(given, waited_ms):
    """As `request.timeout.ms` says for every request, within the bounds that librdkafka has."""
    found = client_config(Properties({"bootstrap.servers": "x:1", **given}), "reader", {})
    assert found["socket.timeout.ms"] == waited_ms
    ck.Consumer({**found, "group.id": "g"}).close()


@pytest.mark.parametrize(
    ("given", "waited_ms", "delivered_ms"),
    [
        ({}, 30_000, 120_000),
        ({"transaction.timeout.ms": "10000"}, 10_000, 10_000),
        ({"transaction.timeout.ms": "10000", "request.timeout.ms": "2000"}, 2_000, 10_000),
    ],
)
def test_no_request_of_a_transaction_outlasts_it(given, waited_ms, delivered_ms):
    """No timeout that is longer than that of the transaction is taken."""
    found = transaction_config(Properties({"bootstrap.servers": "x:1", **given}), [], "id")
    assert (found["socket.timeout.ms"], found["delivery.timeout.ms"]) == (waited_ms, delivered_ms)
    ck.Producer(found)


def test_the_rack_of_each_machine(monkeypatch):
    """It is taken from the environment where the client is opened, and the client takes it: messages come from a replica nearby."""
    monkeypatch.setenv("RACK", "euw1-az2")
    given = Properties({"bootstrap.servers": "x:1", "client.rack": "${env:RACK}"})

    made = client_config(given, "reader", {"log_level": 0})

    assert made["client.rack"] == "euw1-az2"
    open_client(ck.Producer, made)


def test_tokens_come_from_somewhere():
    """Else librdkafka waits for one in silence."""
    with pytest.raises(
        OptionError,
        match=r"'OAUTHBEARER' needs 'properties\.sasl\.oauthbearer\.token\.endpoint\.url'",
    ):
        config(sasl__mechanism="OAUTHBEARER", security__protocol="SASL_PLAINTEXT")


@pytest.mark.parametrize(
    ("java", "librdkafka_has"),
    [
        ({"linger__ms": "7"}, {"linger.ms": "7"}),
        ({"queue__buffering__max__ms": "7"}, {"queue.buffering.max.ms": "7"}),
        ({"sasl__mechanism": "PLAIN"}, {"sasl.mechanisms": "PLAIN"}),
        ({"fetch__max__wait__ms": "9"}, {"fetch.wait.max.ms": "9"}),
        ({"acks": "-1"}, {"acks": "all"}),
        ({"transaction__timeout__ms": "900000"}, {"transaction.timeout.ms": "900000"}),
        ({"request__timeout__ms": "5000"}, {"request.timeout.ms": "5000"}),
        ({"acks": "1"}, {"acks": "1"}),
        ({"buffer__memory": "4096"}, {"queue.buffering.max.kbytes": "4"}),
        ({"buffer__memory": "1"}, {"queue.buffering.max.kbytes": "1"}),
        ({"auto__offset__reset": "latest"}, {}),
        (
            {"ssl__endpoint__identification__algorithm": ""},
            {"ssl.endpoint.identification.algorithm": "none"},
        ),
        (
            {"sasl__jaas__config": f'{PLAIN} username="an\'a" password="p w";'},
            {"sasl.username": "an'a", "sasl.password": "p w"},
        ),
        (
            {"sasl__jaas__config": f"{SCRAM} username='ana' password=pw;"},
            {"sasl.username": "ana", "sasl.password": "pw"},
        ),
        (
            {"sasl__oauthbearer__token__endpoint__url": "https://t"},
            {
                "sasl.oauthbearer.method": "oidc",
                "sasl.oauthbearer.token.endpoint.url": "https://t",
            },
        ),
        ({"ssl__truststore__type": "pkcs12", "ssl__keystore__type": "JKS"}, {}),
        (
            {"sasl__jaas__config": f"{OAUTH} clientId='id' clientSecret='pw';"},
            {"sasl.oauthbearer.client.id": "id", "sasl.oauthbearer.client.secret": "pw"},
        ),
    ],
)
def test_java_names_mean_what_they_mean_in_java(java, librdkafka_has):
    """Both clients' names are understood, and each ends up as librdkafka's."""
    assert config(**java) == librdkafka_has


@pytest.mark.parametrize(
    ("file", "librdkafka_has"),
    [
        ("pem", {"ssl.ca.location": "FILE"}),
        ("pem", {"ssl.certificate.location": "FILE", "ssl.key.location": "FILE"}),
        ("p12", {"ssl.keystore.location": "FILE"}),
    ],
)
def test_the_content_of_a_store_says_what_it_is(tmp_path, file, librdkafka_has):
    """Key and chain in one PEM file (KIP-651), and PKCS#12, which librdkafka reads itself."""
    store = tmp_path / "store.jks"
    store.write_bytes(b"-----BEGIN CERTIFICATE-----" if file == "pem" else b"\x30\x82")
    kind = "truststore" if "ssl.ca.location" in librdkafka_has else "keystore"

    made = config(**{f"ssl__{kind}__location": str(store), f"ssl__{kind}__type": "JKS"})

    assert made == {name: str(store) for name in librdkafka_has}


@pytest.mark.parametrize(
    ("java", "remedy"),
    [
        ({"ssl__truststore__location": "/no/ca.pem"}, "'/no/ca.pem': No such file"),
        ({"ssl__keystore__location": "/no/me.p12"}, "'/no/me.p12': No such file"),
        (
            {"security__protocol": "SSL", "ssl__ca__location": "/no/ca.pem"},
            r"'properties\.ssl\.ca\.location' names .*'/no/ca\.pem': No such file",
        ),
        (
            {
                "security__protocol": "sasl_ssl",
                "ssl__certificate__location": "C:\\me.pem",
                "ssl__key__location": "C:\\me.key",
            },
            r"'properties\.ssl\.certificate\.location' names the file 'C:\\\\me\.pem': No such file",
        ),
        ({"ssl__truststore__type": "BCFKS"}, "JKS, PKCS12, PEM, but is 'BCFKS'"),
        ({"ssl__keystore__type": "BCFKS"}, "JKS, PKCS12, PEM, but is 'BCFKS'"),
        ({"ssl__engine__factory__class": "x.Y"}, "works in a JVM only"),
        ({"sasl__jaas__config": "com.example.LoginModule required;"}, "is not understood"),
        ({"buffer__memory": "32 mb"}, "expected bytes"),
        ({"ssl__keystore__certificate__chain": "pem"}, "there is a certificate without a key"),
        ({"ssl__key__location": "/me.key"}, "there is a key without a certificate"),
    ],
)
def test_security_that_only_a_jvm_understands_is_refused(java, remedy):
    """With what to use instead: dropping it could open a connection that is not secure."""
    with pytest.raises(OptionError, match=remedy):
        config(**java)


def test_a_file_of_certificates_that_nobody_reads_need_not_be_there():
    """Without TLS the options of TLS have no effect, as with librdkafka alone."""
    assert config(ssl__ca__location="/no/ca.pem") == {"ssl.ca.location": "/no/ca.pem"}


def test_tuning_without_an_equivalent_is_dropped_with_one_warning(caplog, monkeypatch):
    """It makes nothing wrong."""
    monkeypatch.setattr(errors, "_warned", set())

    assert config(max__poll__records="5") == config(max__poll__records="5") == {}
    (warning,) = [record.getMessage() for record in caplog.records]
    assert "Option 'properties.max.poll.records' tunes the Java client" in warning


@pytest.mark.parametrize(
    ("properties", "message"),
    [
        (
            {"lingr.ms": "5"},
            r"Unknown option 'properties.lingr.ms'. Did you mean 'properties.linger.ms'\?",
        ),
        ({TOKENS.lower(): "x"}, "Unknown option 'properties.login tokens'"),
        ({MAY_BE_CALLED.lower(): "x"}, "Unknown option 'properties.native functions'"),
        ({"logger": "x"}, "Unknown option 'properties.logger'"),
        (
            {"linger.ms": "soon"},
            "does not take an option 'properties.*': Invalid value for configuration property \"linger.ms\"",
        ),
        (
            {"security.protocol": "SASL"},
            "expected one of PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL, but is 'SASL'",
        ),
        (
            {"delivery.timeout.ms": "10", "linger.ms": "100"},
            "`delivery.timeout.ms` must be greater than `linger.ms`",
        ),
        (
            {
                "security.protocol": "SASL_SSL",
                "sasl.mechanism": "SCRAM-SHA-265",
                "sasl.username": "ana",
                "sasl.password": "pw",
            },
            "'properties.sasl.mechanism': expected one of PLAIN, .*, but is 'SCRAM-SHA-265'",
        ),
        (
            {"security.protocol": "SASL_SSL", "sasl.mechanism": "DIGEST-MD5"},
            "'properties.sasl.mechanism': expected one of PLAIN, .*, but is 'DIGEST-MD5'",
        ),
    ],
)
def test_what_the_client_does_not_take_is_told(properties, message):
    """An unknown name with the nearest one."""
    with pytest.raises(OptionError, match=message):
        open_client(ck.Producer, client_config(Properties(properties), "writer", {}))


def test_a_mechanism_that_is_not_given_is_no_call_to_recompile():
    """Kerberos is the default, which the wheels of librdkafka lack: the mechanism is named."""

    def without_kerberos(_: dict[str, object]) -> None:
        raise ValueError("No provider for SASL mechanism GSSAPI: recompile librdkafka")

    with pytest.raises(OptionError, match=r"'properties\.sasl\.mechanism' = 'GSSAPI', its default"):
        open_client(without_kerberos, {})


def test_a_refused_secret_is_not_shown():
    """Even where librdkafka repeats it."""
    given = Properties({"ssl.key.pem": "geheim", "ssl.certificate.pem": "geheim"})

    with pytest.raises(OptionError) as error:
        open_client(ck.Producer, client_config(given, "writer", {"security.protocol": "ssl"}))

    assert "geheim" not in str(error.value)


@pytest.mark.parametrize(
    ("given", "missing"),
    [
        ({}, "'properties.sasl.username' and 'properties.sasl.password' are not given"),
        ({"sasl.username": "ana"}, "'properties.sasl.password' is not given"),
        ({"sasl.password": "u"}, "'properties.sasl.username' is not given"),
        (
            {"sasl.jaas.config": "o.a.k.PlainLoginModule required;"},
            "'properties.sasl.username' and 'properties.sasl.password' are not given",
        ),
    ],
)
def test_a_login_without_a_password(given, missing):
    """What is missing is named as the user would write it."""
    login = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN", **given}

    with pytest.raises(OptionError, match=missing):
        client_config(Properties({"bootstrap.servers": "here:9092", **login}), "reader", {})


IMDS = {
    "security.protocol": "SASL_PLAINTEXT",
    "sasl.mechanism": "OAUTHBEARER",
    "sasl.oauthbearer.metadata.authentication.type": "azure_imds",
    "sasl.oauthbearer.config": "query=api-version=2018-02-01&resource=https://shop.servicebus.windows.net",
}


def test_the_machines_own_tokens_are_left_to_librdkafka():
    """It is one of librdkafka's ways of OpenID Connect, which need not be said as well."""
    pytest.importorskip("confluent_kafka", "2.12")
    made = client_config(Properties(IMDS), "reader", {})

    assert made["sasl.oauthbearer.method"] == "oidc"
    assert made["sasl.oauthbearer.metadata.authentication.type"] == "azure_imds"
    open_client(ck.Producer, {**made, "bootstrap.servers": "127.0.0.1:1"})


@pytest.mark.parametrize(("way", "since"), [("azure_imds", "2.12"), ("aws_iam", "2.15")])
def test_a_way_to_tokens_that_the_installed_client_is_too_old_for(way, since, monkeypatch):
    """It would say that it knows no such property."""
    monkeypatch.setattr(ck, "libversion", lambda: ("2.10.0", 0x020A00FF))
    given = {**IMDS, "sasl.oauthbearer.metadata.authentication.type": way}

    with pytest.raises(
        OptionError, match=f"= '{way}' needs librdkafka {since} or newer, but here is 2.10.0: pip"
    ):
        client_config(Properties(given), "reader", {})


@pytest.mark.parametrize(
    "servers",
    [
        "b-1.demo.abc123.c2.kafka.eu-west-1.amazonaws.com:9098",
        "boot-abc.c1.kafka-serverless.eu-west-1.amazonaws.com:9098",
        "b-1.demo.abc123.c2.kafka.cn-north-1.amazonaws.com.cn:9098",
    ],
)
def test_amazons_brokers_do_not_take_amazons_web_identities(servers):
    """Confluent Cloud does: confluent-kafka's own way to them is refused where it leads to a login that is refused."""
    given = {
        **IMDS,
        "sasl.oauthbearer.metadata.authentication.type": "aws_iam",
        "sasl.oauthbearer.config": "region=eu-west-1,audience=https://confluent.cloud/oidc",
    }
    client_config(
        Properties({**given, "bootstrap.servers": "pkc-1.aws.confluent.cloud:9092"}), "x", {}
    )
    with pytest.raises(
        OptionError, match=r"set 'properties\.sasl\.oauthbearer\.token\.provider' = 'aws-msk'"
    ):
        client_config(Properties({**given, "bootstrap.servers": servers}), "x", {})


def test_a_token_that_confluent_kafka_waits_for_in_vain():
    """Is no option that is wrong: a query that is started again may have it."""

    def without_token(_: dict[str, object]) -> None:
        raise ck.KafkaException(ck.KafkaError(58, "OAuth token not set within 10 seconds timeout"))

    with pytest.raises(RetriableBrokerError, match=r"no token to log in with: .*10 seconds"):
        open_client(without_token, {})
