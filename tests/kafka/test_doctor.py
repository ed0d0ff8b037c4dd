"""``doctor``: each of its lines, of a topic or broker that has the illness, and of one that has none."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition

from pyspark_upsert_kafka.cli import main
from pyspark_upsert_kafka.kafka.local.ports import free_port
from pyspark_upsert_kafka.kafka.outgoing_messages import partition_of
from tests.conftest import Broker
from tests.kafka.conftest import delete_before
from tests.kafka.secured import MODULES, Secured
from tests.kafka.test_show import user
from tests.local_registry import Registry
from tests.token_endpoint import TokenEndpoint
from tests.unit.registry.fake_registry import serving

TABLE = ["--schema", "user_id BIGINT, region STRING", "--primary-key", "user_id"]

HURRY = {
    "properties.default.api.timeout.ms": "3000",
    "properties.request.timeout.ms": "3000",
}

Found = dict[str, dict[str, str]]
Doctor = Callable[..., tuple[int, Found]]


def given(options: dict[str, str]) -> list[str]:
    """Options of the connector as arguments."""
    return [word for name, value in options.items() for word in ("--option", f"{name}={value}")]


@pytest.fixture
def doctor(broker: Broker, capsys: pytest.CaptureFixture[str]) -> Doctor:
    """Runs ``doctor`` in this process: the exit code, and the last finding of each check."""

    def run(topic: str, *arguments: str, servers: str = broker.servers) -> tuple[int, Found]:
        where = ["--topic", topic, "--bootstrap-servers", servers, "--output", "json"]
        code = main(["doctor", *where, *arguments])
        printed = capsys.readouterr().out.splitlines()
        findings = [json.loads(line) for line in printed]
        return code, {each["check"]: each for each in findings}

    return run


def send(
    broker: Broker, topic: str, *messages: tuple[str | None, str | None], partitions: int = 1
) -> None:
    """Sends messages, each to the partition where murmur2 puts its key."""
    for key, value in messages:
        at = partition_of(key.encode(), partitions) if key is not None else 0
        broker.produce(topic, (key, value), partition=at)


@pytest.fixture(scope="module")
def healthy(broker: Broker) -> str:
    """A compacted topic of four partitions with ten users, as this connector writes them."""
    topic = broker.topic(4, cleanup_policy="compact")
    send(broker, topic, *(user(number, "Asia") for number in range(10)), partitions=4)
    return topic


def levels(found: Found) -> dict[str, str]:
    """The level of each check."""
    return {check: each["level"] for check, each in found.items()}


def test_a_healthy_table(doctor: Doctor, healthy: str) -> None:
    """Every check is well, and the exit code is 0."""
    code, found = doctor(healthy, *TABLE)

    assert code == 0
    assert set(levels(found).values()) == {"ok"}
    assert list(found) == [
        "brokers", "topic", "rights", "cleanup-policy", "tombstones", "sample", "bad-messages", "columns",
        "null-keys", "key-partition", "key-in-two-partitions", "key-spelling", "memory",
    ]  # fmt: skip
    assert "1 broker at " in found["brokers"]["text"]
    assert "librdkafka (confluent-kafka " in found["brokers"]["text"]


def test_it_writes_nothing(doctor: Doctor, broker: Broker, healthy: str) -> None:
    """No message and no group; no topic either, where the options let the broker create it."""
    missing, group, before = f"missing-{healthy}", f"group-{healthy}", broker.messages(healthy)
    options = {
        "properties.group.id": group,
        "properties.allow.auto.create.topics": "true",
    }

    assert doctor(healthy, *TABLE, *given(options))[0] == 0
    assert doctor(missing, *TABLE, *given({**options, **HURRY}))[0] == 2
    assert broker.messages(healthy) == before
    assert missing not in broker.admin.list_topics(timeout=30).topics
    groups = broker.admin.list_consumer_groups().result().valid
    assert group not in {each.group_id for each in groups}


def test_text_for_people(broker: Broker, healthy: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A line for each finding, with a symbol and a word, and a summary at the end."""
    code = main(["doctor", "--topic", healthy, "--bootstrap-servers", broker.servers, *TABLE])
    *lines, blank, last = capsys.readouterr().out.splitlines()

    assert code == 0
    assert all(line.startswith("✓ ok") for line in lines)
    assert (blank, last) == ("", f"{len(lines)} ok.")


@pytest.mark.parametrize(
    ("config", "level", "said"),
    [
        ({"cleanup_policy": "compact"}, "ok", "the last message of each key stays"),
        ({"cleanup_policy": "delete", "retention_ms": "604800000"}, "warning", "that does not change for 7 days (retention.ms) is lost"),
        ({"cleanup_policy": "compact,delete", "retention_ms": "3600000"}, "warning", "for 1 hour (retention.ms)"),
        ({"cleanup_policy": "delete", "retention_ms": "-1"}, "ok", "keeps every message"),
    ],
)  # fmt: skip
def test_the_cleanup_policy_of_a_table(
    doctor: Doctor, broker: Broker, config: dict[str, str], level: str, said: str
) -> None:
    """Only compaction keeps each row; the advice is the command that sets it."""
    topic = broker.topic(**config)
    code, found = doctor(topic, *TABLE)

    assert found["cleanup-policy"]["level"] == level
    assert said in found["cleanup-policy"]["text"]
    assert code == (1 if level == "warning" else 0)
    if level == "warning":
        assert found["cleanup-policy"]["advice"] == (
            f"kafka-configs.sh --bootstrap-server {broker.servers} --alter --entity-type topics --entity-name {topic} "
            "--add-config cleanup.policy=compact"
        )


