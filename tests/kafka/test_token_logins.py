"""Logins by tokens of a provider of the user's: with each client, and over the end of tokens."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from urllib.parse import parse_qsl, urlsplit

import pytest
from confluent_kafka.admin import AdminClient

from pyspark_upsert_kafka import read_table
from pyspark_upsert_kafka.cli import main
from pyspark_upsert_kafka.core.errors import BrokerError, RetriableBrokerError
from pyspark_upsert_kafka.core.options.frozen_options import Topics
from pyspark_upsert_kafka.core.positions.offsets import Range
from pyspark_upsert_kafka.core.receipts import GroupOffset
from pyspark_upsert_kafka.kafka import native
from pyspark_upsert_kafka.kafka.client_pool import close_idle_clients
from pyspark_upsert_kafka.kafka.clients import load_sending_client
from pyspark_upsert_kafka.logins.login_tokens import Token
from tests import given_tokens
from tests.chains import texts_of
from tests.conftest import Broker
from tests.kafka.conftest import (
    CLIENTS,
    NATIVE_OFF,
    WAYS,
    Edge,
    eventually,
    messages,
    numbered,
    own_messages,
    turn_off,
)
from tests.kafka.sasl_server import RefusedError, SaslServer
from tests.kafka.secured import Secured
from tests.kafka.test_security import (
    _close_idle_clients,  # noqa: F401
    everything,
    use_group,
)
from tests.set_clock import set_clock
from tests.unit.logins.test_aws_msk import address_in, signature

LIFE_S = 4


@pytest.fixture(autouse=True)
def _may_be_called(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The environment lists the module, and the process has no tokens of other tests."""
    for name, value in given_tokens.ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    yield
    given_tokens.failing.clear()


def config_of(life_s: float = 3600) -> str:
    """The text of a configuration that no other test has."""
    return f"user=ana life={life_s} id={uuid.uuid4().hex[:8]}"


def edge_of(secured: Secured, way: str, config: str) -> Edge:
    """The seam over the broker, which a token opens."""
    edge = secured.edge(way.split(maxsplit=1)[0], "SASL_PLAINTEXT", given_tokens.login(config))
    in_batches = replace(edge, with_metadata=False, details=frozenset())
    return edge if way in CLIENTS else in_batches


@pytest.fixture(params=WAYS)
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """A way to read and to send."""
    turn_off(monkeypatch, request.param)
    return str(request.param)


@pytest.mark.every_client
def test_a_token_of_a_provider_opens_the_door(secured: Secured, way: str) -> None:
    """For asking, sending, reading and groups; the provider is asked once for all clients of these."""
    topic, config = secured.broker.topic(), config_of()
    edge = edge_of(secured, way, config).given({"group.id": f"g-{uuid.uuid4().hex}"})

    edge.send(topic, *numbered(3))

    assert edge.offsets(Range(topic, 0, 0, 3)) == [0, 1, 2]
    assert use_group(edge, topic)
    assert given_tokens.calls[config] == 1


@pytest.mark.every_client
def test_a_provider_that_fails_is_named(secured: Secured, way: str) -> None:
    """By an error that a query may be started again after, with what the provider has said."""
    topic, config = secured.broker.topic(), config_of()
    given_tokens.failing[config] = KeyError("no such role")
    edge = edge_of(secured, way, config)
    for action in everything(edge, topic).values():
        with pytest.raises(RetriableBrokerError) as error:
            action()
        assert "The provider 'tests.given_tokens:token' gives no token" in str(error.value)
        assert "KeyError: 'no such role'" in str(error.value)


@pytest.mark.every_client
@pytest.mark.parametrize("client", CLIENTS)
def test_a_token_that_the_broker_refuses(secured: Secured, client: str) -> None:
    """Is another user's, who may do nothing: the broker says so."""
    topic = secured.broker.topic()
    edge = edge_of(secured, client, config_of().replace("ana", "bob"))
    with edge.cluster() as cluster, pytest.raises(BrokerError, match=r"ACL|[Aa]uthorization"):
        cluster.topics(Topics((topic,)))


