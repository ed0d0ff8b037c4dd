"""Checking again before anything counts as lost."""

from __future__ import annotations

from functools import partial

import pytest

from pyspark_upsert_kafka.core.positions.cluster_view import Bounds, ClusterView
from pyspark_upsert_kafka.core.positions.data_loss import unconfirmed_losses
from pyspark_upsert_kafka.core.positions.offsets import StreamOffset
from pyspark_upsert_kafka.kafka.loss_checks import LossChecks
from tests.unit.connector.fake_cluster import Clock
from tests.unit.core.positions.test_planning import T0

GONE, THERE = ClusterView({}, {}), ClusterView({"t": "id"}, {T0: Bounds(0, 20, 20)})


@pytest.mark.parametrize(
    ("shown", "asked"),
    [
        ([THERE], 1),
        ([GONE, THERE], 2),
        ([GONE] * 9 + [THERE], 10),
        ([GONE] * 9 + [THERE] + [GONE] * 9, 10),
        ([GONE] * 20, 11),
    ],
)
def test_a_loss_is_concluded_from_unanimous_checks(shown, asked):
    """Once a second, for ten seconds; the first check that finds everything ends it."""
    views = iter(shown)
    taken = []

    def check() -> ClusterView:
        taken.append(next(views))
        return taken[-1]

    found = LossChecks(Clock()).until_certain(
        check(), partial(unconfirmed_losses, StreamOffset({T0: 15})), check
    )

    assert found is taken[-1]
    assert len(taken) == asked
