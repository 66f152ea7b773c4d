"""`tandem bench reliability`: runs the trials one after another, and writes down what they found."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from benchmarks.abuse.disconnect import disconnect
from benchmarks.abuse.fault import fault
from benchmarks.abuse.fuzz import fuzz
from benchmarks.abuse.overload import overload
from benchmarks.abuse.termination import kill, terminate
from benchmarks.abuse.trials import Setting, TrialFinding
from benchmarks.options import TRIALS, ReliabilityOptions, SoakOptions
from benchmarks.service import soak
from benchmarks.service.verdicts import Verdict, in_words
from deploy.loadtest.server import settings_in_force
from deploy.report import cell, environment, names, say, show_environment
from service.telemetry.cgroups import usable_cores


def watch_memory(setting: Setting) -> TrialFinding:
    """The soak of mixed traffic."""
    given = setting.options
    warm_up = given.requests // 4
    options = SoakOptions(bundle=given.bundle, requests=given.requests, warm_up=warm_up, workers=given.workers)
    result = soak.measure(options)
    growth = result["targets"]["growth"]
    proven = growth["value"] - 2 * growth["standard_error"]
    text = f"MB that memory grows for certain per {soak.PER:,} requests: the slope less two standard errors"
    memory = [row["rss_mb"] for row in result["rows"] if row["phase"] == "watched"]
    return TrialFinding(
        "memory",
        "Does memory grow with the requests?",
        f"{given.requests:,} distinct texts with mixed options (plain, HTML, alternatives, alignments, protected"
        f" spans, glossaries, sampling) after {warm_up:,} of the same kind, the result cache off.",
        [Verdict(text, proven, growth["bound"], clean=not growth["not_answered"])],
        {
            "slope": growth["value"],
            "standard_error": growth["standard_error"],
            "first_mb": round(memory[0], 1),
            "last_mb": round(memory[-1], 1),
        },
        fault=result["fault"],
    )


_RUN: tuple[Callable[[Setting], TrialFinding], ...] = (
    *(overload, disconnect, terminate, kill, fault, fuzz),
    watch_memory,
)


def measure(options: ReliabilityOptions) -> dict[str, Any]:
    """Run trials.

    Returns:
        ``bundle``, ``environment``, ``findings``, and ``met``: whether all verdicts are good.

    Raises:
        ConfigError: an unknown trial, or a service that does not start.
        BundleError: the bundle cannot be used.
    """
    wanted = names(options.only, "--only", TRIALS) or TRIALS
    trials, setting = dict(zip(TRIALS, _RUN, strict=True)), Setting(options)
    findings = []
    for name in wanted:
        started = time.perf_counter()
        finding = trials[name](setting)
        seconds = time.perf_counter() - started
        findings.append({**finding.mapping(), "seconds": round(seconds)})
        say(f"{name}: {'good' if finding.met else 'NOT good'}, {seconds:.0f} s", error=True)
    return {
        "bundle": setting.bundle.manifest.name,
        "environment": {**environment(options.workers or usable_cores()), "settings": settings_in_force()},
        "findings": findings,
        "met": all(finding["met"] for finding in findings),
    }


def show(result: Mapping[str, Any]) -> None:
    """Print the findings as docs/reliability.md holds them."""
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
