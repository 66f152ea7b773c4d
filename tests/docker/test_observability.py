"""Prometheus scrapes the service, and every rule and every panel finds what it asks for."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Mapping
from pathlib import Path

import httpx
import pytest

from tests.deploy.promql import DASHBOARDS, Query, name_of, queries, read_dashboard, rules
from tests.docker.compose import Project
from tests.docker.engine import Engine, eventually
from tests.docker.traffic import Prometheus

pytestmark = pytest.mark.docker

OF_A_GPU = ("tandem_gpu_", "tandem_device_")
ABSENT = {"tandem_gpu_memory_bytes", "ALERTS"}
"""Metrics that a healthy server without a GPU does not have; all others must be there after some traffic."""
_NAME = re.compile(r"(?<![\w:.$])(?:(?:tandem|process|python)[_:][\w:]+|up|ALERTS)(?![\w:(])")
_QUOTED = re.compile(r'"(?:[^"\\]|\\.)*"')


def metric_names(expression: str) -> set[str]:
    """Metrics that an expression reads."""
    return set(_NAME.findall(_QUOTED.sub('""', expression)))


def test_service_is_scraped(prometheus: Prometheus) -> None:
    assert prometheus.query('up{job="tandem"}') == [1.0]
    targets = prometheus.get("targets", state="active")["activeTargets"]
    assert [target["lastError"] for target in targets if target["health"] != "up"] == []


def test_configuration_was_loaded(prometheus: Prometheus) -> None:
    assert prometheus.query("prometheus_config_last_reload_successful") == [1.0]


def test_every_rule_is_evaluated_without_error(prometheus: Prometheus) -> None:
    names = {name_of(rule) for _, rule in rules()}
    assert names

    def evaluated() -> bool:
        found = prometheus.rules()
        assert names <= set(found), f"not loaded: {sorted(names - set(found))}"
        return all(found[name]["health"] != "unknown" for name in names)

    eventually(evaluated, "an evaluation of every rule")
    assert {name: rule["lastError"] for name, rule in prometheus.rules().items() if rule["health"] != "ok"} == {}


def unanswered(prometheus: Prometheus, expressions: Mapping[str, str]) -> list[str]:
    """Names of expressions that have no value, not even after the rarest rule was evaluated; others have had one."""
    empty = dict(expressions)
    seconds = 30.0 + max(rule["interval"] for rule in prometheus.rules().values())

    def settled() -> bool:
        for name, expression in list(empty.items()):
            if prometheus.query(expression):
                del empty[name]
        return not empty

    with contextlib.suppress(AssertionError):
        eventually(settled, "values", seconds=seconds)
    return sorted(empty)


def test_every_recording_has_data(prometheus: Prometheus) -> None:
    recorded = {name: name for name, rule in prometheus.rules().items() if rule["type"] == "recording"}
    assert recorded
    assert unanswered(prometheus, recorded) == []


def test_every_rule_can_be_asked_and_reads_metrics_that_exist(prometheus: Prometheus) -> None:
    """Alerts that are silent have no values, but what they read has to be there."""
    known = {*prometheus.get("label/__name__/values"), *prometheus.rules()}
    asked = [Query(name_of(rule), rule["expr"]) for _, rule in rules()]
    assert asked
    faults = []
    for query in asked:
        prometheus.query(query.expression)
        missing = metric_names(query.expression) - known - ABSENT
        faults += [f"{query.panel} reads {name}, which nobody has" for name in sorted(missing)]
    assert not faults


@pytest.mark.parametrize("path", DASHBOARDS, ids=lambda path: str(path.stem))
def test_every_panel_has_data(prometheus: Prometheus, path: Path) -> None:
    """Of each but those of a GPU, and of moments, such as alerts and starts, of which there may be none."""
    asked = queries(read_dashboard(path))
    assert asked
    faults = [query.panel for query in asked if not metric_names(query.expression)]
    assert not faults, "these read no metric"
    for query in asked:
        prometheus.query(query.expression)
    steady = [query for query in asked if not query.panel.startswith("annotation ")]
    wanted = {
        f"{query.panel}: {query.expression}": query.expression
        for query in steady
        if not any(name in ABSENT or name.startswith(OF_A_GPU) for name in metric_names(query.expression))
    }
    assert wanted
    assert unanswered(prometheus, wanted) == []


def test_alert_goes_off_when_the_service_hangs(engine: Engine, stack: Project, prometheus: Prometheus) -> None:
    """Prometheus sees that nobody answers; the alert then waits for its time, which is not waited for here."""
    assert prometheus.rules()["TandemDown"]["state"] == "inactive"
    container = stack.container("tandem")
    engine.docker("pause", container)
    try:
        eventually(
            lambda: prometheus.rules()["TandemDown"]["state"] in ("pending", "firing"),
            "an alert about a server that hangs",
            seconds=90,
        )
        assert prometheus.query('up{job="tandem"}') == [0.0]
    finally:
        engine.docker("unpause", container)
    eventually(lambda: prometheus.query('up{job="tandem"}') == [1.0], "the next scrape")
    eventually(lambda: prometheus.rules()["TandemDown"]["state"] == "inactive", "the end of the alert")


def test_grafana_shows_the_dashboards(grafana: str) -> None:
    """Where Grafana's image can be had: it is up, and found what it was given."""
    assert httpx.get(f"{grafana}/api/health", timeout=20).json()["database"] == "ok"
