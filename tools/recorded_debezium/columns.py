"""The columns of the recorded table: their types in Postgres, in Connect's schema and in Spark, and how values are sent."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from random import Random
from typing import Any
from uuid import UUID

Json = Any

_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - a TIMESTAMP has no zone
_MICROSECOND = timedelta(microseconds=1)
STATES = ("new", "active", "closed")


@dataclass(frozen=True)
class Column:
    """A column.

    Args:
        name: Its name.
        postgres: Its type in Postgres, with NOT NULL where it is.
        spark: The type that it means in Spark.
        schema: Its Connect schema as JSON, without ``optional`` and ``field``.
        made: A value of it, which is not null.
        sent: A value as JSON.
        fallback: What Debezium sends for a NOT NULL column of which it knows no value.
    """

    name: str
    postgres: str
    spark: str
    schema: dict[str, Json]
    made: Callable[[Random], Any]
    sent: Callable[[Any], Json] = field(default=lambda value: value)
    fallback: Json = None

    @property
    def nullable(self) -> bool:
        """Whether it may be NULL."""
        return "NOT NULL" not in self.postgres and "PRIMARY KEY" not in self.postgres

    def field_schema(self) -> dict[str, Json]:
        """The schema as a field of a struct, in the order in which Connect's converter writes it."""
        first = {name: self.schema[name] for name in ("type", "fields") if name in self.schema}
        return {**first, "optional": self.nullable, **self.schema, "field": self.name}


def text(random: Random, length: int) -> str:
    """A text that Postgres cannot make shorter."""
    return "".join(random.choices("abcdefghijklmnopqrstuvwxyz ", k=length))


def _semantic(kind: str, name: str, **parameters: str) -> dict[str, Json]:
    declared = {"type": kind, "name": name, "version": 1}
    return {**declared, "parameters": parameters} if parameters else declared


def _unscaled(number: Decimal) -> str:
    """The unscaled number as the fewest bytes of two's complement, in base64."""
    digits = int(number.scaleb(-int(number.as_tuple().exponent)))
    size = (digits + (digits < 0)).bit_length() // 8 + 1
    return b64encode(digits.to_bytes(size, "big", signed=True)).decode()


def _variable(number: Decimal) -> Json:
    return {"scale": -int(number.as_tuple().exponent), "value": _unscaled(number)}


def _decimal(random: Random, places: int) -> Decimal:
    return Decimal(random.randrange(-(10**8), 10**8)).scaleb(-places)


def _credit(random: Random) -> Decimal:
    """Without zeros at the end, which Debezium does not send."""
    number = _decimal(random, random.choice([0, 3, 18])).normalize()
    return number if int(number.as_tuple().exponent) <= 0 else number.quantize(Decimal(1))


def _zoned(value: datetime) -> str:
    return value.isoformat(timespec="microseconds").replace("+00:00", "Z")


def _timestamp(random: Random) -> datetime:
    return _EPOCH + timedelta(microseconds=random.randrange(-(10**15), 2 * 10**15))


_DECIMAL = {
    "scale": "2",
    "connect.decimal.precision": "10",
}
_VARIABLE = {
    "type": "struct",
    "fields": [
        {"type": "int32", "optional": False, "field": "scale"},
        {"type": "bytes", "optional": False, "field": "value"},
    ],
    "name": "io.debezium.data.VariableScaleDecimal",
    "version": 1,
    "doc": "Variable scaled decimal",
}

ID = Column(
    "id", "INTEGER PRIMARY KEY", "INT", {"type": "int32"}, lambda random: random.randrange(10**6)
)
LONG = 9000
ABOUT = Column("about", "TEXT", "STRING", {"type": "string"}, lambda random: text(random, LONG))
"""It is too long for a page of Postgres: an update that does not change it does not say it (TOAST)."""

COLUMNS = (
    ID,
    Column(
        "name",
        "TEXT NOT NULL",
        "STRING",
        {"type": "string"},
        lambda r: f"Ж{r.randrange(1000)}\n",
        fallback="",
    ),
    Column(
        "balance",
        "NUMERIC(10,2) NOT NULL",
        "DECIMAL(10,2)",
        _semantic("bytes", "org.apache.kafka.connect.data.Decimal", **_DECIMAL),
        lambda random: _decimal(random, 2),
        _unscaled,
        "AA==",
    ),
    Column(
        "credit",
        "NUMERIC",
        "DECIMAL(38,18)",
        _VARIABLE,
        _credit,
        _variable,
    ),
    Column(
        "born",
        "DATE",
        "DATE",
        _semantic("int32", "io.debezium.time.Date"),
        lambda random: date(1970, 1, 1) + timedelta(days=random.randrange(-20_000, 20_000)),
        lambda value: (value - date(1970, 1, 1)).days,
    ),
    Column(
        "created",
        "TIMESTAMP(6) NOT NULL",
        "TIMESTAMP_NTZ",
        _semantic("int64", "io.debezium.time.MicroTimestamp"),
        _timestamp,
        lambda value: (value - _EPOCH) // _MICROSECOND,
        0,
    ),
    Column(
        "seen",
        "TIMESTAMPTZ",
        "TIMESTAMP",
        _semantic("string", "io.debezium.time.ZonedTimestamp"),
        lambda random: _timestamp(random).replace(tzinfo=timezone.utc),
        _zoned,
    ),
    Column(
        "state",
        "state NOT NULL",
        "STRING",
        _semantic("string", "io.debezium.data.Enum", allowed=",".join(STATES)),
        lambda random: random.choice(STATES),
        fallback="",
    ),
    Column(
        "token",
        "UUID",
        "STRING",
        _semantic("string", "io.debezium.data.Uuid"),
        lambda random: str(UUID(int=random.getrandbits(128))),
    ),
    Column(
        "settings",
        "JSONB",
        "STRING",
        _semantic("string", "io.debezium.data.Json"),
        lambda random: json.dumps({"theme": random.choice(["dark", "light"])}),
    ),
    Column(
        "flags",
        "BIT(8)",
        "BINARY",
        _semantic("bytes", "io.debezium.data.Bits", length="8"),
        lambda random: bytes([random.randrange(256)]),
        lambda value: b64encode(value).decode(),
    ),
    Column("vip", "BOOLEAN", "BOOLEAN", {"type": "boolean"}, lambda random: random.random() < 0.5),
    ABOUT,
)

ADDED = Column(
    "tier", "SMALLINT", "SMALLINT", {"type": "int16"}, lambda random: random.randrange(5)
)
"""The column that is added in the middle."""
