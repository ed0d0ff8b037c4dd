"""`make docs` writes operating/grafana-dashboard.json: the metrics of ProgressListener for Grafana.

The file is a classic dashboard in the last version of that schema, 42, which Grafana 11 to 13 import.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from tools.dashboard.panels import PANELS, QUERY, Panel

_SOURCE = {"type": "prometheus", "uid": "${datasource}"}


def dashboard() -> str:
    """The file's text."""
    return json.dumps(_dashboard(), indent=2) + "\n"


def _dashboard() -> dict[str, Any]:
    return {
        "uid": "pyspark-upsert-kafka",
        "title": "pyspark_upsert_kafka",
        "description": "Queries that read Kafka topics as tables: lag, rows, bad messages, failures.",
        "tags": ["kafka", "spark"],
        "schemaVersion": 42,
        "version": 1,
        "editable": True,
        "graphTooltip": 1,
        "time": {"from": "now-6h", "to": "now"},
        "refresh": "30s",
        "timezone": "browser",
        "fiscalYearStartMonth": 0,
        "annotations": {"list": []},
        "links": [],
        "templating": {"list": _variables()},
        "panels": _panels(),
    }


def _variables() -> list[dict[str, Any]]:
    source = {
        "name": "datasource",
        "label": "Data source",
        "type": "datasource",
        "query": "prometheus",
        "current": {},
        "hide": 0,
    }
    return [
        source,
        _variable("query", "Query", "label_values(upsert_kafka_batch_seconds, query)"),
        _variable("topic", "Topic", f"label_values(upsert_kafka_position{{{QUERY}}}, topic)"),
    ]


def _variable(name: str, label: str, values: str) -> dict[str, Any]:
    return {
        "name": name,
        "label": label,
        "type": "query",
        "datasource": _SOURCE,
        "query": {"query": values, "refId": name},
        "definition": values,
        "refresh": 2,  # when the range of time changes
        "sort": 1,
        "includeAll": True,
        "allValue": ".*",
        "multi": True,
        "current": {"text": ["All"], "value": ["$__all"]},
        "hide": 0,
    }


def _panels() -> list[dict[str, Any]]:
    """The panels from left to right, as many in a row as there is width for."""
    placed, x, y = [], 0, 0
    for number, panel in enumerate(PANELS, 1):
        height = 4 if panel.type == "stat" else 8
        if x + panel.width > 24:
            x, y = 0, y + placed[-1]["gridPos"]["h"]
        at = {"x": x, "y": y, "w": panel.width, "h": height}
        placed.append(_panel(number, panel, at))
        x += panel.width
    return placed


def _panel(number: int, panel: Panel, at: dict[str, int]) -> dict[str, Any]:
    is_table = panel.type in ("stat", "table")
    targets = [
        {
            "refId": chr(ord("A") + place),
            "datasource": _SOURCE,
            "editorMode": "code",
            "expr": expression,
            "legendFormat": legend or "__auto",
            "instant": is_table,
            "range": not is_table,
            **({"format": "table"} if panel.type == "table" else {}),
        }
        for place, (legend, expression) in enumerate(panel.expressions.items())
    ]
    return {
        "id": number,
        "type": panel.type,
        "title": panel.title,
        "description": panel.description,
        "datasource": _SOURCE,
        "gridPos": at,
        "targets": targets,
        "options": {},
        "fieldConfig": {
            "defaults": {"unit": panel.unit, "min": 0, **(panel.defaults or {})},
            "overrides": [],
        },
    }


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(dashboard(), encoding="utf-8")
