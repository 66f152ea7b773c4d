"""PromQL of dashboards and rules: which metrics it reads, and whether the service has them.

promql-parser reads it: the parser of GreptimeDB, typed and kept up with Prometheus's grammar. promtool checks grammar
too, but it is no Python package, and it cannot say which metrics an expression reads; regular expressions confuse
metrics with labels and functions.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from prometheus_client.parser import text_string_to_metric_families

from models.errors import ConfigError
from service.engine import Engine
from service.files.records import Holdings
from service.telemetry.metrics import Metrics

if TYPE_CHECKING:
    from promql_parser import VectorSelector

Labels: TypeAlias = Mapping[str, frozenset[str]]
"""Values seen of each label."""
Known: TypeAlias = Mapping[str, Labels | None]
"""Names of samples with their labels; None = those are not known."""

OF_PROMETHEUS: Known = dict.fromkeys(("up", "scrape_duration_seconds", "ALERTS", "ALERTS_FOR_STATE"))
"""What Prometheus makes itself."""
_TARGET = frozenset(("__name__", "instance", "job"))  # labels that Prometheus adds to everything that it scrapes
_SUFFIXES = {"counter": ("_total",), "histogram": ("_bucket", "_count", "_sum"), "summary": ("_count", "_sum")}


@dataclass(frozen=True, slots=True)
class Query:
    """An expression and where it stands.

    Attributes:
        dashboard: its title, or the name of a file of rules.
        panel: its title, or the name of a rule.
        expression: PromQL without variables.
    """

    dashboard: str
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
    """All that an expression reads.

    Raises:
        ValueError: it is not PromQL.
        ConfigError: promql-parser is not installed.
    """
    try:
        import promql_parser
    except ModuleNotFoundError as error:
        raise ConfigError("checking PromQL needs promql-parser; install the extra [dev]") from error
    found: list[Selector] = []

    def visit(part: Any) -> None:
        if isinstance(part, promql_parser.VectorSelector):
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
    """Files and readiness of a service that has done nothing."""

    ready = False
    counts: dict[str, int] = {}  # noqa: RUF012
    holdings = Holdings(0, 0, 0)
    most_bytes = 0
    disk = (0, 0)


def own_metrics() -> Known:
    """What the service exposes once it has answered a request, without a model and without a GPU."""
    nothing, metrics = _Nothing(), Metrics()
    metrics.watch(Engine(), nothing)
    metrics.watch_files(nothing)
    metrics.note("/translate", "POST", 200, "", 0.0)
    return exposition(metrics.render()[0].decode())
