"""How the findings are shown: JSON for programs, tables for people."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict

from rich.console import Group
from rich.table import Table
from rich.text import Text

from deploy.doctor.bundles import Examined, Measurement
from deploy.doctor.checks import Check, Facts, can_serve, counted
from service.bundles.probe import BatchTiming

_STYLES = {"ok": "green", "warning": "yellow", "fault": "bold red"}


def as_json(facts: Facts, checks: list[Check]) -> str:
    """Everything as one JSON object: ``can_serve``, ``checks``, and the facts by their names."""
    found = {"can_serve": can_serve(checks), "checks": [asdict(check) for check in checks], **asdict(facts)}
    return json.dumps(found, indent=1, ensure_ascii=False, allow_nan=False)


def as_tables(facts: Facts, checks: list[Check]) -> Group:
    """Everything for a terminal, the verdicts last."""
    parts = [_machine(facts), _bundles(facts)]
    if any(one.measurements for one in facts.bundles):
        parts.append(_speed(facts))
    return Group(*parts, _checks(checks), _verdict(checks))


def _machine(facts: Facts) -> Table:
    table = _table("this machine")
    for key, value in _described(facts):
        table.add_row(key, Text(value))
    return table


def _described(facts: Facts) -> Iterator[tuple[str, str]]:
    processor, memory, settings = facts.processor, facts.memory, facts.settings
    yield "processor", f"{processor.name} ({processor.architecture})"
    quota = "no quota" if processor.quota is None else f"quota {processor.quota:g}"
    yield "cores", f"{processor.usable_cores} usable: {processor.affine_cores} of {processor.cores} assigned, {quota}"
    yield "features", _features(processor.features)
    limit = "no limit" if memory.limit is None else f"limit {_size(memory.limit)}"
    yield "memory", f"{_size(memory.total)}, {_size(memory.available)} available, {limit}"
    yield "GPU", "; ".join(facts.gpu.nvidia_smi or facts.gpu.torch_devices or ("none found",))
    yield "ONNX Runtime has", ", ".join(facts.gpu.onnxruntime_providers) or "nothing: it is not installed"
    yield "versions", ", ".join(f"{name} {number}" for name, number in facts.versions.items())
    yield "clock", f"{facts.clock.source or 'source not known'}, resolution {facts.clock.resolution * 1e9:g} ns"
    yield "settings", f"runtime {settings.runtime}, precision {settings.precision}, {_workers(facts)}"
    yield "address", f"{settings.host}:{settings.port}"


def _workers(facts: Facts) -> str:
    return f"{counted(facts.settings.workers, 'worker')} of {counted(facts.settings.threads, 'thread')} each"


def _features(features: Mapping[str, bool]) -> str:
    if not features:
        return "not known"
    having = " ".join(name for name, there in features.items() if there) or "none that matter"
    lacking = " ".join(name for name, there in features.items() if not there)
    return f"{having}; without {lacking}" if lacking else having


def _bundles(facts: Facts) -> Table:
    table = _table("bundles", "bundle", "what", "graphs", "size", "served on", "why")
    for one in facts.bundles:
        graphs = ", ".join(name + (" (proven)" if name in one.proven else "") for name in one.precisions)
        what = " ".join(word for word in (one.task, one.languages, one.architecture) if word)
        state = "FAULTY" if one.faults else str(one.served or "the fastest")
        row = (one.name or one.path, what, graphs, _size(one.bytes), state, "; ".join(one.faults) or one.why)
        table.add_row(*(Text(cell) for cell in row))
    return table


def _speed(facts: Facts) -> Table:
    table = _table("milliseconds, beam 5, 23 tokens", "bundle", "runtime", "sentences", "encode", "step", "a sentence")
    for column in table.columns[2:]:
        column.justify = "right"
    for bundle in facts.bundles:
        for one in bundle.measurements:
            for cells in _speed_rows(bundle, one):
                table.add_row(*(Text(cell) for cell in cells))
    return table


def _speed_rows(bundle: Examined, one: Measurement) -> Iterator[tuple[str, ...]]:
    heading = bundle.name, f"{one.runtime} {one.precision}"
    if one.error:
        yield *heading, "", "", "", "cannot be used"
    for timing in one.batches:
        yield *heading, str(timing.sentences), *(f"{value:.3g}" for value in _figures(timing))


def _figures(timing: BatchTiming) -> tuple[float, ...]:
    return timing.encode_ms, timing.step_ms, timing.sentence_ms


def _checks(checks: list[Check]) -> Table:
    table = _table("checks", "check", "verdict", "finding", "what to do")
    for check in checks:
        verdict = Text(check.verdict, _STYLES[check.verdict])
        table.add_row(Text(check.name), verdict, Text(check.message), Text(check.remedy))
    return table


def _verdict(checks: list[Check]) -> Text:
    faults, warnings = (sum(check.verdict == kind for check in checks) for kind in ("fault", "warning"))
    counts = f"{counted(faults, 'fault')}, {counted(warnings, 'warning')}"
    if can_serve(checks):
        return Text(f"tandem serve can serve here: {counts}", "bold green")
    return Text(f"tandem serve cannot serve here: {counts}", "bold red")


def _table(title: str, *columns: str) -> Table:
    table = Table(title=title, title_justify="left", show_header=bool(columns))
    for column in columns or ("", ""):
        table.add_column(column, overflow="fold")
    return table


def _size(size: int | None) -> str:
    if size is None:
        return "not known"
    return f"{size / 2**30:.1f} GiB" if size >= 2**30 else f"{size / 2**20:.1f} MiB"
