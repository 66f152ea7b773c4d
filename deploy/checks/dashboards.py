"""Grafana's dashboards: their queries, and what makes one that people can read and change.

The JSON itself is the source: who wants another panel makes it in Grafana, saves the dashboard's JSON to the file and
runs ``python -m deploy.checks.dashboards FILE``, which leaves out what Grafana adds and puts the rest in order. (A
generator, in Grafana's foundation SDK for instance, would make every such change be done again in Python.) No linter of
dashboards is to be had as a Python package, and Grafana's own is a Go program that knows no metrics.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TypeAlias

from deploy.checks.promql import Known, Query, expression_faults, selectors
from models.errors import ConfigError

Json: TypeAlias = dict[str, Any]

BUILT_IN: Mapping[str, str] = {"__rate_interval": "1m", "__interval": "15s", "__range": "1h", "__range_s": "3600"}
"""Variables that Grafana sets, with values for a query by hand."""
DEFAULTS: Mapping[str, str] = {"instance": ".*", "datasource": "prometheus"}
"""Our own, as they stand when nothing is chosen."""
_VARIABLE = re.compile(r"\$\{(\w+)(?::\w+)?\}|\$(\w+)|\[\[(\w+)\]\]")
_LABEL_VALUES = re.compile(r"label_values\((.+),\s*\w+\)")
_ADDED = ("id", "iteration", "version", "__inputs", "__elements", "__requires")  # by Grafana, when it exports
_WITHOUT_UNIT = ("row", "text", "alertlist")
_WITHOUT_QUERY = ("row", "text", "alertlist")
_COLUMNS = 24


def queries(path: Path, variables: Mapping[str, str]) -> list[Query]:
    """Every query of a dashboard, or of all ``*.json`` in a folder, with values for its variables.

    Args:
        path: of the file or the folder.
        variables: by name without ``$``; Grafana's own, ``instance`` and ``datasource`` have values already.

    Raises:
        ConfigError: a file is no dashboard, or a query has a variable without a value.
    """
    given = {**BUILT_IN, **DEFAULTS, **variables}
    found = []
    for file in dashboard_files(path):
        dashboard = _read(file)
        for panel, expression in _expressions(dashboard):
            found.append(Query(dashboard["title"], panel, _filled(expression, given, f"{file}: {panel}")))
    return found


def dashboard_files(path: Path) -> list[Path]:
    """A file, or the ``*.json`` of a folder in order."""
    return sorted(path.glob("*.json")) if path.is_dir() else [path]


def faults(path: Path, metrics: Known) -> list[str]:
    """What is wrong with a dashboard, or with all of a folder, one sentence each.

    Args:
        path: of the file or the folder.
        metrics: those that are exposed or recorded, as ``promql.own_metrics`` and ``rules.recorded`` give them.

    Raises:
        ConfigError: a file is no dashboard; promql-parser is not installed.
    """
    found = []
    for file in dashboard_files(path):
        dashboard = _read(file)
        said = [*_frame_faults(dashboard), *_layout_faults(dashboard), *_query_faults(dashboard, metrics)]
        for panel in _panels(dashboard):
            said += [f"{_name(panel)} {fault}" for fault in _panel_faults(panel)]
        if file.read_text(encoding="utf-8") != tidied(dashboard):
            said.append(f"is not in order; run python -m deploy.checks.dashboards {file.name}")
        found += [f"{file.name}: {fault}" for fault in said]
    return found


def tidied(dashboard: Json) -> str:
    """A dashboard as it is kept: without what Grafana adds when it exports, ordered so that differences stay small."""
    kept = {key: value for key, value in dashboard.items() if key not in _ADDED}
    return json.dumps(_without(kept, "pluginVersion"), indent=2, sort_keys=True, ensure_ascii=False) + "\n"


def _without(value: Any, unwanted: str) -> Any:
    if isinstance(value, dict):
        return {key: _without(item, unwanted) for key, item in value.items() if key != unwanted}
    return [_without(item, unwanted) for item in value] if isinstance(value, list) else value


def _read(file: Path) -> Json:
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"{file}: cannot be read ({error.strerror})") from error
    except ValueError as error:
        raise ConfigError(f"{file}: must be JSON, but is not: {error}") from error
    if not isinstance(content, dict) or not isinstance(content.get("panels"), list) or "title" not in content:
        raise ConfigError(f"{file}: must be a dashboard with a title and panels, as Grafana saves it")
    return content


def _panels(dashboard: Json) -> Iterator[Json]:
    """Rows and panels, those in collapsed rows included."""
    for panel in dashboard["panels"]:
        yield panel
        yield from panel.get("panels", ())


def _name(panel: Json) -> str:
    return str(panel.get("title") or f"panel {panel.get('id')}")


def _expressions(dashboard: Json) -> Iterator[tuple[str, str]]:
    """What asks and its PromQL, with variables: panels and annotations."""
    for panel in _panels(dashboard):
        for target in panel.get("targets", ()):
            yield _name(panel), str(target.get("expr", ""))
    for annotation in dashboard.get("annotations", {}).get("list", ()):
        if "expr" in annotation:
            yield f"annotation {annotation['name']}", str(annotation["expr"])


def _filled(expression: str, values: Mapping[str, str], where: str) -> str:
    def value(match: re.Match[str]) -> str:
        name = next(group for group in match.groups() if group)
        if name not in values:
            raise ConfigError(f"{where}: the variable ${name} has no value; known are {', '.join(sorted(values))}")
        return values[name]

    return _VARIABLE.sub(value, expression)


def _frame_faults(dashboard: Json) -> Iterator[str]:
    variables = {one.get("name"): one for one in dashboard.get("templating", {}).get("list", ())}
    for name in DEFAULTS:
        if name not in variables:
            yield f"must have the variable ${name}"
    if not dashboard.get("uid"):
        yield "must have a uid, so that links to it last"
    for name, variable in variables.items():
        inner = _LABEL_VALUES.fullmatch(str(variable.get("definition", "")))
        if variable.get("type") == "query" and (inner is None or not selectors(inner[1])):
            yield f"must ask label_values(METRIC, LABEL) for ${name}"


def _layout_faults(dashboard: Json) -> Iterator[str]:
    identifiers = [str(panel.get("id")) for panel in _panels(dashboard)]
    titles = [_name(panel) for panel in _panels(dashboard)]
    for kind, values in (("id", identifiers), ("title", titles)):
        for value in sorted({value for value in values if values.count(value) > 1}):
            yield f"has two panels of the {kind} {value}"
    for siblings in (dashboard["panels"], *(panel.get("panels", ()) for panel in dashboard["panels"])):
        taken: dict[tuple[int, int], str] = {}
        for panel in siblings:
            place = panel["gridPos"]
            if place["x"] + place["w"] > _COLUMNS:
                yield f"{_name(panel)} must end within {_COLUMNS} columns, but ends at {place['x'] + place['w']}"
            cells = [(x, y) for x in range(place["x"], place["x"] + place["w"])
                     for y in range(place["y"], place["y"] + place["h"])]  # fmt: skip
            for other in sorted({taken[cell] for cell in cells if cell in taken}):
                yield f"{_name(panel)} lies on {other}"
            taken.update(dict.fromkeys(cells, _name(panel)))


def _panel_faults(panel: Json) -> Iterator[str]:
    if panel["type"] not in _WITHOUT_UNIT and not panel.get("fieldConfig", {}).get("defaults", {}).get("unit"):
        yield "must have a unit"
    if panel["type"] in _WITHOUT_QUERY:
        return
    if not panel.get("description"):
        yield "must have a description"
    targets = panel.get("targets", ())
    if not targets:
        yield "must ask for something"
    if len({target.get("refId") for target in targets}) < len(targets):
        yield "must name each of its queries (refId) differently"
    for one in (panel, *targets):
        if one.get("datasource", {}).get("uid") != "${datasource}":
            yield "must ask the data source ${datasource}"


def _query_faults(dashboard: Json, metrics: Known) -> Iterator[str]:
    names = {str(one.get("name")): "x" for one in dashboard.get("templating", {}).get("list", ())}
    for panel, raw in _expressions(dashboard):
        try:
            expression = _filled(raw, {**BUILT_IN, **names, **DEFAULTS}, panel)
        except ConfigError as error:
            yield str(error)
            continue
        said = expression_faults(expression, metrics)
        yield from (f"{panel}: {expression} {fault}" for fault in said)
        if not said:
            yield from (f'{panel}: {name} must be asked for with {{instance=~"$instance"}}' for name in _deaf(raw))


def _deaf(raw: str) -> list[str]:
    """Metrics of single instances that do not follow the choice of instances."""
    marked = _filled(raw, {**BUILT_IN, **DEFAULTS, "instance": "CHOSEN"}, "")
    return [
        selector.name
        for selector in selectors(marked)
        if ":" not in selector.name and selector.name != "ALERTS"
        if ("instance", "=~", "CHOSEN") not in selector.matchers
    ]


def main(arguments: list[str]) -> None:
    """Put dashboards in order. Raises ConfigError where a file is none."""
    for file in map(Path, arguments):
        file.write_text(tidied(_read(file)), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
