"""What is asked of AWS Glue: versions by their ids, ids by their texts, and what is said when it refuses, waits or is away."""

from __future__ import annotations

import gzip
import re
from dataclasses import replace
from uuid import UUID

import pytest

from pyspark_upsert_kafka.core.clock import Backoff
from pyspark_upsert_kafka.core.errors import BrokerError, RetriableBrokerError, SchemaError
from pyspark_upsert_kafka.formats.registry_format import (
    NoSchemaError,
    RegisteredSchema,
    UnknownSchemaError,
)
from pyspark_upsert_kafka.registry.glue_client import (
    GlueSchema,
    schema_of_version,
)
from pyspark_upsert_kafka.registry.glue_request import GlueAccess, call, forget_clients
from pyspark_upsert_kafka.registry.rest import Patience
from pyspark_upsert_kafka.registry.unknown_ids import UnknownIds
from tests.chains import texts_of
from tests.http_server import SILENCE, Answer, Endless, http_server
from tests.local_glue import CREDENTIALS
from tests.unit.registry import fake_glue
from tests.unit.registry.fake_glue import FakeGlue, error
from tests.unit.registry.moving_clock import MovingClock

V1, V2 = UUID(int=1), UUID(int=2)
QUICK = Patience(silent_s=120, all_s=0.5, backoff=Backoff(0.01, 0.02, random=lambda: 0.5))
UNHEARD = replace(QUICK, silent_s=0.2)
NOT_THERE = error("EntityNotFoundException", "Schema version is not found.")
TEXT = '"long"'


CLOCK = MovingClock()


def access(glue: FakeGlue) -> GlueAccess:
    """How to get at it."""
    return GlueAccess("value.avro-glue.", None, glue.url)


def order(glue: FakeGlue, clock: MovingClock = CLOCK) -> GlueSchema:
    """A schema there."""
    return GlueSchema(access(glue), "shop", "Order", clock)


def version(glue: FakeGlue, create: str | None = "BACKWARD") -> UUID:
    """The id of the text that is written."""
    return order(glue).version("AVRO", TEXT, create)


def state(id_: UUID, status: str, **more: str) -> tuple[int, dict[str, str]]:
    """What Glue says of a version."""
    return 200, {"SchemaVersionId": str(id_), "Status": status, **more}


def test_a_version_is_asked_for_once(glue):
    """For all messages that name it; the request is signed for the region."""
    glue.schema(V1, "AVRO", TEXT)
    for _ in range(3):
        found = schema_of_version(access(glue), V1)
    assert found == RegisteredSchema(f"The schema version {V1}", "AVRO", TEXT)
    assert glue.asked == [("GetSchemaVersion", {"SchemaVersionId": str(V1)})]
    assert "/eu-central-1/glue/aws4_request" in glue.headers["Authorization"]


@pytest.mark.parametrize("code", ["EntityNotFoundException", "InvalidInputException"])
def test_a_version_that_is_not_there(glue, code):
    """It is asked for once more after a pause, and again after some time: it may be registered then."""
    glue.answers["GetSchemaVersion"] = [error(code, "Schema version is not found.")]
    clock = MovingClock()
    unknown = UnknownIds(clock)
    for _ in range(3):
        with pytest.raises(UnknownSchemaError, match=rf"version {V1} is not in .*{code}: Schema"):
            schema_of_version(access(glue), V1, unknown)
    assert (len(glue.asked), clock.waited) == (2, 2.0)
    clock.now += 31.0
    del glue.answers["GetSchemaVersion"]
    glue.schema(V1, "AVRO", TEXT)
    assert schema_of_version(access(glue), V1, unknown).text == TEXT


@pytest.mark.parametrize(
    "answer",
    [
        {},
        {"SchemaDefinition": TEXT},
        {"DataFormat": "AVRO", "SchemaDefinition": "\ud800"},
        b"<html>",
    ],
)
def test_a_malformed_answer(glue, answer):
    """It is the fault of those messages, or of the address, and never an error of Python."""
    glue.answers["GetSchemaVersion"] = [(200, answer)]
    with pytest.raises(
        (SchemaError, BrokerError), match=r"is malformed in Glue's answer|cannot be asked"
    ):
        schema_of_version(access(glue), V1)


def test_a_version_that_is_there(glue):
    """Its id is that of messages; nothing is registered, and it is asked for once."""
    glue.answers["GetSchemaByDefinition"] = [state(V1, "AVAILABLE")]
    assert [version(glue), version(glue)] == [V1, V1]
    assert glue.asked == [
        (
            "GetSchemaByDefinition",
            {"SchemaId": {"RegistryName": "shop", "SchemaName": "Order"}, "SchemaDefinition": TEXT},
        )
    ]


