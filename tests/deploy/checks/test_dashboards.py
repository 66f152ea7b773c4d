"""The dashboard, and the linter that looks after it."""

from __future__ import annotations

import copy
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml

from deploy.checks import dashboards, promql, rules
from deploy.checks.dashboards import Json
from models.bundle import Bundle
from models.errors import ConfigError
from tests.service.support import served, tiny_bundle

ROOT = Path(__file__).resolve().parents[3]
GRAFANA = ROOT / "deploy" / "grafana"
FILE = GRAFANA / "dashboards" / "tandem.json"
RULES = ROOT / "deploy" / "prometheus" / "rules"
SOURCE = {"type": "prometheus", "uid": "${datasource}"}


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
def bundles(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Bundle]:
    return {"de-en": tiny_bundle(tmp_path_factory.mktemp("bundles"))}


def known() -> promql.Known:
    return {**promql.own_metrics(), **rules.recorded(RULES)}


def test_our_dashboard_is_faultless() -> None:
    assert dashboards.faults(GRAFANA / "dashboards", known()) == []


@pytest.mark.anyio
async def test_every_metric_that_is_read_is_exposed_by_a_live_app(
    bundles: dict[str, Bundle], monkeypatch: pytest.MonkeyPatch
) -> None:
    """With labels, and the bounds of histograms; that of a GPU as torch would give it."""
    runtime = SimpleNamespace(device_memory=lambda: {("cuda:0", kind): 1 for kind in ("allocated", "free")})
    monkeypatch.setitem(sys.modules, "service.runtimes.torch", runtime)
    async with served(bundles) as service:
        await service.translate("guten morgen")
        await service.translate("x" * 100_000)
        live = promql.exposition((await service.client.get("/metrics")).text)
    everything = {**live, **rules.recorded(RULES)}
    assert dashboards.faults(FILE, everything) == []
    assert rules.faults(RULES, live) == []
    assert promql.own_metrics().keys() == live.keys()


def test_every_panel_of_the_request_is_there() -> None:
    """Each part of the service that can be the cause shows, and there is one query at least of every kind of metric."""
    rows = [
        panel["title"] for panel in json.loads(FILE.read_text(encoding="utf-8"))["panels"] if panel["type"] == "row"
    ]
    assert len(rows) == 11 and rows[0] == "Overview"
    read = {one.name for query in dashboards.queries(FILE, {}) for one in promql.selectors(query.expression)}
    shown = {name.removesuffix("_total").removesuffix("_bucket") for name in read}
    exposed = {name.removesuffix("_total").removesuffix("_bucket") for name in promql.own_metrics()}
    ours = {
        name for name in exposed if name.startswith("tandem_") and not name.endswith(("_created", "_count", "_sum"))
    }
    # Shares since the start, of which the dashboard has those of a time; what the table of models shows; joins.
    assert ours - shown == {"tandem_padding_share", "tandem_bundles_loaded", "tandem_sentences_joined"}


def test_grafana_finds_what_is_provisioned() -> None:
    provider = yaml.safe_load((GRAFANA / "provisioning" / "dashboards" / "tandem.yml").read_text(encoding="utf-8"))
    assert provider["providers"][0]["options"]["path"] == "/etc/grafana/dashboards"
    source = yaml.safe_load((GRAFANA / "provisioning" / "datasources" / "prometheus.yml").read_text(encoding="utf-8"))
    config = yaml.safe_load((ROOT / "deploy" / "prometheus" / "prometheus.yml").read_text(encoding="utf-8"))
    assert source["datasources"][0]["jsonData"]["timeInterval"] == config["global"]["scrape_interval"]


def test_variables_get_values() -> None:
    chosen = dashboards.queries(FILE, {"instance": "a:8000|b:8000", "__rate_interval": "5m"})
    texts = [query.expression for query in chosen]
    assert not [text for text in texts if "$" in text]
    assert any('instance=~"a:8000|b:8000"' in text and "[5m]" in text for text in texts)
    assert {query.dashboard for query in chosen} == {"Tandem"}
    assert {"Fullest queue", "annotation Starts"} <= {query.panel for query in chosen}


# --- the linter -----------------------------------------------------------------------------------------------------


def panel(number: int = 1, **changes: Any) -> Json:
    made = {
        "id": number, "title": f"Panel {number}", "type": "timeseries", "description": "What it shows.",
        "datasource": SOURCE, "gridPos": {"x": 0, "y": 8 * number, "w": 8, "h": 8},
        "fieldConfig": {"defaults": {"unit": "s"}}, "targets": [target()],
    }  # fmt: skip
    return made | changes


def target(expression: str = 'tandem_ready{instance=~"$instance"}', **changes: Any) -> Json:
    return {"refId": "A", "expr": expression, "datasource": SOURCE} | changes


