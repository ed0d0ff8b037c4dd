"""The options of a registry of AWS Glue, under our names and Flink's; the region, and names that Glue would not take."""

from __future__ import annotations

import pickle
import sys

import pytest
from pyspark.sql.types import LongType

from pyspark_upsert_kafka.core.errors import OptionError
from pyspark_upsert_kafka.registry import glue_options, glue_request
from pyspark_upsert_kafka.registry.glue_options import GlueSettings
from tests.unit.formats.json.codecs import columns
from tests.unit.registry.glue_codecs import side

ROW = columns(id=LongType())
pytestmark = pytest.mark.usefixtures("glue")


def settings(**given: str) -> GlueSettings:
    """The settings that these options mean."""
    return glue_options.settings_of(side("avro-glue", ROW, **given).spec, "avro-glue")


def test_defaults():
    """Those of Amazon's serializers and of Flink's format."""
    found = settings()
    assert found == GlueSettings(
        glue_request.GlueAccess("value.avro-glue."),
        registry="default-registry",
        schema_name=None,
        schema=None,
        auto_register=False,
        compatibility="BACKWARD",
        compresses=False,
    )
    assert str(found.access) == "AWS Glue in eu-central-1"


@pytest.mark.parametrize(
    ("ours", "theirs", "value", "part", "expected"),
    [
        ("region", "aws.region", "eu-west-1", "access", glue_request.GlueAccess("value.avro-glue.", "eu-west-1")),
        ("endpoint", "aws.endpoint", "http://a:1", "access", glue_request.GlueAccess("value.avro-glue.", None, "http://a:1")),
        ("auto.register.schemas", "schema.autoRegistration", "true", "auto_register", True),
        ("compatibility", "schema.compatibility", "full_all", "compatibility", "FULL_ALL"),
        ("compression", "schema.compression", "zlib", "compresses", True),
    ],
)  # fmt: skip
def test_flinks_names(ours, theirs, value, part, expected):
    """They mean the same; both may be given when they say the same."""
    for given in ({ours: value}, {theirs: value}, {ours: value, theirs: value}):
        assert getattr(settings(**given), part) == expected
    other = {"true": "false", "full_all": "NONE", "zlib": "NONE"}.get(value, f"{value}1")
    with pytest.raises(
        OptionError,
        match=f"'value.avro-glue.{ours}' and 'value.avro-glue.{theirs}' mean the same and differ",
    ):
        settings(**{ours: other, theirs: value})


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("registry.name", "my registry", "at most 255 letters, digits"),
        ("schema.name", "a" * 256, "at most 255 letters, digits"),
        ("compression", "GZIP", "expected one of 'NONE', 'ZLIB'"),
        ("compatibility", "TRANSITIVE", "expected one of 'NONE', 'DISABLED', 'BACKWARD'"),
        ("endpoint", "glue.eu-central-1.amazonaws.com", "expected an address such as 'https://"),
        ("endpoint", "https://me:secret@host", "without a user or password"),
        ("schema.type", "SPECIFIC_RECORD", "expected one of 'GENERIC_RECORD'"),
    ],
)
def test_values_that_are_none(name, value, said):
    """The error names the option; a password in an address is not shown."""
    with pytest.raises(OptionError, match=f"'value.avro-glue.{name}': .*{said}") as raised:
        settings(**{name: value})
    assert "secret" not in str(raised.value)


def test_what_flink_has_and_has_no_effect_here():
    """It may be pasted."""
    more = {"schema.type": "GENERIC_RECORD", "cache.size": "200", "cache.ttlMs": "1000"}
    assert settings(**more) == settings()


@pytest.mark.parametrize("name", ["AWS_REGION", "AWS_DEFAULT_REGION"])
def test_a_region_of_the_environment(monkeypatch, name):
    """As botocore and Java's SDK take it."""
    monkeypatch.delenv("AWS_REGION")
    monkeypatch.setenv(name, "us-east-2")
    assert settings().access.found_region() == "us-east-2"
    assert settings(region="eu-west-1").access.found_region() == "eu-west-1"


def test_a_region_of_a_profile(monkeypatch, tmp_path):
    """As the command line of AWS takes it."""
    monkeypatch.delenv("AWS_REGION")
    (tmp_path / "config").write_text("[default]\nregion = us-west-2\n")
    assert settings().access.found_region() == "us-west-2"


@pytest.mark.parametrize("profile", [None, "nobody"])
def test_no_region_at_all(monkeypatch, profile):
    """The error is told when the query is planned."""
    monkeypatch.delenv("AWS_REGION")
    if profile:
        monkeypatch.setenv("AWS_PROFILE", profile)
    with pytest.raises(
        OptionError, match=r"'value\.avro-glue\.region' is required, such as 'eu-central-1'"
    ):
        settings()


def test_without_botocore_it_is_said_what_to_install(monkeypatch):
    """When the query is planned."""
    monkeypatch.setitem(sys.modules, "botocore", None)
    with pytest.raises(OptionError, match=r"pip install 'pyspark-upsert-kafka\[aws\]'"):
        settings()


def test_settings_travel():
    """They are keys of what is kept in a process, and are pickled."""
    assert pickle.loads(pickle.dumps(settings())) == settings()
    assert hash(settings()) == hash(settings())
