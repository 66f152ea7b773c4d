"""`tandem calibrate`: how sure a bundle is of sentences and words, learnt on validation text and measured on test text.

It stands in deploy, since the words are those that the service tells, and the metric is the training's.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from numpy.typing import NDArray
from rich.table import Table

from tandem.extras.evaluation.confidence import fit_scale, held_out_area, measure_reliability
from tandem.extras.evaluation.decoding import Decoding
from tandem.extras.shared.runtime import directed
from tandem.models.bundle import Bundle, extend_bundle
from tandem.models.command import AsJson, BundleFolder, Without, command_line, console, report
from tandem.models.errors import ConfigError, CorpusError
from tandem.models.search import Graphs, Hypothesis, SearchOptions, translate_batch
from tandem.models.search.confidence import (
    SENTENCE_NUMBERS,
    WORD_NUMBERS,
    Confidence,
    Evidence,
    Floats,
    Reliability,
    Scale,
    weighed,
)
from tandem.models.text import normalise
from tandem.service.bundles.aligning import word_aligner
from tandem.service.bundles.served import ServedModel
from tandem.service.translation.confidence import judged_words
from tandem.training.data.features import read_columns
from tandem.training.quality.metrics import corpus_metrics

SPLIT = "{split}"


def calibrate(
    path: BundleFolder,
    sources: Annotated[
        list[str],
        typer.Option("--source", metavar="FILE", help="Source text; '{split}' in it stands for valid and for test."),
    ],
    references: Annotated[
        list[str],
        typer.Option("--references", metavar="FILE", help="Its translations, likewise; both again for further texts."),
    ],
    decoding: Annotated[Decoding, Without({"keep_unknown"})],
    attention: Annotated[
        bool, typer.Option(help="Let attention count where it tells more; a request with details costs a tenth more.")
    ] = True,
    record: Annotated[bool, typer.Option("--record", help="Store it in the bundle's manifest and model card.")] = False,
    as_json: AsJson = False,
) -> None:
    """Learn how sure a bundle is of its sentences and words, and measure what that is worth.

    The text should be like that which people will send. It is decoded as the service decodes it, with the bundle's
    shortlist where it has one: its validation part (one segment a line; --limit is for each file) sets the curves, its
    test part is what the table and the AUC are of.
    Of a sentence the confidence is the chrF to expect, 0 to 1; of a word the chance that the reference has it too.
    What the model looked at counts where it tells bad ones better than scores alone, by held-out fifths of that part.

    Example: tandem calibrate bundles/de-fr-en --source 'my/{split}.de' --references 'my/{split}.en' --record
    """
    bundle = _calibrable(path, decoding.target)
    texts = _texts(bundle, sources, references)
    model = ServedModel.of(bundle)
    graphs, searched = decoding.prepare(bundle)
    options = replace(model.options, beam_size=searched.beam_size, attention=attention and "align" in graphs.specs)
    valid, test = (
        _judged(model, graphs, options, [_read(bundle, files, split, decoding.limit) for files in texts])
        for split in ("valid", "test")
    )
    found = calibrated(valid, test, command_line())
    if record:
        extend_bundle(path, {}, Bundle.load(path).manifest.with_confidence(bundle.manifest.target_language, found))
    print(json.dumps(asdict(found), indent=1)) if as_json else _print(found)


@dataclass(frozen=True, slots=True)
class Judged:
    """Things of which a confidence can be told, and what they were worth beside their references.

    Attributes:
        numbers_TN: what is known of each: by scores, then by attention where that is known.
        worth_T: 0 to 1.
        below: what is worth less is bad.
    """

    numbers_TN: Floats
    worth_T: Floats
    below: float

    @property
    def bad_T(self) -> NDArray[np.bool_]:
        """Which of them are to be told from the others."""
        return self.worth_T < self.below

    def scales(self, known: int) -> tuple[Scale, Scale | None]:
        """What such things are worth by the first ``known`` numbers, the scores', and by all where those tell more."""
        of_scores_TN = self.numbers_TN[:, :known]
        plain = fit_scale(of_scores_TN, self.worth_T)
        if self.numbers_TN.shape[1] == known:
            return plain, None
        gain = held_out_area(self.numbers_TN, self.worth_T, self.bad_T) - held_out_area(
            of_scores_TN, self.worth_T, self.bad_T
        )
        return plain, fit_scale(self.numbers_TN, self.worth_T) if gain > 0 else None

    def reliability(self, plain: Scale, attentive: Scale | None) -> Reliability:
        """What confidences by these scales are worth for these things."""
        confidence_T = weighed(plain, attentive, self.numbers_TN)
        return measure_reliability(confidence_T, self.worth_T, self.bad_T)


def calibrated(valid: tuple[Judged, Judged], test: tuple[Judged, Judged], command: str) -> Confidence:
    """Scales by the validation text and their reliability on the test text; of each the sentences and the words."""
    sentences = valid[0].scales(len(SENTENCE_NUMBERS))
    words = valid[1].scales(len(WORD_NUMBERS))
    reliabilities = test[0].reliability(*sentences), test[1].reliability(*words)
    return Confidence(sentences[0], words[0], *reliabilities, command, sentences[1], words[1])