@pytest.mark.long("waits until tokens expire")
def test_tokens_are_renewed_while_a_query_runs(secured: Secured, way: str, caplog) -> None:
    """A broker ends connections whose token has expired: one range and one sender go on with the next, and nothing is logged."""
    topic, config = secured.broker.topic(), config_of(LIFE_S)
    edge = edge_of(secured, way, config)
    secured.broker.produce(topic, *numbered(12))
    began, found = time.monotonic(), []
    with edge.sender(topic) as sender:
        for number in range(12):
            sender.send(messages(topic, *numbered(1, 100 + number)))
            sender.flush()
            found += edge.offsets(Range(topic, 0, number, number + 1))
            time.sleep(1)

    assert found == [*range(12)]
    assert secured.broker.pairs(topic) == [*numbered(12), *numbered(12, 100)]
    assert time.monotonic() - began > 2 * LIFE_S
    if way not in (
        "kafka-python",
        NATIVE_OFF,
    ):  # kafka-python and its library log that a connection was closed
        assert [each for each in caplog.messages if "reconnect" not in each.lower()] == []


@pytest.mark.long("waits until tokens expire")
def test_a_range_and_a_transaction_that_outlive_their_token(secured: Secured) -> None:
    """A long read, and a transaction with pauses longer than a token's life, are whole."""
    topic, config = secured.broker.topic(), config_of(LIFE_S)
    edge = edge_of(secured, "librdkafka in batches", config)
    transactional_id = f"x-{topic}"
    sender = load_sending_client("librdkafka", "a test").transactional_sender(
        edge.all_properties(), [topic], transactional_id, with_metadata=False
    )
    sender.begin()
    sender.send(messages(topic, *numbered(500)))
    sender.flush()
    time.sleep(1.5 * LIFE_S)
    sender.send(messages(topic, *numbered(500, 500)))
    sender.commit(GroupOffset(topic, 0, 1, "receipt"))
    sender.close()

    values = []
    for number, batch in enumerate(edge.batches(Range(topic, 0, 0, 1001))):
        values += [*batch.values]
        if number == 0:
            time.sleep(1.5 * LIFE_S)
    assert values == [value for _, value in numbered(1000)]
    assert secured.broker.pairs(topic) == numbered(1000)


@pytest.mark.long("waits until tokens expire")
def test_an_idle_client_has_the_next_token(secured: Secured, caplog) -> None:
    """Clients that wait for the next task log in again by themselves, and report nothing."""
    topic, config = secured.broker.topic(), config_of(LIFE_S)
    edge = edge_of(secured, "librdkafka in batches", config)
    edge.send(topic, *numbered(1))
    edge.offsets(Range(topic, 0, 0, 1))
    calls = given_tokens.calls[config]
    assert eventually(lambda: given_tokens.calls[config] > calls + 2)

    edge.send(topic, *numbered(1, 1))
    assert edge.offsets(Range(topic, 0, 0, 2)) == [0, 1]
    assert [each for each in caplog.messages if "SASL" in each] == []


@pytest.mark.long("waits until a token expires")
@pytest.mark.parametrize("client", CLIENTS)
def test_a_provider_that_fails_while_a_query_runs(secured: Secured, client: str, caplog) -> None:
    """A warning while the token is good, once; then an error that names the provider, after which a restart helps."""
    topic, config = secured.broker.topic(), config_of(LIFE_S)
    edge = edge_of(secured, client, config)

    def write() -> None:
        with edge.sender(topic) as sender:
            while True:
                sender.send(messages(topic, *numbered(1)))
                sender.flush()
                time.sleep(0.2)

    def read() -> None:
        while True:
            assert edge.offsets(Range(topic, 0, 0, 1)) == [0]
            time.sleep(0.2)

    secured.broker.produce(topic, *numbered(1))
    edge.offsets(Range(topic, 0, 0, 1))
    given_tokens.failing[config] = OSError("the metadata service is away")
    for action in (write, read):
        with pytest.raises(
            RetriableBrokerError,
            match=r"provider 'tests\.given_tokens:token' .*OSError: the metadata service is away",
        ):
            action()
    said = [each for each in own_messages(caplog) if "The token of before is used" in each]
    assert len(said) == 1
    assert "eyJ" not in caplog.text

    del given_tokens.failing[config]
    assert edge.offsets(Range(topic, 0, 0, 1)) == [0]


def test_a_client_that_has_ended_is_given_no_token(secured: Secured) -> None:
    """Librdkafka's memory of it is gone."""
    config = {"bootstrap.servers": secured.kafka.address("SASL_PLAINTEXT"), "log_level": 0}
    token = Token("x", time.time() + 60)
    consumer = native.LoginConsumer({**config, "group.id": "g"})
    admin = AdminClient(config)
    logins = [native.Login(consumer), native.Login(admin)]
    assert [each.is_open for each in logins] == [True, True]
    consumer.close()
    del admin

    assert [each.is_open for each in logins] == [False, False]
    for each in logins:
        each.set_token(token)


