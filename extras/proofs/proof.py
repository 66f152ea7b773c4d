"""The proof that a bundle's graphs decode as PyTorch does.

Graphs of full precision must give PyTorch's best hypothesis. Where two candidates tie within rounding, a search may
keep the other one: such a result stands if float64 scores it within ``ProofSettings.gap``; what differs by more is
listed.
Eight-bit graphs are other numbers: they are judged by BLEU or ROUGE on a held-out set, and by what float32 thinks of
their hypotheses.
"""

from __future__ import annotations

import copy
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import cycle, islice

import numpy as np
import torch

from tandem.extras.proofs.verdicts import (
    STANDARD,
    Difference,
    ExactProof,
    Proof,
    ProofSettings,
    QuantisedProof,
    proof_table,
)
from tandem.models.architectures.protocol import Padded
from tandem.models.bundle import Bundle
from tandem.models.errors import CorpusError, DecodingError
from tandem.models.search import Failed, Graphs, Hypothesis, OfflineDecoder, SearchOptions
from tandem.models.search.offline import NBest
from tandem.models.steps.loading import load_bundle_model
from tandem.models.steps.torch_graphs import AnyModel, TorchGraphs
from tandem.models.translation.rendering import Renderer
from tandem.models.translation.translator import Column, encode_columns, written_lines
from tandem.models.vocabulary import BOS, EOS
from tandem.training.export.calibration import Array
from tandem.training.quality.metrics import task_scores

__all__ = ["Proof", "ProofSettings", "proof_table", "verify"]

Opener = Callable[[], Graphs]
Report = Callable[[str], None]
Sources = Sequence[tuple[Array, ...]]


def verify(
    bundle: Bundle,
    exact: Mapping[str, Opener],
    quantised: Mapping[str, Opener],
    lines: Sequence[Column],
    references: Sequence[str] = (),
    *,
    settings: ProofSettings = STANDARD,
    report: Report = lambda line: None,
) -> Proof:
    """Compare runtimes with PyTorch on a bundle's model.

    Args:
        bundle: loaded and sound.
        exact: by name, how to open the runtimes that must give PyTorch's hypotheses.
        quantised: by name, how to open the runtimes that may lose some quality.
        lines: source text, one list of lines (or of feature matrices) per source.
        references: parallel to ``lines``, for the loss by quantisation; without them only float32 judges.
        settings: how much is compared, and what passes.
        report: told what is being done.

    Raises:
        CorpusError: there is no text, or it is not parallel.
    """
    if not lines or not lines[0] or any(len(one) != len(lines[0]) for one in (*lines, references or lines[0])):
        raise CorpusError("the proof needs source lines, and as many references if any")
    model = load_bundle_model(bundle)
    sources = _proving_sources(bundle, lines, settings)
    sizes = [max((len(source) - 1 for source in one if source.ndim == 1), default=0) for one in sources]
    decoding, limits = bundle.manifest.decoding, bundle.manifest.limits
    longest = min(decoding.max_length, limits.max_target_tokens)
    shortest = min(decoding.min_length, longest)
    options = replace(decoding, n_best=1, sampling=None, max_length=longest, min_length=shortest, attention=False)
    expected: dict[int, list[Hypothesis]] = {}
    for beam in settings.beams if exact else ():
        report(f"PyTorch, beam {beam}")
        expected[beam] = _best(OfflineDecoder(TorchGraphs(model), replace(options, beam_size=beam)).decode(sources))
    judge = Judge(model)
    exact_proofs = []
    for name, opener in exact.items():
        report(f"{name}: {len(sources)} sentences, beams {settings.beams}, batches {settings.batches}")
        exact_proofs.append(_exact_proof(name, opener(), judge, sources, expected, options, settings))
    quantised_proofs = []
    if quantised:
        held_out = _Held(bundle, judge, lines, references, options, settings, report)
        quantised_proofs = [held_out.proof(name, opener(), report) for name, opener in quantised.items()]
    passed = all(one.passed for one in exact_proofs) and all(one.passed for one in quantised_proofs)
    return Proof(
        passed=passed,
        sentences=len(sources),
        long_sentences=sum(size >= settings.long_tokens for size in sizes),
        beams=settings.beams,
        batches=settings.batches,
        exact=tuple(exact_proofs),
        quantised=tuple(quantised_proofs),
    )