def dashboard(*panels: Json) -> Json:
    variables = [
        {"name": "datasource", "type": "datasource"},
        {"name": "instance", "type": "query", "definition": 'label_values(up{job="tandem"}, instance)'},
    ]
    return {"title": "Some", "uid": "some", "panels": list(panels), "templating": {"list": variables}}


def written(folder: Path, content: Json) -> Path:
    path = folder / "some.json"
    path.write_text(dashboards.tidied(content), encoding="utf-8")
    return path


def changed(change: Callable[[Json], Any]) -> Json:
    content = copy.deepcopy(dashboard(panel(1), panel(2)))
    change(content)
    return content


def faulty() -> Iterator[tuple[Json, str]]:
    """Dashboards with one fault each, and what is said of it."""
    for changes, said in (
        ({"fieldConfig": {"defaults": {}}}, "Panel 1 must have a unit"),
        ({"description": ""}, "Panel 1 must have a description"),
        ({"targets": []}, "Panel 1 must ask for something"),
        ({"datasource": {"uid": "abc"}}, "Panel 1 must ask the data source ${datasource}"),
        ({"targets": [target(datasource={"uid": "abc"})]}, "Panel 1 must ask the data source ${datasource}"),
        ({"targets": [target(), target()]}, "Panel 1 must name each of its queries (refId) differently"),
        ({"gridPos": {"x": 20, "y": 0, "w": 8, "h": 1}}, "must end within 24 columns, but ends at 28"),
        ({"gridPos": {"x": 4, "y": 20, "w": 8, "h": 1}}, "Panel 2 lies on Panel 1"),
        ({"id": 2}, "has two panels of the id 2"),
        ({"title": "Panel 2"}, "has two panels of the title Panel 2"),
        ({"targets": [target('tandem_redy{instance=~"$instance"}')]}, "reads tandem_redy, which nothing"),
        ({"targets": [target("sum(")]}, "is not PromQL"),
        ({"targets": [target("tandem_ready")]}, 'tandem_ready must be asked for with {instance=~"$instance"}'),
        ({"targets": [target("tandem_ready > $bound")]}, "the variable $bound has no value"),
    ):
        yield dashboard(panel(1, **changes), panel(2)), said
    yield changed(lambda one: one.pop("uid")), "must have a uid"
    yield changed(lambda one: one["templating"]["list"].pop()), "must have the variable $instance"
    yield (
        changed(lambda one: one["templating"]["list"][1].update(definition="up")),
        "must ask label_values(METRIC, LABEL) for $instance",
    )
    yield (
        dashboard({"id": 9, "type": "row", "title": "R", "gridPos": {"x": 0, "y": 0, "w": 24, "h": 1},
                   "panels": [panel(1, description="")]}),
        "Panel 1 must have a description",
    )  # fmt: skip


@pytest.mark.parametrize(("content", "said"), [pytest.param(*one, id=one[1]) for one in faulty()])
def test_faults_are_named(tmp_path: Path, content: Json, said: str) -> None:
    found = dashboards.faults(written(tmp_path, content), known())
    assert len(found) == 1 and said in found[0], found


def test_a_good_dashboard_has_no_fault(tmp_path: Path) -> None:
    recorded = panel(3, targets=[target("tandem:failed:ratio5m")])
    assert dashboards.faults(written(tmp_path, dashboard(panel(1), panel(2), recorded)), known()) == []


def test_what_grafana_exports_becomes_what_is_kept(tmp_path: Path) -> None:
    kept = written(tmp_path, dashboard(panel(1)))
    before = kept.read_text(encoding="utf-8")
    exported = {"version": 7, "id": 12, "iteration": 3, "__inputs": [], **dashboard(panel(1, pluginVersion="11.0"))}
    kept.write_text(json.dumps(exported), encoding="utf-8")
    assert dashboards.faults(kept, known()) == [
        "some.json: is not in order; run python -m deploy.checks.dashboards some.json"
    ]
    dashboards.main([str(kept)])
    assert kept.read_text(encoding="utf-8") == before


@pytest.mark.parametrize(("text", "message"), [("{", "must be JSON"), ("[]", "a dashboard"), (None, "cannot be read")])
def test_files_that_are_no_dashboards(tmp_path: Path, text: str | None, message: str) -> None:
    path = tmp_path / "some.json"
    if text is not None:
        path.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError, match=message):
        dashboards.queries(path, {})


def test_a_variable_without_a_value_is_named(tmp_path: Path) -> None:
    path = written(tmp_path, dashboard(panel(1, targets=[target("tandem_ready > ${bound:raw}")])))
    with pytest.raises(ConfigError, match=r"Panel 1: the variable \$bound has no value; known are __interval"):
        dashboards.queries(path, {})
    (query,) = dashboards.queries(path, {"bound": "3"})
    assert query == promql.Query("Some", "Panel 1", "tandem_ready > 3")