def test_the_options_of_a_stream(doctor: Doctor, healthy: str) -> None:
    """They are taken as they stand; the table with which a stream begins is held in memory, its changes are not."""
    begin = ["--option", "scan.startup.mode=full", "--option", "maxOffsetsPerTrigger=1000"]
    code, found = doctor(healthy, *TABLE, *begin)

    assert (code, levels(found)["memory"]) == (0, "ok")
    assert "memory" not in doctor(healthy, *TABLE, "--changelog")[1]


def test_a_statement_of_a_stream(doctor: Doctor, broker: Broker, healthy: str) -> None:
    """Where it says where a stream begins, it is one, as if the option were given."""
    options = {
        "connector": "upsert-kafka", "topic": healthy, "properties.bootstrap.servers": broker.servers,
        "key.format": "json", "value.format": "json", "scan.startup.mode": "latest-offset",
    }  # fmt: skip
    pairs = ", ".join(f"'{name}' = '{value}'" for name, value in options.items())
    columns = "user_id BIGINT, region STRING, PRIMARY KEY (user_id) NOT ENFORCED"
    code, found = doctor(healthy, "--ddl", f"CREATE TABLE users ({columns}) WITH ({pairs})")

    assert (code, "memory" in found) == (0, False)


def test_rows_that_retention_has_taken(doctor: Doctor, broker: Broker) -> None:
    """Where it has happened already, that is said."""
    topic = broker.topic(cleanup_policy="delete", retention_ms="604800000")
    send(broker, topic, *(user(number, "Asia") for number in range(3)))
    delete_before(broker, topic, 2)

    assert "partition 0 begins at offset 2" in doctor(topic, *TABLE)[1]["cleanup-policy"]["text"]


def test_an_append_topic(doctor: Doctor, broker: Broker) -> None:
    """Messages without keys are no illness there, and compaction is."""
    append = ["--schema", "region STRING", "--append"]
    deleted, compacted = (
        broker.topic(cleanup_policy="delete"),
        broker.topic(cleanup_policy="compact"),
    )
    broker.produce(deleted, (None, '{"region":"Asia"}'))
    send(broker, compacted, user(1, "Asia"))

    code, found = doctor(deleted, *append)
    assert code == 0
    assert "null-keys" not in found
    code, found = doctor(compacted, *append)
    assert code == 1
    assert found["cleanup-policy"]["level"] == "warning"


def test_short_retention_and_short_lived_tombstones(doctor: Doctor, broker: Broker) -> None:
    """A stream that stands still for longer loses messages, or misses deletes."""
    short = broker.topic(
        cleanup_policy="compact,delete", retention_ms="600000", delete_retention_ms="60000"
    )
    _, found = doctor(short, *TABLE)

    assert levels(found)["retention"] == levels(found)["tombstones"] == "warning"
    assert "for 10 minutes (retention.ms)" in found["retention"]["text"]
    assert found["tombstones"]["advice"].endswith("--add-config delete.retention.ms=86400000")


def test_keys_in_partitions_where_murmur2_would_not_put_them(
    doctor: Doctor, broker: Broker
) -> None:
    """It is a warning, and an error where an option says that they are."""
    topic = broker.topic(4, cleanup_policy="compact")
    for number in range(8):
        key, value = user(number, "Asia")
        broker.produce(topic, (key, value), partition=(partition_of(key.encode(), 4) + 1) % 4)

    code, found = doctor(topic, *TABLE)
    assert (code, levels(found)["key-partition"]) == (1, "warning")
    assert found["key-partition"]["text"].startswith("8 of 8 keys are not in the partition")
    assert levels(found)["key-in-two-partitions"] == "ok"

    code, found = doctor(topic, *TABLE, "--option", "scan.key-partitioner=murmur2")
    assert (code, levels(found)["key-partition"]) == (2, "error")
    assert "Leave out 'scan.key-partitioner'" in found["key-partition"]["advice"]


def test_a_key_in_two_partitions(doctor: Doctor, broker: Broker) -> None:
    """The table has two rows of it: that is an error, with the key and its partitions."""
    topic = broker.topic(2, cleanup_policy="compact")
    for partition in range(2):
        broker.produce(topic, user(1, "Asia"), partition=partition)
    code, found = doctor(topic, *TABLE)

    assert (code, levels(found)["key-in-two-partitions"]) == (2, "error")
    assert '{"user_id":1} is in the partitions 0 and 1' in found["key-in-two-partitions"]["text"]


