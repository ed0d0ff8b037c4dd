"""What a producer asks of the brokers, and what contradicts the guarantee."""

from __future__ import annotations

import pytest

from pyspark_upsert_kafka.core.delivery_guarantee import (
    DeliveryGuarantee,
    RequiredAcks,
    required_acks,
    weak_acks,
)
from pyspark_upsert_kafka.core.errors import OptionError

NONE, AT_LEAST_ONCE = DeliveryGuarantee.NONE, DeliveryGuarantee.AT_LEAST_ONCE


@pytest.mark.parametrize(
    ("properties", "guarantee", "asked"),
    [
        ({}, AT_LEAST_ONCE, RequiredAcks("all", idempotent=True)),
        ({"acks": "-1"}, AT_LEAST_ONCE, RequiredAcks("all", idempotent=True)),
        ({"acks": " ALL "}, AT_LEAST_ONCE, RequiredAcks("all", idempotent=True)),
        ({"acks": "1"}, AT_LEAST_ONCE, RequiredAcks("1", idempotent=False)),
        (
            {"acks": "1", "enable.idempotence": "false"},
            AT_LEAST_ONCE,
            RequiredAcks("1", idempotent=False),
        ),
        ({"enable.idempotence": "false"}, AT_LEAST_ONCE, RequiredAcks("all", idempotent=False)),
        ({}, NONE, RequiredAcks("0", idempotent=False)),
        ({"acks": "0"}, NONE, RequiredAcks("0", idempotent=False)),
        ({"acks": "1"}, NONE, RequiredAcks("1", idempotent=False)),
        ({"enable.idempotence": "True"}, NONE, RequiredAcks("all", idempotent=True)),
    ],
)
def test_what_is_asked_of_the_brokers(properties, guarantee, asked):
    """All replicas and idempotence, unless the guarantee is none or the user asks for less."""
    assert required_acks(properties, guarantee) == asked


@pytest.mark.parametrize(
    ("properties", "message"),
    [
        (
            {"acks": "0"},
            "Option 'properties.acks' = '0' .*means that no message is confirmed.*delivery-guarantee",
        ),
        ({"acks": "0", "enable.idempotence": "false"}, "means that no message is confirmed"),
        (
            {"acks": "1", "enable.idempotence": "true"},
            "idempotence' = 'true' needs .* which is '1'",
        ),
        ({"acks": "2"}, "'properties.acks': expected 'all', '1' or '0', but is '2'"),
        (
            {"enable.idempotence": "yes"},
            "'properties.enable.idempotence': expected 'true' or 'false'",
        ),
    ],
)
def test_what_contradicts_the_guarantee(properties, message):
    """It is told in our own words, not by the client in a task."""
    with pytest.raises(OptionError, match=message):
        required_acks(properties, AT_LEAST_ONCE)


def test_idempotence_without_confirmation_is_a_contradiction_under_every_guarantee():
    """Whether a message came twice cannot be known by who is told of none."""
    with pytest.raises(OptionError, match=r"needs 'properties\.acks' = 'all', which is '0'"):
        required_acks({"acks": "0", "enable.idempotence": "true"}, NONE)


def test_a_confirmation_by_one_broker_is_told():
    """It is taken, and what it risks is said."""
    (text,) = weak_acks(RequiredAcks("1", idempotent=False), "users")
    assert "'properties.acks' = '1' for topic users" in text
    assert weak_acks(RequiredAcks("0", idempotent=False), "users") == []
