"""Requests of any kind of schema: what is sent, and what is made of an answer."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest

from pyspark_upsert_kafka.core.errors import BrokerError, SchemaError
from pyspark_upsert_kafka.formats.registry_format import (
    Reference,
    RegisteredSchema,
    UnknownSchemaError,
)
from pyspark_upsert_kafka.registry import client
from pyspark_upsert_kafka.registry.access import Access
from pyspark_upsert_kafka.registry.client import (
    UnknownIds,
    context_of,
    highest_id,
    latest_schema,
    registered_schema,
    schema_of_id,
)
from tests.unit.registry.fake_registry import FakeRegistry, serving
from tests.unit.registry.moving_clock import MovingClock


def access(registry: FakeRegistry) -> Access:
    """The way to it."""
    return Access("value.some-registry.", (registry.url,))


@pytest.mark.parametrize(
    ("type_", "sent"),
    [
        ("AVRO", {"schema": "a schema"}),
        ("JSON", {"schema": "a schema", "schemaType": "JSON"}),
        ("PROTOBUF", {"schema": "a schema", "schemaType": "PROTOBUF"}),
    ],
)
@pytest.mark.parametrize("register", [True, False])
def test_a_schema_that_is_written(registry, type_, sent, register):
    """Its type is sent with it, but for Avro's, which is the default and which old registries do not know."""
    path = "/subjects/s/versions" if register else "/subjects/s"
    registry.answers[path] = [(200, {"id": 5})]

    found = registered_schema(access(registry), "s", type_, "a schema", register=register)
    assert found == (5, None)

    assert [asked.body for asked in registry.asked] == [sent]


@pytest.mark.parametrize(
    ("more", "type_"),
    [({}, "AVRO"), ({"schemaType": "JSON"}, "JSON"), ({"references": None}, "AVRO"), ({"schemaType": None}, "AVRO")],
)  # fmt: skip
def test_a_schema_that_is_read(registry, more, type_):
    """It comes with its type, and with where it is from, for errors."""
    registry.schema(7, "a schema", **more)
    registry.version("s", "latest", "a schema", **more)
    newest = "The newest schema of the subject 's'"

    found = schema_of_id(access(registry), 7, "AVRO")
    assert found == RegisteredSchema("Schema id 7", type_, "a schema")
    found = latest_schema(access(registry), "s", "AVRO")
    assert found == RegisteredSchema(newest, type_, "a schema")


def test_schemas_that_are_referred_to(registry):
    """Each is there once, under the name by which it is referred to, and so are those that it refers to."""
    first = {"name": "first.proto", "subject": "first", "version": 1}
    second = {"name": "second.proto", "subject": "second", "version": 2}
    registry.schema(7, "top", schemaType="PROTOBUF", references=[first, second])
    registry.version("first", 1, "one", references=[second])
    registry.version("second", 2, "two")

    found = schema_of_id(access(registry), 7, "PROTOBUF")

    assert found.references == (Reference("first.proto", "one"), Reference("second.proto", "two"))
    assert len(registry.asked) == 3


def test_the_context_of_a_subject():
    """It is how a qualified name begins; all other names are in the default context."""
    names = {
        ":.staging:t-value": ":.staging:", ":.staging:": ":.staging:", ":.a.b:x:y": ":.a.b:", ":.:t": ":.:",
        "t-value": "", "": "", ":t": "", "a:.b:c": "", ":.t": "", None: "",
    }  # fmt: skip
    assert {name: context_of(name) for name in names} == names