def test_a_new_version_of_a_schema(glue):
    """It is registered, and used when Glue has checked it."""
    glue.answers["RegisterSchemaVersion"] = [state(V2, "PENDING")]
    glue.answers["GetSchemaVersion"] = [state(V2, "PENDING"), state(V2, "AVAILABLE")]
    assert version(glue) == V2
    assert glue.actions() == [
        "GetSchemaByDefinition",
        "RegisterSchemaVersion",
        "GetSchemaVersion",
        "GetSchemaVersion",
    ]


def test_a_new_schema(glue):
    """It is created with the kind, and the compatibility that is given."""
    created = {"SchemaVersionId": str(V1), "SchemaVersionStatus": "AVAILABLE"}
    glue.answers["CreateSchema"] = [(200, created)]
    assert version(glue, "FULL_ALL") == V1
    assert glue.asked[-1] == (
        "CreateSchema",
        {
            "RegistryId": {"RegistryName": "shop"},
            "SchemaName": "Order",
            "DataFormat": "AVRO",
            "Compatibility": "FULL_ALL",
            "SchemaDefinition": TEXT,
        },
    )


def test_two_tasks_create_a_schema_at_the_same_time(glue):
    """The one that is too late registers its version."""
    glue.answers["CreateSchema"] = [error("AlreadyExistsException")]
    glue.answers["RegisterSchemaVersion"] = [NOT_THERE, state(V1, "AVAILABLE")]
    assert version(glue) == V1


def test_nothing_is_registered_where_that_is_not_wanted(glue):
    """The error says by which option it would be."""
    with pytest.raises(
        SchemaError,
        match=r"no version of the schema 'Order' of the registry 'shop' .*value\.avro-glue\.auto\.register\.schemas' = 'true'",
    ):
        version(glue, None)
    assert glue.actions() == ["GetSchemaByDefinition"]


def test_a_registry_that_is_not_there(glue):
    """The error says which, and by which option another is named."""
    glue.answers["CreateSchema"] = [error("EntityNotFoundException", "Registry is not found.")]
    with pytest.raises(
        SchemaError,
        match=r"no registry 'shop' .*Registry is not found.*'value\.avro-glue\.registry\.name'",
    ):
        version(glue)


@pytest.mark.parametrize("found_at_once", [True, False])
def test_a_version_that_is_not_compatible(glue, found_at_once):
    """Whether it fails now, or has failed before: the error says what compatibility the schema demands."""
    if found_at_once:
        glue.answers["GetSchemaByDefinition"] = [state(V2, "FAILURE")]
    glue.answers["RegisterSchemaVersion"] = [state(V2, "PENDING")]
    glue.answers["GetSchemaVersion"] = [state(V2, "FAILURE")]
    glue.answers["GetSchema"] = [(200, {"Compatibility": "BACKWARD"})]
    with pytest.raises(
        SchemaError,
        match=rf"not compatible .* whose compatibility is BACKWARD: its version {V2} has the status FAILURE",
    ):
        version(glue)


def test_the_compatibility_may_be_a_secret(glue):
    """Who may not ask for it gets the error without it."""
    glue.answers["GetSchemaByDefinition"] = [state(V2, "FAILURE")]
    glue.answers["GetSchema"] = [error("AccessDeniedException")]
    with pytest.raises(SchemaError, match=f"in AWS Glue at [^ ]+: its version {V2} has the status"):
        version(glue)


def test_a_check_that_does_not_end(glue):
    """It is waited for a minute."""
    glue.answers["GetSchemaByDefinition"] = [state(V2, "PENDING")]
    glue.answers["GetSchemaVersion"] = [state(V2, "PENDING")]
    clock = MovingClock()
    with pytest.raises(RetriableBrokerError, match="still checks, after 60 s"):
        order(glue, clock).version("AVRO", TEXT, None)
    assert 55 < clock.now <= 60
    assert clock.waits < 25


@pytest.mark.parametrize("code", ["InvalidInputException", "ResourceNumberLimitExceededException"])
def test_a_schema_that_glue_cannot_take(glue, code):
    """Its reason is told."""
    glue.answers["RegisterSchemaVersion"] = [error(code, "Schema definition is invalid: 3")]
    with pytest.raises(SchemaError, match=f"cannot take .*{code}: Schema definition is invalid: 3"):
        version(glue)


