"""`tandem bench imports`: whether imported models are what was published, and what importing one takes.

Models of the published ones' real shapes, with random weights, are made by transformers in a temporary folder, read as
`tandem import` reads them, and compared: logits, the best of four hypotheses beside ``generate`` and CTranslate2, and
text cut into pieces. Weights are made so that hypotheses differ and end by themselves. Nothing is downloaded.
"""

from __future__ import annotations

import json
import resource
import tempfile
import time
import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from tandem.extras.importing.bundle import import_bundle, load_model, read_model
from tandem.extras.importing.model import Asked
from tandem.extras.proofs.comparing import Compared, tokenizer_of, varied_lines
from tandem.extras.proofs.forms import Ct2Model, convert_marian, marian_files, write_ct2
from tandem.extras.proofs.options import ImportsOptions
from tandem.extras.proofs.shapes import BEAM, SHAPES, PublicShape, publish
from tandem.extras.proofs.trained import measure_trained
from tandem.extras.shared.report import as_json, environment, in_own_process, names, say, show_environment

_LINES = 2000  # of text that are cut into pieces
TRAINED = "trained"


def measure(options: ImportsOptions) -> dict[str, Any]:
    """Every chosen shape, one after another, in a process of its own; one that fails says why.

    Raises:
        ConfigError: an unknown shape.
    """
    known = (*SHAPES, *((TRAINED,) if options.text else ()))
    chosen = names(options.shapes, "--shapes", known) or known
    rows = [{"name": name, **_kept(name, options)} for name in chosen]
    return {
        "environment": environment(options.threads or torch.get_num_threads()),
        "beam_size": BEAM,
        "rows": rows,
        "met": all(row["met"] for row in rows),
    }


def show(result: Mapping[str, Any]) -> None:
    """The table of docs/import.md, and what was trained."""
    say(show_environment(result["environment"]), "", *markdown(result))


def markdown(result: Mapping[str, Any]) -> list[str]:
    """A line for every form and shape."""
    lines = [
        "| form | model | sources | logits | as `generate` | as CTranslate2 | texts cut alike |",
        "|---|---|--:|--:|--:|--:|--:|",
    ]
    for row in result["rows"]:
        if "error" in row:
            lines.append(f"| {row['name']} | {row['error']} | | | | | |")
        elif row["name"] != TRAINED:
            cells = [
                row["form"],
                f"{row['name']}: {row['shape']}",
                str(row["inputs"]),
                f"{row['logits']:.1e}",
                _same(row, "generate"),
                _same(row, "ctranslate2"),
            ]
            lines.append(f"| {' | '.join(cells)} | {row['texts']} of {row['lines']} |")
    for row in result["rows"]:
        for engine, score in row.get("scores", {}).items():
            lines.append(f"{engine}: BLEU {score['bleu']}, {score['equal']} of {row['lines']} lines equal")
    return lines


def _same(row: Mapping[str, Any], peer: str) -> str:
    found = row[peer]
    ties = f", {found['ties']} ties" if found["ties"] else ""
    return f"{found['identical']} of {found['compared']}{ties}"


def _kept(name: str, options: ImportsOptions) -> dict[str, Any]:
    """A row: what an earlier run has kept, or measured and kept."""
    file = options.keep / f"{name}.json" if options.keep else None
    if file and file.is_file():
        kept: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        return kept
    say(f"{name} ...", error=True)
    row = in_own_process(_row, name, options)
    if file and "error" not in row:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(as_json(row), encoding="utf-8")
    return row


def _row(name: str, options: ImportsOptions) -> dict[str, Any]:
    torch.set_num_threads(options.threads or torch.get_num_threads())
    started = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="tandem-imports-") as temporary:
        folder = Path(temporary)
        try:
            if name == TRAINED:
                assert options.text is not None
                row = measure_trained((options.keep or folder) / TRAINED, options.text, options.updates, options.inputs)
            else:
                row = compared(SHAPES[name], folder / "model", options)
        except Exception as error:  # of any program: the other rows go on
            traceback.print_exc()
            return {"error": f"{type(error).__name__}: {' '.join(str(error).split())[:200]}", "met": False}
    return row | {"seconds": round(time.perf_counter() - started), "gb": _most_gb()}


def compared(shape: PublicShape, published_in: Path, options: ImportsOptions) -> dict[str, Any]:
    """One shape: what was found, and whether it is what was published."""
    published = publish(shape, published_in)
    folder = shape.form(published_in, published, shape.asked)
    read = read_model(folder, shape.asked)
    pair = Compared(read, load_model(folder, read), published)
    row: dict[str, Any] = {"form": read.form, "shape": shape.description, "weights": read.tensors.numbers}
    row |= {"logits": pair.largest_difference(), "lines": _LINES}
    # What the library takes for its own pieces is text for us, and a text without pieces has no tag.
    lines = [line for line in varied_lines(_LINES * 2) if "<s>" not in line and read.source.encode(line)][:_LINES]
    row["texts"] = pair.cut_alike(tokenizer_of(shape.tokenizer, published_in), lines)
    ct2 = published_in.with_name("peer")
    if shape.form is marian_files:
        convert_marian(folder, ct2)
    else:
        write_ct2(ct2, read, published)
    row |= pair.hypotheses(Ct2Model(ct2), options.inputs)
    others = [
        row[peer]["compared"] - row[peer]["identical"] - row[peer]["ties"] for peer in ("generate", "ctranslate2")
    ]
    row["met"] = row["logits"] <= 1e-4 and row["texts"] == row["lines"] and max(others) <= row["inputs"] / 100
    return row | (in_own_process(_imported, folder, shape.asked) if options.whole else {})


def _imported(folder: Path, asked: Asked) -> dict[str, Any]:
    """The whole of importing: seconds, the most memory that the process had, and the bundle's size."""
    started = time.perf_counter()
    bundle = import_bundle(folder, folder.with_name("bundle"), asked)
    return {
        "import_s": round(time.perf_counter() - started),
        "import_gb": _most_gb(),
        "bundle_mb": round(sum(path.stat().st_size for path in bundle.path.rglob("*") if path.is_file()) / 1e6),
    }


def _most_gb() -> float:
    """The most memory that this process has had."""
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9, 1)