class Judge:
    """Scores hypotheses under teacher forcing, in float64."""

    def __init__(self, model: AnyModel) -> None:
        self._model = copy.deepcopy(model).double()

    def score(self, sources: tuple[Array, ...], hypothesis: Hypothesis, prefix: int = 0) -> float:
        """The log-probability of a hypothesis after its first ``prefix`` tokens, its end included where it has one."""
        tokens = [*hypothesis.tokens, EOS] if hypothesis.finished else list(hypothesis.tokens)
        padded = tuple(Padded(torch.tensor(one)[None], torch.tensor([len(one)])) for one in sources)
        with torch.inference_mode():
            target = torch.tensor([[BOS, *tokens[:-1]]])
            logits = self._model.score(target, self._model.encode(padded))[0]
            chosen = torch.log_softmax(logits, dim=-1)[torch.arange(len(tokens)), torch.tensor(tokens)]
        return float(chosen[prefix:].sum())

    def ranked(self, sources: tuple[Array, ...], hypothesis: Hypothesis, options: SearchOptions) -> float:
        """The score by which search ranks a hypothesis (without the coverage penalty)."""
        score = self.score(sources, hypothesis, len(options.prefix))
        return score / options.penalty(len(hypothesis.tokens) + hypothesis.finished)


def decode(graphs: Graphs, sources: Sources, options: SearchOptions, batch: int) -> list[Hypothesis]:
    """The best hypothesis of every sentence, decoded in batches of ``batch`` in the order given, of mixed lengths."""
    return _best(OfflineDecoder(graphs, options, token_budget=sys.maxsize, window=batch).decode(sources))


def _exact_proof(
    name: str,
    graphs: Graphs,
    judge: Judge,
    sources: Sources,
    expected: Mapping[int, list[Hypothesis]],
    options: SearchOptions,
    settings: ProofSettings,
) -> ExactProof:
    started, compared, identical, ties, score_error = time.perf_counter(), 0, 0, 0, 0.0
    exceptions: list[Difference] = []
    for beam, wanted in expected.items():
        for batch in settings.batches:
            found = decode(graphs, sources, replace(options, beam_size=beam), batch)
            for index, (ours, theirs) in enumerate(zip(found, wanted, strict=True)):
                compared += 1
                if ours.tokens == theirs.tokens:
                    identical += 1
                    score_error = max(score_error, abs(ours.score - theirs.score))
                    continue
                gap = judge.ranked(sources[index], theirs, options) - judge.ranked(sources[index], ours, options)
                if abs(gap) < settings.gap:
                    ties += 1
                else:
                    texts = (" ".join(map(str, one.tokens)) for one in (theirs, ours))
                    exceptions.append(Difference(index, beam, batch, gap, *texts))
    passed = len(exceptions) <= settings.exceptions * compared and score_error < 1e-3
    seconds = time.perf_counter() - started
    return ExactProof(name, compared, identical, ties, tuple(exceptions), score_error, seconds, passed)


