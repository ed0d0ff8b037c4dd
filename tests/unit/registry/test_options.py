"""Options of the ``avro-confluent`` format: spellings, contradictions, and secrets that stay hidden."""

from __future__ import annotations

import pickle

import pytest

from pyspark_upsert_kafka.core.errors import OptionError
from pyspark_upsert_kafka.core.masking import is_secret, masked, shown_by_spark
from pyspark_upsert_kafka.core.options.frozen_options import FormatChoice
from pyspark_upsert_kafka.registry.access import Addresses, addresses
from pyspark_upsert_kafka.registry.framing import subject_of
from tests.unit.registry.avro_confluent_codecs import parsed, settings, settings_of, spec

SECRET = "pa55word"
USER = f"me:{SECRET}"
OAUTH = {
    "bearer-auth.credentials-source": "OAUTHBEARER",
    "bearer-auth.issuer.endpoint.url": "https://login.example.org/token",
    "bearer-auth.client.id": "an id",
    "bearer-auth.client.secret": SECRET,
}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("http://localhost:8081", Addresses(("http://localhost:8081",))),
        (" https://host/registry/ ", Addresses(("https://host/registry",))),
        ("http://a:1,http://b:2/", Addresses(("http://a:1", "http://b:2"))),
        (f"http://{USER}@host:8081", Addresses(("http://host:8081",), USER)),
        ("https://me:a%40b%2Fc@host", Addresses(("https://host",), "me:a@b/c")),
        (f"http://{USER}@a,http://{USER}@b", Addresses(("http://a", "http://b"), USER)),
    ],
)
def test_addresses(text, expected):
    """One address or several, without the slash at their end, user and password apart from them."""
    assert addresses(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "localhost:8081",
        "ftp://host",
        "http://",
        " , ",
        f"http://{USER}@a,http://b",
        f"http://me:#{SECRET}@host",
        f"http://me:/{SECRET}@host",
        f"http://me:1/{SECRET}@host",
        f"http://me:1?{SECRET}@host",
        f"http://me:1#{SECRET}@host",
        f"http://[{SECRET}",
        f"http://me:{SECRET}\u2100@host",
        f"{SECRET}://host",
    ],
)
def test_what_is_no_address_is_not_shown(text):
    """It is refused without being shown, since a part of it may be a password."""
    with pytest.raises(OptionError, match=r"'value\.avro-confluent\.url': expected") as error:
        parsed({"url": text})

    assert SECRET not in str(error.value)


@pytest.mark.parametrize("name", ["url", "subject", "schema"])
def test_the_older_spellings(name):
    """``schema-registry.<name>`` means the same, alone or beside the newer name."""
    given = {"url": "http://a", "subject": "s", "schema": '"long"'}
    older = {key: text for key, text in given.items() if key != name}
    older[f"schema-registry.{name}"] = given[name]
    expected = settings_of(spec(given))

    assert settings_of(spec(older)) == settings_of(spec({**older, **given})) == expected


@pytest.mark.parametrize("name", ["url", "subject", "schema"])
def test_older_and_newer_spelling_that_differ(name):
    """Two values for one thing are refused by both names."""
    given = {name: "http://a", f"schema-registry.{name}": "http://b"}

    with pytest.raises(OptionError, match=rf"avro-confluent\.{name}' and .*registry\.{name}'"):
        settings(given)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"basic-auth.credentials-source": "USER_INFO"}, "'value.avro-confluent.basic-auth.user-info'"),
        ({"basic-auth.credentials-source": "URL"}, "needs user and password in 'value.avro-confluent"),
        ({"basic-auth.credentials-source": "URL", "basic-auth.user-info": USER}, "leave one out"),
        ({"url": f"http://{USER}@host", "basic-auth.user-info": USER}, "leave one out"),
        ({"bearer-auth.credentials-source": "STATIC_TOKEN"}, "'value.avro-confluent.bearer-auth.token'"),
        ({"bearer-auth.token": SECRET, "basic-auth.user-info": USER}, "leave one out"),
        ({"basic-auth.credentials-source": "SASL_INHERIT"}, "or in `basic-auth.user-info`"),
        ({"bearer-auth.credentials-source": "OAUTHBEARER_AZURE_IMDS"}, "`STATIC_TOKEN`"),
        ({**OAUTH, "bearer-auth.issuer.endpoint.url": None}, "'value.avro-confluent.bearer-auth.issuer.endpoint.url' is required with"),
        ({**OAUTH, "bearer-auth.client.secret": None}, "'value.avro-confluent.bearer-auth.client.secret' is required with"),
        ({**OAUTH, "bearer-auth.issuer.endpoint.url": f"https://me:{SECRET}@host/token"}, "without a user or password"),
        ({**OAUTH, "bearer-auth.issuer.endpoint.url": f"file:///{SECRET}"}, "expected an address such as 'https://login.example.org"),
        ({**OAUTH, "bearer-auth.credentials-source": None}, "goes with 'value.avro-confluent.bearer-auth.credentials-source' = 'OAUTHBEARER', which is not given"),
        ({**OAUTH, "bearer-auth.token": SECRET}, "goes with 'value.avro-confluent.bearer-auth.credentials-source' = 'STATIC_TOKEN', which is 'OAUTHBEARER'"),
        ({**OAUTH, "basic-auth.user-info": USER}, "credentials-source' and a user with a password are both given: leave one out"),
        ({"bearer-auth.credentials-source": "CUSTOM"}, "'value.avro-confluent.bearer-auth.token.provider' is required with"),
        ({"bearer-auth.token.provider.config": SECRET}, "goes with 'value.avro-confluent.bearer-auth.credentials-source' = 'CUSTOM'"),
        ({"bearer-auth.logical.cluster": "lsrc-1"}, "needs 'value.avro-confluent.bearer-auth.credentials-source'"),
        ({"ssl.keystore.password": SECRET}, "'value.avro-confluent.ssl.keystore.location' is required with 'value.avro-confluent.ssl.keystore.password'"),
        ({"ssl.truststore.password": SECRET}, "'value.avro-confluent.ssl.truststore.location' is required with"),
    ],
)  # fmt: skip
def test_credentials_that_do_not_fit_together(given, message):
    """Who asks is said once and whole; what is wrong is told without the secret."""
    with pytest.raises(OptionError) as error:
        settings({name: value for name, value in given.items() if value is not None})

    assert message in str(error.value)
    assert SECRET not in str(error.value)


