"""``show`` and ``local-kafka``, as a person runs them."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import datetime, timezone

import pytest

from pyspark_upsert_kafka import read_table
from pyspark_upsert_kafka.cli import main
from tests.conftest import Broker, broker_at, options
from tests.kafka.conftest import eventually
from tools.terminal import Terminal

TABLE = ["--schema", "user_id BIGINT, region STRING", "--primary-key", "user_id"]

Show = Callable[..., "tuple[int, str, str]"]


def user(number: int, region: str) -> tuple[str, str]:
    """A message that puts a user into a region."""
    return f'{{"user_id":{number}}}', f'{{"user_id":{number},"region":"{region}"}}'


def program(broker: Broker, topic: str, *arguments: str) -> list[str]:
    """The command line."""
    where = ["--topic", topic, "--bootstrap-servers", broker.servers]
    return [sys.executable, "-m", "pyspark_upsert_kafka", "show", *where, *arguments]


@pytest.fixture(scope="module")
def users(broker: Broker) -> str:
    """A topic in which user 1 moves, users 10 and 9 stay and user 2 is deleted."""
    topic = broker.topic()
    messages = [user(1, "Asia"), user(2, "Asia"), user(1, "Europe"), ('{"user_id":2}', None)]
    broker.produce(topic, *messages, user(10, "Africa"), user(9, "Asia"))
    return topic


@pytest.fixture
def show(broker: Broker, capsys: pytest.CaptureFixture[str]) -> Show:
    """Runs ``show`` on a topic in this process: exit code, output and errors."""

    def run(topic: str, *arguments: str) -> tuple[int, str, str]:
        code = main(["show", "--topic", topic, "--bootstrap-servers", broker.servers, *arguments])
        return code, *capsys.readouterr()

    return run


def test_a_table(show: Show, users: str) -> None:
    """The table by its key, as numbers are ordered, and nothing else is printed."""
    code, printed, said = show(users, *TABLE)

    assert (code, said) == (0, "")
    assert printed.splitlines() == [
        "+-------+------+",
        "|user_id|region|",
        "+-------+------+",
        "|1      |Europe|",
        "|9      |Asia  |",
        "|10     |Africa|",
        "+-------+------+",
    ]


def test_limits(show: Show, users: str) -> None:
    """A limit is told below the table; a topic that ends before it is all there is."""
    assert show(users, *TABLE, "--limit", "1")[1].splitlines()[3:] == [
        "|1      |Europe|",
        "+-------+------+",
        "1 of 3 rows; --limit all prints all.",
    ]
    assert show(users, *TABLE, "--limit", "4")[1] == show(users, *TABLE, "--limit", "all")[1]
    assert show(users, *TABLE, "--changelog", "--limit", "2")[1].splitlines()[-1] == (
        "The first 2 rows; --limit all prints all."
    )


def test_json_and_csv(show: Show, users: str) -> None:
    """JSON is one object a line; without a limit rows come as they are read."""
    _, lines, _ = show(users, *TABLE, "--output", "json")
    _, records, _ = show(users, *TABLE, "--output", "csv", "--limit", "2")

    assert [json.loads(line)["user_id"] for line in lines.splitlines()] == [1, 10, 9]
    assert records == "user_id,region\n1,Europe\n9,Asia\n"


def test_a_changelog(show: Show, users: str) -> None:
    """``--changelog`` shows each message in its order, deletes too, when it came and where it is."""
    _, printed, _ = show(users, *TABLE, "--changelog", "--output", "json")
    changes = [json.loads(line) for line in printed.splitlines()]

    assert [[*change.values()][:3] for change in changes] == [
        ["upsert", 1, "Asia"],
        ["upsert", 2, "Asia"],
        ["upsert", 1, "Europe"],
        ["delete", 2, None],
        ["upsert", 10, "Africa"],
        ["upsert", 9, "Asia"],
    ]
    assert [change["_offset"] for change in changes] == list(range(6))
    assert all(re.fullmatch(r"\d{4}-\d\d-\d\dT[\d:.]+Z", each["_timestamp"]) for each in changes)


@pytest.fixture(scope="module")
def changed_users(broker: Broker) -> str:
    """A topic with the changes of a database's table: user 1 moves, user 2 gets the number 3, user 4 is deleted."""

    def row(number: int, region: str) -> dict[str, object]:
        return {"user_id": number, "region": region}

    changes = [
        ("c", None, row(1, "Asia")),
        ("c", None, row(2, "Asia")),
        ("u", row(1, "Asia"), row(1, "Europe")),
        ("u", row(2, "Asia"), row(3, "Asia")),
        ("c", None, row(4, "Asia")),
        ("d", row(4, "Asia"), None),
    ]
    topic = broker.topic()
    values = [json.dumps({"op": op, "before": old, "after": new}) for op, old, new in changes]
    broker.produce(topic, *((None, value) for value in values), (None, None))
    return topic


