"""Translation and summarization in the calling process: ``POST /translate`` and ``POST /summarize`` as calls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import Any, Self, overload

import numpy as np

from tandem.local import LocalLimits, LocalService
from tandem.models.bundle import Bundle
from tandem.models.errors import BundleError, DecodingError, OptionError
from tandem.models.search import Failed, OfflineDecoder, SearchOptions
from tandem.models.search.offline import NBest
from tandem.models.text import as_read
from tandem.models.vocabulary import Vocabulary
from tandem.service.bundles.loading import OpenBundle, find_bundles, unservable
from tandem.service.ports import stage_readers
from tandem.service.runtimes import Placement, resolve_device
from tandem.service.translation.requests import AUTO, DecodeRequest, SamplingOptions, SummarizeTask, TranslateTask
from tandem.service.translation.results import DecodeResult, WrittenText

Texts = str | Sequence[str]


@dataclass(frozen=True, slots=True)
class Scored:
    """How probable a model finds a translation of a source.

    Attributes:
        log_probability: natural logarithm of p(target | source), the end of the sentence with it.
        token_log_probabilities: of each of the tokens, and of the end.
        tokens: pieces of the target, as the vocabulary has them.
    """

    log_probability: float
    token_log_probabilities: tuple[float, ...]
    tokens: tuple[str, ...]


class Translator:
    """Translates and summarizes with bundles. Thread-safe; ``close`` it, or use it in a ``with`` statement.

    Texts go the way of the service's (sentences, markup, placeholders, glossaries, text stages), so that the same text
    becomes the same.
    """

    def __init__(
        self,
        bundles: str | PathLike[str] | Sequence[str | PathLike[str]],
        *,
        runtime: str = "onnx",
        precision: str = "int8",
        device: str = "cpu",
        threads: int = 1,
        workers: int = 1,
        stages: bool = True,
        fidelity: bool = True,
    ) -> None:
        """
        Args:
            bundles: a bundle's folder, or one of such folders, or several; the first that fits a text translates it.
            runtime: ``onnx``, ``torchscript`` or ``torch``.
            precision: of ONNX graphs on a CPU ``int8`` or ``float32``; ``float16``, ``float32`` or ``bf16`` on a GPU.
            device: ``cpu``, or a GPU such as ``cuda:0``.
            threads: of one computation.
            workers: threads that decode.
            stages: whether bundles have the text stages that their manifests ask for, such as a lexicon.
            fidelity: whether translations are held against their sources, and tried again where something is lost.

        Raises:
            ConfigError: no bundle there, or a runtime, precision or device that there is not.
            BundleError: a bundle is refused, with every fault.
        """
        given = [bundles] if isinstance(bundles, str | PathLike) else bundles
        limits = LocalLimits(stages="bundle" if stages else "off", fidelity=fidelity)
        placement = Placement(resolve_device(runtime, device))
        opened = [
            OpenBundle.of(_read(folder, stages), runtime, precision, threads, placement)
            for folder in find_bundles([Path(path) for path in given])
        ]
        self._graphs = {one.bundle.manifest.name: one.graphs for one in opened}
        self._service = LocalService(opened, limits, shortlist=True, workers=workers)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    @property
    def pairs(self) -> list[tuple[str, str]]:
        """Source and target language of what is translated, those that need a third language on the way included."""
        return [(one.code, target) for one in self._service.texts.catalog.languages() for target in one.targets]

    @overload
    def translate(self, texts: str, **options: Any) -> WrittenText: ...
    @overload
    def translate(self, texts: Sequence[str], **options: Any) -> list[WrittenText]: ...
    def translate(
        self,
        texts: Texts,
        *,
        source: str = AUTO,
        target: str | None = None,
        n_best: int = 1,
        scores: bool = False,
        alignments: bool = False,
        html: bool = False,
        glossary: Mapping[str, str] | None = None,
        protect: Sequence[str] = (),
        **options: Any,
    ) -> WrittenText | list[WrittenText]:
        """Translate a text, or several.

        Args:
            texts: any text; long ones are divided into sentences.
            source: language code of all of them; ``auto`` = detected, of each.
            target: language code; None where there is one alone for that source.
            n_best: hypotheses; those behind the best are the result's ``alternatives``.
            scores: whether ``sentences`` have log-probabilities.
            alignments: whether ``sentences`` have the attention between tokens, and the words that it aligns.
            html: whether texts are HTML, whose markup is kept.
            glossary: source term to target term, enforced.
            protect: what is to come back as it was: ``numbers``, ``urls``, ``emails``, ``placeholders``, ``regex:`` and
                an expression, or any string.
            options: further fields of ``POST /translate`` (docs/api.md), such as ``beam_size``, ``lexicon``, ``model``
                or ``sampling``, a mapping with its fields.

        Returns:
            One result for a string, else a list: ``text``, ``alternatives`` and ``sentences``, which are there where
            ``scores`` or ``alignments`` or ``details`` are asked for.

        Raises:
            TandemError: what is asked for is not there, or out of bounds; ``ServiceError`` and ``OptionError`` say
                which field.
            DecodingFailed: the model failed.
        """
        if isinstance(protect, str):
            raise OptionError("protect", "a list of strings", protect)
        request = TranslateTask(
            q=texts,
            source=source,
            target=target if target is not None else self._only_target(source),
            alternatives=n_best - 1,
            scores=scores,
            alignments=alignments,
            format="html" if html else "text",
            glossary=dict(glossary or {}),
            protect=list(protect),
            **_checked(TranslateTask, options, n_best),
        )
        return _as_asked(texts, self._service.translate(request))

    @overload
    def summarize(self, texts: str, **options: Any) -> WrittenText: ...
    @overload
    def summarize(self, texts: Sequence[str], **options: Any) -> list[WrittenText]: ...
    def summarize(
        self, texts: Texts, *, language: str | None = None, n_best: int = 1, **options: Any
    ) -> WrittenText | list[WrittenText]:
        """Summarize a text, or several.

        Args:
            texts: any text; long ones are summarized in parts.
            language: their language code; None = detected, of each.
            n_best: hypotheses, where a model writes the summary.
            options: further fields of ``POST /summarize`` (docs/api.md), such as ``sentences`` or ``method``.

        Returns, Raises:
            As ``translate``.
        """
        request = SummarizeTask(
            q=texts, language=language, alternatives=n_best - 1, **_checked(SummarizeTask, options, n_best)
        )
        return _as_asked(texts, self._service.summarize(request))

    def score(
        self, sources: Sequence[str], targets: Sequence[str], *, source: str, target: str, model: str | None = None
    ) -> list[Scored]:
        """How probable a model finds translations that are given: each pair decoded as one segment, without stages.

        Args:
            sources, targets: parallel; a sentence each.
            source, target: their language codes.
            model: that is asked, where several translate the pair.

        Raises:
            OptionError: the lists differ in length, or a text is longer than the model reads or writes.
            DecodingError: the model computes no number.
            TandemError: as ``translate``.
        """
        if len(sources) != len(targets):
            raise OptionError("targets", f"as many as sources, {len(sources)}", len(targets))
        served = self._service.texts.catalog.translator(source, target, model, pivot=False).model
        vocabulary, begin = served.bundle.target_vocabulary, served.options.prefix
        asked = []
        for text, translation in zip(sources, targets, strict=True):
            if not translation.strip():
                raise OptionError("targets", "texts with words in them", translation)
            (ids,) = served.encode((text,))
            prefix = (*begin, *vocabulary.encode(as_read(translation)))
            _at_most("sources", len(ids) - 1, served.limit)
            _at_most("targets", len(prefix), served.bundle.manifest.limits.max_target_tokens)
            asked.append(((np.array(ids),), SearchOptions(beam_size=1, prefix=prefix, max_length=max(1, len(prefix)))))
        decoder = OfflineDecoder(self._graphs[served.name], SearchOptions(beam_size=1))
        return [_scored(outcome, vocabulary, len(begin)) for outcome in decoder.decode_each(asked)]

    def close(self) -> None:
        """Let go of the bundles. A second call does nothing."""
        self._service.close()

    def _only_target(self, source: str) -> str:
        """The language that is translated into. Raises OptionError where there are several."""
        targets = sorted({target for code, target in self.pairs if source in (AUTO, code)})
        if len(targets) != 1:
            raise OptionError("target", f"given, for there are {', '.join(targets) or 'none'}", None)
        return targets[0]


def _read(folder: Path, stages: bool) -> Bundle:
    bundle = Bundle.load(folder, readers=stage_readers() if stages else None)
    if fault := unservable(bundle):
        raise BundleError(folder, [fault])
    return bundle


def _checked(kind: type[DecodeRequest], options: dict[str, Any], n_best: int) -> dict[str, Any]:
    """The options as a request has them, with a beam for so many hypotheses where none is given.

    Raises:
        OptionError: one that a request does not have.
    """
    known = {field.name for field in fields(kind)}
    for name in options.keys() - known:
        raise OptionError(name, f"left out, or one of {', '.join(sorted(known))}", options[name])
    sampling = options.get("sampling")
    if isinstance(sampling, Mapping):
        options = options | {"sampling": SamplingOptions(**sampling)}
    return options if n_best == 1 or "beam_size" in options else options | {"beam_size": max(n_best, 5)}


def _as_asked(texts: Texts, result: DecodeResult) -> WrittenText | list[WrittenText]:
    return result.texts[0] if isinstance(texts, str) else list(result.texts)


def _at_most(name: str, count: int, most: int) -> None:
    if count > most:
        raise OptionError(name, f"at most {most} tokens each", count)


def _scored(outcome: NBest, vocabulary: Vocabulary, begun: int) -> Scored:
    """``begun``: tokens that all targets begin with, and that say nothing."""
    if isinstance(outcome, Failed):
        raise DecodingError(outcome.why)
    scores, tokens = outcome[0].token_scores[begun:], outcome[0].tokens[begun:]
    return Scored(sum(scores), scores, tuple(map(vocabulary.piece_of, tokens)))
