"""Rules and dashboards of Prometheus and Grafana, their PromQL, and the metrics that the service has.

promql-parser reads PromQL: promtool cannot say which metrics an expression reads.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import promql_parser
import yaml
from prometheus_client.parser import text_string_to_metric_families
from promql_parser import VectorSelector

from tandem.service.engine import Engine
from tandem.service.telemetry.metrics import Metrics

DEPLOY = Path(__file__).parents[2] / "deploy"
RULES = sorted((DEPLOY / "prometheus" / "rules").glob("*.yml"))
DASHBOARDS = sorted((DEPLOY / "grafana" / "dashboards").glob("*.json"))
Labels: TypeAlias = Mapping[str, frozenset[str]]
"""Values seen of each label."""
Known: TypeAlias = Mapping[str, Labels | None]
"""Names of samples with their labels; None = those are not known."""

VARIABLES = {"__rate_interval": "1m", "__interval": "15s", "__range": "1h", "__range_s": "3600"}
"""Those that Grafana sets, with values for a query by hand."""
DEFAULTS = {"instance": ".*", "datasource": "prometheus"}
"""Our own, as they stand when nothing is chosen."""
_VARIABLE = re.compile(r"\$\{(\w+)(?::\w+)?\}|\$(\w+)|\[\[(\w+)\]\]")

OF_PROMETHEUS: Known = dict.fromkeys(("up", "scrape_duration_seconds", "ALERTS", "ALERTS_FOR_STATE"))
"""What Prometheus makes itself."""
OF_EXTRAS: Known = dict.fromkeys(
    (
        "tandem_file_jobs",
        "tandem_file_bytes",
        "tandem_file_limit_bytes",
        "tandem_file_oldest_timestamp_seconds",
        "tandem_disk_free_bytes",
        "tandem_disk_bytes",
        "tandem_access_failures_total",
        "tandem_memory_failures_total",
    )
)
"""What extras expose where they are here; that these names are theirs is tested beside them."""
_TARGET = frozenset(("__name__", "instance", "job"))  # labels that Prometheus adds to everything that it scrapes
_SUFFIXES = {"counter": ("_total",), "histogram": ("_bucket", "_count", "_sum"), "summary": ("_count", "_sum")}


@dataclass(frozen=True, slots=True)
class Query:
    """An expression without variables, and the panel or the rule that it stands in."""

    panel: str
    expression: str


@dataclass(frozen=True, slots=True)
class Selector:
    """What an expression reads.

    Attributes:
        name: of the samples; empty where it is chosen by a pattern.
        matchers: label, operator (``=``, ``!=``, ``=~``, ``!~``) and value.
    """

    name: str
    matchers: tuple[tuple[str, str, str], ...]


def selectors(expression: str) -> list[Selector]:
    """All that an expression reads. Raises ValueError where it is not PromQL."""
    found: list[Selector] = []

    def visit(part: Any) -> None:
        if isinstance(part, VectorSelector):
            found.append(Selector(part.name or "", tuple(_matchers(part))))

    promql_parser.walk(promql_parser.parse(expression), visit)
    return found


def _matchers(selector: VectorSelector) -> Iterator[tuple[str, str, str]]:
    signs = {"Equal": "=", "NotEqual": "!=", "Re": "=~", "NotRe": "!~"}
    for matcher in selector.matchers.matchers:
        yield matcher.name, signs[str(matcher.op).rpartition(".")[2]], matcher.value


def expression_faults(expression: str, known: Known) -> list[str]:
    """Why an expression can never give what it is written for: bad grammar, metrics, labels or bounds that are not."""
    try:
        read = selectors(expression)
    except ValueError as error:
        return [f"is not PromQL: {error}"]
    return [fault for selector in read for fault in _selector_faults(selector, {**OF_PROMETHEUS, **known})]


def _selector_faults(selector: Selector, known: Known) -> Iterator[str]:
    if not selector.name:
        yield "must name the metric that it reads"
    elif selector.name not in known:
        yield f"reads {selector.name}, which nothing exposes or records"
    elif (labels := known[selector.name]) is not None:
        for label, sign, value in selector.matchers:
            if label not in labels and label not in _TARGET:
                yield f"asks for {label} of {selector.name}, which has {', '.join(sorted(labels)) or 'no labels'}"
            elif label == "le" and sign == "=" and value not in labels["le"]:
                bounds = ", ".join(sorted(labels["le"], key=float))
                yield f"asks for le={value} of {selector.name}, whose bounds are {bounds}"


def exposition(text: str) -> Known:
    """The metrics of an exposition in Prometheus's text format."""
    found: dict[str, dict[str, set[str]]] = {}
    empty: list[str] = []
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            labels = found.setdefault(sample.name, defaultdict(set))
            for label, value in sample.labels.items():
                labels[label].add(value)
        if not family.samples:
            stem = family.name
            empty += [stem + suffix for suffix in _SUFFIXES.get(family.type, ("",))]
    seen: dict[str, Labels | None] = dict.fromkeys(empty)
    for name, labels in found.items():
        seen[name] = {label: frozenset(values) for label, values in labels.items()}
    return seen


class _Nothing:
    """Readiness of a service that has done nothing, and a text service that counts one sentence."""

    ready = False
    pivoted = {("fr", "en", "de"): 1}  # noqa: RUF012
    decoded_tokens = {"first": 3, "again": 1}  # noqa: RUF012


def own_metrics() -> Known:
    """What the service exposes once it has answered a request, without a model and without a GPU."""
    nothing: Any = _Nothing()
    metrics = Metrics()
    metrics.watch(Engine(), nothing)
    metrics.watch_texts(nothing)
    metrics.note("/translate", "POST", 200, "", 0.0)
    return {**OF_EXTRAS, **exposition(metrics.render()[0].decode())}


def rules() -> list[tuple[str, dict[str, Any]]]:
    """Every rule as its file has it, with the file's name without suffix."""
    files = ((path.stem, yaml.safe_load(path.read_text(encoding="utf-8"))) for path in RULES)
    return [(stem, rule) for stem, content in files for group in content["groups"] for rule in group["rules"]]


def name_of(rule: Mapping[str, Any]) -> str:
    """Of an alert, or of what is recorded."""
    return str(rule.get("alert") or rule["record"])


def recorded() -> Known:
    """The metrics that rules record; their labels are not known."""
    return {rule["record"]: None for _, rule in rules() if "record" in rule}


def read_dashboard(path: Path) -> dict[str, Any]:
    """A dashboard as Grafana saves it."""
    content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return content


def panels(dashboard: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Rows and panels, those in collapsed rows included."""
    for panel in dashboard["panels"]:
        yield panel
        yield from panel.get("panels", ())


def queries(dashboard: Mapping[str, Any], **values: str) -> list[Query]:
    """Every query of panels and annotations, with values for its variables. Raises KeyError for one without."""
    known = VARIABLES | DEFAULTS | values
    asked = [(panel["title"], target["expr"]) for panel in panels(dashboard) for target in panel.get("targets", ())]
    asked += [(f"annotation {one['name']}", one["expr"]) for one in dashboard["annotations"]["list"] if "expr" in one]

    def value(variable: re.Match[str]) -> str:
        return known[next(filter(None, variable.groups()))]

    return [Query(title, _VARIABLE.sub(value, raw)) for title, raw in asked]