def test_each_context_has_ids_of_its_own(registry):
    """An id is asked for in the context of the table, as Confluent's clients do, and kept for that context alone."""
    in_staging = "/schemas/ids/7?subject=%3A.staging%3A"
    registry.schema(7, "default")
    registry.answers[in_staging] = [(200, {"schema": "staging"})]
    registry.schema(8, "default")
    unknown = UnknownIds(MovingClock())

    for _ in range(2):
        assert schema_of_id(access(registry), 7, "AVRO", unknown).text == "default"
        found = schema_of_id(access(registry), 7, "AVRO", unknown, context=":.staging:")
        assert found.text == "staging"
        with pytest.raises(
            SchemaError, match=r"^Schema id 8 of the context ':\.staging:' is not in"
        ):
            schema_of_id(access(registry), 8, "AVRO", unknown, context=":.staging:")
        assert schema_of_id(access(registry), 8, "AVRO", unknown).text == "default"

    not_there = "/schemas/ids/8?subject=%3A.staging%3A"
    highest = "/schemas/ids/7?fetchMaxId=true&subject=%3A.staging%3A"
    asked = ["/schemas/ids/7", in_staging, not_there, highest, not_there, "/schemas/ids/8"]
    assert registry.paths() == asked


def test_an_address_may_name_a_context(registry):
    """As Confluent's registry has it: ids, GUIDs and subjects are then asked for below it; a subject may name another one."""
    way = Access("value.some-registry.", (f"{registry.url}/contexts/.staging",))
    at = "/contexts/.staging"
    part = {"name": "part", "subject": "part", "version": 1}
    for path, answer in {
        "/schemas/ids/7": {"schema": "by id", "references": [part]},
        f"/schemas/guids/{GUID}": {"schema": "by guid"},
        "/schemas/ids/7?subject=%3A.other%3A": {"schema": "other"},
        "/subjects/part/versions/1": {"schema": "one"},
        "/subjects/s/versions": {"id": 5, "guid": str(GUID)},
    }.items():
        registry.answers[at + path] = [(200, answer)]
    unknown = UnknownIds()

    assert schema_of_id(way, 7, "AVRO", unknown).references == (Reference("part", "one"),)
    assert schema_of_id(way, GUID, "AVRO", unknown).text == "by guid"
    assert schema_of_id(way, 7, "AVRO", unknown, context=":.other:").text == "other"
    assert registered_schema(way, "s", "AVRO", "a schema", register=True) == (5, GUID)


def test_the_default_context_has_a_name(registry):
    """A subject may be spelled with it; its ids are asked for so, as Confluent's clients do."""
    registry.answers["/schemas/ids/7?subject=%3A.%3A"] = [(200, {"schema": "default"})]

    assert context_of(":.:orders-value") == ":.:"
    assert schema_of_id(access(registry), 7, "AVRO", context=":.:").text == "default"


@pytest.mark.parametrize("guid", ["", "5", 5, "zz791762-2336-4186-9674-299b90a802e2", {}])
def test_a_guid_that_is_none(registry, guid):
    """It does not get into messages."""
    registry.answers["/subjects/s/versions"] = [(200, {"id": 5, "guid": guid})]

    with pytest.raises(BrokerError, match=r"the GUID .* of a schema, which is none"):
        registered_schema(access(registry), "s", "AVRO", "a schema", register=True)


GUID = UUID("89791762-2336-4186-9674-299b90a802e2")
BY_GUID = f"/schemas/guids/{GUID}"


def test_a_guid_is_that_of_all_contexts(registry):
    """It is asked for without one, and once for each context: what its schema refers to lies in the table's own."""
    part = {"name": "part", "subject": "part", "version": 1}
    registry.answers[BY_GUID] = [(200, {"schema": "top", "guid": str(GUID), "references": [part]})]
    registry.version("part", 1, "one")
    registry.version("%3A.staging%3Apart", 1, "two")

    for _ in range(2):
        assert schema_of_id(access(registry), GUID, "AVRO").references == (
            Reference("part", "one"),
        )
        found = schema_of_id(access(registry), GUID, "AVRO", context=":.staging:")
        assert found.origin == f"The schema with the GUID {GUID}"
        assert found.references == (Reference("part", "two"),)
    assert registry.paths().count(BY_GUID) == 2


