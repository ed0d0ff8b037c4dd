"""Options ``properties.*``: what is the connector's own business, secrets, and references."""

from __future__ import annotations

import pickle
import re
from pathlib import Path

import pytest

from pyspark_upsert_kafka.core.errors import OptionError
from pyspark_upsert_kafka.core.masking import (
    is_secret,
    java_properties,
    literal_secrets,
    masked,
    resolve,
    shown_by_spark,
)
from pyspark_upsert_kafka.core.options.given import one_spelling
from pyspark_upsert_kafka.core.options.properties import Properties, client_properties

# Which properties reach the client


def test_properties_lose_their_prefix_and_keep_their_values():
    """What stands behind `properties.` goes to the client as it was given; other options do not."""
    given = {
        "topic": "t",
        "properties.linger.ms": "5",
        "properties.bootstrap.servers": " a:1 ",
        "properties.sasl.username": "${env:USER_NAME}",
    }

    assert client_properties(given, group_start=False) == Properties(
        {"bootstrap.servers": " a:1 ", "linger.ms": "5", "sasl.username": "${env:USER_NAME}"}
    )


@pytest.mark.parametrize(
    "name",
    [
        "key.serializer",
        "value.serializer",
        "key.deserializer",
        "value.deserializer",
        "enable.auto.commit",
        "enable.auto.offset.store",
        "partitioner",
        "partitioner.class",
        "transactional.id",
        "enable.partition.eof",
        "interceptor.classes",
    ],
)
def test_what_the_connector_manages_is_refused(name):
    """The error names the option and why it is no business of the user's, but not the value."""
    with pytest.raises(OptionError) as error:
        client_properties({f"properties.{name}": "some-value"}, group_start=True)

    assert re.fullmatch(f"Option 'properties\\.{name}' cannot be set: [^:]+\\.", str(error.value))
    assert "some-value" not in str(error.value)


def test_auto_offset_reset_is_for_group_offsets():
    """Without group offsets `properties.auto.offset.reset` would say what nobody asks."""
    with pytest.raises(OptionError, match=r"^Option 'properties\.auto\.offset\.reset' is for"):
        client_properties({"properties.auto.offset.reset": "earliest"}, group_start=False)


def test_auto_offset_reset_never_reaches_the_client():
    """A client that resets by itself would step over lost data in silence."""
    given = {"properties.auto.offset.reset": "earliest", "properties.group.id": "g"}

    assert client_properties(given, group_start=True) == Properties({"group.id": "g"})


@pytest.mark.parametrize(
    ("name", "other"),
    [
        ("acks", "request.required.acks"),
        ("bootstrap.servers", "metadata.broker.list"),
        ("delivery.timeout.ms", "message.timeout.ms"),
        ("linger.ms", "queue.buffering.max.ms"),
        ("max.partition.fetch.bytes", "fetch.message.max.bytes"),
        ("max.request.size", "message.max.bytes"),
        ("retries", "message.send.max.retries"),
        ("compression.type", "compression.codec"),
    ],
)
def test_both_clients_names_of_a_property_are_one(name, other):
    """Whoever looks at a property sees it, whichever name it was given by."""
    java, librdkafka = f"properties.{name}", f"properties.{other}"

    assert one_spelling({librdkafka: "1"}) == one_spelling({java: "1", librdkafka: "1"})
    assert one_spelling({librdkafka: "1"}) == {java: "1"}
    for given in ({java: "1", librdkafka: "2"}, {librdkafka: "2", java: "1"}):
        with pytest.raises(OptionError, match="are two names of the same setting") as error:
            one_spelling(given)
        assert f"'{java}'" in str(error.value)
        assert f"'{librdkafka}'" in str(error.value)


# A value among values


def test_properties_are_a_value():
    """Equal properties are equal, whatever order they came in, and survive the way to a worker."""
    one, other = Properties({"b": "2", "a": "1"}), Properties({"a": "1", "b": "2"})

    assert (one, hash(one), list(one)) == (other, hash(other), ["a", "b"])
    assert pickle.loads(pickle.dumps(one)) == one
    assert one != Properties({"a": "1"})
    assert (len(one), one["a"], one.get("c")) == (2, "1", None)


def test_properties_know_whether_native_functions_may_be_called():
    """No client that may call them is lent to a task that may not, with references replaced and on a worker too."""
    on, off = Properties({"a": "1"}), Properties({"a": "1"}, native=False)

    assert on != off
    assert (off, hash(off)) == (Properties({"a": "1"}, native=False), hash(off))
    assert (on.native, off.native) == (True, False)
    for made in (off.resolved(), off.replaced({"b": "2"}), pickle.loads(pickle.dumps(off))):
        assert made.native is False


def test_properties_show_no_secret():
    """In a repr secrets are starred out; their values are there."""
    properties = Properties({"sasl.password": "geheim", "linger.ms": "5"})

    assert repr(properties) == "Properties({'linger.ms': '5', 'sasl.password': '***'})"
    assert str(properties) == repr(properties)
    assert "geheim" not in f"{properties.items()} {properties.values()}"
    assert properties["sasl.password"] == "geheim"