def test_a_tombstone_in_the_old_partition_of_a_key(doctor: Doctor, broker: Broker) -> None:
    """It ends the illness, as the advice says; the messages before it do not count."""
    topic = broker.topic(2, cleanup_policy="compact")
    new = partition_of(b'{"user_id":1}', 2)
    broker.produce(topic, user(1, "Asia"), (user(1, "Asia")[0], None), partition=1 - new)
    broker.produce(topic, user(1, "Europe"), partition=new)

    seen = levels(doctor(topic, *TABLE)[1])
    assert (seen["key-in-two-partitions"], seen["key-partition"]) == ("ok", "ok")


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        (['{"user_id":1}', '{"user_id": 1}'], '{"user_id": 1} and {"user_id":1} are one key'),
        (['{"user_id": 1}'], '{"user_id": 1} would be {"user_id":1}'),
    ],
)
def test_spellings_of_keys(doctor: Doctor, broker: Broker, keys: list[str], said: str) -> None:
    """Equal keys in several spellings, and keys that this connector would write in another way."""
    topic = broker.topic(cleanup_policy="compact")
    send(broker, topic, *((key, user(1, "Asia")[1]) for key in keys))

    code, found = doctor(topic, *TABLE)
    assert (code, levels(found)["key-spelling"]) == (1, "warning")
    assert said in found["key-spelling"]["text"]
    assert doctor(topic, *TABLE, "--option", "scan.key-partitioner=murmur2")[0] == 2


@pytest.mark.parametrize(("mode", "code"), [("fail", 2), ("ignore", 1)])
def test_bad_messages_and_messages_without_keys(
    doctor: Doctor, broker: Broker, mode: str, code: int
) -> None:
    """They fail a job, unless 'error-handling.mode' says something else; the first of each is shown."""
    topic = broker.topic(cleanup_policy="delete", retention_ms="-1")
    broker.produce(topic, user(1, "Asia"), ('{"user_id":2}', "no JSON"), (None, user(3, "Asia")[1]))
    found_code, found = doctor(topic, *TABLE, "--option", f"error-handling.mode={mode}")

    assert found_code == code
    assert "1 of 3 messages cannot be decoded" in found["bad-messages"]["text"]
    assert f"topic {topic!r}, partition 0, offset 1" in found["bad-messages"]["text"]
    assert "1 of 3 messages has no key" in found["null-keys"]["text"]
    assert ("error-handling.mode" in found["bad-messages"]["advice"]) == (mode == "fail")


@pytest.mark.parametrize(("kept_from", "level"), [(0, None), (2, "error")])
def test_a_past_that_is_gone(
    doctor: Doctor, broker: Broker, kept_from: int, level: str | None
) -> None:
    """For the time that the options name; the time from which on there is a table is part of the advice."""
    topic = broker.topic(cleanup_policy="compact,delete")
    broker.produce(topic, *(user(number, "Asia") for number in range(4)))
    if kept_from:
        delete_before(broker, topic, kept_from)

    _, found = doctor(topic, *TABLE, "--option", "scan.bounded.timestamp=2026-01-31T12:00:00Z")
    assert levels(found).get("past") == level
    assert level is None or "No time up to 20" in found["past"]["advice"]


@pytest.mark.parametrize(
    ("option", "level"),
    [
        ("scan.bounded.timestamp=2026-01-31T12:00:00Z", "error"),
        ("scan.startup.timestamp=2026-01-31T12:00:00Z", "warning"),
        ("scan.startup.mode=earliest-offset", None),
    ],
)
def test_changes_of_a_past_that_is_gone(
    doctor: Doctor, broker: Broker, option: str, level: str | None
) -> None:
    """For the start too; a stream from the earliest offset on reads what there is."""
    topic = broker.topic(cleanup_policy="compact,delete")
    broker.produce(topic, *(user(number, "Asia") for number in range(4)))
    delete_before(broker, topic, 2)

    is_known = option.startswith("scan.startup")  # a start is one of a stream
    more = [] if is_known else ["--changelog"]
    _, found = doctor(topic, *TABLE, *more, "--option", option)
    assert levels(found).get("past") == level
    assert level is None or "raise retention.ms" in found["past"]["advice"]


def test_messages_of_another_table(doctor: Doctor, broker: Broker) -> None:
    """Values that have none of the columns are a warning, which is not printed a second time."""
    topic = broker.topic(cleanup_policy="compact")
    broker.produce(topic, ('{"user_id":1}', '{"name":"x"}'))
    code, found = doctor(topic, *TABLE, "--option", "value.fields-include=EXCEPT_KEY")

    assert (code, levels(found)["columns"]) == (1, "warning")
    assert "the values have none of the columns" in found["columns"]["text"]


def test_columns_that_no_message_has(doctor: Doctor, broker: Broker) -> None:
    """Each is a finding, beside columns that are there."""
    topic = broker.topic(cleanup_policy="compact")
    broker.produce(topic, *(user(number, "Asia") for number in range(3)))
    columns = ["--schema", "user_id BIGINT, Region STRING, nosuch INT", *TABLE[2:]]

    code, found = doctor(topic, *columns)

    assert (code, levels(found)["columns"]) == (1, "warning")
    assert "Column 'nosuch' is NULL" in found["columns"]["text"]