def test_a_guid_that_the_registry_does_not_know(registry):
    """It is remembered as an id is."""
    unknown = UnknownIds(MovingClock())
    for _ in range(3):
        with pytest.raises(
            UnknownSchemaError, match=f"^The schema with the GUID {GUID} is not in .*HTTP 404"
        ):
            schema_of_id(access(registry), GUID, "AVRO", unknown)
    assert registry.paths() == [BY_GUID] * 2


NO_PATH = pytest.mark.parametrize(
    "answer", [(404, {"error_code": 404, "message": "HTTP 404 Not Found"}), (404, b"<html>")]
)


@NO_PATH
def test_a_registry_that_knows_no_guids(registry, answer):
    """It is the fault of the messages that have them, and the registry is not asked for each, but again after some time."""
    registry.answers |= {f"/schemas/guids/{UUID(int=number)}": [answer] for number in range(50)}
    clock = MovingClock(1_000.0)
    unknown = UnknownIds(clock)
    for number in range(50):
        with pytest.raises(
            UnknownSchemaError,
            match=rf"{UUID(int=number)} is not in .*, which knows no schemas by GUIDs",
        ):
            schema_of_id(access(registry), UUID(int=number), "AVRO", unknown)
    asked = [f"/schemas/guids/{UUID(int=0)}", f"/schemas/ids/{2**31 - 1}"]
    assert registry.paths() == asked

    clock.now += 31.0
    registry.answers[BY_GUID] = [(200, {"schema": "there"})]
    assert schema_of_id(access(registry), GUID, "AVRO", unknown).text == "there"


@pytest.mark.parametrize("status", [400, 403, 422])
def test_a_registry_without_guids_that_refuses_to_speak_of_an_id(registry, status):
    """It is there, which is all that it is asked for."""
    registry.answers[BY_GUID] = [(404, {"error_code": 404, "message": "HTTP 404 Not Found"})]
    registry.answers[f"/schemas/ids/{2**31 - 1}"] = [
        (status, {"error_code": status, "message": "no"})
    ]
    with pytest.raises(UnknownSchemaError, match="which knows no schemas by GUIDs"):
        schema_of_id(access(registry), GUID, "AVRO", UnknownIds())


@NO_PATH
def test_a_server_that_answers_for_a_registry_that_is_away(registry, answer):
    """It says of each path that it is not there, as a proxy does: that is no word on a GUID, and no message is skipped for it."""
    registry.answers[BY_GUID] = registry.answers[f"/schemas/ids/{2**31 - 1}"] = [answer]
    unknown = UnknownIds()
    with pytest.raises(
        BrokerError, match=r"Is 'value\.some-registry\.url' the address of a schema"
    ):
        schema_of_id(access(registry), GUID, "AVRO", unknown)

    registry.answers[BY_GUID] = [(200, {"schema": "there"})]
    assert schema_of_id(access(registry), GUID, "AVRO", unknown).text == "there"


@pytest.mark.parametrize(
    ("known", "answer", "highest"),
    [
        (7, {"schema": "s", "maxId": 9}, 9),
        (7, {"schema": "s", "maxId": 2}, 7),
        (7, {"schema": "s"}, None),
        (7, {"schema": "s", "maxId": "9"}, None),
        (7, {"schema": "s", "maxId": True}, None),
        (None, {"schema": "s", "maxId": 100_005}, 100_005),
    ],
)
@pytest.mark.parametrize("context", ["", ":.staging:"])
def test_the_highest_id_that_a_registry_has_given(registry, known, answer, highest, context):
    """It is asked for with a schema that is known, or else with the first; no lower one than is known is believed."""
    subject = "subject=%3A.staging%3A"
    if known is not None:
        registry.answers[f"/schemas/ids/7{f'?{subject}' if context else ''}"] = [
            (200, {"schema": "s"})
        ]
        schema_of_id(access(registry), known, "AVRO", UnknownIds(), context=context)
    path = f"/schemas/ids/{known or 100_001}?fetchMaxId=true{f'&{subject}' if context else ''}"
    registry.answers[path] = [(200, answer)]

    assert highest_id(access(registry), context) == highest
    assert registry.paths()[-1] == path