# What is secret


@pytest.mark.parametrize(
    ("name", "secret"),
    [
        ("properties.sasl.jaas.config", True),
        ("properties.sasl.password", True),
        ("properties.ssl.key.password", True),
        ("properties.ssl.key.pem", True),
        ("properties.ssl.keystore.key", True),
        ("properties.sasl.oauthbearer.client.secret", True),
        ("properties.sasl.oauthbearer.assertion.private.key.passphrase", True),
        ("properties.schema.registry.basic.auth.user.info", True),
        ("value.avro-confluent.basic-auth.user-info", True),
        ("value.avro-confluent.bearer-auth.token", True),
        ("Properties.SASL.Password", True),
        ("properties.sasl.username", False),
        ("properties.sasl.mechanism", False),
        ("properties.bootstrap.servers", False),
        ("properties.ssl.ca.location", False),
        ("primary-key", False),
        ("key.format", False),
        ("topic", False),
    ],
)
def test_secrets_are_known_by_name(name, secret):
    """Passwords, tokens, keys and JAAS strings are secret, wherever they are given."""
    assert is_secret(name) is secret


@pytest.mark.parametrize(
    "name", ["properties.bootstrap.servers", "properties.metadata.broker.list"]
)
@pytest.mark.parametrize(
    ("servers", "shown"),
    [
        ("b:9092", "b:9092"),
        ("me:geheim@b:9092", "***@b:9092"),
        ("a:1, SASL_SSL://me:geheim@b:2 ,c:3", "a:1, SASL_SSL://***@b:2 ,c:3"),
        ("me:ge@heim@b:9092,geheim@c:1", "***@b:9092,***@c:1"),
        ("me:geheim/@b:9092", "***@b:9092"),
    ],
)
def test_users_in_addresses_of_brokers(name, servers, shown):
    """They are not shown, and refused: no client takes them, and each would show them in its errors."""
    assert masked({name: servers}) == {name: shown}
    given = one_spelling({name: servers})
    if servers == shown:
        assert client_properties(given, group_start=False)["bootstrap.servers"] == servers
        return
    with pytest.raises(
        OptionError, match=r"addresses of brokers have no user.*'properties\.sasl\.u"
    ) as error:
        client_properties(given, group_start=False)
    assert repr(shown) in str(error.value)
    assert "heim" not in str(error.value)


def test_users_in_addresses_of_brokers_behind_a_reference(monkeypatch):
    """They are found where the reference is replaced."""
    properties = Properties({"bootstrap.servers": "${file:/etc/a@b:servers}"})
    assert properties["bootstrap.servers"] == "${file:/etc/a@b:servers}"
    monkeypatch.setenv("SERVERS", "me:geheim@b:9092")
    with pytest.raises(OptionError, match="is '\\*\\*\\*@b:9092': addresses"):
        Properties({"bootstrap.servers": "${env:SERVERS}"}).resolved()


def test_masked_options():
    """Masking leaves names and harmless values, and changes nothing that was given."""
    given = {"topic": "t", "properties.sasl.password": "geheim"}

    assert masked(given) == {"topic": "t", "properties.sasl.password": "***"}
    assert given["properties.sasl.password"] == "geheim"


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ({"properties.ssl.key.pem": "-----BEGIN PRIVATE KEY"}, ["properties.ssl.key.pem"]),
        (
            {
                "value.avro-confluent.basic-auth.user-info": "me:geheim",
                "properties.ssl.keystore.key": "geheim",
            },
            ["properties.ssl.keystore.key", "value.avro-confluent.basic-auth.user-info"],
        ),
        (
            {"properties.sasl.jaas.config": "PlainLoginModule required user=a"},
            ["properties.sasl.jaas.config"],
        ),
        ({"properties.sasl.jaas.config": "... required password='geheim';"}, []),
        ({"properties.sasl.password": "geheim"}, []),
        ({"value.avro-confluent.bearer-auth.token": "geheim"}, []),
        ({"properties.ssl.key.pem": "${file:/etc/kafka:key}"}, []),
        ({"properties.ssl.key.pem": " ${env:KEY} "}, []),
        ({"properties.ssl.key.pem": "${env:KEY}geheim"}, ["properties.ssl.key.pem"]),
        ({"topic": "t"}, []),
        ({"value.avro-confluent.url": "http://me:geheim@host"}, []),
        (
            {"properties.bootstrap.servers": "http://me:geheim@host"},
            ["properties.bootstrap.servers"],
        ),
    ],
)
def test_what_spark_would_show(given, shown):
    """Literal secrets that neither by name nor by value match Spark's redaction, sorted by name."""
    assert shown_by_spark(given) == shown


def test_a_literal_secret_is_told_with_its_remedies():
    """The warning names the option, never the value, and says what to do."""
    (text,) = literal_secrets({"properties.ssl.key.pem": "geheim", "topic": "t"})

    assert "'properties.ssl.key.pem'" in text
    assert "${env:NAME}" in text
    assert "spark.sql.redaction.options.regex" in text
    assert "geheim" not in text
    assert literal_secrets({"properties.ssl.key.pem": "${env:KEY}"}) == []


