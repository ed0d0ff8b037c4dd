"""Java's ``sasl.jaas.config``, read as Java reads it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyspark_upsert_kafka.core.errors import OptionError
from pyspark_upsert_kafka.logins.jaas import login, quoted, without_jaas

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"
FLINK = (
    "org.apache.flink.kafka.shaded.org.apache.kafka.common.security.scram.ScramLoginModule required"
)
OAUTH = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required"
KERBEROS = "com.sun.security.auth.module.Krb5LoginModule required"


def user(name: str, password: str) -> dict[str, str]:
    """What a login by name and password comes to."""
    return {"sasl.username": name, "sasl.password": password}


@pytest.mark.parametrize(
    ("value", "properties"),
    [
        (f'{PLAIN} username="ana" password="p w";', user("ana", "p w")),
        (f"{FLINK} username='an\"a' password=pw ;", user('an"a', "pw")),
        (f'{PLAIN}\n  username="ana"\n  password="p;w=/*x*/";\n', user("ana", "p;w=/*x*/")),
        (f'{PLAIN} username="ana" password="p\\"w\\\\" ;', user("ana", 'p"w\\')),
        (f"{PLAIN} username='ana' password='a\\'b\\n\\t\\101\\u';", user("ana", "a'b\n\tAu")),
        (f"{PLAIN} /* who */ username='ana' // and how\n password='pw'", user("ana", "pw")),
        (f'{PLAIN} Optional="" username="ü€" password="";', user("ü€", "")),
        (f"{PLAIN};", {}),
        (
            f"{OAUTH} clientId='id' clientSecret='s e' scope='a b' extension_x='1' extension_y='2';",
            {
                "sasl.oauthbearer.client.id": "id",
                "sasl.oauthbearer.client.secret": "s e",
                "sasl.oauthbearer.scope": "a b",
                "sasl.oauthbearer.extensions": "x=1,y=2",
            },
        ),
        (
            f'{OAUTH} unsecuredLoginStringClaim_sub="ana" unsecuredLoginLifetimeSeconds="60";',
            {
                "enable.sasl.oauthbearer.unsecure.jwt": "true",
                "sasl.oauthbearer.config": "principal=ana lifeSeconds=60",
            },
        ),
        (
            f"{KERBEROS} useKeyTab=true keyTab='/k' principal='ana@EXAMPLE.ORG' serviceName='kafka';",
            {
                "sasl.kerberos.keytab": "/k",
                "sasl.kerberos.principal": "ana@EXAMPLE.ORG",
                "sasl.kerberos.service.name": "kafka",
            },
        ),
        (f"{KERBEROS} useTicketCache=true;", {}),
    ],
)
def test_a_login_is_what_java_takes_it_for(value, properties):
    """Quotes, escapes and comments as in ``java.io.StreamTokenizer``; the package of a module is any."""
    assert without_jaas({"sasl.jaas.config": value}) == properties


@pytest.mark.parametrize(
    "value",
    [
        "",
        "geheim",
        f"{PLAIN} username",
        f"{PLAIN} username=",
        f"{PLAIN} username='ana' password='geheim",
        f"{PLAIN} username='ana' password='geheim\n';",
        f"{PLAIN} username='ana' password='geheim'; {PLAIN};",
        f"{PLAIN} username='ana' password=ge'heim;",
        "PlainLoginModule username='ana' password='geheim';",
        "com.example.MyLoginModule required password='geheim';",
        f"{OAUTH} unsecuredLoginStringClaim_sub='a geheim';",
        f"{OAUTH} unsecuredLoginStringClaim_sub='ana' unsecuredLoginListClaim_x='geheim';",
    ],
)
def test_what_is_not_understood_is_refused_without_being_shown(value):
    """As Java would, or since it says what no other client can do."""
    with pytest.raises(OptionError, match=r"^Option 'properties\.sasl\.jaas\.config'") as error:
        without_jaas({"sasl.jaas.config": value})

    assert "geheim" not in str(error.value)


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (
            f"{PLAIN} username='ana' pasword='geheim';",
            "gives no 'password'; it gives 'username', 'pasword'",
        ),
        (f"{PLAIN} user='ana';", "gives no 'username' and no 'password'; it gives 'user'"),
    ],
)
def test_half_a_login_is_refused_with_what_it_gives(value, said):
    """A misspelt name would end in a refused login, whose error names nothing."""
    with pytest.raises(OptionError, match=said) as error:
        without_jaas({"sasl.jaas.config": value})

    assert "geheim" not in str(error.value)


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_any_text_can_be_quoted(text):
    """Whatever a password is made of, it comes back."""
    found = login(f"{PLAIN} {quoted(text)}={quoted(text)};")

    assert found is not None
    assert found.given == {text: text}


def test_a_login_shows_no_secret():
    """It may be in a traceback."""
    assert "geheim" not in repr(login(f"{PLAIN} password='geheim';"))


def test_what_is_given_beside_it_wins():
    """It is more precise; other properties stay."""
    given = {
        "sasl.jaas.config": f"{PLAIN} username='ana' password='a';",
        "sasl.password": "b",
        "acks": "1",
    }

    assert without_jaas(given) == {"sasl.username": "ana", "sasl.password": "b", "acks": "1"}


@pytest.mark.parametrize("package", ["", "secured.", "internals.unsecured."])
def test_java_s_own_handler_of_tokens_need_not_be_named(package):
    """What it does is done here; another handler is left for the client to refuse."""
    name = "sasl.login.callback.handler.class"
    java = f"org.apache.kafka.common.security.oauthbearer.{package}OAuthBearerLoginCallbackHandler"

    assert without_jaas({name: java}) == {}
    assert without_jaas({name: "com.example.Handler"}) == {name: "com.example.Handler"}


IAM = "software.amazon.msk.auth.iam"
CLOUDS = {
    "Amazon's mechanism": (
        {
            "sasl.mechanism": "AWS_MSK_IAM",
            "sasl.jaas.config": f'{IAM}.IAMLoginModule required awsRoleArn="arn:aws:iam::1:role/r" awsStsRegion="eu-west-1" '
            'awsDebugCreds="true";',
            "sasl.client.callback.handler.class": f"{IAM}.IAMClientCallbackHandler",
        },
        ("aws-msk", "awsRoleArn=arn:aws:iam::1:role/r awsStsRegion=eu-west-1"),
    ),
    "Amazon's mechanism alone": (
        {
            "sasl.mechanism": "AWS_MSK_IAM",
            "sasl.jaas.config": f"{IAM}.IAMLoginModule required;",
            "sasl.client.callback.handler.class": f"{IAM}.IAMClientCallbackHandler",
        },
        ("aws-msk", ""),
    ),
    "Amazon's handler": (
        {
            "sasl.mechanism": "OAUTHBEARER",
            "sasl.jaas.config": f"{OAUTH} awsProfileName=dev;",
            "sasl.login.callback.handler.class": f"{IAM}.IAMOAuthBearerLoginCallbackHandler",
            "sasl.client.callback.handler.class": f"{IAM}.IAMOAuthBearerLoginCallbackHandler",
        },
        ("aws-msk", "awsProfileName=dev"),
    ),
    "Google's handler": (
        {
            "sasl.mechanism": "OAUTHBEARER",
            "sasl.jaas.config": f"{OAUTH};",
            "sasl.login.callback.handler.class": "com.google.cloud.hosted.kafka.auth.GcpLoginCallbackHandler",
        },
        ("gcp", ""),
    ),
}


@pytest.mark.parametrize("cloud", CLOUDS)
def test_the_logins_of_clouds_as_java_spells_them(cloud: str) -> None:
    """They mean a provider of tokens, which is told what the login module is given."""
    given, (provider, config) = CLOUDS[cloud]

    assert without_jaas({"linger.ms": "5", **given}) == {
        "linger.ms": "5",
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.oauthbearer.token.provider": provider,
        "sasl.oauthbearer.config": config,
    }


@pytest.mark.parametrize(
    "jaas", ["geheim", f'{IAM}.IAMLoginModule required awsProfileName="ge heim";']
)
def test_a_login_of_a_cloud_that_is_not_understood(jaas: str) -> None:
    """It is told without what it says."""
    with pytest.raises(OptionError, match=r"sasl\.jaas\.config' is not understood") as error:
        without_jaas({"sasl.mechanism": "AWS_MSK_IAM", "sasl.jaas.config": jaas})

    assert "heim" not in str(error.value)
