"""The check of the schema registry: whether it answers, and whether its newest schemas can be read into the columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from pyspark_upsert_kafka.cli.doctor.findings import Finding, Level
from pyspark_upsert_kafka.connector.read_request import Request
from pyspark_upsert_kafka.connector.sides import read_key_side, read_value_side
from pyspark_upsert_kafka.core.errors import BrokerError, SchemaError
from pyspark_upsert_kafka.formats.codec import Side
from pyspark_upsert_kafka.formats.registry_format import NoSchemaError

_CHECK = "registry"


@dataclass(frozen=True)
class SchemaFacts:
    """What a registry has of a side.

    Args:
        side: ``key`` or ``value``.
        format: The name of its format.
        state: What is known of its newest schema: it fits the columns, it does not, there is none, or the registry does not
            answer.
        text: The subject of a schema that fits; else the error.
    """

    side: str
    format: str
    state: Literal["fits", "unfit", "missing", "no answer"]
    text: str


def schema_facts(request: Request) -> list[SchemaFacts]:
    """Asks the registry for the newest schema of each side; empty = no side has a registry."""
    sides = (
        read_key_side(request.table, request.options),
        read_value_side(request.table, request.options),
    )
    found: list[SchemaFacts] = []
    for side in sides:
        if side is None or side.format.newest_schema is None:
            continue
        found.append(_facts(side))
        if found[-1].state == "no answer":  # it was waited for long enough
            break
    return found


def _facts(side: Side) -> SchemaFacts:
    name, of = side.format.name, side.spec.side
    if side.format.newest_schema is None:
        raise ValueError(f"'{name}' has no registry.")
    try:
        return SchemaFacts(of, name, "fits", side.format.newest_schema(side.spec))
    except NoSchemaError as error:
        return SchemaFacts(of, name, "missing", str(error))
    except SchemaError as error:
        return SchemaFacts(of, name, "unfit", str(error))
    except BrokerError as error:
        return SchemaFacts(of, name, "no answer", str(error))


def check_schema(facts: SchemaFacts) -> Finding:
    """Whether the newest schema of a side can be read."""
    side = f"{facts.side}s ({facts.format})"
    if facts.state == "fits":
        text = (
            f"The newest schema of the {side}, subject {facts.text!r}, can be read into the columns"
        )
        return Finding(_CHECK, Level.OK, text)
    option = f"'{facts.side}.{facts.format}.subject'"
    if facts.state == "missing":
        text = f"The registry has no schema of the {side} under the subject that the topic's name gives"
        advice = f"If another serializer's rule names the subjects, give it by {option}; else the first write registers one"
        return Finding(_CHECK, Level.WARNING, text, advice)
    if facts.state == "unfit":
        text = (
            f"Messages of the newest schema of the {side} cannot be read: {facts.text.rstrip('.')}"
        )
        return Finding(_CHECK, Level.ERROR, text, "Change the columns, or the schema")
    return Finding(_CHECK, Level.ERROR, facts.text.rstrip("."))