# References


@pytest.fixture
def secrets(tmp_path: Path) -> Path:
    """A file of secrets as Kafka's FileConfigProvider reads it."""
    file = tmp_path / "client.properties"
    file.write_text("# of the test\nuser = alice\npassword: a\\=b}c\nempty=\n", encoding="utf-8")
    return file


@pytest.mark.parametrize(
    ("value", "resolved"),
    [
        ("plain", "plain"),
        ("", ""),
        ("${env:WHO}", "alice"),
        ("user='${env:WHO}' and ${env:WHO}", "user='alice' and alice"),
        ("${file:FILE:user}", "alice"),
        ("${file:FILE:password}", "a=b}c"),
        ("${file:FILE:empty}", ""),
        ("${env:NESTED}", "${env:WHO}"),
        ("${vault:x:y} $env:WHO ${env", "${vault:x:y} $env:WHO ${env"),
    ],
)
def test_references_are_replaced(monkeypatch, secrets, value, resolved):
    """Environment variables and entries of files stand in, once; anything else stays as it is."""
    monkeypatch.setenv("WHO", "alice")
    monkeypatch.setenv("NESTED", "${env:WHO}")

    assert resolve("properties.sasl.username", value.replace("FILE", str(secrets))) == resolved


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (
            "${env:NOT_SET}",
            (
                "Option 'properties.sasl.password' refers to the environment variable 'NOT_SET', which is "
                "not set where it is used (on the driver, and on each executor)."
            ),
        ),
        (
            "${file:FILE:pass}",
            (
                "Option 'properties.sasl.password' refers to 'pass' in the file 'FILE', which has no such "
                "key."
            ),
        ),
        (
            "${file:FILE.gone:user}",
            (
                "Option 'properties.sasl.password' refers to the file 'FILE.gone': No such file or "
                "directory."
            ),
        ),
        (
            "${file:user}",
            (
                "Option 'properties.sasl.password': '${file:user}' is no reference; they are spelt "
                "'${env:NAME}' and '${file:/path:key}'."
            ),
        ),
        (
            "${ENV:NAME}",
            (
                "Option 'properties.sasl.password': '${ENV:NAME}' is no reference; they are spelt "
                "'${env:NAME}' and '${file:/path:key}'."
            ),
        ),
    ],
)
def test_a_reference_to_nothing_is_told(monkeypatch, secrets, value, message):
    """The error names the option and what it refers to, and nothing of what is there."""
    monkeypatch.delenv("NOT_SET", raising=False)

    with pytest.raises(OptionError) as error:
        resolve("properties.sasl.password", value.replace("FILE", str(secrets)))

    assert str(error.value) == message.replace("FILE", str(secrets))


def test_a_file_that_is_no_text_is_told(tmp_path):
    """A key store in place of a properties file is an error of the user's, not a crash."""
    file = tmp_path / "store.p12"
    file.write_bytes(b"\xff\xfe\x00")

    with pytest.raises(OptionError, match=r"refers to the file '.*store\.p12': not UTF-8\."):
        resolve("properties.sasl.password", f"${{file:{file}:a}}")


def test_properties_are_resolved_where_they_are_used(monkeypatch):
    """A plan holds the reference; `resolved` gives what it stands for at that moment."""
    properties = Properties({"sasl.password": "${env:THE_PASSWORD}", "linger.ms": "5"})
    monkeypatch.setenv("THE_PASSWORD", "geheim")

    assert properties.resolved() == {"sasl.password": "geheim", "linger.ms": "5"}
    assert "geheim" not in repr(properties.resolved())
    assert properties["sasl.password"] == "${env:THE_PASSWORD}"


def test_an_unresolved_property_is_named_in_full(monkeypatch):
    """The error names the option as the user wrote it, prefix included."""
    monkeypatch.delenv("NOT_SET", raising=False)

    with pytest.raises(OptionError, match=r"^Option 'properties\.sasl\.password' refers"):
        Properties({"sasl.password": "${env:NOT_SET}"}).resolved()


@pytest.mark.parametrize(
    ("text", "entries"),
    [
        ("", {}),
        ("a=1", {"a": "1"}),
        ("a = 1\r\nb : 2\rc 3\n", {"a": "1", "b": "2", "c": "3"}),
        ("  a=1 = 2 ", {"a": "1 = 2 "}),
        ("# a=1\n  ! b=2\n\n \t\nc=3", {"c": "3"}),
        ("a=1\na=2", {"a": "2"}),
        ("a", {"a": ""}),
        ("=a", {"": "a"}),
        (r"a\ b\:c\==1", {"a b:c=": "1"}),
        (r"a=\u00e4\t\q\\", {"a": "\u00e4\tq\\"}),
        ("a=1\\\n   2\\\n#3\nb=4", {"a": "12#3", "b": "4"}),
        ("a=1\\\\\nb=2", {"a": "1\\", "b": "2"}),
        ("a=1\\", {"a": "1"}),
    ],
)
def test_java_properties_files(text, entries):
    """What `java.util.Properties.load` makes of a text."""
    assert java_properties(text) == entries
