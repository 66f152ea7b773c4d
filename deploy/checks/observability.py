"""Dashboards and rules: whether they ask for metrics that exist, and whether somebody can act on what they show."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from deploy.checks import dashboards, rules
from deploy.checks.outcome import Check
from deploy.checks.promql import own_metrics
from deploy.checks.tools import Toolbox

RULES = Path("deploy/prometheus/rules")
DASHBOARDS = Path("deploy/grafana/dashboards")
RUNBOOK = Path("docs/alerts.md")


def checks(root: Path, tools: Toolbox) -> Iterator[Check]:
    """Rules, and dashboards."""
    yield Check("Prometheus: metrics and runbook of the rules", partial(rules_faults, root))
    yield Check("Grafana: dashboards", partial(dashboards_faults, root))


def rules_faults(root: Path) -> list[str]:
    """What is wrong with the rules. Raises ConfigError."""
    return rules.faults(root / RULES, own_metrics(), root / RUNBOOK)


def dashboards_faults(root: Path) -> list[str]:
    """What is wrong with the dashboards. Raises ConfigError."""
    if not dashboards.dashboard_files(root / DASHBOARDS):
        return [f"{DASHBOARDS}: no dashboard"]
    return dashboards.faults(root / DASHBOARDS, {**own_metrics(), **rules.recorded(root / RULES)})
