"""Who answers, and what the user may do there: a login by token, brokers, a consumer group, the topic of dead letters, the schema registry.

Nothing is written, committed or created.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from pyspark_upsert_kafka.cli.doctor.findings import (
    Finding,
    Level,
    NotSeen,
    counted,
    error_finding,
    grant,
    servers_of,
)
from pyspark_upsert_kafka.cli.doctor.message_sample import logged
from pyspark_upsert_kafka.connector.format_catalog import read_key_side, read_value_side
from pyspark_upsert_kafka.connector.read_request import Request
from pyspark_upsert_kafka.core.errors import BrokerError, OptionError, SchemaError
from pyspark_upsert_kafka.core.options.frozen_options import ReadOptions
from pyspark_upsert_kafka.formats.codec import Side
from pyspark_upsert_kafka.formats.registry_format import NoSchemaError
from pyspark_upsert_kafka.kafka.clients import client_version
from pyspark_upsert_kafka.kafka.cluster import Cluster
from pyspark_upsert_kafka.logins.jaas import without_jaas
from pyspark_upsert_kafka.logins.own_tokens import only_librdkafka, own_tokens
from pyspark_upsert_kafka.logins.rented_kafka import described
from pyspark_upsert_kafka.logins.token_providers import tokens_of


def service_findings(options: ReadOptions) -> Iterator[Finding]:
    """Whose Kafka it is, where the names of the brokers say it."""
    whose = described(servers_of(options))
    if whose is not None:
        yield Finding("service", Level.OK, f"The brokers are those of {whose}")


def login_findings(options: ReadOptions) -> Iterator[Finding]:
    """Whether there is a token, where clients log in by one.

    Raises:
        OptionError: The login is not understood.
    """
    given = without_jaas(options.table.properties.resolved())
    if given.get("sasl.mechanism", given.get("sasl.mechanisms", "")).upper() != "OAUTHBEARER":
        return
    other = only_librdkafka(given)
    if other is not None:
        text = f"By 'properties.{other}' the client alone gets tokens; whether it does shows when a broker is asked"
        yield Finding("login", Level.NOT_CHECKED, text)
        return
    tokens = tokens_of(given) or own_tokens(given)
    try:
        tokens.token()
    except BrokerError as error:
        yield error_finding("login", error)
    else:
        yield Finding("login", Level.OK, f"There is a token to log in with: {tokens.described()}")


def broker_finding(cluster: Cluster, options: ReadOptions) -> Finding:
    """The brokers that answer, or why none does."""
    try:
        return check_brokers(_broker_facts(cluster, options))
    except BrokerError as error:
        return error_finding("brokers", error)


def group_findings(cluster: Cluster, options: ReadOptions) -> Iterator[Finding]:
    """What is found of the consumer group of the options, if they name one."""
    name = options.table.properties.resolved().get("group.id")
    if not name:
        return
    try:
        yield check_group(_group_facts(cluster, options, name), options)
    except BrokerError as error:
        yield error_finding("group", error)


def dead_letter_findings(cluster: Cluster, options: ReadOptions) -> Iterator[Finding]:
    """What is found of the topic that dead letters are sent to, if any are."""
    name = options.dead_letter_topic
    if name is None or not options.sends_dead_letters:
        return
    try:
        facts = _written_topic_facts(cluster, options, name)
    except BrokerError as error:
        advice = grant("Write", servers_of(options), name) if error.is_final else ""
        yield error_finding("dead-letters", error, advice)
    else:
        yield check_written_topic(facts)


def registry_findings(request: Request) -> Generator[Finding, None, bool]:
    """Yields what is found of the newest schema of each side that has a registry; returns whether the registry has answered."""
    schemas = _schema_facts(request)
    yield from map(_check_schema, schemas)
    return all(each.state != "no answer" for each in schemas)


_UNTOLD_GROUP = "there is no such group yet, or neither the client nor the brokers tell it"


@dataclass(frozen=True)
class BrokerFacts:
    """What was seen of the brokers.

    Args:
        servers: The bootstrap servers.
        addresses: The addresses of all brokers.
        client: The Kafka client and its version.
    """

    servers: str
    addresses: tuple[str, ...]
    client: str


def _broker_facts(cluster: Cluster, options: ReadOptions) -> BrokerFacts:
    """The brokers that there are.

    Raises:
        BrokerError: None answers.
    """
    addresses = tuple(sorted(cluster.brokers()))
    return BrokerFacts(servers_of(options), addresses, client_version(options.table.client))


def check_brokers(facts: BrokerFacts) -> Finding:
    """The brokers that answer, and the version of the client."""
    text = f"{counted(len(facts.addresses), 'broker')} at {facts.servers}; the client is {facts.client}"
    return Finding("brokers", Level.OK, text)


@dataclass(frozen=True)
class GroupFacts:
    """What was seen of the consumer group of the options.

    Args:
        name: Its name.
        servers: The bootstrap servers, for commands.
        operations: The ACL operations that the user may do with it.
    """

    name: str
    servers: str
    operations: frozenset[str] | NotSeen


def _group_facts(cluster: Cluster, options: ReadOptions, name: str) -> GroupFacts:
    """What there is of the consumer group of the options.

    Raises:
        BrokerError: No broker answers.
    """
    operations = cluster.group_operations()
    untold = NotSeen(f"What the user may do with group {name!r} is not told: {_UNTOLD_GROUP}")
    return GroupFacts(name, servers_of(options), untold if operations is None else operations)


def check_group(facts: GroupFacts, options: ReadOptions) -> Finding:
    """Whether a stream can commit to the consumer group, and a job that starts or ends where that is can look it up."""
    check, name, may = "group", facts.name, facts.operations
    if isinstance(may, NotSeen):
        return may.finding(check)
    advice = grant("Read", facts.servers, name, resource="group")
    if "DESCRIBE" not in may and "group-offsets" in (options.start.mode, options.end.mode):
        text = (
            f"The user may not see the offsets of group {name!r}, where the job is to start or end"
        )
        return Finding(check, Level.ERROR, text, advice)
    if "READ" not in may:
        text = f"The user may not commit offsets to group {name!r}: Kafka's tools do not show how far a stream is"
        return Finding(check, Level.WARNING, text, advice)
    return Finding(check, Level.OK, f"The user may commit offsets to group {name!r}")


@dataclass(frozen=True)
class WrittenTopicFacts:
    """What was seen of the topic that dead letters are sent to.

    Args:
        name: Its name.
        servers: The bootstrap servers, for commands.
        exists: Whether it is there.
        operations: The ACL operations that the user may do with it.
    """

    name: str
    servers: str
    exists: bool
    operations: frozenset[str] | NotSeen


def _written_topic_facts(cluster: Cluster, options: ReadOptions, name: str) -> WrittenTopicFacts:
    """What there is of the topic that dead letters are sent to.

    Raises:
        BrokerError: No broker answers, or the user may not even see it.
    """
    exists = bool(cluster.existing([name]))
    operations = operations_of(cluster, [name])[name] if exists else frozenset()
    return WrittenTopicFacts(name, servers_of(options), exists, operations)


def operations_of(cluster: Cluster, names: Sequence[str]) -> Mapping[str, frozenset[str] | NotSeen]:
    """The ACL operations that the user may do with each topic."""
    found = cluster.operations(names)
    if found is not None:
        return found
    return {
        name: NotSeen(
            f"What the user may do with topic {name!r} is not told by the client or the brokers",
            cluster.who_tells_operations,
        )
        for name in names
    }


def check_written_topic(facts: WrittenTopicFacts) -> Finding:
    """Whether dead letters can be sent."""
    check, name, may = "dead-letters", facts.name, facts.operations
    if not facts.exists:
        text = f"The topic {name!r} of 'error-handling.log.target' does not exist"
        advice = f"kafka-topics.sh --bootstrap-server {facts.servers} --create --topic {name} --partitions 4"
        return Finding(check, Level.ERROR, text, advice, name)
    if isinstance(may, NotSeen):
        return may.finding(check, name)
    if "WRITE" not in may:
        text = f"The user may not write to topic {name!r} of 'error-handling.log.target'"
        return Finding(check, Level.ERROR, text, grant("Write", facts.servers, name), name)
    return Finding(check, Level.OK, f"Dead letters can be sent to topic {name!r}", topic=name)


_REGISTRY = "registry"


@dataclass(frozen=True)
class _SchemaFacts:
    """What a registry has of a side.

    Args:
        side: ``key`` or ``value``.
        format: The name of its format.
        state: What is known of its newest schema: it fits the columns, it does not, there is none, or the registry does not
            answer.
        text: The subject of a schema that fits; else the error.
        option: The option that names the subject.
        warnings: What is said of a schema that fits, such as columns that it has no field for.
    """

    side: str
    format: str
    state: Literal["fits", "unfit", "missing", "no answer"]
    text: str
    option: str = "subject"
    warnings: tuple[str, ...] = ()


def _schema_facts(request: Request) -> list[_SchemaFacts]:
    """Asks the registry for the newest schema of each side; empty = no side has a registry."""
    sides = (
        read_key_side(request.table, request.options),
        read_value_side(request.table, request.options),
    )
    found: list[_SchemaFacts] = []
    for side in sides:
        if side is None or side.format.newest_schema is None:
            continue
        found.append(_facts(side))
        if found[-1].state == "no answer":  # it was waited for long enough
            break
    return found


def _facts(side: Side) -> _SchemaFacts:
    name, of = side.format.name, side.spec.side
    if side.format.newest_schema is None:
        raise ValueError(f"'{name}' has no registry.")
    try:
        with logged() as warnings:
            subject = side.format.newest_schema(side.spec)
        return _SchemaFacts(of, name, "fits", subject, warnings=tuple(warnings))
    except NoSchemaError as error:
        options = {option.name for option in side.format.options}
        option = "subject" if "subject" in options else "schema.name"
        return _SchemaFacts(of, name, "missing", str(error), option)
    except SchemaError as error:
        return _SchemaFacts(of, name, "unfit", str(error))
    except (BrokerError, OptionError) as error:  # of options those by which it is asked
        return _SchemaFacts(of, name, "no answer", str(error))


def _check_schema(facts: _SchemaFacts) -> Finding:
    """Whether the newest schema of a side can be read."""
    side = f"{facts.side}s ({facts.format})"
    if facts.state == "fits":
        text = (
            f"The newest schema of the {side}, subject {facts.text!r}, can be read into the columns"
        )
        if facts.warnings:
            said = " ".join([f"{text}.", *facts.warnings])
            return Finding(_REGISTRY, Level.WARNING, said.rstrip("."))
        return Finding(_REGISTRY, Level.OK, text)
    option = f"'{facts.side}.{facts.format}.{facts.option}'"
    if facts.state == "missing":
        text = f"The registry has no schema of the {side} under the subject that the topic's name gives"
        advice = f"If another serializer's rule names the subjects, give it by {option}; else the first write registers one"
        return Finding(_REGISTRY, Level.WARNING, text, advice)
    if facts.state == "unfit":
        text = (
            f"Messages of the newest schema of the {side} cannot be read: {facts.text.rstrip('.')}"
        )
        return Finding(_REGISTRY, Level.ERROR, text, "Change the columns, or the schema")
    return Finding(_REGISTRY, Level.ERROR, facts.text.rstrip("."))
