"""Rounds: each round is one case, which depends only on the format, the seed and the number of the round."""

from __future__ import annotations

import traceback
from dataclasses import dataclass
from importlib import import_module
from random import Random
from typing import cast

from pyspark_upsert_kafka.core.errors import OptionError, SchemaError
from pyspark_upsert_kafka.core.table.cdc_formats import CDC_FORMATS
from tools.fuzz.case import Case
from tools.fuzz.codecs import decoder_of, encoder_of
from tools.fuzz.laws import Codecs, check
from tools.fuzz.reading import BrokenLawError

SUBJECTS: dict[str, str] = {
    "json": "tools.fuzz.json_cases",
    "csv": "tools.fuzz.csv_cases",
    "avro": "tools.fuzz.avro_cases",
    "avro-resolution": "tools.fuzz.resolution_cases",
    "avro-confluent": "tools.fuzz.confluent_cases",
    "proto2": "tools.fuzz.proto2_cases",
    "proto3": "tools.fuzz.proto3_cases",
    "raw": "tools.fuzz.raw_cases",
    **dict.fromkeys(
        ("debezium-json", "maxwell-json", "canal-json", "ogg-json"), "tools.fuzz.cdc_cases"
    ),
    "debezium-avro-confluent": "tools.fuzz.debezium_avro_cases",
}
"""What is fuzzed, and the module that makes its cases."""

SIZES = (2500, 2500, 2500, 4000, 1200, 300, 130, 70)


MOST_OF_CDC = 700


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
    module, count = import_module(SUBJECTS[subject]), rng.choice(SIZES)
    if subject in CDC_FORMATS:  # of which a case takes longer, and tables differ more
        return cast("Case", module.case(subject, rng, min(count, MOST_OF_CDC)))
    return cast("Case", module.case(rng, count))


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
    except Exception:  # noqa: BLE001
        return BrokenLawError("a decoder can be compiled", traceback.format_exc(limit=-8))
    try:
        return Codecs(decoder, encoder_of(case.table))
    except (OptionError, SchemaError):
        return Codecs(decoder, None)


_NO_TABLE: object = None
