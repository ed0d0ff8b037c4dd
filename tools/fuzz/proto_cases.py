"""Cases of Protobuf: random files, messages of the runtime, and spoiled messages."""

from __future__ import annotations

from random import Random

from google.protobuf.descriptor_pb2 import FileDescriptorSet

from pyspark_upsert_kafka.formats.protobuf.descriptors import message_class, pool_of
from tests.unit.formats.protobuf.codecs import descriptor_file
from tools.fuzz.case import Case, Table
from tools.fuzz.mutations import share_of_bad, spoiled
from tools.fuzz.proto_peer import runtime_peer
from tools.fuzz.proto_schemas import Proto, chosen
from tools.fuzz.proto_values import Messages, spoil_fields

_POOL = 250
"""So many messages are made of each file; a case repeats them."""


def case(syntax: str, rng: Random, count: int) -> Case:
    """Messages of a random file in a syntax."""
    proto = Proto(rng, syntax)
    columns = chosen(rng, proto.message("Root", rng.choice([0, 1, 2])))
    data = descriptor_file(proto.text(), "--include_imports").read_bytes()
    message = message_class(
        pool_of(FileDescriptorSet.FromString(data).file).FindMessageTypeByName("t.Root")
    )
    options = {"descriptor-file": "set", "message-name": "Root"}
    for name in ("read-default-values", "ignore-parse-errors"):
        if rng.random() < 0.25:
            options[name] = "true"
    if rng.random() < 0.25:
        options["write-null-string-literal"] = "null"
    table = Table("protobuf", columns, rng.choice(["key", "value"]), options, {"set": data})
    make = Messages(rng, message)
    pool = [make.one() for _ in range(_POOL)]
    messages, _ = spoiled(rng, rng.choices(pool, k=count), share_of_bad(rng), spoil_fields)
    defaults = options.get("read-default-values") == "true"
    lenient = options.get("ignore-parse-errors") == "true"
    peer = None if lenient else runtime_peer(message, columns, defaults=defaults)
    # With defaults all members of a oneof have values, of which only one can be written.
    again = not (defaults and "oneof" in proto.text())
    return Case(table, messages, again=again, peer=peer)