def test_a_table_of_a_cdc_format(show: Show, changed_users: str) -> None:
    """The table, its counts and one key need no key format; the changelog without a key has rows before and after."""
    debezium = [*TABLE, "--value-format", "debezium-json"]
    _, lines, said = show(changed_users, *debezium, "--output", "json", "--limit", "10")
    assert [[*json.loads(line).values()] for line in lines.splitlines()] == [
        [1, "Europe"],
        [3, "Asia"],
    ]
    assert said == ""
    counts = json.loads(show(changed_users, *debezium, "--count", "--output", "json")[1])
    assert counts == {"live_keys": 2, "tombstones": 1, "messages": 7, "bad_messages": 0}
    one = [*debezium, "--output", "json", "--key"]
    assert json.loads(show(changed_users, *one, "user_id=3")[1]) == {"user_id": 3, "region": "Asia"}
    assert "no such row; deleted" in show(changed_users, *one, "user_id=2")[2]
    images = [*TABLE[:2], "--value-format", "debezium-json", "--changelog", "--output", "json"]
    kinds = [
        json.loads(line)["_change_type"] for line in show(changed_users, *images)[1].splitlines()
    ]
    update = ["update_preimage", "update_postimage"]
    assert kinds == ["insert", "insert", *update, *update, "insert", "delete"]


def test_a_table_of_before(show: Show, broker: Broker) -> None:
    """``--at`` shows what messages before that time add up to."""
    topic = broker.topic(message_timestamp_type="CreateTime")
    producer = broker.producer()
    for second, region in enumerate(["Asia", "Europe"], 1):
        key, value = user(1, region)
        producer.produce(topic, key=key, value=value, timestamp=second * 1000)
    assert producer.flush(60) == 0
    regions = [
        show(topic, *TABLE, "--at", f"1970-01-01T00:00:0{time}Z", "--output", "csv")[1].split()[1:]
        for time in ("1", "1.001", "2", "3")
    ]

    assert regions == [[], ["1,Asia"], ["1,Asia"], ["1,Europe"]]


def test_counts(show: Show, users: str) -> None:
    """Live keys, tombstones, messages and bad messages; these are no failure."""
    code, printed, said = show(users, *TABLE, "--count", "--output", "json")
    assert (code, said) == (0, "")
    assert json.loads(printed) == {
        "live_keys": 3, "tombstones": 1, "messages": 6, "bad_messages": 0,
    }  # fmt: skip

    wrong = ["--schema", "user_id BIGINT, region INT", "--primary-key", "user_id"]
    code, printed, said = show(users, *wrong, "--count", "--option", "minPartitions=3")
    assert code == 0
    assert printed.split() == ["live", "keys", "0", "tombstones", "1", "messages", "6", "bad", "messages", "5"]  # fmt: skip
    assert f"topic '{users}', partition 0, offset 0 cannot be decoded (stage: value)" in said


def test_counts_of_messages_without_keys(show: Show, users: str) -> None:
    """There are messages only, and bad ones: here each must have a value."""
    columns = ["--schema", "user_id BIGINT", "--append"]

    assert show(users, *columns, "--count", "--output", "csv")[1] == "messages,bad_messages\n6,1\n"


@pytest.fixture(scope="module")
def spread_users(broker: Broker) -> str:
    """A topic of four partitions: ten users, each of whom moves once."""
    topic = broker.topic(4)
    moves = [user(at, region) for region in ("Asia", "Europe") for at in range(10)]
    broker.produce(topic, *moves)
    return topic


@pytest.mark.parametrize("number", [0, 3, 7, 11])
def test_one_key_of_one_partition(
    show: Show, spread_users: str, broker: Broker, number: int
) -> None:
    """``--key`` shows one key; another partition, here full of what cannot be read, is left alone."""
    history = show(spread_users, *TABLE, "--changelog", "--key", f"user_id={number}", "--output", "json")[1]  # fmt: skip
    row = show(spread_users, *TABLE, "--key", f"user_id={number}", "--output", "csv")[1]
    counts = show(spread_users, *TABLE, "--count", "--output", "json")[1]

    assert row.splitlines()[1:] == ([] if number == 11 else [f"{number},Europe"])
    assert [json.loads(line)["region"] for line in history.splitlines()] == (
        [] if number == 11 else ["Asia", "Europe"]
    )
    assert json.loads(counts)["messages"] == 20