@pytest.mark.parametrize("status", [401, 403, 404, 501])
def test_a_first_id_that_somebody_may_not_read(registry, status):
    """A schema of others is asked for, as none of ours is known: that it is refused says nothing, and is no error of the query."""
    registry.answers["/schemas/ids/1?fetchMaxId=true"] = [
        (status, {"error_code": 40301, "message": "denied"})
    ]
    registry.answers["/schemas/ids/100001?fetchMaxId=true"] = [
        (200, {"schema": "s", "maxId": 100_009})
    ]
    assert highest_id(access(registry)) == 100_009


def test_a_registry_that_knows_none_of_the_first_ids(registry):
    """It does not say which is the highest."""
    assert highest_id(access(registry)) is None
    assert registry.paths() == [f"/schemas/ids/{first}?fetchMaxId=true" for first in (1, 100_001)]


def test_references_are_in_the_context_of_who_refers(registry):
    """Unless they name another one, whose own references are then there; so it is by id and by subject."""
    part = {"name": "part", "subject": "part", "version": 1}
    other = {"name": "other", "subject": ":.other:more", "version": 2}
    top = {"schema": "top", "references": [part, other]}
    registry.answers["/schemas/ids/7?subject=%3A.staging%3A"] = [(200, top)]
    registry.answers["/subjects/%3A.staging%3At/versions/latest"] = [(200, top)]
    registry.version("%3A.staging%3Apart", 1, "one")
    registry.version("%3A.other%3Amore", 2, "two", references=[part])
    registry.version("%3A.other%3Apart", 1, "three")
    wanted = (Reference("part", "one"), Reference("other", "two"), Reference("part", "three"))

    found = schema_of_id(access(registry), 7, "AVRO", context=":.staging:")
    assert found.references == wanted
    assert latest_schema(access(registry), ":.staging:t", "AVRO").references == wanted


def test_references_of_a_schema_of_another_type_are_not_looked_up(registry):
    """The format refuses it by its type: whatever it refers to may be missing, or not for us to see."""
    gone = {"name": "gone.proto", "subject": "gone"}
    registry.schema(7, "top", schemaType="PROTOBUF", references=[gone])

    found = schema_of_id(access(registry), 7, "AVRO")

    assert found == RegisteredSchema("Schema id 7", "PROTOBUF", "top")
    assert len(registry.asked) == 1


def test_references_in_a_circle(registry):
    """Each is fetched once."""
    first = {"name": "first", "subject": "first", "version": 1}
    second = {"name": "second", "subject": "second", "version": "2"}
    registry.schema(7, "top", references=[first])
    registry.version("first", 1, "one", references=[second, first])
    registry.version("second", 2, "two", references=[first])

    found = schema_of_id(access(registry), 7, "AVRO")

    assert found.references == (Reference("first", "one"), Reference("second", "two"))
    assert len(registry.asked) == 3


class Chain(dict[str, Any]):
    """Answers in which each schema refers to a new one."""

    def get(self, path: str, default: Any = None) -> Any:
        """The answer for a path, whichever it is."""
        at = int(path.rpartition("/")[2]) + 1
        reference = {"name": f"n{at}", "subject": "s", "version": at}
        return [(200, {"schema": self["text"], "references": [reference]})]


@pytest.mark.parametrize("text", ["x", "x" * 6_000_000], ids=["many", "large"])
def test_references_without_an_end(registry, text):
    """A registry that always has one more is not followed for ever, and all of them are not held."""
    registry.answers = Chain(text=text)

    with pytest.raises(
        SchemaError, match=r"Schema id 7 refers to more than 1,000 schemas, or .*16 MB"
    ):
        schema_of_id(access(registry), 7, "AVRO")

    assert len(registry.asked) <= 1_002