def test_a_key_that_is_not_that_of_its_value(doctor: Doctor, broker: Broker) -> None:
    """Deletes would miss their rows."""
    topic = broker.topic(cleanup_policy="compact")
    broker.produce(topic, ('{"user_id":2}', user(1, "Asia")[1]))

    code, found = doctor(topic, *TABLE)

    assert (code, levels(found)["columns"]) == (1, "warning")
    assert "'user_id' differs between the value and the message key" in found["columns"]["text"]


def test_no_more_messages_are_read_than_asked_for(doctor: Doctor, broker: Broker) -> None:
    """The sample is from the begin and the end; 0 reads none, and says what was not checked."""
    topic = broker.topic(cleanup_policy="compact")
    send_many = [user(number, "Asia") for number in range(100)]
    broker.produce(topic, *send_many[:50], ("bad", "bad"), *send_many[50:])

    code, found = doctor(topic, *TABLE, "--sample", "20")
    assert code == 0
    assert (
        found["sample"]["text"] == "20 messages read, from the beginning and the end of 101 offsets"
    )
    assert doctor(topic, *TABLE, "--sample", "101")[0] == 2
    code, found = doctor(topic, *TABLE, "--sample", "0")
    assert code == 0
    assert levels(found)["bad-messages"] == levels(found)["memory"] == "not-checked"


@pytest.mark.parametrize("sample", ["1", "2", "5"])
def test_messages_between_those_of_aborted_transactions(
    doctor: Doctor, broker: Broker, sample: str
) -> None:
    """A sample is so many messages, and not so many offsets, which may have none at the begin and the end."""
    topic = broker.topic(cleanup_policy="compact")
    producer = broker.producer(**{"transactional.id": topic})
    producer.init_transactions(300)
    for count, end in (
        (50, producer.abort_transaction),
        (5, producer.commit_transaction),
        (50, producer.abort_transaction),
    ):
        producer.begin_transaction()
        for _ in range(count):
            producer.produce(topic, "bad", "bad")
        producer.flush(300)
        end(300)
    code, found = doctor(topic, *TABLE, "--sample", sample)

    assert (code, levels(found)["bad-messages"]) == (2, "error")
    assert found["bad-messages"]["text"].startswith(f"{sample} of {sample} message")
    assert "offset 51:" in found["bad-messages"]["text"]
    assert levels(found)["memory"] == "not-checked"


def test_tombstones_alone(doctor: Doctor, broker: Broker) -> None:
    """They have no columns: whether those of the table are there is not known."""
    topic = broker.topic(cleanup_policy="compact")
    broker.produce(topic, (user(1, "Asia")[0], None))
    code, found = doctor(topic, *TABLE)

    assert code == 0
    assert [check for check, level in levels(found).items() if level != "ok"] == ["columns"]


def test_keys_that_are_not_read(doctor: Doctor, broker: Broker) -> None:
    """Of the messages of a CDC format nothing is said of keys, not even that there are some."""
    topic = broker.topic(cleanup_policy="delete", retention_ms="-1")
    broker.produce(topic, (None, '{"before":null,"after":{"user_id":1,"region":"Asia"},"op":"c"}'))
    code, found = doctor(topic, *TABLE, "--value-format", "debezium-json")

    assert code == 0
    assert levels(found)["null-keys"] == levels(found)["key-partition"] == "not-checked"


def test_the_memory_of_a_partition_that_is_not_in_the_sample(
    doctor: Doctor, broker: Broker
) -> None:
    """A sample of one message is of the largest partition: it is the one that may be too large."""
    topic = broker.topic(2, cleanup_policy="compact")
    broker.produce(topic, user(1, "Asia"), partition=0)
    broker.produce(topic, *(user(n, "x" * 2_000) for n in range(2, 2_002)), partition=1)
    memory = ["--option", "scan.snapshot.memory=2 mb"]

    _, found = doctor(topic, *TABLE, *memory, "--sample", "1")
    assert levels(found)["memory"] == "warning"


def test_a_table_larger_than_the_memory_of_a_task(doctor: Doctor, broker: Broker) -> None:
    """The advice is a number of tasks, with which the table can be read."""
    topic = broker.topic(cleanup_policy="compact")
    broker.produce(topic, *(user(number, "x" * 2_000) for number in range(2_000)))
    memory = ["--option", "scan.snapshot.memory=2 mb"]

    code, found = doctor(topic, *TABLE, *memory)
    assert (code, levels(found)["memory"]) == (1, "warning")
    tasks = found["memory"]["advice"].split("'minPartitions' = '")[1].split("'")[0]
    assert doctor(topic, *TABLE, *memory, "--option", f"minPartitions={tasks}")[0] == 0


def test_a_broker_that_does_not_answer(doctor: Doctor) -> None:
    """Is one finding, in a sentence, and the exit code is 2."""
    code, found = doctor("users", *TABLE, *given(HURRY), servers=f"127.0.0.1:{free_port()}")

    assert (code, list(found)) == (2, ["brokers"])
    assert "no Kafka broker at" in found["brokers"]["text"]


def test_a_topic_that_does_not_exist(doctor: Doctor) -> None:
    """It is said how to create it."""
    code, found = doctor("no-such-topic", *TABLE)

    assert (code, levels(found)) == (2, {"brokers": "ok", "topic": "error"})
    assert "--create --topic no-such-topic" in found["topic"]["text"]