def test_one_key_leaves_other_partitions_alone(show: Show, broker: Broker) -> None:
    """Only the partition that holds the key is read: what cannot be decoded elsewhere is not met."""
    topic = broker.topic(2)
    broker.produce(topic, *[user(at, "Asia") for at in range(10)])
    where = {message.key: message.partition for message in broker.messages(topic)}
    broker.produce(topic, ("{", "{"), partition=1 - where[b'{"user_id":3}'])

    assert (
        show(topic, *TABLE, "--key", "user_id=3", "--output", "csv")[1]
        == "user_id,region\n3,Asia\n"
    )
    assert show(topic, *TABLE)[0] == 1


@pytest.mark.parametrize("output", ["table", "json", "csv"])
def test_one_key_that_is_not_there(show: Show, users: str, broker: Broker, output: str) -> None:
    """Standard error says so, and where and when it was deleted; programs read no word of it."""
    found = show(users, *TABLE, "--key", "user_id=2", "--output", output)
    never = show(users, *TABLE, "--key", "user_id=77", "--output", output)
    (tombstone,) = (each for each in broker.messages(users) if each.value is None)
    time = datetime.fromtimestamp(tombstone.timestamp / 1000, timezone.utc)
    deleted = f"{time.isoformat(timespec='milliseconds').removesuffix('+00:00')}Z"

    assert found == (0, never[1], f"no such row; deleted at {deleted} (partition 0, offset 3)\n")
    assert never[2] == "no such row\n"
    assert (
        never[1]
        == {
            "table": "+-------+------+\n|user_id|region|\n+-------+------+\n",
            "json": "",
            "csv": "user_id,region\n",
        }[output]
    )


@pytest.mark.parametrize("spelling", ['{ "user_id": 3 }', '{"user_id":3}'])
def test_one_key_that_another_writer_wrote_otherwise(
    show: Show, broker: Broker, spelling: str
) -> None:
    """Keys that are spelt or spread in another way may be anywhere, so every partition is read."""
    topic = broker.topic(2)
    for partition in range(2):
        broker.produce(topic, (spelling, user(3, f"R{partition}")[1]), partition=partition)
    _, printed, _ = show(topic, *TABLE, "--key", "user_id=3", "--changelog", "--output", "json")

    found = {json.loads(line)["region"] for line in printed.splitlines()}
    assert found == {"R0", "R1"} if " " in spelling else found


@pytest.mark.parametrize(
    ("arguments", "sentences"),
    [
        (["--schema", "user_id BIGINT, region INT", "--primary-key", "user_id"],
         ["partition 0, offset 0 cannot be decoded (stage: value)", "field 'region'"]),
        (["--schema", "user_id BIGINT", "--primary-key", "usr_id"], ["Could not find the field 'usr_id'"]),
        ([*TABLE, "--key-format", "raw"], ["partition 0, offset 0 cannot be decoded (stage: key)"]),
        ([], ["--schema", "--primary-key", 'key    {"user_id":1}', 'value  {"user_id":1,"region":"Asia"}']),
        (TABLE[:2], ["--primary-key", 'key    {"user_id":1}']),
        (TABLE[2:], ["--schema", 'key    {"user_id":1}']),
    ],
)  # fmt: skip
def test_what_does_not_fit(
    show: Show, users: str, arguments: list[str], sentences: list[str]
) -> None:
    """It is told with what is at fault, without a traceback; nothing is printed and the exit code is 1."""
    code, printed, said = show(users, *arguments)

    assert (code, printed) == (1, "")
    assert all(sentence in said for sentence in sentences), said
    assert "Traceback" not in said


def test_messages_without_keys(show: Show, broker: Broker) -> None:
    """A topic without keys is none of a table; the error says how to see its messages."""
    topic = broker.topic()
    broker.produce(topic, (None, '{"user_id":1,"region":"Asia"}'))
    code, printed, said = show(topic, *TABLE)

    assert (code, printed) == (1, "")
    assert "offset 0 cannot be decoded (stage: null-key)" in said
    assert "--append shows each as a row" in said
    assert "|1      |Asia  |" in show(topic, *TABLE[:2], "--append")[1]