SESSION_S = 1.5


def before(
    broker: Broker, client: str, config: str, judge: Callable[[str], float]
) -> tuple[SaslServer, Edge]:
    """A server that asks for tokens before a broker, and the seam over it."""
    server = SaslServer(broker.servers, judge)
    return server, Edge(client, server.servers).given(given_tokens.login(config))


@pytest.mark.long("waits until sessions end")
@pytest.mark.parametrize("client", CLIENTS)
def test_sessions_are_shorter_than_tokens(broker: Broker, client: str, caplog) -> None:
    """Clients log in again by the same token, which is no JSON Web Token, and neither reading nor writing notices."""
    topic, config = broker.topic(), f"opaque=abc {config_of()}"
    server, edge = before(broker, client, config, lambda _: SESSION_S)
    with closing(server):
        with edge.sender(topic) as sender:
            for number in range(6):
                sender.send(messages(topic, *numbered(1, number)))
                sender.flush()
                assert edge.offsets(Range(topic, 0, number, number + 1), committed=False) == [
                    number
                ]
                time.sleep(0.6 * SESSION_S)
        assert broker.pairs(topic) == numbered(6)
        assert {*server.tokens} == {"abc-1"}
        assert len(server.tokens) > 3
        if client == "librdkafka":
            assert server.renewed > 2
            assert caplog.messages == []


@pytest.mark.long("waits until sessions end")
def test_a_session_that_ends_within_a_transaction(broker: Broker) -> None:
    """The transaction is whole: its connections are logged in anew, by the token that is due then."""
    topic, config = broker.topic(), f"opaque=abc {config_of(2 * SESSION_S)}"
    server, edge = before(broker, "librdkafka", config, lambda _: SESSION_S)
    with closing(server):
        sender = load_sending_client("librdkafka", "a test").transactional_sender(
            edge.all_properties(), [topic], f"x-{topic}", with_metadata=False
        )
        sender.begin()
        for number in range(5):
            sender.send(messages(topic, *numbered(1, number)))
            sender.flush()
            time.sleep(SESSION_S)
        sender.commit(GroupOffset(topic, 0, 1, "receipt"))
        sender.close()

        assert broker.pairs(topic) == numbered(5)
        assert len({*server.tokens}) > 2


@pytest.mark.every_client
@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.long("waits until a login is refused for good")
def test_a_token_of_another_audience(broker: Broker, client: str, caplog) -> None:
    """What the broker says is told, with whose token it is and what the clocks say; the token is not."""

    def refuse(token: str) -> float:
        raise RefusedError(f"audience 'api' is not mine in {token}")

    config = f"opaque=s3cr3t-t0ken {config_of()}"
    server, edge = before(broker, client, config, refuse)
    with (
        closing(server),
        edge.cluster() as cluster,
        pytest.raises(BrokerError) as error,
    ):
        cluster.topics(Topics((broker.topic(),)))

    text = str(error.value)
    # kafka-python-ng does not tell what the broker says.
    is_told = "audience 'api' is not mine" in text
    assert is_told or (client == "kafka-python" and "refuses the credentials" in text)
    assert "the token is from the provider 'tests.given_tokens:token', good until 20" in text
    assert "; the clock here says 20" in text
    assert type(error.value) is BrokerError
    assert "s3cr3t" not in caplog.text + texts_of(error.value)


@pytest.mark.every_client
@pytest.mark.parametrize("client", CLIENTS)
def test_amazons_tokens_open_the_door(broker: Broker, client: str, monkeypatch) -> None:
    """A server that checks the signature as Amazon does lets in who has the keys, as Java spells it."""
    pytest.importorskip("botocore")
    keys = {
        "AWS_ACCESS_KEY_ID": "AKID",
        "AWS_SECRET_ACCESS_KEY": "s3cr3t",
        "AWS_REGION": "us-east-2",
    }
    for name, value in keys.items():
        monkeypatch.setenv(name, value)

    def judge(token: str) -> float:
        address = address_in(token)
        if not address.endswith(
            f"&X-Amz-Signature={signature(address, 's3cr3t')}&User-Agent=pyspark-upsert-kafka"
        ):
            raise RefusedError("Access denied")
        return 0

    topic = broker.topic()
    server = SaslServer(broker.servers, judge)
    login = {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "AWS_MSK_IAM",
        "sasl.jaas.config": "software.amazon.msk.auth.iam.IAMLoginModule required;",
        "sasl.client.callback.handler.class": "software.amazon.msk.auth.iam.IAMClientCallbackHandler",
    }
    with closing(server):
        edge = Edge(client, server.servers).given(login)
        edge.send(topic, *numbered(3))
        assert edge.offsets(Range(topic, 0, 0, 3), committed=False) == [0, 1, 2]
    assert len({*server.tokens}) == 1


