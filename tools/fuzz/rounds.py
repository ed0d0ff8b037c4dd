"""Rounds: each round is one case, which depends only on the format, the seed and the number of the round."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from random import Random

from pyspark_upsert_kafka.core.errors import OptionError, SchemaError
from pyspark_upsert_kafka.core.metadata import CDC_FORMATS
from tools.fuzz import (
    avro_cases,
    cdc_cases,
    csv_cases,
    json_cases,
    proto_cases,
    raw_cases,
    resolution_cases,
)
from tools.fuzz.case import Case
from tools.fuzz.codecs import decoder_of, encoder_of
from tools.fuzz.laws import Codecs, check
from tools.fuzz.reading import BrokenLawError

SUBJECTS: Mapping[str, Callable[[Random, int], Case]] = {
    "json": json_cases.case,
    "csv": csv_cases.case,
    "avro": avro_cases.derived_case,
    "avro-resolution": resolution_cases.case,
    "avro-confluent": avro_cases.confluent_case,
    "proto2": partial(proto_cases.case, "proto2"),
    "proto3": partial(proto_cases.case, "proto3"),
    "raw": raw_cases.case,
    **{name: partial(cdc_cases.case, name) for name in cdc_cases.WRITERS},
    "debezium-avro-confluent": partial(cdc_cases.case_in_avro, "debezium-avro-confluent"),
}
"""What is fuzzed, and what makes its cases, of so many messages."""

_SIZES = (2500, 2500, 2500, 4000, 1200, 300, 130, 70)

_MOST_OF_CDC = 700
"""A case of CDC takes longer, and tables differ more."""


@dataclass(frozen=True)
class Find:
    """A law that a case breaks.

    Args:
        case: The case, as small as it was found to be.
        broken: The law.
    """

    case: Case
    broken: BrokenLawError


def case_of(subject: str, seed: int, number: int) -> Case:
    """The case of a round."""
    rng = Random(f"{subject} {seed} {number}")
    count = rng.choice(_SIZES)
    return SUBJECTS[subject](rng, min(count, _MOST_OF_CDC) if subject in CDC_FORMATS else count)


def round_of(subject: str, seed: int, number: int) -> tuple[int, Find | str | None]:
    """Runs a round: how many messages it had, and what was found; a text says that its table was refused."""
    rng = Random(f"laws of {subject} {seed} {number}")
    try:
        case = case_of(subject, seed, number)
    except (OptionError, SchemaError) as why:  # a table that is refused when planned
        return 0, f"refused: {type(why).__name__}"
    except BrokenLawError as broken:  # while messages were written
        return 0, Find(Case(_NO_TABLE, []), broken)
    codecs = compiled(case)
    if isinstance(codecs, BrokenLawError):
        return len(case.messages), Find(case, codecs)
    try:
        check(case, codecs, rng)
    except BrokenLawError as broken:
        return len(case.messages), Find(case, broken)
    return len(case.messages), None


def compiled(case: Case) -> Codecs | BrokenLawError:
    """The codecs of a case; a table may be one that cannot be written."""
    try:
        decoder = decoder_of(case.table)
    except Exception:  # noqa: BLE001 - whatever it is, it is a find
        return BrokenLawError("a decoder can be compiled", traceback.format_exc(limit=-8))
    try:
        return Codecs(decoder, encoder_of(case.table))
    except (OptionError, SchemaError):
        return Codecs(decoder, None)


_NO_TABLE: object = None