def test_the_address_is_required():
    """Without an address there is no registry; the error shows how to give one."""
    with pytest.raises(OptionError, match=r"(?s)options are missing.*key\.avro-confluent\.url"):
        settings_of(spec({}, side="key"))


@pytest.mark.parametrize(
    ("given", "side", "topics", "subject"),
    [
        ({}, "value", ("orders",), "orders-value"),
        ({}, "key", ("orders",), "orders-key"),
        ({"subject": "other"}, "value", ("orders",), "other"),
        ({"subject": "other"}, "value", ("a", "b"), "other"),
    ],
)
def test_the_subject(given, side, topics, subject):
    """It is named after the topic and the side, unless it is given."""
    it = spec({"url": "http://a", **given}, side=side, topics=topics)

    assert subject_of(it, settings_of(it)) == subject


@pytest.mark.parametrize("topics", [("a", "b"), ()])
def test_a_subject_for_several_topics_must_be_given(topics):
    """No single subject follows from a list or a pattern of topics."""
    it = spec({"url": "http://a"}, side="key", topics=topics)

    with pytest.raises(OptionError, match=r"'key\.avro-confluent\.subject' is required"):
        subject_of(it, settings_of(it))


@pytest.mark.parametrize(
    "given",
    [
        {"basic-auth.user-info": USER},
        {"bearer-auth.token": SECRET},
        OAUTH,
        {
            "bearer-auth.credentials-source": "CUSTOM",
            "bearer-auth.token.provider": "a",
            "bearer-auth.token.provider.config": SECRET,
        },
        {"url": f"http://{USER}@host"},
        {"ssl.keystore.location": "/a", "ssl.keystore.password": SECRET},
        {"ssl.truststore.location": "/a", "ssl.truststore.password": SECRET},
    ],
)
def test_secrets_are_in_no_repr(given):
    """Neither the options nor what is made of them shows a secret."""
    choice = FormatChoice("avro-confluent", tuple(parsed({"url": "http://a", **given}).items()))

    side = spec({"url": "http://a", **given})

    assert SECRET not in repr(choice) + repr(side) + repr(settings_of(side))


def test_where_credentials_are_is_no_secret():
    """No warning is given of an option that only says where they are; of the secret itself there is one."""
    prefix = "value.avro-confluent.bearer-auth."

    assert shown_by_spark({f"{prefix}credentials-source": "OAUTHBEARER"}) == []
    assert is_secret(f"{prefix}client.secret")
    assert is_secret(f"{prefix}token.provider.config")
    assert not is_secret(f"{prefix}token.provider")


def test_a_password_in_an_address_is_a_secret():
    """It is starred out where options are shown; Spark itself hides options named ``url``."""
    given = {"value.avro-confluent.url": f"http://{USER}@a:1,http://{USER}@b/c", "topic": "me@home"}

    assert masked(given) == {**given, "value.avro-confluent.url": "http://***@a:1,http://***@b/c"}
    assert shown_by_spark(given) == []
    assert shown_by_spark({"properties.proxy": f"http://{USER}@a"}) == ["properties.proxy"]
    for harmless in ("http://a:1/@b", "http://me:${env:PASSWORD}@a"):
        assert shown_by_spark({"properties.proxy": harmless}) == []


def test_secrets_stay_references_until_they_are_used(monkeypatch):
    """What travels to a task is the reference; the header is made of its value."""
    monkeypatch.setenv("REGISTRY_USER", USER)
    access = settings({"basic-auth.user-info": "${env:REGISTRY_USER}"}).access

    assert SECRET.encode() not in pickle.dumps(access)
    assert access.headers() == {"Authorization": "Basic bWU6cGE1NXdvcmQ="}


def test_a_token_that_cannot_be_sent(monkeypatch):
    """A token with a line break in it is refused and not shown; white space around it is none of it."""
    monkeypatch.setenv("TOKEN", f"{SECRET}\n")
    access = settings({"bearer-auth.token": "${env:TOKEN}"}).access
    assert access.headers() == {"Authorization": f"Bearer {SECRET}"}

    monkeypatch.setenv("TOKEN", f"a\n{SECRET}")
    with pytest.raises(OptionError, match="cannot be sent") as error:
        access.headers()
    assert SECRET not in str(error.value)
