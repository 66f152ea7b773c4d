"""The results of `tandem bench decode` for people: tables, and curves as PNG."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.curves import draw_curves
from deploy.report import cell, console, show_environment, table

_TITLES = {
    "forced": "Forced lengths: every batch decodes its mean source length",
    "text": "Real text: sentences stop by themselves",
}
_COLUMNS = {
    "name": "system",
    "batch": "batch",
    "threads": "threads",
    "sentences": "sentences",
    "target_tokens": "target tokens",
    "sentences_per_s": "sentences/s",
    "spread": "± IQR",
    "tokens_per_s": "tokens/s",
    "decode_sentences_per_s": "decoding alone",
    "p50_ms": "p50 ms",
    "p95_ms": "p95 ms",
    "bleu": "BLEU",
    "loaded": "MB loaded",
    "peak": "MB peak",
}
_QUALITY = {
    "name": "system",
    "workload": "work",
    "sentences": "sentences",
    "mean": "log-probability",
    "float32_search_mean": "of the float32 search",
    "difference": "difference",
    "normalised_difference": "difference, normalised",
    "identical": "equal hypotheses",
}


def show(result: Mapping[str, Any]) -> None:
    """Print the environment, a table for each kind of work, the phases, and the quality of the search."""
    screen, settings = console(), result["settings"]
    rows = [row for row in result["rows"] if not row["skipped"]]
    screen.print(show_environment(result["environment"]), highlight=False)
    for work, title in _TITLES.items():
        own = [_flat(row) for row in rows if row["workload"] == work]
        if own:
            ratios = {name: f"times {name}" for row in own for name in row["against"] or ()}
            heading = f"{title}; beam {settings['beam']}, medians of {settings['passes']} passes"
            screen.print(table(heading, _COLUMNS | ratios, own))
    models = dict.fromkeys((_system(row), row["model"]) for row in rows)
    screen.print("\n".join(f"{name}: {model}" for name, model in models), highlight=False)
    if phases := [_phases(row) for row in rows if "step" in row["phases"]]:
        names = dict.fromkeys(name for row in phases for name in row)
        screen.print(table("Phases: microseconds of a sentence (of a step)", {name: name for name in names}, phases))
    if quality := [{**row, **row["rescored"], "name": name_of(row)} for row in rows if row["rescored"]]:
        screen.print(table("Search: hypotheses judged by the float32 model", _QUALITY, quality))
    skipped = [f"{r['system']}, {r['workload']}: {r['skipped']}" for r in result["rows"] if r["skipped"]]
    for note in [*skipped, *result["notes"]]:
        screen.print(note, highlight=False)


def name_of(row: Mapping[str, Any]) -> str:
    """What a row is called: of real text with its model, since there the systems' models differ."""
    return f"{_system(row)}, {row['model']}" if row["workload"] == "text" else _system(row)


def _system(row: Mapping[str, Any]) -> str:
    return " ".join([row["system"], row["precision"], *(["shortlist"] if row["shortlist"] else [])])


def _flat(row: Mapping[str, Any]) -> dict[str, Any]:
    return {**row, **(row["memory_mb"] or {}), **(row["against"] or {}), "name": name_of(row)}


def _phases(row: Mapping[str, Any]) -> dict[str, Any]:
    cells = {
        phase: cell(spent["us_per_sentence"])
        + (f" ({cell(spent['us_per_step'])})" if spent["us_per_step"] is not None else "")
        for phase, spent in row["phases"].items()
    }
    return {"system": name_of(row), "work": row["workload"], "batch": row["batch"], **cells}


def draw(result: Mapping[str, Any], folder: Path) -> list[Path]:
    """Throughput by batch size for each kind of work, and the cost of a sentence by its length.

    Returns:
        The files in the folder.
    """
    measured = [row for row in result["rows"] if not row["skipped"]]
    written = []
    for work in dict.fromkeys(row["workload"] for row in measured):
        speeds: dict[str, list[tuple[float, float]]] = defaultdict(list)
        for row in measured:
            if row["workload"] == work:
                speeds[name_of(row)].append((row["batch"], row["sentences_per_s"]))
        path = folder / f"throughput-{work}.png"
        written.append(
            draw_curves(path, speeds, x="batch size", y="sentences/s", logarithmic=True, title=_TITLES[work])
        )
    costs = {
        f"{name_of(row)}, batch {row['batch']}": row["cost_by_length"]
        for row in measured
        if row["workload"] == "forced" and row["cost_by_length"]
    }
    title = "Cost of a sentence by its length, forced"
    path = folder / "cost-by-length.png"
    written.append(draw_curves(path, costs, x="target tokens", y="milliseconds of one worker", title=title))
    return written
