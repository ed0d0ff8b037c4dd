"""The folder `operating`: the dashboard and the alerts use metrics that there are, and each alert is tested and explained."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client import CollectorRegistry, generate_latest

from pyspark_upsert_kafka import ProgressListener
from tests.unit.test_docs import anchors
from tools.dashboard.__main__ import dashboard

ROOT = Path(__file__).parents[2]
RUNBOOK = ROOT / "docs" / "runbook.md"
PROMTOOL = shutil.which("promtool")

_METRIC = re.compile(r"\bupsert_kafka_\w+")
_LABELS = re.compile(r"\b(?:by|on) \(([^)]*)\)|(\w+)=~?\"")
OF_PROMETHEUS = {"instance", "job"}
"""Labels that Prometheus adds."""


def rules() -> dict[str, dict[str, Any]]:
    """The alert rules by their names."""
    given = yaml.safe_load((ROOT / "operating" / "alerts.yml").read_text(encoding="utf-8"))
    return {rule["alert"]: rule for group in given["groups"] for rule in group["rules"]}


def rule_tests() -> list[dict[str, Any]]:
    """What promtool tests: an alert at a time, and what it must be."""
    given = yaml.safe_load((ROOT / "operating" / "alerts_test.yml").read_text(encoding="utf-8"))
    return [each for test in given["tests"] for each in test["alert_rule_test"]]


def expressions() -> list[str]:
    """What the dashboard asks Prometheus."""
    panels = json.loads(dashboard())["panels"]
    return [target["expr"] for panel in panels for target in panel["targets"]]


def exported() -> set[str]:
    """The names of the listener's metrics; those of counters as their samples have them."""
    registry = CollectorRegistry(auto_describe=True)
    registry.register(ProgressListener().metrics)
    return set(re.findall(r"^# TYPE (\w+)", generate_latest(registry).decode(), re.MULTILINE))


def labels() -> dict[str, set[str]]:
    """The labels of each metric, by the name that its samples have."""
    return {
        f"{family.name}_total" if family.type == "counter" else family.name: {*family._labelnames}
        for family in ProgressListener().metrics.collect()
    }


def labels_in(expression: str) -> set[str]:
    """The labels that an expression names."""
    found = _LABELS.findall(expression)
    return {label.strip() for group, single in found for label in (group or single).split(",")}


def test_the_dashboard_is_fresh() -> None:
    """operating/grafana-dashboard.json is what ``make docs`` writes; run it after changing a panel."""
    written = (ROOT / "operating" / "grafana-dashboard.json").read_text(encoding="utf-8")
    assert dashboard() == written


def test_metrics_of_dashboard_and_alerts_are_exported() -> None:
    """Neither names a metric that the listener does not have."""
    used = {
        name
        for text in (*expressions(), *(rule["expr"] for rule in rules().values()))
        for name in _METRIC.findall(text)
    }

    assert used
    assert used <= exported()


def test_labels_of_dashboard_and_alerts_are_exported() -> None:
    """A label that no metric has makes one series of all, without an error."""
    named = set().union(
        *map(labels_in, (*expressions(), *(rule["expr"] for rule in rules().values())))
    )

    assert {"query", "query_id", "source", "topic", "partition"} == named
    assert named == set().union(*labels().values())


def test_series_of_the_tests_are_those_of_the_listener() -> None:
    """The tests of the alerts have series with the names and the labels of real ones."""
    text = (ROOT / "operating" / "alerts_test.yml").read_text(encoding="utf-8")
    series = re.findall(r"series: (\w+)\{(.*?)\}", text)

    assert len(series) > 10
    for name, given in series:
        assert {*re.findall(r"(\w+)=", given)} - OF_PROMETHEUS == labels()[name], name


def test_metrics_that_pages_name_are_exported() -> None:
    """The page of metrics has all of them, and the runbook no other: readers copy them into rules of their own."""
    metrics, runbook = (
        {*_METRIC.findall(page.read_text(encoding="utf-8"))}
        for page in (ROOT / "docs" / "monitoring.md", RUNBOOK)
    )

    assert metrics == exported()
    assert runbook <= exported()


