"""Who we are, and what we may do: logins by each mechanism, and what is told when one is refused."""

from __future__ import annotations

import re
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing

import confluent_kafka as ck
import pyarrow as pa
import pytest

from pyspark_upsert_kafka.core.delivery_guarantee import DeliveryGuarantee
from pyspark_upsert_kafka.core.errors import BrokerError, DeliveryError
from pyspark_upsert_kafka.core.options.frozen_options import Position, Topics
from pyspark_upsert_kafka.core.positions.offsets import Range
from pyspark_upsert_kafka.core.receipts import GroupOffset
from pyspark_upsert_kafka.kafka.client_pool import close_idle_clients
from pyspark_upsert_kafka.kafka.clients import load_client
from pyspark_upsert_kafka.kafka.librdkafka import sender, transaction
from pyspark_upsert_kafka.kafka.native import BatchProducer, MessageBatch
from tests.kafka.conftest import CLIENTS, Edge, eventually, messages, numbered, own_messages
from tests.kafka.secured import CLIENT, PASSWORD, Secured, by_password, by_token, errors_of
from tests.token_endpoint import TokenEndpoint

SECRETS = (PASSWORD, "barley", "no rights", *CLIENT[1:])


@pytest.fixture(autouse=True)
def _close_idle_clients() -> Iterator[None]:
    """Each test logs in as others do not, and a client whose login is refused tries again and again.

    One that an earlier test has left logs what it has not told yet when it is closed: that is no message of this test.
    """
    close_idle_clients()
    yield
    close_idle_clients()


@pytest.fixture(params=CLIENTS)
def client(request: pytest.FixtureRequest) -> str:
    """The client's name."""
    return str(request.param)


def ask(edge: Edge, topic: str) -> list[int]:
    """The latest offsets of a topic."""
    return [bounds.latest for bounds in edge.bounds(topic, committed=False)]


def everything(edge: Edge, topic: str) -> dict[str, Callable[[], object]]:
    """Whatever is asked of a broker."""
    return {
        "asking": lambda: ask(edge, topic),
        "sending": lambda: edge.send(topic, *numbered(1)),
        "reading": lambda: edge.impatient().offsets(Range(topic, 0, 0, 1)),
    }


def use_group(edge: Edge, topic: str) -> bool:
    """Commits an offset to the group of the properties until it is there to start from."""
    with edge.cluster() as cluster:
        view = cluster.view(cluster.topics(Topics((topic,))), read_committed=False)
        start = Position("group-offsets", reset="earliest")

        def starts_there() -> bool:
            # A commit is done once and as well as possible; a new group's coordinator may not be ready.
            cluster.commit(dict.fromkeys(view.bounds, 2))
            return set(cluster.positions(start, view).values()) == {2}

        return eventually(starts_there)


LOGINS: dict[str, tuple[str, Callable[[Secured], Mapping[str, str]]]] = {
    "PLAIN": ("SASL_PLAINTEXT", lambda _: by_password("PLAIN")),
    "SCRAM-SHA-256": (
        "SASL_SSL",
        lambda secured: {**by_password("SCRAM-SHA-256"), **secured.trust()},
    ),
    "SCRAM-SHA-512": (
        "SASL_SSL",
        lambda secured: {
            **by_password("SCRAM-SHA-512"),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.certificates": secured.certificates.authority.read_text(),
        },
    ),
    "OAUTHBEARER by a provider": ("SASL_PLAINTEXT", by_token),
    "a certificate in PKCS#12": (
        "SSL",
        lambda secured: {
            **secured.trust(),
            **secured.key_store(secured.certificates.issue(user="ana")),
        },
    ),
    "a certificate in PEM": (
        "SSL",
        lambda secured: {
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(secured.certificates.authority),
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(secured.certificates.issue(user="ana")),
        },
    ),
    "a certificate as text": (
        "SSL",
        lambda secured: {**secured.trust(), **as_text(secured)},
    ),
}


def as_text(secured: Secured) -> dict[str, str]:
    """A key and its certificate in the properties themselves."""
    pem = secured.certificates.issue(user="ana").read_text()
    at = pem.index("-----BEGIN CERTIFICATE-----")
    return {"ssl.keystore.key": pem[:at], "ssl.keystore.certificate.chain": pem[at:]}


@pytest.mark.parametrize("login", LOGINS)
def test_every_login_opens_the_door(secured: Secured, client: str, login: str) -> None:
    """As Flink's tables spell them: for asking, sending, reading, finding topics, and groups."""
    topic = secured.broker.topic()
    protocol, properties = LOGINS[login]
    edge = secured.edge(client, protocol, {**properties(secured), "group.id": f"g-{topic}"})

    edge.send(topic, *numbered(3))

    assert ask(edge, topic) == [3]
    assert edge.offsets(Range(topic, 0, 0, 3), committed=False) == [0, 1, 2]
    with edge.cluster() as cluster:
        assert list(cluster.topics(Topics(pattern=re.compile(topic)))) == [topic]
    assert use_group(edge, topic)


