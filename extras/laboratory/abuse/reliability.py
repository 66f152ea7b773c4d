"""`tandem bench reliability`: runs the trials one after another, and writes down what they found."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from tandem.extras.laboratory.abuse.endings import disconnect, kill, terminate
from tandem.extras.laboratory.abuse.fuzz import fuzz
from tandem.extras.laboratory.abuse.memory import memory
from tandem.extras.laboratory.abuse.overload import overload
from tandem.extras.laboratory.abuse.trials import Setting, TrialFinding
from tandem.extras.laboratory.options import ReliabilityOptions
from tandem.extras.laboratory.service.verdicts import in_words
from tandem.extras.loadtest.server import settings_in_force
from tandem.extras.shared.report import cell, environment, names, say, show_environment
from tandem.service.telemetry.cgroups import usable_cores

TRIALS: dict[str, Callable[[Setting], TrialFinding]] = {
    "overload": overload,
    "disconnect": disconnect,
    "terminate": terminate,
    "kill": kill,
    "fuzz": fuzz,
    "memory": memory,
}


def measure(options: ReliabilityOptions) -> dict[str, Any]:
    """Run trials.

    Returns:
        ``bundle``, ``environment``, ``findings``, and ``met``: whether all verdicts are good.

    Raises:
        ConfigError: an unknown trial, or a service that does not start.
        BundleError: the bundle cannot be used.
    """
    setting, findings = Setting(options), []
    for name in names(options.only, "--only", tuple(TRIALS)) or TRIALS:
        started = time.perf_counter()
        finding = TRIALS[name](setting)
        seconds = time.perf_counter() - started
        findings.append({"name": name, **finding.mapping(), "seconds": round(seconds)})
        say(f"{name}: {'good' if finding.met else 'NOT good'}, {seconds:.0f} s", error=True)
    return {
        "bundle": setting.bundle.manifest.name,
        "environment": {**environment(options.workers or usable_cores()), "settings": settings_in_force()},
        "findings": findings,
        "met": all(finding["met"] for finding in findings),
    }


def show(result: Mapping[str, Any]) -> None:
    say(as_markdown(result))


def as_markdown(result: Mapping[str, Any]) -> str:
    """The findings as docs/reliability.md holds them."""
    parts = [f"Bundle {result['bundle']}. {show_environment(result['environment'])}"]
    for finding in result["findings"]:
        parts.append(f"## {finding['question']}")
        parts.append(finding["method"])
        parts.append("\n".join(f"- {in_words(verdict)}" for verdict in finding["verdicts"]))
        if finding["figures"]:
            shown = "; ".join(f"{name.replace('_', ' ')} {cell(value)}" for name, value in finding["figures"].items())
            parts.append(f"Measured in {finding['seconds']} s: {shown}.")
        if finding["fault"]:
            parts.append(f"What came instead: {finding['fault']}")
    return "\n\n".join(parts)