def judged_as_amazon_does(token: str) -> float:
    """Lets in for as long as a token is good: its signature is right, and its time by a clock that is."""
    address = address_in(token)
    values = dict(parse_qsl(urlsplit(address).query))
    if values["X-Amz-Signature"] != signature(address, "s3cr3t"):
        raise RefusedError("Access denied")
    signed = datetime.strptime(f"{values['X-Amz-Date']}+0000", "%Y%m%dT%H%M%SZ%z").timestamp()
    left_s = signed + int(values["X-Amz-Expires"]) - time.time()
    if left_s < 0:
        raise RefusedError("Signature expired")
    if signed > time.time() + 300:
        raise RefusedError("Signature not yet current")
    return left_s


@pytest.mark.every_client
@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize(("minutes", "refusal"), [(-10, None), (10, "Signature not yet current")])
@pytest.mark.long("waits until a login is refused for good")
def test_amazons_tokens_by_a_clock_that_is_off(
    broker: Broker, client: str, minutes: int, refusal: str | None, monkeypatch
) -> None:
    """Behind, they are good for five of their fifteen minutes; ahead, not at all: then the error says what the clock here says."""
    auth = pytest.importorskip("botocore.auth")
    set_clock(monkeypatch, minutes)
    off = timedelta(minutes=minutes)
    monkeypatch.setattr(auth, "get_current_datetime", lambda: datetime.now(timezone.utc) + off)
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_REGION"):
        monkeypatch.setenv(name, "s3cr3t")
    server = SaslServer(broker.servers, judged_as_amazon_does)
    login = {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.oauthbearer.token.provider": "aws-msk",
    }
    topic = broker.topic()
    with closing(server), Edge(client, server.servers).given(login).cluster() as cluster:
        if refusal is None:
            assert [*cluster.topics(Topics((topic,)))] == [topic]
            return
        with pytest.raises(BrokerError) as error:
            cluster.topics(Topics((topic,)))
    text = str(error.value)
    assert client != "librdkafka" or refusal in text
    assert "the token is from the provider 'aws-msk', good until 20" in text
    now = datetime.now(timezone.utc) + off
    assert any(
        f"; the clock here says {now - timedelta(minutes=back):%Y-%m-%dT%H:%M}" in text
        for back in (0, 1)
    )


def test_doctor_and_tables_log_in_by_tokens(
    broker: Broker, capsys: pytest.CaptureFixture[str], caplog
) -> None:
    """`doctor`, `show` and `read_table` have a token each process asks for once; it is in nothing that they print or log."""
    topic, config = broker.topic(cleanup_policy="compact"), f"opaque=s3cr3t-t0ken {config_of()}"
    broker.produce(topic, ('{"id":1}', '{"id":1,"name":"a"}'))
    server = SaslServer(broker.servers, lambda _: 0)
    options = {f"properties.{name}": value for name, value in given_tokens.login(config).items()}
    options |= {"topic": topic, "properties.bootstrap.servers": server.servers}
    words = [word for pair in options.items() for word in ("--option", "=".join(pair))]
    columns = ["--schema", "id BIGINT, name STRING", "--primary-key", "id"]
    with closing(server):
        table = {**options, "primary-key": "id", "key.format": "json", "value.format": "json"}
        rows = read_table(table, schema="id BIGINT, name STRING").read_all().to_pylist()
        main(["doctor", "--output", "json", *columns, *words])
        found = {
            (each := json.loads(line))["check"]: each
            for line in capsys.readouterr().out.splitlines()
        }
        assert main(["show", "--output", "json", *columns, *words]) == 0
        close_idle_clients()

    assert rows == [{"id": 1, "name": "a"}]
    assert json.loads(capsys.readouterr().out) == {"id": 1, "name": "a"}
    assert (found["login"]["level"], found["sample"]["level"]) == ("ok", "ok")
    assert "'tests.given_tokens:token', good until 20" in found["login"]["text"]
    assert "s3cr3t" not in caplog.text + json.dumps(found)
    assert given_tokens.calls[config] == 1
