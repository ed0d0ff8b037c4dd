"""Options ``properties.*``: what the connector manages itself, and values that stay secret."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from pyspark_upsert_kafka.core.errors import OptionError

PREFIX = "properties."

_MANAGED = {
    "key.serializer": "'key.format' decides how keys are written",
    "value.serializer": "'value.format' decides how values are written",
    "key.deserializer": "'key.format' decides how keys are read",
    "value.deserializer": "'value.format' decides how values are read",
    "enable.auto.commit": "offsets are kept in Spark's checkpoint",
    "enable.auto.offset.store": "offsets are kept in Spark's checkpoint",
    "partitioner": "keys are partitioned as the Java client does (murmur2)",
    "partitioner.class": "keys are partitioned as the Java client does (murmur2)",
    "transactional.id": "the connector names transactions itself",
    "enable.partition.eof": "the end of a range is found by the connector",
    "interceptor.classes": "there is no JVM to load a class in",
}

_RESET = "auto.offset.reset"

_SECRET = re.compile(
    r"password|secret|token|jaas|user-info|userinfo|ssl\.key|ssl\.keystore\.key|credential"
)
_REFERENCE = re.compile(r"\$\{(env|file):([^}]*)\}")


def is_secret(name: str) -> bool:
    """Whether the value of this option must never be shown.

    >>> is_secret("properties.sasl.jaas.config"), is_secret("properties.linger.ms")
    (True, False)
    """
    return _SECRET.search(name.lower()) is not None


class Properties(Mapping[str, str]):
    """The Kafka client's properties as given, without the prefix; its repr masks secrets.

    Values may be references, ``${env:NAME}`` and ``${file:/path:key}`` (KIP-297), which only
    `resolved` looks up: so a plan holds the reference and never the secret.

    >>> Properties({"sasl.password": "s3cret", "linger.ms": "5"})
    Properties({'linger.ms': '5', 'sasl.password': '***'})
    """

    def __init__(self, given: Mapping[str, str]) -> None:
        self._given = dict(sorted(given.items()))

    def __getitem__(self, name: str) -> str:
        return self._given[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._given)

    def __len__(self) -> int:
        return len(self._given)

    def __hash__(self) -> int:
        return hash(tuple(self._given.items()))

    def __repr__(self) -> str:
        shown = {name: "***" if is_secret(name) else value for name, value in self.items()}
        return f"Properties({shown})"

    def resolved(self) -> dict[str, str]:
        """The properties with every reference replaced by what it refers to.

        Raises:
            OptionError: An environment variable, a file or a key in it does not exist.
        """
        return {name: resolve(PREFIX + name, value) for name, value in self.items()}


def client_properties(given: Mapping[str, str], *, group_start: bool) -> Properties:
    """The ``properties.*`` among the options, checked for what the connector manages itself.

    Args:
        given: All options, names in lower case.
        group_start: Whether the query starts at group offsets, where ``auto.offset.reset`` counts.

    Raises:
        OptionError: A property is missing, or one that the user has no say in.
    """
    properties = {
        name.removeprefix(PREFIX): value for name, value in given.items() if name.startswith(PREFIX)
    }
    for name, reason in _MANAGED.items():
        if name in properties:
            raise OptionError(f"Option '{PREFIX}{name}' cannot be set: {reason}.")
    if _RESET in properties:
        if not group_start:
            raise OptionError(
                f"Option '{PREFIX}{_RESET}' has a meaning only with 'scan.startup.mode' = "
                "'group-offsets'; otherwise 'scan.startup.mode' says where to start."
            )
        if properties[_RESET] not in ("earliest", "latest", "none"):
            raise OptionError(
                f"Invalid value for option '{PREFIX}{_RESET}': expected 'earliest', 'latest' or "
                f"'none', but is {properties[_RESET]!r}."
            )
    if not properties.get("bootstrap.servers", "").strip():
        raise OptionError(
            "One or more required options are missing.\n\nMissing required options are:\n\n"
            "properties.bootstrap.servers\n\nFor example: "
            ".option('properties.bootstrap.servers', 'localhost:9092')"
        )
    return Properties(properties)


def resolve(option: str, value: str) -> str:
    """The value with ``${env:NAME}`` and ``${file:/path:key}`` replaced.

    >>> os.environ["THE_USER"] = "alice"
    >>> resolve("properties.sasl.username", "${env:THE_USER}")
    'alice'
    """

    def replacement(match: re.Match[str]) -> str:
        kind, reference = match.groups()
        return (
            _from_environment(option, reference) if kind == "env" else _from_file(option, reference)
        )

    return _REFERENCE.sub(replacement, value)


def _from_environment(option: str, name: str) -> str:
    if name not in os.environ:
        raise OptionError(
            f"Option '{option}' refers to the environment variable {name!r}, which is not set where "
            "it is used (on the driver, and on each executor)."
        )
    return os.environ[name]


def _from_file(option: str, reference: str) -> str:
    path, _, key = reference.rpartition(":")
    try:
        lines = Path(path).read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise OptionError(
            f"Option '{option}' refers to the file {path!r}: {error.strerror}."
        ) from None
    for line in lines:
        name, separator, value = line.partition("=")
        if separator and not line.lstrip().startswith(("#", "!")) and name.strip() == key:
            return value.strip()
    raise OptionError(
        f"Option '{option}' refers to {key!r} in the file {path!r}, which has no such key."
    )
