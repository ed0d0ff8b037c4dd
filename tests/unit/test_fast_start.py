"""The switch by which tests run without what makes them start faster."""

from __future__ import annotations

from tests.fast_start import settings


def test_plain_tests_change_nothing():
    """With ``PLAIN_TESTS`` Spark, brokers and Python workers start as a user's do."""
    assert settings({"PLAIN_TESTS": "1", "PYTHONPATH": "/mine"}) == {}


def test_what_is_set_already_stays():
    """A home of Spark and flags of JVMs that somebody has chosen are kept."""
    chosen = {"SPARK_HOME": "/spark", "SPARK_SUBMIT_OPTS": "-Xa", "LOCAL_KAFKA_OPTS": "-Xb"}
    found = settings(chosen)
    assert {name: found[name] for name in chosen} == chosen


def test_workers_import_first_what_they_need():
    """Python finds the tests' ``sitecustomize`` before anything of the user's."""
    first, *others = settings({"PYTHONPATH": "/mine"})["PYTHONPATH"].split(":")
    assert first.endswith("spark_workers")
    assert others == ["/mine"]