def test_bad_messages_are_passed_over_where_that_is_wanted(show: Show, broker: Broker) -> None:
    """``error-handling.mode`` holds here too; a half-read table is not called done."""
    topic = broker.topic()
    broker.produce(topic, user(1, "Asia"), ("{", "{"), user(2, "Asia"))
    changes = [*TABLE, "--changelog", "--output", "json"]

    code, printed, said = show(topic, *changes)
    assert (code, "offset 1" in said) == (1, True)
    code, printed, said = show(topic, *changes, "--option", "error-handling.mode=column")
    assert code == 0
    assert [json.loads(line)["_error"] is None for line in printed.splitlines()] == [True, False, True]  # fmt: skip
    assert show(topic, *TABLE, "--output", "csv", "--option", "error-handling.mode=ignore")[1] == (
        "user_id,region\n1,Asia\n2,Asia\n"
    )


def test_topics_without_messages_and_without_a_name(show: Show, broker: Broker) -> None:
    """An empty topic is an empty table, and a missing one the connector's own sentence."""
    topic = broker.topic()

    assert show(topic, *TABLE)[1].splitlines()[-1] == "+-------+------+"
    assert f"Topic '{topic}' has no message yet." in show(topic)[2]
    code, printed, said = show("none-such", *TABLE)
    assert (code, printed) == (1, "")
    assert "Topic 'none-such' does not exist" in said


