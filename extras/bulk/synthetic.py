"""Corpora that a model has written: which pairs are kept, and the files that a recipe names.

The two uses: sequence-level knowledge distillation (Kim & Rush 2016), where a teacher translates the sources of a
training corpus; and back-translation (Sennrich et al. 2016; tagged: Caswell et al. 2019), where a model of the other
direction makes sources for text of the target language.
"""

from __future__ import annotations

import json
import lzma
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import typer

from tandem.extras.bulk.symptoms import is_loop
from tandem.models.config import to_mapping
from tandem.training.data.corpus import CHUNK, clean_line, file_names, parallel_chunks

PROVENANCE = "synthetic.json"


@dataclass(frozen=True, slots=True)
class Sieve:
    """Which pairs are kept; words are separated by white space. Preparation leaves out the second of equal pairs."""

    max_length_ratio: Annotated[
        float,
        typer.Option(min=1.0, help="A pair is dropped whose longer side has more than so many times the words."),
    ] = 3.0
    min_chrf: Annotated[
        float,
        typer.Option(min=0.0, max=100.0, help="Drop translations less like their reference than this chrF."),
    ] = 0.0


@dataclass(slots=True)
class Sifter:
    """Decides pair by pair, and counts what it drops by reason."""

    sieve: Sieve
    dropped: Counter[str] = field(default_factory=Counter)

    def keep(self, text: str, translation: str, reference: str | None = None) -> bool:
        """Whether a text and its translation are worth training on.

        Args:
            text: what was translated.
            translation: what the model wrote.
            reference: what people wrote in its place, if anybody did.
        """
        reason = self._reason(text, translation, reference)
        self.dropped.update([reason] if reason else [])
        return not reason

    def _reason(self, text: str, translation: str, reference: str | None) -> str:
        words = len(text.split()), len(translation.split())
        if not all(words):
            return "empty"
        copied = text.casefold() == translation.casefold()
        if copied and (reference is None or reference.casefold() != translation.casefold()):
            return "copied"
        if max(words) > self.sieve.max_length_ratio * min(words):
            return "length_ratio"
        if is_loop(translation, text):
            return "loop"
        if self.sieve.min_chrf and reference is not None and chrf(translation, reference) < self.sieve.min_chrf:
            return "unlike_reference"
        return ""


def chrf(translation: str, reference: str) -> float:
    """Sentence chrF, 0 to 100, as sacreBLEU counts it."""
    from sacrebleu.metrics.chrf import CHRF

    return float(CHRF().sentence_score(translation, [reference]).score)


def nearest(candidates: Sequence[str], reference: str) -> str:
    """The candidate with the highest chrF; of equal ones the first."""
    return max(candidates, key=lambda text: chrf(text, reference)) if len(candidates) > 1 else candidates[0]


@dataclass(frozen=True, slots=True)
class Provenance:
    """Where a synthetic corpus comes from.

    Attributes:
        kind: "distilled" or "back-translated".
        model: the name of the bundle that wrote it.
        licence: of that bundle's weights.
        texts: the files that were translated.
        languages: of the corpus's source and target.
        options: how they were translated.
        sieve: what was asked of the pairs.
        pairs: that were kept.
        dropped: the others, by reason.
    """

    kind: str
    model: str
    licence: str
    texts: tuple[str, ...]
    languages: tuple[str, str]
    options: dict[str, object]
    sieve: Sieve
    pairs: int
    dropped: dict[str, int]


def write_pairs(folder: Path, languages: tuple[str, str], pairs: Iterable[tuple[str, str]]) -> int:
    """Write ``train.SOURCE.xz`` and ``train.TARGET.xz``, named by :func:`training.data.corpus.file_names`.

    They appear when they are complete.

    Returns:
        The number of pairs.
    """
    paths = [folder / f"train.{ending}.xz" for ending in file_names(languages)]
    parts = [path.with_name(f"{path.name}.new") for path in paths]
    count = 0
    with ExitStack() as stack:
        files = [stack.enter_context(lzma.open(part, "wt", encoding="utf-8", newline="\n", preset=4)) for part in parts]
        for pair in pairs:
            count += 1
            for file, text in zip(files, pair, strict=True):
                file.write(f"{text}\n")
    for part, path in zip(parts, paths, strict=True):
        part.replace(path)
    return count


def write_provenance(folder: Path, provenance: Provenance) -> None:
    """Put ``synthetic.json`` beside the corpus."""
    text = json.dumps(to_mapping(provenance), ensure_ascii=False, indent=1)
    (folder / PROVENANCE).write_text(f"{text}\n", encoding="utf-8")


def parallel_lines(paths: Sequence[Path]) -> Iterator[tuple[str, ...]]:
    """The lines of parallel files together, normalised, read piece by piece.

    Raises:
        CorpusError: a file cannot be read, is not UTF-8, or ends before another.
    """
    for chunk in parallel_chunks(paths, CHUNK):
        for row in zip(*chunk, strict=True):
            yield tuple(map(clean_line, row))


def recipe_table(name: str, provenance: Provenance) -> str:
    """The ``[[data.corpora]]`` table that names such a corpus in a recipe."""
    source, target = file_names(provenance.languages)
    lines = [
        "[[data.corpora]]",
        f"name = {json.dumps(name)}",
        f"source = [{json.dumps(f'{name}/{{split}}.{source}.xz')}]",
        f"target = {json.dumps(f'{name}/{{split}}.{target}.xz')}",
        'splits = ["train"]',
        f"licence = {json.dumps(provenance.licence)}",
        f"attribution = {json.dumps(f'Written by the model {provenance.model} from {_named(provenance.texts)}')}",
    ]
    return "\n".join([*lines, *(["back_translated = true"] if provenance.kind == "back-translated" else [])])


def _named(texts: Sequence[str]) -> str:
    return ", ".join(Path(text).name for text in texts)