class _Held:
    """The held-out set, decoded by PyTorch in float32 once."""

    def __init__(
        self,
        bundle: Bundle,
        judge: Judge,
        lines: Sequence[Column],
        references: Sequence[str],
        options: SearchOptions,
        settings: ProofSettings,
        report: Report,
    ) -> None:
        self._bundle, self._judge, self._settings = bundle, judge, settings
        self._references = list(references[: settings.held_out])
        self._lines = written_lines(bundle.sources, [one[: settings.held_out] for one in lines])
        self._renderer = Renderer.of(bundle)
        self._options = self._renderer.options(options)
        columns = _columns(bundle, [one[: settings.held_out] for one in lines])
        self._sources: Sources = list(zip(*columns, strict=True))
        report(f"PyTorch, {len(self._sources)} held-out sentences")
        graphs = TorchGraphs(load_bundle_model(bundle))
        self._wanted = _best(OfflineDecoder(graphs, self._options).decode(self._sources))
        self._metric, self._value = self._measure(self._wanted)

    def proof(self, name: str, graphs: Graphs, report: Report) -> QuantisedProof:
        """Decode with a runtime and compare."""
        report(f"{name}: {len(self._sources)} held-out sentences")
        started = time.perf_counter()
        largest = max(self._settings.batches)
        found = decode(graphs, self._sources, self._options, largest)
        metric, value = self._measure(found)
        few = range(min(len(found), self._settings.sentences))
        alone = decode(graphs, [self._sources[index] for index in few], self._options, 1)
        same = [(alone[i].tokens, alone[i].score) == (found[i].tokens, found[i].score) for i in few]
        differing = [i for i, one in enumerate(found) if one.tokens != self._wanted[i].tokens]
        gaps = [self._per_token(i, found[i]) - self._per_token(i, self._wanted[i]) for i in differing]
        return QuantisedProof(
            runtime=name,
            metric=metric,
            value=value,
            float32_value=self._value,
            sentences=len(found),
            identical=1 - len(differing) / len(found),
            rescored=sum(gaps) / len(found),
            same_in_batches=float(np.mean(same)),
            seconds=time.perf_counter() - started,
            passed=not metric or value >= self._value - self._settings.loss,
        )

    def _measure(self, hypotheses: Sequence[Hypothesis]) -> tuple[str, float]:
        if not self._references:
            return "", 0.0
        pairs = zip(hypotheses, self._lines, strict=True)
        texts = [self._renderer.text(one, (), line) for one, line in pairs]
        manifest = self._bundle.manifest
        score = task_scores(manifest.task, manifest.target_language, texts, self._references)[0]
        return score.metric, score.value

    def _per_token(self, index: int, hypothesis: Hypothesis) -> float:
        return self._judge.score(self._sources[index], hypothesis) / (len(hypothesis.tokens) + hypothesis.finished)


def _best(outcomes: Iterable[NBest]) -> list[Hypothesis]:
    """The first hypothesis of each. Raises DecodingError where there is none."""
    best = []
    for index, outcome in enumerate(outcomes):
        if isinstance(outcome, Failed):
            raise DecodingError(f"sentence {index}: {outcome.why}")
        best.append(outcome[0])
    return best


def _columns(bundle: Bundle, lines: Sequence[Column]) -> list[Sequence[Array]]:
    return encode_columns(bundle.sources, lines, bundle.manifest.limits.max_source_tokens + 1)


def _proving_sources(bundle: Bundle, lines: Sequence[Column], settings: ProofSettings) -> Sources:
    """Sentences drawn evenly from the text, and as many long ones as asked: lines joined until they are long.

    Where sources are feature matrices, which cannot be joined, the sentences are as long as they are.
    """
    rng = np.random.default_rng(0)
    pairs = zip(zip(*lines, strict=True), written_lines(bundle.sources, lines), strict=True)
    widths = bundle.feature_widths
    rows = [row for row, texts in pairs if all(one.strip() or width for one, width in zip(texts, widths, strict=True))]
    if not rows:
        raise CorpusError("the proof needs source lines that are not empty")
    order = rng.permutation(len(rows)).tolist()
    if any(bundle.feature_widths):
        drawn = [rows[index] for index in order[: settings.sentences]]
        return list(zip(*_columns(bundle, list(zip(*drawn, strict=True))), strict=True))
    limit = bundle.manifest.limits.max_source_tokens
    least = min(settings.long_tokens, limit)

    def size(row: Sequence[str]) -> int:
        return max(map(len, (column[0] for column in _columns(bundle, [[part] for part in row])))) - 1

    def joined() -> Iterator[tuple[str, ...]]:
        """Rows put together until they are long enough; the text is gone through again where it is short."""
        parts: list[tuple[str, ...]] = []
        for index in islice(cycle(order), settings.long * least):
            whole = tuple(map(" ".join, zip(*parts, rows[index], strict=True)))
            tokens = size(whole)
            if least <= tokens <= limit:
                yield whole
            parts = [*parts, rows[index]] if tokens < least else []

    long = list(islice(joined(), settings.long))
    plain = [rows[index] for index in order[: settings.sentences - len(long)]]
    chosen = [*plain, *long]
    # Long and short ones share batches.
    mixed = [chosen[index] for index in rng.permutation(len(chosen)).tolist()]
    return list(zip(*_columns(bundle, list(zip(*mixed, strict=True))), strict=True))