def test_a_pattern_without_a_topic(broker: Broker, capsys: pytest.CaptureFixture[str]) -> None:
    """Is an error about the topic, and not of the program."""
    where = ["--bootstrap-servers", broker.servers, "--option", "topic-pattern=no-such-.*"]

    assert main(["doctor", "--output", "json", *where, *TABLE]) == 2
    (_, found) = map(json.loads, capsys.readouterr().out.splitlines())
    assert (found["check"], found["level"]) == ("topic", "error")
    assert "There is no topic of the pattern 'no-such-.*'" in found["text"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"scan.startup.mode": "specific-offsets", "scan.startup.specific-offsets": "partition:7,offset:1"}, "partition 7"),
        ({"scan.startup.mode": "group-offsets", "properties.group.id": "no-such-group"}, "has no committed offset"),
    ],
)  # fmt: skip
def test_offsets_where_a_job_cannot_start(
    doctor: Doctor, healthy: str, options: dict[str, str], said: str
) -> None:
    """A job that is to start there fails, unless it goes on from a checkpoint."""
    code, found = doctor(healthy, *TABLE, *given(options))

    assert (code, levels(found)["options"]) == (2, "error")
    assert said in found["options"]["text"]
    assert "options" not in doctor(healthy, *TABLE, *given(options), "--checkpoint", "s3://a/b")[1]


@pytest.mark.parametrize(
    ("arguments", "check", "said"),
    [
        (["--option", "primary-kye=id", *TABLE], "options", "primary-key"),
        (["--primary-key", "user_id"], "options", "A topic does not say what its columns are"),
        (["--schema", "user_id BIGINT", "--primary-key", "id"], "columns", "id"),
        (["--schema", "user_id BIGNT", "--primary-key", "user_id"], "columns", "BIGNT"),
    ],
)
def test_wrong_options_and_columns(
    doctor: Doctor, healthy: str, arguments: list[str], check: str, said: str
) -> None:
    """They are findings too, with the exit code 2; columns that are not known leave the rest to be checked."""
    code, found = doctor(healthy, *arguments)

    assert (code, levels(found)[check]) == (2, "error")
    assert said in found[check]["text"]
    assert ("rights" in found) == (check == "columns")


def test_dead_letters(doctor: Doctor, broker: Broker, healthy: str) -> None:
    """Their topic must be there."""
    letters = broker.topic()

    def checked(topic: str) -> dict[str, str]:
        options = {"error-handling.mode": "log", "error-handling.log.target": topic}
        return doctor(healthy, *TABLE, *given(options))[1]["dead-letters"]

    assert checked(letters)["level"] == "ok"
    assert checked("no-letters")["level"] == "error"
    assert "--create --topic no-letters" in checked("no-letters")["advice"]


def test_what_the_other_client_does_not_tell(doctor: Doctor, healthy: str) -> None:
    """kafka-python-ng does not tell rights: that is said, and all else is checked."""
    other = {"kafka.client": "kafka-python", "properties.isolation.level": "read_uncommitted"}
    code, found = doctor(healthy, *TABLE, *given(other))

    assert code == 0
    assert levels(found)["rights"] == "not-checked"
    assert {level for check, level in levels(found).items() if check != "rights"} == {"ok"}


# Rights.


@pytest.fixture
def as_user(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], list[str]]:
    """The arguments of somebody who says to be this user."""

    def arguments(name: str) -> list[str]:
        login = f'OAuthBearerLoginModule required unsecuredLoginStringClaim_sub="{name}";'
        monkeypatch.setenv("DOCTOR_LOGIN", f"{MODULES}.oauthbearer.{login}")
        return given(LOGIN)

    return arguments


LOGIN = {
    "properties.security.protocol": "SASL_PLAINTEXT",
    "properties.sasl.mechanism": "OAUTHBEARER",
    "properties.sasl.jaas.config": "${env:DOCTOR_LOGIN}",
}


ALL_RIGHTS = ("READ", "WRITE", "DESCRIBE_CONFIGS")


@pytest.mark.parametrize(
    ("rights", "code", "expected"),
    [
        (ALL_RIGHTS, 0, {"rights": "ok", "cleanup-policy": "ok", "sample": "ok"}),
        (("READ",), 0, {"rights": "ok", "cleanup-policy": "not-checked", "tombstones": "not-checked", "sample": "ok"}),
        (("DESCRIBE",), 2, {"rights": "error", "bad-messages": "not-checked", "memory": "not-checked"}),
        ((), 2, {"brokers": "ok", "rights": "error"}),
    ],
)  # fmt: skip
def test_rights(
    doctor: Doctor,
    secured: Secured,
    as_user: Callable[[str], list[str]],
    rights: tuple[str, ...],
    code: int,
    expected: dict[str, str],
) -> None:
    """A check that could not be made is a sentence with the right that is missing; reading is what a job cannot do without."""
    topic = secured.broker.topic(cleanup_policy="compact")
    secured.broker.produce(topic, user(1, "Asia"))
    name = secured.user(*((right, "TOPIC", topic) for right in rights))
    found_code, found = doctor(
        topic, *TABLE, *as_user(name), servers=secured.kafka.address("SASL_PLAINTEXT")
    )

    assert found_code == code
    assert {check: levels(found)[check] for check in expected} == expected
    if rights == ("READ",):
        assert "--operation DescribeConfigs --topic" in found["cleanup-policy"]["advice"]
        assert "not write it" in found["rights"]["text"]
    if code == 2:
        assert "--operation Read --topic" in found["rights"]["advice"]


