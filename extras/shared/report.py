"""Commands that measure: what they are asked, the machine that they ran on, a table for people, JSON for programs."""

from __future__ import annotations

import json
import multiprocessing
import os
import platform
import re
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Annotated, Any, ParamSpec, TypeVar

import typer
from rich.table import Table

from tandem.extras.shared.outputs import check_file
from tandem.models.command import AsJson
from tandem.models.command import console as console
from tandem.models.command import say as say
from tandem.models.errors import ConfigError
from tandem.models.folders import write_text
from tandem.service.telemetry.cgroups import ROOT, usable_cores

Out = Annotated[Path | None, typer.Option(help="Also write the JSON to this file.")]
Measured = TypeVar("Measured")
Arguments = ParamSpec("Arguments")
_PACKAGES = (
    "tandem",
    "numpy",
    "onnxruntime",
    "onnxruntime-gpu",
    "sentencepiece",
    "ctranslate2",
    "transformers",
    "accelerate",
    "torch",
    "sacrebleu",
)
_X86 = ("avx2", "avx512f", "avx512_vnni", "avx_vnni", "avx512_bf16", "amx_int8", "amx_bf16")
FEATURES = (*_X86, "asimddp", "i8mm", "bf16")
"""What matters to matrix products, by the Linux kernel's names; on x86 those of x86, on ARM those of ARM."""


@dataclass(frozen=True, kw_only=True)
class Measurement:
    """What every measurement is asked."""

    as_json: AsJson = False
    out: Out = None


def as_json(result: Mapping[str, Any]) -> str:
    """A result as JSON. Raises ValueError for a figure that is not finite: JSON has none."""
    return json.dumps(result, indent=1, ensure_ascii=False, allow_nan=False)


def run_measurement(
    options: Any,
    measure: Callable[[Any], dict[str, Any]],
    show: Callable[[dict[str, Any]], None],
    draw: Callable[[dict[str, Any]], None] = lambda result: None,
) -> None:
    """What a command that measures does: its result is written (``--out``), drawn, and shown or printed as JSON.

    Args:
        options: of the command, with ``as_json`` and ``out``.
        measure: gives plain figures.
        show: prints them for people.
        draw: draws them.

    Raises:
        ConfigError: ``--out`` cannot be written; nothing has been measured then.
        typer.Exit: with the result's own ``exit_status``, or 1 where it says that it is not ``met``.
    """
    check_file(options.out, "--out")
    result = measure(options)
    text = as_json(result)
    if options.out is not None:
        write_text(options.out, text + "\n")
    draw(result)
    if options.as_json:
        print(text)
    else:
        show(result)
    if status := result.get("exit_status", 0 if result.get("met", True) else 1):
        raise typer.Exit(status)


def in_own_process(
    function: Callable[Arguments, Measured], *arguments: Arguments.args, **named: Arguments.kwargs
) -> Measured:
    """Call a function in a process that nothing else has run in: in a shared one nobody could tell whose memory it is.

    It is spawned, not forked: a fork would begin with everything that this process holds.
    """
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as process:
        return process.submit(function, *arguments, **named).result()


def numbers(text: str, option: str, largest: int = 10**9) -> tuple[int, ...]:
    """Whole numbers from ``1,32,64``, each once. Raises ConfigError for anything else."""
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if not parts or not all(part.isdecimal() and 1 <= int(part) <= largest for part in parts):
        raise ConfigError(f"{option} must be whole numbers from 1 to {largest}, such as 1,32,64, but is {text!r}")
    return tuple(dict.fromkeys(map(int, parts)))


def names(text: str, option: str, known: tuple[str, ...]) -> tuple[str, ...]:
    """Names from ``a,b``, each once, all of them known; none is allowed. Raises ConfigError otherwise."""
    given = tuple(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))
    if unknown := [name for name in given if name not in known]:
        raise ConfigError(f"{option} must be of {', '.join(known)}, but has {', '.join(unknown)}")
    return given


def environment(threads: int) -> dict[str, Any]:
    """What a figure depends on besides the code.

    Args:
        threads: that the measured system may use.
    """
    return {
        **processor(),
        "threads": threads,
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "versions": {name: number for name in _PACKAGES if (number := _version(name))},
    }


def processor(root: Path = ROOT) -> dict[str, Any]:
    """The processor of this machine: its name as ``processor``, ``features``, ``cores``, and those that this process
    may use (``usable_cores``). ``root`` is where ``proc`` and ``sys`` are mounted.
    """
    file = root / "proc" / "cpuinfo"
    text = file.read_text(encoding="utf-8", errors="replace") if file.is_file() else ""
    values = dict(reversed(re.findall(r"^([^:\n]*?)\s*: *(.*)$", text, re.MULTILINE)))  # the first processor counts
    flags = (values.get("flags") or values.get("Features") or "").split()
    return {
        "processor": values.get("model name") or platform.processor() or platform.machine() or "unknown",
        "features": [name for name in FEATURES if name in flags],
        "cores": os.cpu_count() or 1,
        "usable_cores": usable_cores(root),
    }


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


def show_environment(found: Mapping[str, Any]) -> str:
    """The environment in two lines."""
    versions = ", ".join(f"{name} {number}" for name, number in found["versions"].items())
    features = " ".join(found["features"]) or "no vector instructions known"
    cores = f"{found['usable_cores']} of {found['cores']} cores usable, {found['threads']} threads"
    return f"{found['processor']} ({features}), {cores}\nPython {found['python']}, {versions}"


def table(title: str, columns: Mapping[str, str], rows: Sequence[Mapping[str, Any]]) -> Table:
    """Rows as a table; columns that no row has a value for are left out.

    Args:
        title: above it.
        columns: key of a row -> heading.
        rows: values by key; None is shown as a dash.
    """
    made = Table(title=title, title_justify="left")
    shown = [key for key in columns if any(row.get(key) is not None for row in rows)]
    for key in shown:
        numeric = all(isinstance(row.get(key), int | float | None) for row in rows)
        made.add_column(columns[key], justify="right" if numeric else "left")
    for row in rows:
        made.add_row(*(cell(row.get(key)) for key in shown))
    return made


def cell(value: object) -> str:
    """A value as people read it: three figures of a number below 100, whole numbers above."""
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
    return f"{value:,}" if isinstance(value, int) else str(value)
