"""A find as a Python program that reproduces it."""

from __future__ import annotations

import base64
import json
import zlib
from itertools import groupby

from tools.fuzz.case import Case
from tools.fuzz.rounds import Find

_PROGRAM = """\
# {about}
from base64 import b85decode
from zlib import decompress

from pyspark.sql.types import StructType

from tools.fuzz.case import Table
from tools.fuzz.codecs import decoder_of, encoder_of

SCHEMA = {schema!r}
TABLE = Table(
    format={format!r},
    schema=StructType.fromJson(__import__("json").loads(SCHEMA)),
    side={side!r},
    options={options!r},
    files={{name: decompress(b85decode(data)) for name, data in {files!r}.items()}},
    schemas={schemas!r},
    required=frozenset({required!r}),
)
MESSAGES = {messages}

decode = decoder_of(TABLE).decode
together = decode(MESSAGES)
print(len(MESSAGES), "messages together:", together.rows.num_rows, "rows", dict(list(together.errors.items())[:5]))
alone = decode(MESSAGES[:1])
print("the first row of them:", [str(column[:1].to_pylist()) for column in together.rows.columns])
print("the first alone:", [str(column[:1].to_pylist()) for column in alone.rows.columns], alone.errors)
try:
    print("written again:", encoder_of(TABLE).encode(alone.rows).to_pylist()[:1])
except ValueError as why:
    print("it cannot be written:", why)
"""


def program_of(find: Find) -> str:
    """The program."""
    table = find.case.table
    files = {name: base64.b85encode(zlib.compress(data)) for name, data in table.files.items()}
    return _PROGRAM.format(
        about=str(find.broken).replace("\n", "\n# "),
        schema=json.dumps(table.schema.jsonValue(), ensure_ascii=True),
        format=table.format,
        side=table.side,
        options=dict(table.options),
        files=files,
        schemas=dict(table.schemas),
        required=sorted(table.required),
        messages=_messages(find.case),
    )


def _messages(case: Case) -> str:
    runs = [(message, sum(1 for _ in run)) for message, run in groupby(case.messages)]
    return " + ".join(f"[{message!r}] * {count}" for message, count in runs) or "[]"
