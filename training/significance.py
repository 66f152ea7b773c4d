"""Whether systems differ: scores with bootstrap intervals and p-values against a baseline, all from sacreBLEU.

The paired bootstrap (Koehn 2004) draws test sets of the same size from the test set, with replacement, and scores both
systems on the same draws.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from models.errors import CorpusError
from training.metrics import SCORERS, corpus_metrics

DRAWS = 1000


@dataclass(frozen=True, slots=True)
class ComparedScore:
    """One score of one system beside a baseline.

    Attributes:
        metric: as in :class:`training.metrics.Score`.
        value: in points of 100.
        interval: half the width of the 95% bootstrap interval of the value; None where the metric has none.
        p_value: of the paired bootstrap against the baseline, two-sided; None of the baseline itself, and where the
            metric has none.
        signature: the implementation's own description of its settings, number of draws and seed among them.
    """

    metric: str
    value: float
    interval: float | None
    p_value: float | None
    signature: str


def compare_systems(
    task: str, systems: Mapping[str, Sequence[str]], references: Sequence[str], *, baseline: str, draws: int = DRAWS
) -> dict[str, list[ComparedScore]]:
    """The scores of every system, in the given order.

    Args:
        task: "translate" or "postedit"; "summarize" has ROUGE, without intervals and p-values.
        systems: the hypotheses of each system by its name.
        references: one for each hypothesis.
        baseline: the name of the system that the others are compared with.
        draws: test sets drawn.

    Raises:
        CorpusError: there is no such baseline, nothing to score, or not one hypothesis for each reference.
    """
    if baseline not in systems:
        raise CorpusError(f"the baseline must be one of {', '.join(systems)}, but is {baseline!r}")
    for name, hypotheses in systems.items():
        if not references or len(hypotheses) != len(references):
            raise CorpusError(f"{name} has {len(hypotheses)} hypotheses for {len(references)} references")
    if task == "summarize":
        return {name: _unpaired(task, hypotheses, references) for name, hypotheses in systems.items()}
    return _paired(task, systems, references, baseline, draws)


def _unpaired(task: str, hypotheses: Sequence[str], references: Sequence[str]) -> list[ComparedScore]:
    found = SCORERS[task](hypotheses, references)
    return [ComparedScore(score.metric, score.value, None, None, score.signature) for score in found]


def _paired(
    task: str, systems: Mapping[str, Sequence[str]], references: Sequence[str], baseline: str, draws: int
) -> dict[str, list[ComparedScore]]:
    from sacrebleu.significance import PairedTest, Result

    order = [baseline, *(name for name in systems if name != baseline)]
    named: list[tuple[str, Sequence[str]]] = [(name, list(systems[name])) for name in order]
    metrics = corpus_metrics(task)
    test = PairedTest(named, metrics, references=[list(references)], test_type="bs", n_samples=draws)
    signatures, results = test()
    found: dict[str, list[ComparedScore]] = {name: [] for name in systems}
    # The library renames its metrics ("chrF2"), but keeps their order.
    for metric, (key, signature) in zip(metrics, signatures.items(), strict=True):
        own = [result for result in results[key] if isinstance(result, Result)]
        for name, result in zip(order, own, strict=True):
            # No draw exceeds a difference of zero by more than zero, from which the library would conclude 1/1001.
            p_value = 1.0 if name != baseline and result.score == own[0].score else result.p_value
            interval = None if result.ci is None else round(float(result.ci), 2)
            found[name].append(ComparedScore(metric, round(result.score, 2), interval, p_value, str(signature)))
    return found