def test_the_newest_version_is_one_that_passed_the_checks(glue):
    """Those behind it that failed, or are being checked, have written no message."""
    more = {"DataFormat": "AVRO", "SchemaDefinition": TEXT}
    glue.answers["GetSchemaVersion"] = [
        (200, {"Status": "PENDING", "VersionNumber": 3}),
        (200, {"Status": "FAILURE", "VersionNumber": 2}),
        (200, {"Status": "AVAILABLE", "VersionNumber": 1, **more}),
    ]
    assert order(glue).newest_version().text == TEXT
    assert [asked["SchemaVersionNumber"] for _, asked in glue.asked] == [
        {"LatestVersion": True},
        {"VersionNumber": 2},
        {"VersionNumber": 1},
    ]


@pytest.mark.parametrize("answer", [NOT_THERE, (200, {"Status": "FAILURE", "VersionNumber": 1})])
def test_no_version_at_all(glue, answer):
    """It is said how columns are given then."""
    glue.answers["GetSchemaVersion"] = [answer]
    with pytest.raises(
        NoSchemaError, match=r"no version of the schema 'Order' .*\.schema\(\.\.\.\)"
    ):
        order(glue).newest_version()


def test_who_is_not_allowed(glue):
    """The error has Glue's words, the action and the resources for a policy."""
    said = "User: arn:aws:sts::1:assumed-role/x is not authorized to perform: glue:CreateSchema"
    glue.answers["CreateSchema"] = [error("AccessDeniedException", said)]
    with pytest.raises(BrokerError) as raised:
        version(glue)
    arn = "arn:aws:glue:eu-central-1:<account>:"
    on = f"'{arn}registry/shop' and '{arn}schema/shop/Order'"
    assert said in str(raised.value)
    assert f"Allow the action 'glue:CreateSchema' on {on} to this identity" in str(raised.value)
    assert not isinstance(raised.value, RetriableBrokerError)

    glue.answers["GetSchemaVersion"] = [error("AccessDeniedException", "no")]
    with pytest.raises(BrokerError, match="'glue:GetSchemaVersion' on all resources"):
        schema_of_version(access(glue), V1)
    assert len(glue.asked) == 4


@pytest.mark.parametrize(
    "busy",
    [
        error("ThrottlingException", "Rate exceeded"),
        error("ConcurrentModificationException"),
        error("InternalServiceException", status=500),
        (503, b"<html>away</html>"),
        (429, {}),
    ],
)
def test_what_is_asked_again(glue, busy):
    """Glue is busy, or away for a moment."""
    glue.schema(V1, "AVRO", TEXT)
    glue.answers["GetSchemaVersion"] = [busy, busy, (200, glue.versions[str(V1)])]
    asked = {"SchemaVersionId": str(V1)}
    patient = Patience(silent_s=300, all_s=3600, backoff=QUICK.backoff)
    answer = call(access(glue), "GetSchemaVersion", asked, {}, on="x", patience=patient)
    assert answer["SchemaDefinition"] == TEXT
    assert len(glue.asked) == 3


@pytest.mark.parametrize(
    ("answer", "said", "patience"),
    [
        (error("ThrottlingException", "Rate exceeded"), "ThrottlingException: Rate", QUICK),
        (SILENCE, "Read timeout on endpoint URL|did not come in time", UNHEARD),
        ((200, Endless(b" ", 0.02)), "The answer of .* did not come in time", UNHEARD),
    ],
    ids=["busy", "silent", "a byte now and then, without an end"],
)
def test_how_long_it_is_waited_for(glue, answer, said, patience):
    """The error says what came at last; a query that is started again goes on."""
    glue.answers["GetSchemaVersion"] = [answer]
    with pytest.raises(
        RetriableBrokerError,
        match=rf"gives no answer to GetSchemaVersion; asked [0-9]+ times in 0 s, at last: .*{said}",
    ):
        call(
            access(glue),
            "GetSchemaVersion",
            {"SchemaVersionId": str(V1)},
            {},
            on="x",
            patience=patience,
        )


@pytest.mark.parametrize("status", [200, 400, 500])
def test_an_answer_without_an_end(glue, status):
    """It is not held in memory, and not asked for again."""
    glue.answers["GetSchemaVersion"] = [(status, Endless(b"x" * 65_536))]
    with pytest.raises(
        BrokerError,
        match=r"The answer of .* has more than 16 MB\. Is it .* that 'value\.avro-glue\.endpoint'",
    ):
        schema_of_version(access(glue), V1)
    assert len(glue.asked) == 1


