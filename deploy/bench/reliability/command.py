"""Runs the trials one after another, and writes down what they found."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

from deploy.bench.reliability.disconnect import disconnect
from deploy.bench.reliability.fault import fault
from deploy.bench.reliability.fuzz import fuzz
from deploy.bench.reliability.overload import overload
from deploy.bench.reliability.termination import kill, terminate
from deploy.bench.reliability.trials import Finding, Setting
from deploy.bench.report import Output, cell, console, show_environment
from deploy.bench.servers import settings_in_force
from deploy.bench.soak import PER, SoakOptions, soak
from deploy.bench.statistics import environment
from deploy.bench.verdicts import Verdict, say
from models.errors import ConfigError
from service.telemetry.cgroups import usable_cores


def watch_memory(setting: Setting) -> Finding:
    """The soak of mixed traffic."""
    options = SoakOptions(
        setting.path, setting.requests, setting.requests // 4, workers=setting.workers, seed=setting.seed
    )
    result = soak(options)
    growth = result["targets"]["growth"]
    proven = growth["value"] - 2 * growth["standard_error"]
    text = f"MB that memory grows for certain per {PER:,} requests: the slope less two standard errors"
    verdict = Verdict(text, proven, growth["bound"], {}, clean=not growth["not_answered"])
    memory = [row["rss_mb"] for row in result["rows"] if row["phase"] == "watched"]
    return Finding(
        "memory",
        "Does memory grow with the requests?",
        f"{setting.requests:,} distinct texts with mixed options (plain, HTML, alternatives, alignments, protected"
        f" spans, glossaries, sampling) after {setting.requests // 4:,} of the same kind, the result cache off.",
        [verdict],
        {
            "slope": growth["value"],
            "standard_error": growth["standard_error"],
            "first_mb": round(memory[0], 1),
            "last_mb": round(memory[-1], 1),
        },
        fault=result["fault"],
    )


TRIALS: dict[str, Callable[[Setting], Finding]] = {
    "overload": overload,
    "disconnect": disconnect,
    "terminate": terminate,
    "kill": kill,
    "fault": fault,
    "fuzz": fuzz,
    "memory": watch_memory,
}


def reliability_command(setting: Setting, names: Sequence[str], output: Output) -> bool:
    """Run trials, and print what they found. Returns whether all verdicts are good.

    Raises:
        ConfigError: an unknown trial, or a service that does not start.
        BundleError: the bundle cannot be used.
    """
    unknown = sorted(set(names) - set(TRIALS))
    if unknown:
        raise ConfigError(f"--only must name trials of {', '.join(TRIALS)}, but has {', '.join(unknown)}")
    output.check()
    findings = []
    for name in names or TRIALS:
        started = time.perf_counter()
        finding = TRIALS[name](setting)
        seconds = time.perf_counter() - started
        findings.append({**finding.mapping(), "seconds": round(seconds)})
        console(error=True).print(f"{name}: {'good' if finding.met else 'NOT good'}, {seconds:.0f} s", highlight=False)
    result: dict[str, Any] = {
        "bundle": setting.bundle.manifest.name,
        "environment": {**environment(setting.workers or usable_cores()), "settings": settings_in_force()},
        "findings": findings,
    }
    output.write(result)
    if not output.as_json:
        console().print(as_markdown(result), highlight=False, markup=False, soft_wrap=True)
    return all(finding["met"] for finding in findings)


def as_markdown(result: dict[str, Any]) -> str:
    """The findings as docs/reliability.md holds them."""
    parts = [f"Bundle {result['bundle']}. {show_environment(result['environment'])}"]
    for finding in result["findings"]:
        parts.append(f"## {finding['question']}")
        parts.append(finding["method"])
        parts.append("\n".join(f"- {say(verdict)}" for verdict in finding["verdicts"]))
        if finding["figures"]:
            shown = "; ".join(f"{name.replace('_', ' ')} {cell(value)}" for name, value in finding["figures"].items())
            parts.append(f"Measured in {finding['seconds']} s: {shown}.")
        if finding["fault"]:
            parts.append(f"What came instead: {finding['fault']}")
    return "\n\n".join(parts)