GOOD = {"name": "n", "subject": "s", "version": 1}


@pytest.mark.parametrize(
    ("references", "said"),
    [
        ("abc", "'references' is no list"),
        ({"name": "n"}, "'references' is no list"),
        ([1], "one of its 'references' is no object"),
        ([None], "one of its 'references' is no object"),
        ([{"subject": "s", "version": 1}], "a reference is malformed.*'name' is no text"),
        ([{**GOOD, "subject": 5}], "'subject' is no text"),
        ([{**GOOD, "subject": "\ud83d"}], "'subject' is no text"),
        ([{"name": "n", "subject": "s"}], "'version' of a reference is 'None', and no number"),
        ([{**GOOD, "version": "1/../../config"}], "is '1/../../config', and no number"),
        ([{**GOOD, "version": "1?deleted=true"}], "and no number"),
        ([{**GOOD, "version": True}], "is 'True', and no number"),
        ([{**GOOD, "version": 1.5}], "and no number"),
        ([{**GOOD, "version": "\u0661"}], "and no number"),
        ([{**GOOD, "version": "x" * 999}], "is 'x{100}…', and no number"),
        ([{**GOOD, "version": [1]}], "and no number"),
    ],
)
def test_references_that_are_malformed(registry, references, said):
    """They are the fault of the schema, and nothing but numbers gets into a path."""
    registry.schema(7, "top", references=references)
    registry.version("s", 1, "one")

    with pytest.raises(
        SchemaError, match=rf"^Schema id 7.* answer of the schema registry.*{said}|{said}"
    ):
        schema_of_id(access(registry), 7, "AVRO")

    assert registry.paths() == ["/schemas/ids/7"]


@pytest.mark.parametrize(
    "answer", [{"id": 7}, {"schema": None}, {"schema": {}}, {"schema": "\udc00"}]
)
def test_a_schema_that_is_no_text(registry, answer):
    """It is the fault of the schema, by itself or where another refers to it."""
    registry.answers["/schemas/ids/7"] = [(200, answer)]
    registry.schema(8, "top", references=[GOOD])
    registry.answers["/subjects/s/versions/1"] = [(200, answer)]

    for schema_id in (7, 8):
        with pytest.raises(
            SchemaError, match=rf"^Schema id {schema_id}.*malformed.*'schema' is no text"
        ):
            schema_of_id(access(registry), schema_id, "AVRO")


@pytest.mark.parametrize(
    "answer", [{"schema": "s"}, {"id": "5"}, {"id": -1}, {"id": 2**31}, {"id": True}]
)
@pytest.mark.parametrize("register", [True, False])
def test_an_id_that_is_none(registry, answer, register):
    """It does not get into messages."""
    registry.answers["/subjects/s/versions" if register else "/subjects/s"] = [(200, answer)]

    with pytest.raises(BrokerError, match="which is no number of 31 bits"):
        registered_schema(access(registry), "s", "AVRO", "a schema", register=register)


def test_an_id_that_the_registry_does_not_know(registry):
    """It is asked for in half a minute at first twice and then once, and not by each message that names it; then it may be there."""
    clock = MovingClock(1_000.0)
    unknown = UnknownIds(clock)

    def ask(schema_id: int) -> str:
        return schema_of_id(access(registry), schema_id, "AVRO", unknown).text

    for _ in range(3):
        for schema_id in (5, 6):
            with pytest.raises(
                UnknownSchemaError, match=f"Schema id {schema_id} is not in the schema"
            ):
                ask(schema_id)
    highest = [f"/schemas/ids/{first}?fetchMaxId=true" for first in (1, 100_001)]
    fifth = ["/schemas/ids/5", *highest, "/schemas/ids/5"]
    assert registry.paths() == [*fifth, *["/schemas/ids/6"] * 2]

    registry.schema(5, "there")
    clock.now += 27.9  # since the pauses
    with pytest.raises(UnknownSchemaError):
        ask(5)
    clock.now += 2.2
    assert ask(5) == "there"
    with pytest.raises(UnknownSchemaError):
        ask(6)
    assert registry.paths()[6:] == ["/schemas/ids/5", "/schemas/ids/6"]


