"""Rules of Prometheus: their expressions, and what promtool does not look at.

promtool checks syntax and runs the unit tests in ``deploy/prometheus/tests``. It does not know which metrics there are,
and lets an alert pass that nobody could act on.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from deploy.checks.promql import Known, Query, expression_faults
from models.errors import ConfigError

SEVERITIES = ("critical", "warning")
_ANNOTATIONS = ("summary", "description", "runbook_url")
_RECORD = re.compile(r"tandem:[a-z_]+:[a-z0-9_]+")
_ALERT = re.compile(r"Tandem(?:[A-Z][a-z]+)+")
_RUNBOOK = re.compile(r"(?:\S*/)?docs/alerts\.md#([a-z]+)")


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule as its file has it.

    Attributes:
        file: its name without suffix.
        name: of what it records, or of the alert.
        alert: whether it is one.
        expression: PromQL.
        labels, annotations: as written.
    """

    file: str
    name: str
    alert: bool
    expression: str
    labels: dict[str, str]
    annotations: dict[str, str]


def rules(path: Path) -> list[Rule]:
    """The rules of a file, or of all ``*.yml`` in a folder.

    Raises:
        ConfigError: there are none, a file is not YAML or not of rules; PyYAML is not installed.
    """
    found = [Rule(*one) for file in rule_files(path) for one in _read(file)]
    if not found:
        raise ConfigError(f"{path} must hold rules of Prometheus, but there are none")
    return found


def rule_files(path: Path) -> list[Path]:
    """A file, or the ``*.yml`` of a folder in order."""
    return sorted(path.glob("*.yml")) if path.is_dir() else [path]


def expressions(path: Path) -> list[Query]:
    """Every expression of a file or a folder. Raises what ``rules`` raises."""
    return [Query(rule.file, rule.name, rule.expression) for rule in rules(path)]


def recorded(path: Path) -> Known:
    """The metrics that the rules of a file or a folder record. Raises what ``rules`` raises."""
    return {rule.name: None for rule in rules(path) if not rule.alert}


def faults(path: Path, metrics: Known, runbook: Path | None = None) -> list[str]:
    """What is wrong with the rules of a file or a folder, one sentence each.

    Args:
        path: of the file or the folder.
        metrics: those that are exposed; what the rules record is added.
        runbook: the page that has a section for every alert; None = not looked at.

    Raises:
        ConfigError: what ``rules`` raises; promql-parser is not installed.
    """
    found = rules(path)
    known = {**metrics, **recorded(path)}
    sections = None if runbook is None else re.findall(r"^#+ +(\w+)$", runbook.read_text(encoding="utf-8"), re.M)
    keys = [(rule.name, rule.labels if not rule.alert else {}) for rule in found]
    listed = []
    for rule in found:
        said = [*expression_faults(rule.expression, known), *_naming(rule), *_alerting(rule, sections)]
        if keys.count((rule.name, rule.labels if not rule.alert else {})) > 1:
            said.append("must have a name of its own, or what it records other labels")
        listed += [f"{rule.file}: {rule.name} {fault}" for fault in said]
    return listed


def _naming(rule: Rule) -> Iterator[str]:
    if not rule.alert and not _RECORD.fullmatch(rule.name):
        yield "must be named tandem:what:how"
    if rule.alert and not _ALERT.fullmatch(rule.name):
        yield "must be named Tandem and what is wrong, in CamelCase"


def _alerting(rule: Rule, sections: list[str] | None) -> Iterator[str]:
    if not rule.alert:
        return
    if rule.labels.get("severity") not in SEVERITIES:
        yield f"must have a severity of {' or '.join(SEVERITIES)}"
    for name in _ANNOTATIONS:
        if not rule.annotations.get(name, "").strip():
            yield f"must have a {name}"
    link = _RUNBOOK.fullmatch(rule.annotations.get("runbook_url", ""))
    if link is None or link[1] != rule.name.lower():
        yield f"must have a runbook_url that ends in docs/alerts.md#{rule.name.lower()}"
    if sections is not None and rule.name not in sections:
        yield "has no section in the runbook"


def _read(file: Path) -> Iterator[tuple[str, str, bool, str, dict[str, str], dict[str, str]]]:
    try:
        import yaml
    except ModuleNotFoundError as error:
        raise ConfigError("reading rules needs PyYAML; install the extra [dev]") from error
    try:
        content: Any = yaml.safe_load(file.read_text(encoding="utf-8"))
        for group in content["groups"]:
            for rule in group["rules"]:
                alert = "alert" in rule
                name, expression = str(rule["alert" if alert else "record"]), str(rule["expr"])
                yield file.stem, name, alert, expression, rule.get("labels", {}), rule.get("annotations", {})
    except OSError as error:
        raise ConfigError(f"{file}: cannot be read ({error.strerror})") from error
    except (yaml.YAMLError, KeyError, TypeError, AttributeError) as error:
        raise ConfigError(f"{file}: must be a file of Prometheus's rules, but is not: {error}") from error
