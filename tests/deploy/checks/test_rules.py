"""The rules of Prometheus, and the linter that looks after them. promtool runs the rules' own tests."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from deploy.checks import promql, rules
from models.errors import ConfigError
from service.telemetry.metrics import TEXT_SECONDS

ROOT = Path(__file__).resolve().parents[3]
FOLDER = ROOT / "deploy" / "prometheus"
RULES = FOLDER / "rules"
RUNBOOK = ROOT / "docs" / "alerts.md"

GOOD: dict[str, Any] = {
    "alert": "TandemBroken",
    "expr": "tandem_ready == 0",
    "labels": {"severity": "critical"},
    "annotations": {"summary": "s", "description": "d", "runbook_url": "docs/alerts.md#tandembroken"},
}


def test_our_rules_are_faultless() -> None:
    assert rules.faults(RULES, promql.own_metrics(), RUNBOOK) == []


def test_every_alert_is_seen_to_fire_in_a_test() -> None:
    fired = Counter(
        case["alertname"]
        for file in sorted((FOLDER / "tests").glob("*.yml"))
        for test in yaml.safe_load(file.read_text(encoding="utf-8"))["tests"]
        for case in test.get("alert_rule_test", ())
        if case["exp_alerts"]
    )
    assert set(fired) == {rule.name for rule in rules.rules(RULES) if rule.alert}


def test_the_runbook_has_no_section_for_an_alert_that_is_not() -> None:
    sections = [line[3:] for line in RUNBOOK.read_text(encoding="utf-8").splitlines() if line.startswith("## Tandem")]
    assert sorted(sections) == sorted(rule.name for rule in rules.rules(RULES) if rule.alert)


def test_the_objective_is_a_bound_of_the_histogram() -> None:
    """A share of requests within a second is counted, not guessed between two bounds."""
    (slow,) = (
        selector
        for query in rules.expressions(RULES / "slo.yml")
        if query.panel == "tandem:slo_bad:rate5m"
        for selector in promql.selectors(query.expression)
        if selector.name == "tandem_text_request_seconds_bucket"
    )
    assert ("le", "=", "1.0") in slow.matchers and 1.0 in TEXT_SECONDS


def test_prometheus_reads_these_rules_and_its_times_are_what_they_count_on() -> None:
    config = yaml.safe_load((FOLDER / "prometheus.yml").read_text(encoding="utf-8"))
    assert config["rule_files"] == ["/etc/prometheus/rules/*.yml"]
    assert "tandem" in [job["job_name"] for job in config["scrape_configs"]]
    groups = yaml.safe_load((RULES / "slo.yml").read_text(encoding="utf-8"))["groups"]
    assert {group["name"]: group.get("interval") for group in groups}["tandem-slo"] == "15s"
    counted = [query for query in rules.expressions(RULES / "alerts.yml") if "tandem:slo_bad" in query.expression]
    assert counted and all("]) * 15 >= 10" in query.expression for query in counted)


def written(folder: Path, *found: dict[str, Any]) -> Path:
    """A file of rules."""
    path = folder / "some.yml"
    path.write_text(yaml.safe_dump({"groups": [{"name": "some", "rules": list(found)}]}), encoding="utf-8")
    return path


def without(name: str) -> dict[str, Any]:
    return GOOD | {"annotations": {key: value for key, value in GOOD["annotations"].items() if key != name}}


@pytest.mark.parametrize(
    ("rule", "fault"),
    [
        (GOOD | {"expr": "tandem_ready =="}, "is not PromQL"),
        (GOOD | {"expr": "tandem_redy == 0"}, "reads tandem_redy, which nothing exposes or records"),
        (GOOD | {"expr": '{__name__=~"tandem_.*"} == 0'}, "must name the metric that it reads"),
        (
            GOOD | {"expr": 'tandem_text_requests_total{result="x"} > 0'},
            "asks for result of tandem_text_requests_total",
        ),
        (GOOD | {"expr": 'tandem_wait_seconds_bucket{le="0.7"} > 0'}, "asks for le=0.7 of tandem_wait_seconds_bucket"),
        (GOOD | {"expr": "rate(tandem_ready) > 0"}, "is not PromQL: expected type matrix"),
        (GOOD | {"alert": "tandem_broken"}, "must be named Tandem and what is wrong"),
        (GOOD | {"labels": {"severity": "bad"}}, "must have a severity of critical or warning"),
        (without("summary"), "must have a summary"),
        (without("description"), "must have a description"),
        (without("runbook_url"), "must have a runbook_url that ends in docs/alerts.md#tandembroken"),
        ({"record": "tandem_sum", "expr": "sum(tandem_ready)"}, "must be named tandem:what:how"),
    ],
)
def test_faults_are_named(tmp_path: Path, rule: dict[str, Any], fault: str) -> None:
    page = tmp_path / "alerts.md"
    page.write_text("## TandemBroken\n## tandem_broken\n", encoding="utf-8")
    found = rules.faults(written(tmp_path, rule), promql.own_metrics(), page)
    assert [one for one in found if fault in one], found


def test_two_rules_of_one_name_and_an_alert_that_the_runbook_lacks(tmp_path: Path) -> None:
    record = {"record": "tandem:ready:sum", "expr": "sum(tandem_ready)"}
    path = written(tmp_path, GOOD, record, record, record | {"labels": {"of": "something else"}})
    page = tmp_path / "alerts.md"
    page.write_text("# Alerts\n", encoding="utf-8")
    twice = "some: tandem:ready:sum must have a name of its own, or what it records other labels"
    lacks = "some: TandemBroken has no section in the runbook"
    assert rules.faults(path, promql.own_metrics(), page) == [lacks, twice, twice]
    assert rules.faults(written(tmp_path, GOOD), promql.own_metrics()) == []


def test_rules_may_read_what_others_record(tmp_path: Path) -> None:
    record = {"record": "tandem:ready:sum", "expr": "sum(tandem_ready)"}
    path = written(tmp_path, record, GOOD | {"expr": "tandem:ready:sum == 0"})
    assert rules.faults(path, promql.own_metrics()) == []
    assert rules.recorded(path) == {"tandem:ready:sum": None}


@pytest.mark.parametrize(
    ("write", "message"),
    [
        (lambda path: path.write_text("groups: [", encoding="utf-8"), "must be a file of Prometheus's rules"),
        (lambda path: path.write_text("groups: [{name: x, rules: [{alert: A}]}]", encoding="utf-8"), "'expr'"),
        (lambda path: path.write_text("groups: []", encoding="utf-8"), "must hold rules of Prometheus"),
        (lambda path: None, "cannot be read"),
    ],
)
def test_files_that_hold_no_rules(tmp_path: Path, write: Callable[[Path], object], message: str) -> None:
    path = tmp_path / "some.yml"
    write(path)
    with pytest.raises(ConfigError, match=message):
        rules.expressions(path)
