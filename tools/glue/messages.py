"""Makes tests/unit/registry/glue_messages.json: the messages that Amazon's own serializers write for the values of `cases`.

They register their schemas in moto's registry, and the bytes of messages are what they give to a producer. Run it with
`make glue-messages`; it needs a JDK.
"""

from __future__ import annotations

import base64
import json
import os
from pathlib import Path
from typing import Any
from uuid import UUID

from botocore.session import Session

from pyspark_upsert_kafka.formats.protobuf.proto_compiler import compiled
from pyspark_upsert_kafka.formats.registry_format import RegisteredSchema
from tests.local_glue import CREDENTIALS, REGION, local_glue
from tools.glue.cases import CASES, Case
from tools.glue.serde import Serde, amazons_serde

_FILE = Path(__file__).parents[2] / "tests" / "unit" / "registry" / "glue_messages.json"


def main() -> None:
    """Writes the file."""
    os.environ.update(CREDENTIALS)
    with local_glue() as endpoint, amazons_serde(endpoint, REGION) as serde:
        glue = Session().create_client("glue", REGION, endpoint_url=endpoint)
        found = [_recorded(serde, glue, number, case) for number, case in enumerate(CASES)]
    _FILE.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def _recorded(serde: Serde, glue: Any, number: int, case: Case) -> dict[str, Any]:
    messages = {}
    for compression in ("NONE", "ZLIB"):
        name = f"schema-{number}"
        message = serde.written(
            kind=case.kind, name=name, compression=compression, **value_of(case)
        )
        messages[compression] = base64.b64encode(message).decode()
        version = str(UUID(bytes=message[2:18]))
    registered = glue.get_schema_version(SchemaVersionId=version)
    return {
        "kind": case.kind,
        "registered": registered["SchemaDefinition"],
        "version": version,
        "columns": case.columns,
        "row": case.row,
        "type": case.type,
        "messages": messages,
    }


def value_of(case: Case) -> dict[str, str]:
    """The value as `Serde.java` takes it."""
    if case.kind != "PROTOBUF":
        return {"schema": case.schema, "value": case.value}
    schema = compiled(RegisteredSchema("the case", "PROTOBUF", case.schema))
    file = base64.b64encode(schema.file.SerializeToString()).decode()
    type_ = str(case.type)
    return {"file": file, "type": type_, "value": base64.b64encode(_bytes(case, schema)).decode()}


def _bytes(case: Case, schema: Any) -> bytes:
    """The row as a message, by Google's runtime."""
    from google.protobuf.json_format import ParseDict
    from google.protobuf.message_factory import GetMessageClass

    message = GetMessageClass(schema.descriptor(f"shop.{case.type}"))()
    row = {name: dict(value) if name == "stripes" else value for name, value in case.row.items()}
    return ParseDict(row, message).SerializeToString(deterministic=True)


if __name__ == "__main__":
    main()
