"""`tandem bench gpu`: what a GPU is to prove, line by line, in the minutes that there are.

The lines stand in order of what matters most, so that those left out for want of time matter least. The short form
(less than 15 minutes) takes fewer systems and sizes, and compiles nothing. Each line is run in another process and has
a limit of its own (``lines.py``); the result is written after every one of them.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tandem.extras.laboratory.gpu.lines import FAILED, OK, Line, run_lines
from tandem.extras.laboratory.gpu.subjects import SYSTEMS
from tandem.extras.laboratory.options import GpuOptions
from tandem.extras.shared.outputs import check_file
from tandem.extras.shared.report import as_json, environment, names, say, show_environment
from tandem.models.errors import ConfigError
from tandem.service.telemetry.cgroups import usable_cores

NO_DEVICE = 3  # exit status
_LONG = 15.0  # minutes from which on everything is measured
_MEASURED = ("dpn", "convs2s", "transformer")  # those whose steps are timed first
_SHAPES = ((1, 5), (8, 5), (64, 5), (512, 5))  # sentences x beam
_SHORT_SHAPES = _SHAPES[-2:]
_RECURRENT = ("multisource", "memd")  # they go from position to position in training too
_TRAINED_TOKENS, _RECURRENT_TOKENS = 25_000, 6_000  # target symbols of a batch
_EPOCHS = 0.1  # share of the time for epochs of training, and as much where they are compiled
_HALF = ("float16", "bfloat16")


def measure(options: GpuOptions) -> dict[str, Any]:
    """Run the lines.

    Raises:
        ConfigError: an option names what is not there or lacks another, or a file cannot be written.
    """
    check_file(options.table, "--table")
    if options.references is not None and options.source is None:
        raise ConfigError("--references needs --source, the text that they translate")
    lines = chosen(list(plan(options)), options.only)
    result: dict[str, Any] = {
        "environment": environment(usable_cores()),
        "device": options.device,
        "minutes": options.minutes,
        "lines": [],
        "count": len(lines),
    }
    if options.device == "cuda" and not _has_device():
        return result | {"met": False, "exit_status": NO_DEVICE}
    started = time.perf_counter()
    for outcome in run_lines(lines, 60 * options.minutes):
        result["lines"].append(outcome)
        say(_spoken(outcome), error=True)
        if options.out is not None:
            options.out.write_text(as_json(result) + "\n", encoding="utf-8")
    result["seconds"] = time.perf_counter() - started
    result["met"] = all(one["status"] != FAILED for one in result["lines"])
    if options.table is not None:
        options.table.write_text(markdown(result), encoding="utf-8")
    return result


def _has_device() -> bool:
    import torch

    return torch.cuda.is_available()


def plan(options: GpuOptions) -> Iterator[Line]:
    """The lines of a proof, what matters most first."""
    long, small = options.minutes >= _LONG, options.device == "cpu"
    where: dict[str, Any] = {"device": options.device, "small": small}
    dtype = "float32" if small else "float16"
    shapes = ((1, 2), (4, 2)) if small else _SHAPES if long else _SHORT_SHAPES
    bundle = str(options.bundle)
    yield Line("device", "tandem.extras.laboratory.gpu.machine:device", where, 12)
    for system in SYSTEMS:
        yield Line(f"equal {system}", "tandem.extras.laboratory.gpu.equality:float32", {"system": system, **where}, 8)
    for system in SYSTEMS:
        planned = 10 if system in _RECURRENT else 5
        more = {"system": system, **where}
        yield Line(f"train equal {system}", "tandem.extras.laboratory.gpu.training:equal", more, planned)
    text = {"source": str(options.source or ""), "references": str(options.references or ""), "limit": options.limit}
    for kind in _HALF:
        more = {"bundle": bundle, **text, "dtype": kind, **where}
        yield Line(f"bundle {kind}", "tandem.extras.laboratory.gpu.equality:half", more, 15, 120)
    for system in SYSTEMS:
        more = {"system": system, "dtype": dtype, **where}
        yield Line(f"capture {system}", "tandem.extras.laboratory.gpu.steps:capture", more, 10, 90)
    measured, largest = tuple(SYSTEMS) if long else _MEASURED, shapes[-2:] if long else shapes[-1:]
    yield from _steps("eager", measured, shapes, dtype, where)
    yield from _steps("graph", measured, shapes, dtype, where)
    yield from _steps("graph", _MEASURED, largest, dtype, where, rules=True)
    clients, seconds = (4, 2.0) if small else (64, 15.0 if long else 10.0)
    more = {"bundle": bundle, "device": options.device, "clients": clients, "seconds": seconds}
    yield Line("service", "tandem.extras.laboratory.gpu.serving:load", more, 55, 180)
    yield from _training(options, where, compiled=False)
    yield from _peers(largest, dtype, where)
    yield Line(
        "train two processes",
        "tandem.extras.laboratory.gpu.training:together",
        {"system": "transformer", **where},
        20,
        120,
    )
    if long:
        yield from _training(options, where, compiled=True)


def _steps(
    how: str,
    systems: Sequence[str],
    shapes: Sequence[tuple[int, int]],
    dtype: str,
    where: Mapping[str, Any],
    *,
    rules: bool = False,
) -> Iterator[Line]:
    for system in systems:
        for sentences, beam_size in shapes:
            size = {"sentences": sentences, "beam_size": beam_size}
            more = {"system": system, "dtype": dtype, "how": how, "rules": rules, **size, **where}
            name = f"step {system} {sentences}x{beam_size} {how}{' rules' if rules else ''}"
            yield Line(name, "tandem.extras.laboratory.gpu.steps:speed", more, 5, 60)


def _training(options: GpuOptions, where: Mapping[str, Any], *, compiled: bool) -> Iterator[Line]:
    seconds = _EPOCHS * 60 * options.minutes / len(SYSTEMS)
    for system in SYSTEMS:
        recurrent = system in _RECURRENT
        tokens = 100 if where["small"] else _RECURRENT_TOKENS if recurrent else _TRAINED_TOKENS
        more = {"system": system, "tokens": tokens, "seconds": seconds, "corpora": str(options.corpora or "")}
        name, more = f"train {system} {'compiled' if compiled else 'eager'}", {**more, "compiled": compiled, **where}
        planned, limit = (5 if recurrent else 60, 180) if compiled else (5, 90)
        yield Line(name, "tandem.extras.laboratory.gpu.training:speed", more, planned + seconds, limit + seconds)


def _peers(shapes: Sequence[tuple[int, int]], dtype: str, where: Mapping[str, Any]) -> Iterator[Line]:
    for name in ("huggingface", "ctranslate2"):
        for sentences, beam_size in shapes:
            more = {"dtype": dtype, "sentences": sentences, "beam_size": beam_size, **where}
            yield Line(
                f"beside {name} {sentences}x{beam_size}", f"tandem.extras.laboratory.gpu.peers:{name}", more, 15, 120
            )


def chosen(lines: list[Line], only: str) -> list[Line]:
    """The lines whose names begin with one of several words; all where none is given.

    Raises:
        ConfigError: no line begins so.
    """
    kinds = tuple(dict.fromkeys(line.name.partition(" ")[0] for line in lines))
    wanted = names(only, "--only", kinds)
    found = [line for line in lines if not wanted or line.name.partition(" ")[0] in wanted]
    if not found:
        raise ConfigError(f"--only must be of {', '.join(kinds)}, but is {only!r}")
    return found


def _spoken(outcome: Mapping[str, Any]) -> str:
    return f"{outcome['status']:<7} {outcome['seconds']:7.1f} s  {outcome['line']}: {outcome['summary']}"


def markdown(result: Mapping[str, Any]) -> str:
    """The lines as a table of docs/performance.md."""
    rows = ["| line | | s | |", "|---|---|--:|---|"]
    for outcome in result["lines"]:
        summary = " ".join(outcome["summary"].split()).replace("|", "\\|")
        rows.append(f"| {outcome['line']} | {outcome['status']} | {outcome['seconds']:.1f} | {summary} |")
    return "\n".join(rows) + "\n"


def show(result: Mapping[str, Any]) -> None:
    """Print how many lines were run, and what became of them."""
    lines = result["lines"]
    if not lines:
        say(f"no device: 0 of {result['count']} lines run")
        return
    say(show_environment(result["environment"]), markdown(result).rstrip())
    counted = Counter(one["status"] for one in lines)
    rest = ", ".join(f"{number} {status}" for status, number in counted.items() if status != OK)
    say(f"{counted[OK]} of {result['count']} lines ok{', ' + rest if rest else ''}, {result['seconds']:.0f} s")
