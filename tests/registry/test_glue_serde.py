"""Amazon's own serializers beside the formats with a registry of AWS Glue: each reads what the other writes, from one registry."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator

import pytest
from pyspark.sql.types import DoubleType, LongType, MapType, StringType, StructField, StructType

from tests.local_glue import CREDENTIALS, REGION
from tests.unit.formats.json.codecs import batch
from tests.unit.formats.listed import Listed
from tests.unit.registry.glue_codecs import side
from tools.glue.cases import CASES, Case
from tools.glue.messages import value_of
from tools.glue.serde import Serde, amazons_serde

pytest.importorskip("moto")
pytestmark = pytest.mark.long("downloads 65 MB once, and starts a JVM")

COLUMNS = StructType(
    [
        StructField("id", LongType(), False),
        StructField("name", StringType()),
        StructField("amount", DoubleType()),
        StructField("marks", MapType(StringType(), LongType())),
    ]
)
ROW = (7, "Ü€", 12.5, [("a", 1)])
COMPRESSIONS = pytest.mark.parametrize("compression", ["NONE", "ZLIB"])


@pytest.fixture(scope="module")
def serde(glue: str) -> Iterator[Serde]:
    """Amazon's serializers."""
    with amazons_serde(glue, REGION) as serde:
        yield serde


@pytest.fixture(autouse=True)
def _credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that requests to the registry are signed with."""
    for name, value in CREDENTIALS.items():
        monkeypatch.setenv(name, value)


@COMPRESSIONS
@pytest.mark.parametrize("kind", ["AVRO", "JSON", "PROTOBUF"])
def test_amazon_reads_what_is_written(glue: str, serde: Serde, kind: str, compression: str) -> None:
    """With the schema that is derived from the columns, registered here."""
    name = f"{kind.lower()}-glue"
    given = {"auto.register.schemas": "true", "compression": compression}
    it = side(name, COLUMNS, glue, topics=(f"ours-{kind}",), **given)

    [message] = Listed(it.encoder()).encode(batch(COLUMNS, ROW))

    found = serde.read(kind, message)
    if kind == "AVRO":
        assert json.loads(found) == {
            "id": 7,
            "name": {"string": "Ü€"},
            "amount": {"double": 12.5},
            "marks": {"map": {"a": {"long": 1}}},
        }
    elif kind == "JSON":
        assert json.loads(found) == {"id": 7, "name": "Ü€", "amount": 12.5, "marks": {"a": 1}}
    else:
        _, data = found.split(" ")
        payload = message[19:] if compression == "NONE" else None
        assert payload is None or base64.b64decode(data) == payload


@COMPRESSIONS
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.type or case.kind)
def test_what_amazon_writes_is_read(glue: str, serde: Serde, case: Case, compression: str) -> None:
    """With the schema that its serializer registers."""
    from pyspark_upsert_kafka.core.ddl.spark_columns import spark_columns

    number = CASES.index(case)
    message = serde.written(
        kind=case.kind, name=f"theirs-{number}", compression=compression, **value_of(case)
    )
    columns = spark_columns(case.columns)

    decoded = side(f"{case.kind.lower()}-glue", columns, glue).decoder().decode([message])

    assert decoded.errors == {}
    [row] = decoded.rows.to_pylist()
    expected = {
        name: [tuple(each) for each in value] if name == "stripes" else value
        for name, value in case.row.items()
    }
    assert row == expected