@pytest.mark.parametrize("status", [200, 400])
@pytest.mark.parametrize(
    "content",
    [gzip.compress(bytes(50_000_000)), b"[" * 100_000, b"[1]", b'"text"', b"1", b"null", b"\xff"],
    ids=["small until it is unpacked", "nested without an end", "a list", "a text", "a number", "null", "no text"],
)  # fmt: skip
def test_an_answer_that_is_none(glue, status, content):
    """It is told in a sentence, never an error of Python; nothing is unpacked, since nobody has asked for that."""
    packed = {"Content-Encoding": "gzip"} if content[:1] == b"\x1f" else {}
    with (
        http_server(lambda _: Answer(status, content, packed)) as url,
        pytest.raises((BrokerError, SchemaError), match=r"cannot be read: |is malformed|refuses"),
    ):
        schema_of_version(GlueAccess("value.avro-glue.", None, url), V1)


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_not_followed(glue, status):
    """What was signed goes to nobody else."""
    with fake_glue.serving() as other:
        other.schema(V1, "AVRO", TEXT)
        glue.answers["GetSchemaVersion"] = [(status, other.url)]
        with pytest.raises(BrokerError, match="is a redirect, which is not followed"):
            schema_of_version(access(glue), V1)
        assert other.asked == []


@pytest.mark.usefixtures("glue")
def test_nobody_is_there():
    """An address without a server."""
    nobody = GlueAccess("value.avro-glue.", "eu-central-1", "http://127.0.0.1:9")
    with pytest.raises(RetriableBrokerError, match="Could not connect to the endpoint URL"):
        call(nobody, "GetSchemaVersion", {"SchemaVersionId": str(V1)}, {}, on="x", patience=QUICK)


@pytest.mark.parametrize(
    "code", ["UnrecognizedClientException", "ExpiredTokenException", "InvalidSignatureException"]
)
def test_credentials_that_are_refused(glue, code):
    """They are not shown, though Glue repeats what was signed."""
    secret = CREDENTIALS["AWS_SECRET_ACCESS_KEY"]
    glue.answers["GetSchemaVersion"] = [error(code, f"what was signed: {secret}")]
    with pytest.raises(
        BrokerError, match=r"signed: \*\*\*\. These credentials are refused\."
    ) as raised:
        schema_of_version(access(glue), V1)
    assert secret not in texts_of(raised.value)
    assert len(glue.asked) == 1


def test_a_token_is_not_shown(glue, monkeypatch):
    """That of temporary credentials."""
    monkeypatch.setenv("AWS_SESSION_TOKEN", "a/session+token==")
    glue.answers["GetSchemaVersion"] = [error("InvalidSignatureException", "a/session+token==")]
    with pytest.raises(BrokerError, match=r"InvalidSignatureException: \*\*\*"):
        schema_of_version(access(glue), V1)


def test_without_credentials(glue, monkeypatch):
    """The error says where they are given."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    with pytest.raises(
        BrokerError, match=r"Unable to locate credentials\. Give credentials of AWS to the driver"
    ):
        schema_of_version(access(glue), V1)
    monkeypatch.setenv("AWS_PROFILE", "nobody")
    forget_clients()
    with pytest.raises(
        BrokerError, match=re.escape("The config profile (nobody) could not be found. Give")
    ):
        schema_of_version(access(glue), V1)


def test_another_error(glue):
    """It is told as Glue tells it."""
    glue.answers["GetSchemaVersion"] = [error("UnknownOperationException", "what?")]
    with pytest.raises(
        BrokerError, match=r"UnknownOperationException: what\?\. Is it a registry of AWS Glue"
    ):
        schema_of_version(access(glue), V1)


def test_a_long_text_is_cut(glue):
    """What comes from outside is shown on one line, and not at any length."""
    glue.answers["GetSchemaVersion"] = [error("X", "a\n\x1b[2J" + "b" * 5_000)]
    with pytest.raises(BrokerError) as raised:
        schema_of_version(access(glue), V1)
    assert "\n" not in str(raised.value)
    assert "\x1b" not in str(raised.value)
    assert len(str(raised.value)) < 1_500


@pytest.mark.parametrize(
    "said",
    [
        "Signature expired: 20260131T115000Z is now earlier than 20260131T115500Z (20260131T120000Z - 5 min.)",
        "Signature not yet current: 20260131T121000Z is still later than 20260131T120500Z",
    ],
)
def test_a_clock_that_is_off(glue, said):
    """Amazon refuses what is signed more than five minutes before or after its time: the error says the time here, and not to give other keys."""
    glue.answers["GetSchemaVersion"] = [error("InvalidSignatureException", said, 403)]
    with pytest.raises(BrokerError, match=r"The clock here says 20\S+Z: is it right\?") as found:
        schema_of_version(access(glue), V1, UnknownIds())
    assert "Give credentials" not in str(found.value)