NOT_FOUND = (404, {"error_code": 40403, "message": "Schema not found"})


@pytest.mark.parametrize("schema_id", [5, GUID])
def test_a_node_that_lags_behind(registry, schema_id):
    """It does not know what another node has registered a moment ago: it is asked once more, and the message is read."""
    path = BY_GUID if schema_id == GUID else "/schemas/ids/5"
    registry.answers[path] = [NOT_FOUND, (200, {"schema": "there"})]
    clock = MovingClock()

    assert schema_of_id(access(registry), schema_id, "AVRO", UnknownIds(clock)).text == "there"
    assert (registry.paths().count(path), clock.waited) == (2, 2.0)


def test_another_node_is_asked_the_second_time(registry):
    """Where several addresses are given; one that lags for long loses no message then."""
    with serving() as other:
        other.schema(5, "there")
        two = replace(access(registry), urls=(registry.url, other.url))
        assert schema_of_id(two, 5, "AVRO", UnknownIds(MovingClock())).text == "there"
        assert other.paths() == ["/schemas/ids/5"]


@pytest.mark.parametrize("schema_id", [5, GUID])
@pytest.mark.parametrize(
    "answer",
    [
        (401, {"error_code": 40101, "message": "Unauthorized"}),
        (403, {"message": "Forbidden"}),
        (400, {"message": "Bad"}),
        (404, {"error": "no registry, or one without this path"}),
        (503, {}),
    ],
)
def test_a_second_address_that_does_not_tell(registry, schema_id, answer):
    """The first one has said that the id is unknown; others are asked for as before."""
    good, path = (9, BY_GUID) if schema_id == GUID else (7, "/schemas/ids/5")
    registry.schema(good, "there")
    unknown = UnknownIds(MovingClock())
    with serving() as other:
        other.answers[path] = [answer]
        two = replace(access(registry), urls=(registry.url, other.url))
        with pytest.raises(UnknownSchemaError, match=f"{schema_id} is not in the schema registry"):
            schema_of_id(two, schema_id, "AVRO", unknown)
        assert path in other.paths()
    assert schema_of_id(two, good, "AVRO", unknown).text == "there"
    assert unknown.said(two, client._GUIDS) is None


def test_an_id_far_above_the_highest_one_is_not_new(registry):
    """No registry gives so many at once; the highest is asked for once in half a minute, of a node that may lag too."""
    registry.schema(1, "first", maxId=9)
    registry.answers["/schemas/ids/1?"] = registry.answers["/schemas/ids/1"]
    clock = MovingClock()
    unknown = UnknownIds(clock)
    for schema_id in (10_010, 2_000_000_000, 10_009):
        with pytest.raises(UnknownSchemaError):
            schema_of_id(access(registry), schema_id, "AVRO", unknown)
    highest = "/schemas/ids/1?fetchMaxId=true"
    asked = [f"/schemas/ids/{each}" for each in (10_010, 2_000_000_000, 10_009, 10_009)]
    assert registry.paths() == [asked[0], highest, *asked[1:]]
    assert clock.waited == 2.0

    clock.now += 30.0
    with pytest.raises(UnknownSchemaError):
        schema_of_id(access(registry), 10_011, "AVRO", unknown)
    assert registry.paths()[-2:] == ["/schemas/ids/10011", highest]


def test_a_registry_that_is_away_is_not_remembered(registry):
    """It has said nothing about the id."""
    registry.answers["/schemas/ids/5"] = [(401, {"message": "no"}), (200, {"schema": "there"})]
    unknown = UnknownIds()

    with pytest.raises(BrokerError):
        schema_of_id(access(registry), 5, "AVRO", unknown)
    assert schema_of_id(access(registry), 5, "AVRO", unknown).text == "there"
