"""Rules, dashboards and the metrics that they read. promtool reads the rules and runs their tests (deploy/check.sh)."""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from collections.abc import Mapping
from itertools import combinations
from types import SimpleNamespace
from typing import Any

import pytest
import yaml

from tandem.models.bundle import Bundle
from tandem.service.telemetry.metrics import TEXT_SECONDS
from tests.deploy.promql import (
    DASHBOARDS,
    DEFAULTS,
    DEPLOY,
    OF_EXTRAS,
    RULES,
    Known,
    exposition,
    expression_faults,
    name_of,
    own_metrics,
    panels,
    queries,
    read_dashboard,
    recorded,
    rules,
    selectors,
)
from tests.service.support import served, tiny_bundle

RUNBOOK = (DEPLOY.parent / "docs" / "alerts.md").read_text(encoding="utf-8")
ALERTS = [rule for _, rule in rules() if "alert" in rule]
SOURCE = "${datasource}"
WITHOUT_QUERY = ("row", "text", "alertlist")
ADDED_BY_GRAFANA = {"id", "iteration", "version", "__inputs", "__elements", "__requires"}


@pytest.fixture(scope="module")
def bundles(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Bundle]:
    return {"de-en": tiny_bundle(tmp_path_factory.mktemp("bundles"))}


@pytest.fixture(params=DASHBOARDS, ids=lambda path: str(path.stem))
def dashboard(request: pytest.FixtureRequest) -> dict[str, Any]:
    return read_dashboard(request.param)