def test_rights_on_one_of_several_topics(
    doctor: Doctor, secured: Secured, as_user: Callable[[str], list[str]]
) -> None:
    """The advice names the topic that the user may not see."""
    seen, hidden = (secured.broker.topic(cleanup_policy="compact") for _ in range(2))
    name = secured.user(("READ", "TOPIC", seen))
    servers = secured.kafka.address("SASL_PLAINTEXT")
    code, found = doctor(f"{seen};{hidden}", *TABLE, *as_user(name), servers=servers)

    assert (code, levels(found)["rights"]) == (2, "error")
    assert found["rights"]["advice"].endswith(f"--operation Read --topic {hidden}")


@pytest.mark.parametrize(
    ("rights", "exists", "starts_there", "level"),
    [
        (("READ",), True, False, "ok"),
        (("READ",), False, False, "ok"),
        (("DESCRIBE",), True, True, "warning"),
        ((), True, False, "warning"),
        ((), False, True, "error"),
    ],
)
def test_rights_on_the_consumer_group(
    doctor: Doctor,
    secured: Secured,
    as_user: Callable[[str], list[str]],
    rights: tuple[str, ...],
    exists: bool,
    starts_there: bool,
    level: str,
) -> None:
    """A stream that cannot commit goes on; one that is to start at the group's offsets cannot."""
    topic = secured.broker.topic(cleanup_policy="compact")
    group = f"group-of-{topic}"
    if exists:
        offsets = [ConsumerGroupTopicPartitions(group, [TopicPartition(topic, 0, 0)])]
        secured.broker.admin.alter_consumer_group_offsets(offsets)[group].result()
    acls = [(right, "GROUP", group) for right in rights]
    name = secured.user(("READ", "TOPIC", topic), *acls)
    begin = {"scan.startup.mode": "group-offsets", "properties.auto.offset.reset": "earliest"}
    options = {"properties.group.id": group, **(begin if starts_there else {})}
    servers = secured.kafka.address("SASL_PLAINTEXT")
    _, found = doctor(
        topic, *TABLE, "--changelog", *given(options), *as_user(name), servers=servers
    )

    assert levels(found)["group"] == level
    if level in ("warning", "error"):
        assert found["group"]["advice"].endswith(f"--operation Read --group {group}")


def test_rights_that_the_client_does_not_tell(
    doctor: Doctor, secured: Secured, as_user: Callable[[str], list[str]]
) -> None:
    """The sample shows that the topic may not be read."""
    topic = secured.broker.topic(cleanup_policy="compact")
    secured.broker.produce(topic, user(1, "Asia"))
    name = secured.user(("DESCRIBE", "TOPIC", topic))
    other = {"kafka.client": "kafka-python", "properties.isolation.level": "read_uncommitted"}
    servers = secured.kafka.address("SASL_PLAINTEXT")
    code, found = doctor(topic, *TABLE, *as_user(name), *given(other), servers=servers)

    assert (code, levels(found)["sample"]) == (2, "error")
    assert "TopicAuthorizationFailedError (the user has no ACL" in found["sample"]["text"]


def test_a_refused_login(doctor: Doctor, secured: Secured) -> None:
    """Is one finding, without the password."""
    login = {
        "properties.security.protocol": "SASL_PLAINTEXT",
        "properties.sasl.mechanism": "PLAIN",
        "properties.sasl.username": "ana",
        "properties.sasl.password": "barley",
    }
    servers = secured.kafka.address("SASL_PLAINTEXT")
    code, found = doctor("t", *TABLE, *given(login), servers=servers)

    assert (code, levels(found)["brokers"]) == (2, "error")
    assert "barley" not in json.dumps(found)


# The schema registry.

AVRO = ["--key-format", "avro-confluent", "--value-format", "avro-confluent"]


def schema(name: str, *fields: tuple[str, str]) -> dict[str, object]:
    """A record schema."""
    return {
        "type": "record",
        "name": name,
        "fields": [{"name": field, "type": type_} for field, type_ in fields],
    }


def at(url: str) -> list[str]:
    """The arguments for a table in Avro whose schemas are there."""
    return [*AVRO, *given({f"{side}.avro-confluent.url": url for side in ("key", "value")})]


def test_schemas_that_fit(doctor: Doctor, broker: Broker, registry: Registry) -> None:
    """The subject of each side is told; the columns may come from the registry too."""
    topic = broker.topic(cleanup_policy="compact")
    registry.register(f"{topic}-key", schema("key", ("user_id", "long")))
    registry.register(f"{topic}-value", schema("row", ("user_id", "long"), ("region", "string")))

    code, found = doctor(topic, *TABLE, *at(registry.url))
    assert (code, levels(found)["registry"]) == (0, "ok")
    assert f"subject '{topic}-value'" in found["registry"]["text"]
    assert doctor(topic, "--primary-key", "user_id", *at(registry.url))[0] == 0
    assert len(registry.ask("GET", f"/subjects/{topic}-value/versions")) == 1


