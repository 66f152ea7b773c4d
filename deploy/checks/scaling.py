"""The metrics that the autoscaler asks for: each is made by the adapter, from metrics that the service has."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from deploy.checks.outcome import MissingTool
from deploy.checks.promql import expression_faults, own_metrics

AUTOSCALER = "base/autoscaler.yaml"
ADAPTER = "metrics-adapter.yaml"
# What the adapter fills in; any label that Prometheus adds will do for a look at the expression.
_FILLED = {"<<.LabelMatchers>>": 'instance="x"', "<<.GroupBy>>": "instance"}


def faults(folder: Path) -> list[str]:
    """What is wrong with autoscaler and adapter together.

    Args:
        folder: of the manifests.

    Raises:
        MissingTool: PyYAML is missing.
        ConfigError: promql-parser is missing.
    """
    try:
        import yaml
    except ModuleNotFoundError as error:
        raise MissingTool("PyYAML is missing: pip install pyyaml") from error
    wanted = {
        metric["pods"]["metric"]["name"]
        for document in yaml.safe_load_all((folder / AUTOSCALER).read_text(encoding="utf-8"))
        for metric in document["spec"]["metrics"]
        if metric["type"] == "Pods"
    }
    rules: list[dict[str, Any]] = yaml.safe_load((folder / ADAPTER).read_text(encoding="utf-8"))["rules"]["custom"]
    made = {rule["name"]["as"] for rule in rules}
    found = [f"{ADAPTER} does not make {name}, which {AUTOSCALER} asks for" for name in sorted(wanted - made)]
    known = own_metrics()
    for rule in rules:
        name, series = rule["name"]["as"], rule["seriesQuery"].partition("{")[0]
        if series not in known:
            found.append(f"{ADAPTER}: {name} is looked for by {series}, which the service does not expose")
        if not re.fullmatch(rule["name"]["matches"], series):
            found.append(f"{ADAPTER}: {name} must match {series}, but matches {rule['name']['matches']}")
        if missing := {"namespace", "pod"} - rule["resources"]["overrides"].keys():
            found.append(f"{ADAPTER}: {name} must be of a {' and a '.join(sorted(missing))}")
        expression = rule["metricsQuery"]
        for sign, value in _FILLED.items():
            if sign not in expression:
                found.append(f"{ADAPTER}: {name} must have {sign}")
            expression = expression.replace(sign, value)
        found += [f"{ADAPTER}: {name} {fault}" for fault in expression_faults(expression, known)]
    return found