@pytest.fixture
def shown(dashboard: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The panels that ask for something."""
    return [panel for panel in panels(dashboard) if panel["type"] not in WITHOUT_QUERY]


def faults(known: Known) -> list[str]:
    """What rules and dashboards read in vain."""
    asked = [(name_of(rule), rule["expr"]) for _, rule in rules()]
    asked += [(query.panel, query.expression) for path in DASHBOARDS for query in queries(read_dashboard(path))]
    everything = {**known, **recorded()}
    return [f"{place}: {fault}" for place, text in asked for fault in expression_faults(text, everything)]


# --- metrics --------------------------------------------------------------------------------------------------------


def test_what_rules_and_dashboards_read_is_exposed_or_recorded() -> None:
    """Metrics, labels, and the bounds of histograms."""
    assert faults(own_metrics()) == []


@pytest.mark.parametrize(
    ("expression", "fault"),
    [
        ("tandem_ready ==", "is not PromQL"),
        ("rate(tandem_ready) > 0", "is not PromQL: expected type matrix"),
        ("tandem_redy == 0", "reads tandem_redy, which nothing exposes or records"),
        ('{__name__=~"tandem_.*"} == 0', "must name the metric that it reads"),
        ('tandem_text_requests_total{result="x"} > 0', "asks for result of tandem_text_requests_total"),
        ('tandem_wait_seconds_bucket{le="0.7"} > 0', "asks for le=0.7 of tandem_wait_seconds_bucket"),
        ('tandem_ready{job="tandem"} == 0', None),
    ],
)
def test_an_expression_that_reads_in_vain_is_seen(expression: str, fault: str | None) -> None:
    found = expression_faults(expression, own_metrics())
    assert [one for one in found if fault and fault in one] if fault else found == []


@pytest.mark.anyio
async def test_every_metric_that_is_read_is_exposed_by_a_live_app(
    bundles: dict[str, Bundle], monkeypatch: pytest.MonkeyPatch
) -> None:
    """With labels, and the bounds of histograms; that of a GPU as torch would give it."""
    counted = ("captures", "capture_failures", "evictions", "replays", "eager_steps", "sentences")
    further = ("step_seconds", "unlisted", "out_of_memory")
    work = SimpleNamespace(**dict.fromkeys((*counted, *further), 1), routed={"sampling": 1})
    runtime = SimpleNamespace(
        device_memory=lambda: {("cuda:0", kind): 1 for kind in ("allocated", "free")},
        device_work=lambda: [("cuda:0", work)],
    )
    monkeypatch.setitem(sys.modules, "tandem.service.runtimes.torch", runtime)
    async with served(bundles) as service:
        await service.translate("guten morgen")
        await service.translate("x" * 100_000)
        live = exposition((await service.client.get("/metrics")).text)
    assert faults({**OF_EXTRAS, **live}) == []
    assert own_metrics().keys() == {*live, *OF_EXTRAS}


# --- rules ----------------------------------------------------------------------------------------------------------


def test_rules_have_names_of_their_own() -> None:
    names = Counter((name_of(rule), str(rule.get("labels") if "record" in rule else None)) for _, rule in rules())
    assert [key for key, count in names.items() if count > 1] == []
    assert [name for name in recorded() if not re.fullmatch(r"tandem:[a-z_]+:[a-z0-9_]+", name)] == []


@pytest.mark.parametrize("alert", ALERTS, ids=name_of)
def test_an_alert_says_what_to_do(alert: Mapping[str, Any]) -> None:
    name, notes = alert["alert"], alert["annotations"]
    assert re.fullmatch(r"Tandem(?:[A-Z][a-z]+)+", name)
    assert alert["labels"]["severity"] in ("critical", "warning")
    assert notes["summary"].strip() and notes["description"].strip()
    assert re.fullmatch(rf"(?:\S*/)?docs/alerts\.md#{name.lower()}", notes["runbook_url"])


def test_the_runbook_has_a_section_for_every_alert_and_no_other() -> None:
    assert sorted(re.findall(r"^## (Tandem\w+)$", RUNBOOK, re.MULTILINE)) == sorted(map(name_of, ALERTS))


def test_every_alert_is_seen_to_fire_in_a_test() -> None:
    fired = {
        case["alertname"]
        for file in sorted((DEPLOY / "prometheus" / "tests").glob("*.yml"))
        for test in yaml.safe_load(file.read_text(encoding="utf-8"))["tests"]
        for case in test.get("alert_rule_test", ())
        if case["exp_alerts"]
    }
    assert fired == set(map(name_of, ALERTS))


def test_the_objective_is_a_bound_of_the_histogram() -> None:
    """A share of requests within a second is counted, not guessed between two bounds."""
    bad = [rule["expr"] for file, rule in rules() if file == "slo" and name_of(rule) == "tandem:slo_bad:rate5m"]
    read = [found for expression in bad for found in selectors(expression)]
    (slow,) = (found for found in read if found.name == "tandem_text_request_seconds_bucket")
    assert ("le", "=", "1.0") in slow.matchers and 1.0 in TEXT_SECONDS


def test_prometheus_reads_these_rules_and_its_times_are_what_they_count_on() -> None:
    config = yaml.safe_load((DEPLOY / "prometheus" / "prometheus.yml").read_text(encoding="utf-8"))
    assert RULES and config["rule_files"] == ["/etc/prometheus/rules/*.yml"]
    assert "tandem" in [job["job_name"] for job in config["scrape_configs"]]
    groups = yaml.safe_load((DEPLOY / "prometheus" / "rules" / "slo.yml").read_text(encoding="utf-8"))["groups"]
    assert {group["name"]: group.get("interval") for group in groups}["tandem-slo"] == "15s"
    counted = [rule["expr"] for file, rule in rules() if file == "alerts" and "tandem:slo_bad" in rule["expr"]]
    assert counted and all("]) * 15 >= 10" in expression for expression in counted)


# --- dashboards -----------------------------------------------------------------------------------------------------


def test_a_dashboard_is_kept_in_order(dashboard: Mapping[str, Any], request: pytest.FixtureRequest) -> None:
    """As docs/alerts.md has jq write it: without what Grafana adds, so that differences stay small."""
    (path,) = (path for path in DASHBOARDS if read_dashboard(path) == dashboard)
    text = path.read_text(encoding="utf-8")
    assert text == json.dumps(dashboard, indent=2, sort_keys=True, ensure_ascii=False) + "\n"
    assert not ADDED_BY_GRAFANA & dashboard.keys() and '"pluginVersion"' not in text
    assert dashboard["uid"], "links to it must last"


def test_its_variables_ask_for_values(dashboard: Mapping[str, Any]) -> None:
    variables = {variable["name"]: variable for variable in dashboard["templating"]["list"]}
    assert variables.keys() >= DEFAULTS.keys()
    for variable in variables.values():
        if variable["type"] == "query":
            asked = re.fullmatch(r"label_values\((.+),\s*\w+\)", variable["definition"])
            assert asked and selectors(asked[1]), variable["name"]


def test_panels_have_a_place_and_a_name_of_their_own(dashboard: Mapping[str, Any]) -> None:
    every = [*panels(dashboard)]
    for key in ("id", "title"):
        assert len({panel[key] for panel in every}) == len(every), key
    for siblings in (dashboard["panels"], *(panel.get("panels", []) for panel in dashboard["panels"])):
        assert all(panel["gridPos"]["x"] + panel["gridPos"]["w"] <= 24 for panel in siblings)
        for one, other in combinations(siblings, 2):
            assert not _overlap(one["gridPos"], other["gridPos"]), (one["title"], other["title"])


def _overlap(one: Mapping[str, int], other: Mapping[str, int]) -> bool:
    return all(
        one[start] < other[start] + other[size] and other[start] < one[start] + one[size]
        for start, size in (("x", "w"), ("y", "h"))
    )


def test_panels_can_be_read(shown: list[dict[str, Any]]) -> None:
    for panel in shown:
        title, targets = panel["title"], panel["targets"]
        assert panel["fieldConfig"]["defaults"]["unit"] and panel["description"] and targets, title
        assert len({target["refId"] for target in targets}) == len(targets), title
        assert {one["datasource"]["uid"] for one in (panel, *targets)} == {SOURCE}, title


def test_panels_follow_the_choice_of_instances(dashboard: Mapping[str, Any]) -> None:
    for query in queries(dashboard, instance="CHOSEN"):
        for found in selectors(query.expression):
            if ":" not in found.name and found.name != "ALERTS":  # those are of all instances together
                assert ("instance", "=~", "CHOSEN") in found.matchers, query


def test_every_part_of_the_service_shows() -> None:
    """Each that can be the cause has a row, and there is one query at least of every kind of metric."""
    dashboard = read_dashboard(DEPLOY / "grafana" / "dashboards" / "tandem.json")
    rows = [panel["title"] for panel in dashboard["panels"] if panel["type"] == "row"]
    assert len(rows) == 11 and rows[0] == "Overview"
    read = {found.name for query in queries(dashboard) for found in selectors(query.expression)}
    shown = {name.removesuffix("_total").removesuffix("_bucket") for name in read}
    exposed = {name.removesuffix("_total").removesuffix("_bucket") for name in own_metrics()}
    ours = {
        name for name in exposed if name.startswith("tandem_") and not name.endswith(("_created", "_count", "_sum"))
    }
    # Shares since the start, of which the dashboard has those of a time; what the table of models shows; joins.
    assert ours - shown == {"tandem_padding_share", "tandem_bundles_loaded", "tandem_sentences_joined"}


def test_grafana_finds_what_is_provisioned() -> None:
    def read(name: str) -> Any:
        return yaml.safe_load((DEPLOY / name).read_text(encoding="utf-8"))

    provider = read("grafana/provisioning/dashboards/tandem.yml")["providers"][0]
    assert provider["options"]["path"] == "/etc/grafana/dashboards"
    source = read("grafana/provisioning/datasources/prometheus.yml")["datasources"][0]
    assert source["jsonData"]["timeInterval"] == read("prometheus/prometheus.yml")["global"]["scrape_interval"]


# --- autoscaler -----------------------------------------------------------------------------------------------------


def test_the_adapter_makes_what_the_autoscaler_asks_for_of_metrics_that_are_exposed() -> None:
    folder = DEPLOY / "kubernetes"
    autoscaler = yaml.safe_load((folder / "base" / "autoscaler.yaml").read_text(encoding="utf-8"))
    made = yaml.safe_load((folder / "metrics-adapter.yaml").read_text(encoding="utf-8"))["rules"]["custom"]
    wanted = {metric["pods"]["metric"]["name"] for metric in autoscaler["spec"]["metrics"] if metric["type"] == "Pods"}
    assert wanted and wanted <= {rule["name"]["as"] for rule in made}
    known = own_metrics()
    for rule in made:
        series, expression = rule["seriesQuery"].partition("{")[0], rule["metricsQuery"]
        assert series in known and re.fullmatch(rule["name"]["matches"], series)
        assert {"namespace", "pod"} <= rule["resources"]["overrides"].keys()
        assert "<<.LabelMatchers>>" in expression and "<<.GroupBy>>" in expression
        filled = expression.replace("<<.LabelMatchers>>", 'instance="x"').replace("<<.GroupBy>>", "instance")
        assert expression_faults(filled, known) == []