def test_a_schema_that_does_not_fit_the_columns(
    doctor: Doctor, broker: Broker, registry: Registry
) -> None:
    """An error names the column; a subject that is not there is a warning, and nothing is registered."""
    topic = broker.topic(cleanup_policy="compact")
    registry.register(f"{topic}-value", schema("row", ("user_id", "long"), ("region", "double")))
    code, found = doctor(topic, *TABLE, *at(registry.url))

    assert (code, levels(found)["registry"]) == (2, "error")
    assert "region" in found["registry"]["text"]
    assert f"{topic}-key" not in registry.ask("GET", "/subjects")
    new = broker.topic(cleanup_policy="compact")
    code, found = doctor(new, *TABLE, *at(registry.url))
    assert (code, levels(found)["registry"]) == (1, "warning")


def test_a_column_that_the_schema_has_no_field_for(doctor: Doctor, broker: Broker) -> None:
    """It is NULL in each row: that is said of the newest schema, and of those that messages name."""
    topic = broker.topic(cleanup_policy="compact")
    broker.produce(topic, (b"\0\0\0\0\1\2", b"\0\0\0\0\2\2\2a"))
    row = schema("row", ("user_id", "long"), ("regoin", "string"))
    with serving() as fake:
        fake.schema(1, schema("key", ("user_id", "long")))
        fake.schema(2, row)
        fake.version(f"{topic}-key", "latest", schema("key", ("user_id", "long")))
        fake.version(f"{topic}-value", "latest", row)
        code, found = doctor(topic, *TABLE, *at(fake.url))

    assert (code, levels(found)["registry"], levels(found)["columns"]) == (1, "warning", "warning")
    for check in ("registry", "columns"):
        assert "has no field for 'region'" in found[check]["text"]
        assert "It has 'regoin'." in found[check]["text"]


@pytest.mark.long("a registry is asked again for half a minute")
def test_a_registry_that_does_not_answer(doctor: Doctor, broker: Broker) -> None:
    """It is asked once, and messages that need it are not read."""
    topic = broker.topic(cleanup_policy="compact")
    broker.produce(topic, (b"\0\0\0\0\1\2", b"\0\0\0\0\2\2\2"))
    code, found = doctor(topic, *TABLE, *at(f"http://127.0.0.1:{free_port()}"))

    assert (code, levels(found)["registry"]) == (2, "error")
    assert "gives no answer" in found["registry"]["text"]
    assert levels(found)["bad-messages"] == levels(found)["memory"] == "not-checked"


def test_a_registry_that_refuses_what_messages_need(doctor: Doctor, broker: Broker) -> None:
    """A job cannot read the messages either: that is an error, and not only something that is not checked."""
    topic = broker.topic(cleanup_policy="compact")
    broker.produce(topic, (b"\0\0\0\0\1\2", b"\0\0\0\0\2\2\2"))
    key, row = (
        schema("key", ("user_id", "long")),
        schema("row", ("user_id", "long"), ("region", "string")),
    )
    with serving() as fake:
        fake.version(f"{topic}-key", "latest", key)
        fake.version(f"{topic}-value", "latest", row)
        fake.answers["/schemas/ids/1"] = [(403, {"error_code": 403, "message": "No right"})]
        code, found = doctor(topic, *TABLE, *at(fake.url))

    assert (code, levels(found)["registry"], levels(found)["sample"]) == (2, "ok", "error")
    assert "HTTP 403" in found["sample"]["text"]
    assert levels(found)["bad-messages"] == levels(found)["memory"] == "not-checked"
    assert not [path for path in fake.paths() if path.endswith("/versions")]


def test_a_login_to_the_registry_that_gives_no_token(doctor: Doctor, broker: Broker) -> None:
    """What the token endpoint says is told, and which options are wrong; the secret is not."""
    topic = broker.topic(cleanup_policy="compact")
    source = "value.avro-confluent.bearer-auth.credentials-source"
    with serving() as fake, TokenEndpoint("ana", ("spark", "right")) as endpoint:
        arguments = ["--value-format", "avro-confluent", "--key-format", "json"]
        table = {"value.avro-confluent.url": fake.url, source: "OAUTHBEARER"}
        bearer = "value.avro-confluent.bearer-auth."
        client = {
            f"{bearer}issuer.endpoint.url": endpoint.url,
            f"{bearer}client.id": "spark",
            f"{bearer}client.secret": "geheim",
        }
        code, found = doctor(topic, *TABLE, *arguments, *given({**table, **client}))
        assert (code, levels(found)["registry"]) == (2, "error")
        assert f"'{source}' = 'OAUTHBEARER'" in found["registry"]["text"]
        assert "answered 401 Unauthorized (invalid_client)" in found["registry"]["text"]
        assert "geheim" not in json.dumps(found)

        inherited = {**table, source: "SASL_OAUTHBEARER_INHERIT"}
        code, found = doctor(topic, *TABLE, *arguments, *given(inherited))
        assert (code, levels(found)["registry"]) == (2, "error")
        assert "'properties.sasl.mechanism' is 'not given'" in found["registry"]["text"]
        assert fake.asked == []


