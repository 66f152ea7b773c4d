"""What `tandem bench fidelity` is asked."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from typer import Option

from tandem.extras.shared.report import Measurement


@dataclass(frozen=True, kw_only=True)
class FidelityOptions(Measurement):
    """What holding translations against their sources gives, and costs: the same lines with it and without it.

    The tables are those of docs/results.md. Processor time is the least of three turns, by turns in one
    process, one line at a time; steps, of each sentence one for each token of its longest hypothesis, are as many
    wherever it runs.

    Example: tandem bench fidelity --bundle bundles/de-fr-en --pair de-en --text test.de --references test.en
    """

    bundle: Annotated[Path, Option(help="Translates the pair.")]
    pair: Annotated[str, Option(help="Its languages, such as de-en.")]
    text: Annotated[Path, Option(help="Source lines.")]
    references: Annotated[Path | None, Option(help="Translations of each; without them there are no scores.")] = None
    lines: Annotated[int, Option(min=1, help="How many of them, evenly spread.")] = 300