def test_an_unsecured_token_opens_the_door(secured: Secured, client: str) -> None:
    """For trials, as in Java: the client makes it itself."""
    topic = secured.broker.topic()
    edge = secured.as_user(client, "ana")

    edge.send(topic, *numbered(3))

    assert edge.offsets(Range(topic, 0, 0, 3), committed=False) == [0, 1, 2]


@pytest.mark.long("waits until tokens expire")
def test_tokens_are_renewed_while_a_query_runs(secured: Secured, client: str) -> None:
    """A broker ends connections whose token has expired: sending and reading go on with a new one."""
    topic = secured.broker.topic()
    with TokenEndpoint("ana", CLIENT, life_s=3) as endpoint:
        properties = {**by_token(secured), "sasl.oauthbearer.token.endpoint.url": endpoint.url}
        edge = secured.edge(client, "SASL_PLAINTEXT", properties)
        with edge.sender(topic) as sender:
            for number in range(5):
                sender.send(messages(topic, *numbered(1, number)))
                sender.flush()
                assert edge.offsets(Range(topic, 0, number, number + 1), committed=False) == [
                    number
                ]
                time.sleep(1.5)

    assert secured.broker.pairs(topic) == numbered(5)
    assert len(endpoint.forms) > 3


@pytest.mark.long("waits until a login is refused for good")
def test_a_changed_secret_takes_effect_at_once(secured, client, tmp_path):
    """Clients that wait for the next task are not used with a reference that means something else now."""
    topic = secured.broker.topic()
    secrets = tmp_path / "secrets.properties"
    properties = {
        "sasl.mechanism": "PLAIN",
        "sasl.username": "ana",
        "sasl.password": f"${{file:{secrets}:password}}",
    }
    edge = secured.edge(client, "SASL_PLAINTEXT", properties)
    escaped = PASSWORD.encode("unicode_escape").decode("ascii").replace("\\xfc", "\\u00fc")
    secrets.write_text(f"password = {escaped}")
    edge.send(topic, *numbered(3))
    assert edge.offsets(Range(topic, 0, 0, 3), committed=False) == [0, 1, 2]

    secrets.write_text("password = barley")
    errors = errors_of(everything(edge, topic))
    assert {type(error) for error in errors.values()} == {BrokerError}

    secrets.write_text(f"password = {escaped}")
    assert edge.offsets(Range(topic, 0, 0, 3), committed=False) == [0, 1, 2]


@pytest.mark.long("waits until a login is refused for good")
def test_a_refused_login_is_told_soon(secured, client, caplog):
    """Nobody waits as for a broker that is away; what is refused is said, and no secret is shown."""
    caplog.set_level("DEBUG")
    topic = secured.broker.topic()
    patient = {"default.api.timeout.ms": 3_600_000}
    trusted = secured.trust()
    edges = {
        "PLAIN": ("SASL_PLAINTEXT", by_password("PLAIN", "barley")),
        "SCRAM": ("SASL_SSL", {**by_password("SCRAM-SHA-512", "barley"), **trusted}),
        "a token": ("SASL_PLAINTEXT", by_token(secured, "barley")),
        "no certificate": ("SSL", trusted),
        "an unknown one": (
            "SSL",
            {**trusted, "ssl.keystore.location": str(secured.strangers.issue(user="ana"))},
        ),
    }
    actions = {
        (name, what): action
        for name, (protocol, properties) in edges.items()
        for what, action in everything(
            secured.edge(client, protocol, {**properties, **patient}), topic
        ).items()
    }
    said = {
        "PLAIN": r"(?i)authenticat",
        "SCRAM": r"(?i)authenticat",
        "a token": "invalid_client",
        "no certificate": r"(?i)certificate",
        "an unknown one": r"(?i)certificate",
    }

    for (name, what), error in errors_of(actions).items():
        assert isinstance(error, BrokerError), (name, what, error)
        assert re.search(said[name], str(error)), (name, what, error)
        assert not [secret for secret in SECRETS if secret in str(error)], (name, what)
    assert not [secret for secret in SECRETS if secret in caplog.text]


@pytest.mark.long("restarts a broker")
def test_the_trouble_of_one_client_is_not_that_of_another(secured, client):
    """A wrong password here does no harm to a write there, though its broker is away for a moment."""
    topic = secured.broker.topic()
    right = secured.edge(client, "SASL_PLAINTEXT", by_password("PLAIN"))
    wrong = secured.edge(client, "SASL_PLAINTEXT", by_password("PLAIN", "barley"))
    with right.sender(topic) as sender:
        sender.send(messages(topic, *numbered(1)))
        sender.flush()
        with wrong.cluster() as cluster, pytest.raises(BrokerError):
            cluster.topics(Topics((topic,)))

        secured.kafka.stop()
        again = threading.Timer(2.5, secured.kafka.start)
        again.start()
        sender.send(messages(topic, *numbered(1, 1)))
        sender.flush()
        again.join()

    assert ask(right, topic) == [2]