def test_the_dashboard_shows_every_metric() -> None:
    """What the listener exports is on the dashboard."""
    assert exported() == set(_METRIC.findall(" ".join(expressions())))


def test_variables_of_the_dashboard_are_declared() -> None:
    """A panel names no variable that the dashboard does not have, but Grafana's own."""
    given = json.loads(dashboard())
    declared = {each["name"] for each in given["templating"]["list"]}
    named = set(re.findall(r"\$\{?(\w+)", dashboard()))

    assert declared == {"datasource", "query", "topic"}
    assert {name for name in named if not name.startswith("__")} == declared


def test_the_variable_has_every_query() -> None:
    """Also one that only writes: it takes the names from a metric that each query has."""
    given = json.loads(dashboard())["templating"]["list"]
    (definition,) = (each["definition"] for each in given if each["name"] == "query")
    (metric,) = _METRIC.findall(definition)

    assert labels()[metric] == {"query", "query_id"}


def test_panels_do_not_overlap() -> None:
    """Each has an id and a place of its own."""
    panels = json.loads(dashboard())["panels"]

    assert len({panel["id"] for panel in panels}) == len(panels)
    for one, other in combinations([panel["gridPos"] for panel in panels], 2):
        assert (
            one["x"] + one["w"] <= other["x"]
            or other["x"] + other["w"] <= one["x"]
            or one["y"] + one["h"] <= other["y"]
            or other["y"] + other["h"] <= one["y"]
        )


@pytest.mark.parametrize("alert", rules())
def test_each_alert_leads_to_its_section_of_the_runbook(alert: str) -> None:
    """Its address ends with the page and the heading; it says who is called, and what is wrong."""
    rule = rules()[alert]
    page, _, heading = rule["annotations"]["runbook_url"].partition("#")

    assert page.endswith("/docs/runbook.md")
    assert heading == alert.lower()
    assert heading in anchors(RUNBOOK)
    assert rule["labels"]["severity"] in ("warning", "critical")
    assert rule["annotations"].keys() == {"summary", "description", "runbook_url"}


def test_each_section_of_the_runbook_is_about_an_alert_that_there_is() -> None:
    """And has the three parts: what it means, where to look, what to do."""
    sections = re.split(r"^## ", RUNBOOK.read_text(encoding="utf-8"), flags=re.MULTILINE)
    about = {name: text for name, _, text in (each.partition("\n") for each in sections)}
    alerts = {name: text for name, text in about.items() if name.startswith("UpsertKafka")}

    assert alerts.keys() == rules().keys()
    for text in alerts.values():
        parts = re.findall(r"^\*\*(\w+)\.\*\*", text, re.MULTILINE)
        assert parts == ["Meaning", "Look", "Do"]


@pytest.mark.parametrize("alert", rules())
def test_each_alert_has_a_test_in_which_it_fires_and_one_in_which_it_does_not(alert: str) -> None:
    """operating/alerts_test.yml, which promtool runs."""
    fires = {bool(each["exp_alerts"]) for each in rule_tests() if each["alertname"] == alert}
    assert fires == {True, False}


@pytest.mark.skipif(PROMTOOL is None, reason="promtool is not installed (Debian: prometheus)")
def test_promtool_takes_the_rules_and_their_tests(tmp_path: Path) -> None:
    """The rules are valid, do what their tests say, and the dashboard's expressions are PromQL."""
    recorded = [
        {"record": f"panel:{number}", "expr": re.sub(r"\$__\w+", "5m", text)}
        for number, text in enumerate(expressions())
    ]
    panels = tmp_path / "panels.yml"
    panels.write_text(yaml.safe_dump({"groups": [{"name": "panels", "rules": recorded}]}))
    for arguments in (
        ["check", "rules", "operating/alerts.yml", str(panels)],
        ["test", "rules", "operating/alerts_test.yml"],
    ):
        done = subprocess.run(
            [str(PROMTOOL), *arguments], cwd=ROOT, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