def test_a_closed_pipe_is_quiet(broker: Broker) -> None:
    """``show | head`` ends when ``head`` has enough, without a message, with the exit code of SIGPIPE."""
    topic = broker.topic()
    broker.produce(topic, *[user(at, "x" * 100) for at in range(5_000)])
    for arguments in (["--output", "json"], ["--follow"]):
        shown = subprocess.Popen(
            program(broker, topic, *TABLE, *arguments),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert shown.stdout is not None
        assert shown.stderr is not None
        with shown:
            assert json.loads(shown.stdout.readline())["user_id"] == 0
            shown.stdout.close()
            assert shown.stderr.read() == ""
            assert shown.wait(300) == 141


def test_changes_are_followed_into_a_pipe(broker: Broker) -> None:
    """Each change is a line, at once; a limit ends it."""
    topic = broker.topic()
    broker.produce(topic, user(1, "Asia"))
    with subprocess.Popen(
        program(broker, topic, *TABLE, "--follow", "--limit", "3"),
        stdout=subprocess.PIPE,
        text=True,
    ) as followed:
        assert followed.stdout is not None
        assert json.loads(followed.stdout.readline())["region"] == "Asia"
        broker.produce(topic, user(1, "Europe"), ('{"user_id":1}', None), user(2, "Asia"))
        changes = [json.loads(line) for line in followed.stdout]

        assert [each["_change_type"] for each in changes] == ["upsert", "delete"]
        assert followed.wait(300) == 0


def test_a_table_is_redrawn_until_ctrl_c(broker: Broker) -> None:
    """The table on a terminal changes with the topic; Ctrl-C leaves the last one, and the cursor is back."""
    topic = broker.topic(2)
    broker.produce(topic, user(1, "Asia"), user(2, "Asia"))
    with Terminal(program(broker, topic, *TABLE, "--follow")) as terminal:
        terminal.wait_until(lambda: "2 rows at" in terminal.text)
        assert terminal.screen.cursor.hidden
        broker.produce(
            topic, user(1, "Europe"), ('{"user_id":2}', None), user(3, r"\u001b[2J[red]")
        )
        terminal.wait_until(lambda: "Europe" in terminal.text and "[red]" in terminal.text)
        assert "Asia" not in terminal.text
        terminal.process.send_signal(signal.SIGINT)

        assert terminal.wait() == 0
        assert not terminal.screen.cursor.hidden
        assert "Europe" in terminal.text
        assert r"\x1b[2J[red]" in terminal.text
        assert "Traceback" not in terminal.text


def test_sigterm_gives_the_cursor_back(broker: Broker, users: str) -> None:
    """Whatever ends it, the terminal is as it was."""
    with Terminal(
        program(broker, users, *TABLE, "--changelog", "--follow", "--limit", "2")
    ) as terminal:
        terminal.wait_until(lambda: "2 of 6 rows at" in terminal.text)
        terminal.process.terminate()

        assert terminal.wait() == 128 + signal.SIGTERM
        assert not terminal.screen.cursor.hidden
        assert "Africa" in terminal.text
        assert "Europe" not in terminal.text


@pytest.mark.long("starts a broker of its own")
def test_local_kafka_runs_until_it_is_told_to_stop() -> None:
    """``local-kafka`` prints its address, serves, and ends in good order on SIGTERM."""
    program = subprocess.Popen(
        [sys.executable, "-m", "pyspark_upsert_kafka", "local-kafka", "--port", "0"],
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert program.stdout is not None
        lines = iter(program.stdout.readline, "")
        address = next(filter(None, (re.search(r"runs at (\S+)", line) for line in lines)))[1]
        other = broker_at(address)
        topic = other.topic()
        other.produce(topic, ("k", "v"))

        assert other.pairs(topic) == [(b"k", b"v")]
        program.send_signal(signal.SIGTERM)
        assert program.wait(300) == 0
    finally:
        program.kill()
        program.communicate()


def test_messages_with_certain_headers(show: Show, broker: Broker) -> None:
    """Rows and counts are those of a topic that has no others."""
    topic = broker.topic()
    asia, europe = [("region", b"Asia")], [("region", b"Europe")]
    broker.produce(
        topic, (*user(1, "Asia"), asia), (*user(1, "Europe"), europe), ("?", "?", europe),
        (*user(2, "Asia"), asia), ('{"user_id":2}', None), user(3, "Asia"),
    )  # fmt: skip
    chosen = [*TABLE, "--option", "scan.headers=region=Asia"]

    _, printed, _ = show(topic, *chosen, "--output", "json")
    assert [json.loads(line) for line in printed.splitlines()] == [
        {"user_id": 1, "region": "Asia"}, {"user_id": 2, "region": "Asia"},
    ]  # fmt: skip
    _, printed, _ = show(topic, *chosen, "--count", "--output", "json")
    assert json.loads(printed) == {
        "live_keys": 2, "tombstones": 0, "messages": 2, "bad_messages": 0,
    }  # fmt: skip


def test_messages_of_a_time(show: Show, broker: Broker) -> None:
    """Start and end may be times, and how long ago they were."""
    topic, producer = broker.topic(), broker.producer()
    for number, hours_ago in enumerate((5, 3, 1)):
        key, value = user(number, "Asia")
        at_ms = int((time.time() - hours_ago * 3600) * 1000)
        producer.produce(topic, key=key, value=value, timestamp=at_ms)
    assert producer.flush(60) == 0
    end = datetime.fromtimestamp(time.time() - 2 * 3600, timezone.utc).isoformat()
    between = [
        "--option",
        "scan.startup.timestamp=-4 h",
        "--option",
        f"scan.bounded.timestamp={end}",
    ]

    code, printed, _ = show(topic, *TABLE, "--changelog", *between, "--output", "json")

    assert code == 0
    assert [json.loads(line)["user_id"] for line in printed.splitlines()] == [1]
    code, _, said = show(topic, *TABLE, "--option", "scan.bounded.timestamp=2026-01-31T12:00:00")
    assert code != 0
    assert "has no zone: write 2026-01-31T12:00:00Z for UTC" in said


def test_an_open_transaction_hides_newer_messages(
    show: Show, broker: Broker, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    """``show``, ``--count``, ``doctor`` and a snapshot say so, how many they are, and since when."""
    topic = broker.topic(cleanup_policy="compact")
    broker.produce(topic, user(1, "Asia"))
    producer = broker.producer(**{"transactional.id": topic})
    producer.init_transactions(30)
    producer.begin_transaction()
    key, value = user(2, "Asia")
    producer.produce(topic, value, key, timestamp=1_700_000_000_000)
    producer.flush(30)
    broker.produce(topic, user(3, "Asia"), user(4, "Asia"))
    hidden = (
        f"In topic '{topic}', partition 0, an open transaction hides 3 newer offsets since 2023-11-14T22:13:20Z: "
        "nothing from offset 1 on is read until it ends"
    )

    code, printed, said = show(topic, *TABLE, "--output", "csv")
    assert (code, printed) == (0, "user_id,region\n1,Asia\n")
    assert said.startswith(f"{hidden}. ")
    assert show(topic, *TABLE, "--count")[2].startswith(f"{hidden}. ")
    where = ["--topic", topic, "--bootstrap-servers", broker.servers]
    main(["doctor", *where, *TABLE, "--output", "json"])
    found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [
        (each["level"], each["text"]) for each in found if each["check"] == "open-transaction"
    ] == [("warning", hidden)]
    table = read_table(
        options(broker, topic, primary_key="user_id"), schema="user_id BIGINT, region STRING"
    ).read_all()
    assert table.num_rows == 1
    assert [each for each in caplog.messages if each.startswith(hidden)]

    producer.commit_transaction(30)
    assert eventually(lambda: show(topic, *TABLE)[2] == "")