def test_an_error_of_before_or_of_another_broker_fails_no_write(broker):
    """The client says that a certificate was refused; what is sent is delivered all the same."""
    topic = broker.topic()
    edge = Edge("librdkafka", broker.servers)
    refused = ck.KafkaError(ck.KafkaError._SSL)
    for number in range(2):
        with edge.sender(topic) as sender:
            sender._reports.errors.on_error(refused)
            sender.send(messages(topic, *numbered(1, number)))
            sender.flush()
            sender._reports.errors.on_error(refused)

    assert broker.pairs(topic) == numbered(2)


def test_few_rights_are_enough(secured, client):
    """To write, WRITE; to read, READ; for a group, READ: each of the topic or group alone, as docs/security.md says."""
    topic = secured.broker.topic()
    group = f"g-{topic}"
    writer = secured.as_user(client, secured.user(("WRITE", "TOPIC", topic)))
    reader = secured.user(("READ", "TOPIC", topic), ("READ", "GROUP", group))
    reader = secured.as_user(client, reader, group_id=group)

    writer.send(topic, *numbered(3))

    assert ask(reader, topic) == [3]
    assert reader.offsets(Range(topic, 0, 0, 3), committed=False) == [0, 1, 2]
    assert use_group(reader, topic)


def test_what_is_not_allowed_is_told(secured, client):
    """Who may not see a topic hears that at once, from whatever is tried, and what is missing."""
    topic = secured.broker.topic()
    nobody = secured.as_user(client, secured.user())

    for what, error in errors_of(everything(nobody, topic)).items():
        assert isinstance(error, BrokerError), (what, error)
        assert topic in str(error), what
        assert re.search(r"(?i)topic.*authoriz.*no ACL for the topic", str(error)), (what, error)


def test_a_topic_that_may_be_seen_and_nothing_else(secured, client):
    """DESCRIBE is enough to be found; reading and writing tell that they need more."""
    topic = secured.broker.topic()
    secured.broker.produce(topic, ("there", "to be read"))
    guest = secured.as_user(client, secured.user(("DESCRIBE", "TOPIC", topic)))
    errors = errors_of(everything(guest, topic))

    assert errors["asking"] is None
    assert isinstance(errors["sending"], (BrokerError, DeliveryError))
    assert isinstance(errors["reading"], BrokerError)
    assert topic in str(errors["reading"])
    for error in (errors["sending"], errors["reading"]):
        assert re.search(r"(?i)authoriz.*no ACL for .*the topic", str(error)), error


@pytest.mark.long("does it ten times")
def test_a_fatal_error_is_told_each_time(secured):
    """Whatever else the client reports in the same moment."""
    topic = secured.broker.topic()
    guest = secured.as_user("librdkafka", secured.user(("DESCRIBE", "TOPIC", topic)))

    for _ in range(10):
        with pytest.raises(BrokerError, match="Cluster authorization failed"):
            guest.send(topic, *numbered(1))


def takes_none(producer: object, topic: str) -> bool:
    """Whether a producer, which has reported nothing yet, takes no messages any more."""
    if isinstance(producer, BatchProducer):
        one = pa.array([b"one"], pa.large_binary())
        return producer.produce_batch(MessageBatch(topic, one, one), 0)[1] is not None
    try:
        producer.produce(topic, b"value", b"key")
    except ck.KafkaException:
        return True
    return False


def test_a_producer_closes_though_a_fatal_error_was_not_told_yet(secured):
    """So it is where no broker has said in time which partitions there are; whoever sends is told, in our words."""
    topic = secured.broker.topic()
    guest = secured.as_user("librdkafka", secured.user(("DESCRIBE", "TOPIC", topic)))
    lease = sender.pooled_producer(
        guest.all_properties(), (topic,), DeliveryGuarantee.AT_LEAST_ONCE, with_metadata=True
    )
    assert eventually(lambda: takes_none(lease.client.producer, topic))

    sender.POOL.discard(lease)

    with pytest.raises((BrokerError, DeliveryError), match="Cluster authorization failed"):
        guest.send(topic, *numbered(1))