def _calibrable(path: Path, target: str) -> Bundle:
    """The bundle, as one into one language. Raises ConfigError where confidence in what it writes has no measure."""
    bundle = directed(Bundle.load(path), target=target)
    manifest = bundle.manifest
    if manifest.task == "summarize" or manifest.target_form != "text" or any(bundle.feature_widths):
        raise ConfigError(f"{path}: confidence is of translations that are written as text and read from text")
    return bundle


def _texts(bundle: Bundle, sources: Sequence[str], references: Sequence[str]) -> list[list[str]]:
    """Per text its source files and its references. Raises ConfigError where there are too few, or not by split."""
    each = len(bundle.sources)
    if len(sources) != each * len(references):
        raise ConfigError(f"each --references needs {each} --source, but {len(references)} have {len(sources)}")
    if plain := [name for name in (*sources, *references) if SPLIT not in name]:
        raise ConfigError(f"files must be named with {SPLIT}, which stands for valid and test, but {plain[0]} is not")
    return [[*sources[each * text : each * (text + 1)], name] for text, name in enumerate(references)]


def _read(bundle: Bundle, files: Sequence[str], split: str, limit: int | None) -> list[list[str]]:
    columns = read_columns([Path(name.replace(SPLIT, split)) for name in files], bundle.feature_widths)
    return [[normalise(line) for line in column[:limit]] for column in columns]


def _judged(
    model: ServedModel, graphs: Graphs, options: SearchOptions, texts: Sequence[Sequence[Sequence[str]]]
) -> tuple[Judged, Judged]:
    """The sentences and the words that the model writes; ``texts``: of each the sources' lines and the references'.

    Lines that are empty, or longer than the model reads, are left out: the service would split those.
    """
    lines = [line for columns in texts for line in zip(*columns, strict=True) if all(map(str.strip, line))]
    encoded = [(line, model.encode(line[:-1])) for line in lines]
    read = [(line, ids) for line, ids in encoded if max(map(len, ids)) <= model.limit + 1]
    if len(read) < len(lines):
        report(f"{len(lines) - len(read):,} of {len(lines):,} lines are longer than the model reads: left out")
    sources = [tuple(np.array(side, np.int64) for side in ids) for _, ids in read]
    nbest = translate_batch(graphs, sources, options, shortlist=model.bundle.shortlist)
    found = [(line, hypotheses[0]) for (line, _), hypotheses in zip(read, nbest, strict=True) if hypotheses]
    if not found:
        raise CorpusError("no line of the text could be decoded: it must have lines that are not empty on any side")
    metric = corpus_metrics("translate", model.bundle.manifest.target_language)["chrF"]
    numbers, worth, words = list[Floats](), list[float](), list[tuple[Floats, Floats]]()
    for (*sentence, reference), hypothesis in found:
        text = model.decode(hypothesis, sentence)
        numbers.append(Evidence.of(hypothesis).of_sentence())
        worth.append(metric.sentence_score(text, [reference]).score / 100)
        words.append(_judged_words(model, hypothesis, text, reference))
    of_words, right = (np.concatenate(side) for side in zip(*words, strict=True))
    return Judged(np.array(numbers), np.array(worth), float(np.median(worth))), Judged(of_words, right, 1.0)


def _judged_words(model: ServedModel, hypothesis: Hypothesis, text: str, reference: str) -> tuple[Floats, Floats]:
    """Numbers of each word, and whether it is right: 1 where the reference has it as often as the text so far, else 0.

    Case does not count.
    """
    vocabulary, aligner = model.bundle.target_vocabulary, word_aligner()
    assert aligner is not None, "the command needs it"
    known = aligner.written_words(vocabulary, vocabulary.encode(reference), reference)
    left = Counter(reference[span.start : span.end].casefold() for span, _ in known)
    spans, places = judged_words(model, hypothesis, text)
    right = []
    for span in spans:
        word = text[span.start : span.end].casefold()
        right.append(float(left[word] > 0))
        left[word] -= 1
    return Evidence.of(hypothesis).of_words(places), np.array(right)


def _print(found: Confidence) -> None:
    shown = console()
    kinds = {"sentences": found.sentence_reliability, "words": found.word_reliability}
    for name, measured in (("sentences", "chrF / 100"), ("words", "right")):
        reliability = kinds[name]
        table = Table(name, "confidence", measured, title=f"{name} of the test text, by tenths")
        for column in table.columns:
            column.justify = "right"
        for one in reliability.bins:
            table.add_row(f"{one.count:,}", f"{one.confidence:.3f}", f"{one.measured:.3f}")
        shown.print(table)
        bad = "chrF below the median" if name == "sentences" else "words that the reference lacks"
        shown.print(f"AUC for {bad}: {reliability.auc:.3f}; mean error {reliability.error:.3f}", highlight=False)