# Checkpoints.


@pytest.fixture
def checkpoint(tmp_path: Path) -> Iterator[Callable[..., list[str]]]:
    """Writes a checkpoint as Spark does, and gives the arguments that name it."""

    def write(topic: str, next_: int, *, topic_id: str = "", age_s: float = 0) -> list[str]:
        planned_ms = int((time.time() - age_s) * 1000)
        for folder in ("offsets", "commits"):
            (tmp_path / folder).mkdir(exist_ok=True)
        offset = {"version": 1, "topics": {topic: {"id": topic_id, "positions": {"0": next_}}}}
        metadata = {"batchWatermarkMs": 0, "batchTimestampMs": planned_ms, "conf": {}}
        (tmp_path / "offsets" / "3").write_text(f"v1\n{json.dumps(metadata)}\n{json.dumps(offset)}")
        (tmp_path / "commits" / "3").write_text('v1\n{"nextBatchWatermarkMs":0}')
        return ["--checkpoint", str(tmp_path)]

    return write


def test_a_checkpoint_whose_offsets_are_there(
    doctor: Doctor, broker: Broker, checkpoint: Callable[..., list[str]]
) -> None:
    """It is said how much there is to read."""
    topic = broker.topic(cleanup_policy="delete", retention_ms="-1")
    send(broker, topic, *(user(number, "Asia") for number in range(5)))
    code, found = doctor(topic, *TABLE, *checkpoint(topic, 2))

    assert (code, levels(found)["checkpoint"]) == (0, "ok")
    assert "with about 3 offsets to read" in found["checkpoint"]["text"]
    assert levels(found)["checkpoint-retention"] == "ok"


def test_a_checkpoint_whose_offsets_are_gone(
    doctor: Doctor, broker: Broker, checkpoint: Callable[..., list[str]]
) -> None:
    """An error, and a warning where the query would go on; so is another topic of the same name."""
    topic = broker.topic(cleanup_policy="delete", retention_ms="-1")
    send(broker, topic, *(user(number, "Asia") for number in range(5)))
    delete_before(broker, topic, 4)

    code, found = doctor(topic, *TABLE, *checkpoint(topic, 2))
    assert (code, levels(found)["checkpoint"]) == (2, "error")
    assert "at offset 2, and the first that is left is 4" in found["checkpoint"]["text"]
    lossy = ["--option", "failOnDataLoss=false"]
    assert doctor(topic, *TABLE, *checkpoint(topic, 2), *lossy)[0] == 1
    code, found = doctor(topic, *TABLE, *checkpoint(topic, 4, topic_id="A" * 21 + "Q"))
    assert "it was deleted and created again" in found["checkpoint"]["text"]
    code, found = doctor(topic, *TABLE, *checkpoint("others", 4))
    assert "holds positions of 'others'" in found["checkpoint"]["text"]
    code, found = doctor(topic, *TABLE, "--checkpoint", "/nowhere")
    assert (code, levels(found)["checkpoint"]) == (2, "error")
    code, found = doctor(topic, *TABLE, "--checkpoint", "s3a://bucket/users")
    assert (code, levels(found)["checkpoint"]) == (0, "not-checked")


def test_when_retention_passes_a_checkpoint(
    doctor: Doctor, broker: Broker, checkpoint: Callable[..., list[str]]
) -> None:
    """Messages that are soon older than retention allows are a warning, if the query has not read them."""
    topic = broker.topic(cleanup_policy="delete", retention_ms="7200000")
    send(broker, topic, *(user(number, "Asia") for number in range(5)))

    _, found = doctor(topic, *TABLE, *checkpoint(topic, 2))
    assert levels(found)["checkpoint-retention"] == "warning"
    assert "within 6 hours" in found["checkpoint-retention"]["text"]
    assert doctor(topic, *TABLE, *checkpoint(topic, 5))[1]["checkpoint-retention"]["level"] == "ok"
    broker.configure(topic, retention_ms="604800000")
    assert doctor(topic, *TABLE, *checkpoint(topic, 2))[1]["checkpoint-retention"]["level"] == "ok"


def test_a_checkpoint_older_than_tombstones(
    doctor: Doctor, broker: Broker, checkpoint: Callable[..., list[str]]
) -> None:
    """The query may miss deletes, unless it has read everything."""
    topic = broker.topic(cleanup_policy="compact", delete_retention_ms="3600000")
    send(broker, topic, *(user(number, "Asia") for number in range(5)))

    code, found = doctor(topic, *TABLE, *checkpoint(topic, 2, age_s=7_200))
    assert (code, levels(found)["checkpoint-tombstones"]) == (1, "warning")
    assert "the query may miss deletes" in found["checkpoint-tombstones"]["text"]
    assert doctor(topic, *TABLE, *checkpoint(topic, 2, age_s=60))[0] == 0
    assert doctor(topic, *TABLE, *checkpoint(topic, 5, age_s=7_200))[0] == 0