@pytest.mark.parametrize("with_metadata", [False, True])
def test_a_fatal_error_that_comes_while_messages_are_handed_over_is_told(secured, with_metadata):
    """The client takes none of them then, and says of each no more than that there was a fatal error."""
    topic = secured.broker.topic()
    guest = secured.as_user("librdkafka", secured.user(("DESCRIBE", "TOPIC", topic)))
    lease = sender.pooled_producer(
        guest.all_properties(),
        (topic,),
        DeliveryGuarantee.AT_LEAST_ONCE,
        with_metadata=with_metadata,
    )

    def send_once_it_takes_none() -> None:
        with closing(sender.LibrdkafkaSender(lease)) as sends:
            assert eventually(lambda: takes_none(lease.client.producer, topic))
            sends.send(messages(topic, *numbered(1)))

    with pytest.raises((BrokerError, DeliveryError), match="Cluster authorization failed"):
        send_once_it_takes_none()


def test_a_group_that_may_not_be_used(secured, client, caplog):
    """Starting at its offsets is an error that names it; a commit that fails is one warning."""
    topic = secured.broker.topic()
    user = secured.user(("READ", "TOPIC", topic))
    edge = secured.as_user(client, user, group_id=f"g-{topic}")
    with edge.cluster() as cluster:
        view = cluster.view(cluster.topics(Topics((topic,))), read_committed=False)
        with pytest.raises(BrokerError, match=rf"g-{topic}.*(?i:authoriz).*no ACL for the group"):
            cluster.positions(Position("group-offsets"), view)
        cluster.commit(dict.fromkeys(view.bounds, 1))
        assert eventually(lambda: any("g-" + topic in text for text in own_messages(caplog)))

    (warning,) = (text for text in own_messages(caplog) if "g-" + topic in text)
    assert re.search(r"(?i)group.*authoriz", warning)


def test_a_pattern_finds_what_may_be_seen(secured, client):
    """A topic without DESCRIBE is as if it were not there."""
    seen, hidden = secured.broker.topic(), secured.broker.topic()
    edge = secured.as_user(client, secured.user(("DESCRIBE", "TOPIC", seen)))

    with edge.cluster() as cluster:
        assert list(cluster.topics(Topics(pattern=re.compile(f"{seen}|{hidden}")))) == [seen]


def transact(edge: Edge, topic: str, id_: str) -> None:
    """Writes messages and a receipt in a transaction."""
    client = load_client("librdkafka")
    with closing(client.transactional_sender(edge.all_properties(), (topic,), id_)) as sender:
        assert sender.committed(topic) is None
        sender.begin()
        sender.send(messages(topic, *numbered(3)))
        sender.flush()
        sender.commit(GroupOffset(topic, 0, 1, "{}"))
        # Only a warning depends on what these rights do not let it see.
        assert sender.groups("sink-") == [id_]
        assert sender.retention_s() is None


@pytest.mark.parametrize("with_metadata", [False, True])
def test_a_right_that_a_transaction_lacks_is_told_of_messages_that_come_later(
    secured, with_metadata
):
    """The client takes none of them any more, and says of each no more than that its state is wrong."""
    topic, id_ = secured.broker.topic(), f"sink-{uuid.uuid4()}"
    of_id = [("WRITE", "TRANSACTIONAL_ID", id_), ("DESCRIBE", "TRANSACTIONAL_ID", id_)]
    guest = secured.as_user("librdkafka", secured.user(("READ", "TOPIC", topic), *of_id))
    sends = transaction.open_transaction(
        guest.all_properties(), (topic,), id_, with_metadata=with_metadata
    )
    with closing(sends):
        sends.begin()
        assert eventually(lambda: takes_none(sends._producer, topic))

        with pytest.raises(DeliveryError, match=rf"(?i)topic '{topic}'.*topic authoriz.*Write on"):
            sends.send(messages(topic, *numbered(1)))


def test_a_transaction_and_the_rights_that_it_needs(secured):
    """Those that docs/exactly-once.md lists are enough; without one of them the error says which is missing."""
    topic, id_ = secured.broker.topic(), f"sink-{uuid.uuid4()}"
    of_topic = [("WRITE", "TOPIC", topic), ("READ", "TOPIC", topic)]
    of_group = [("READ", "GROUP", id_)]
    of_id = [("WRITE", "TRANSACTIONAL_ID", id_), ("DESCRIBE", "TRANSACTIONAL_ID", id_)]

    def write(*rights: tuple[str, str, str]) -> None:
        transact(secured.as_user("librdkafka", secured.user(*rights)), topic, id_)

    with pytest.raises(BrokerError, match=rf"(?i){id_}.*transactional id authoriz.*every"):
        write(*of_topic, *of_group)
    with pytest.raises(
        DeliveryError, match=rf"(?i)topic '{topic}'.*topic authoriz.*Write on its topics"
    ):
        write(of_topic[1], *of_group, *of_id)
    with pytest.raises(BrokerError, match=rf"(?i)group.*{id_}.*authoriz.*no ACL for the group"):
        write(*of_topic, *of_id)

    write(*of_topic, *of_group, *of_id)
    assert secured.broker.pairs(topic) == numbered(3)
