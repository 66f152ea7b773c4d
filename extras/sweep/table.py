"""Which combination is best: means over seeds, and whether the others' translations are worse by more than chance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import chain
from statistics import mean, stdev

from tandem.extras.evaluation.significance import ComparedScore, Counts
from tandem.extras.sweep.outcomes import Outcome
from tandem.training.quality.metrics import corpus_metrics
from tandem.training.recipe import Recipe


@dataclass(frozen=True, slots=True)
class Row:
    """One combination.

    Attributes:
        combination: what was set.
        values: of the selection metric, one for each seed that did not diverge.
        updates: of those runs' best validations.
        diverged: how many runs did.
        scores: of the translations of all seeds together, beside those of the best combination; empty where nothing
            was decoded, or a run diverged, so that there is not one translation of each seed.
    """

    combination: str
    values: tuple[float, ...]
    updates: tuple[int, ...]
    diverged: int = 0
    scores: tuple[ComparedScore, ...] = ()

    @property
    def mean(self) -> float | None:
        return mean(self.values) if self.values else None

    @property
    def deviation(self) -> float | None:
        """The sample's standard deviation over seeds; None of fewer than two."""
        return stdev(self.values) if len(self.values) > 1 else None

    @property
    def shown(self) -> str:
        """Mean and deviation."""
        if self.mean is None:
            return "–"
        return f"{self.mean:.3f}" + (f" ± {self.deviation:.3f}" if self.deviation is not None else "")

    def mapping(self) -> dict[str, object]:
        """Its plain form."""
        own = {"combination": self.combination, "mean": self.mean, "deviation": self.deviation}
        runs = {"values": list(self.values), "best_updates": list(self.updates), "diverged": self.diverged}
        return {**own, **runs, "scores": [asdict(score) for score in self.scores]}


def ranked(outcomes: Mapping[str, Sequence[Outcome]], recipe: Recipe) -> tuple[Row, ...]:
    """The combinations, best first; those of which a run diverged stand behind the others.

    Args:
        outcomes: by combination, one for each seed, in the order of the seeds.
        recipe: any of theirs, which have metric, task and language in common.
    """
    rows = {name: _row(name, found) for name, found in outcomes.items()}
    sign = 1 if recipe.training.metric == "loss" else -1
    order = sorted(rows.values(), key=lambda row: (row.diverged, 0.0 if row.mean is None else sign * row.mean))
    scores = _scores({row.combination: outcomes[row.combination] for row in order}, recipe)
    return tuple(
        Row(row.combination, row.values, row.updates, row.diverged, tuple(scores.get(row.combination, ())))
        for row in order
    )


def _row(name: str, outcomes: Sequence[Outcome]) -> Row:
    good = [one for one in outcomes if not one.diverged]
    return Row(name, tuple(one.value for one in good), tuple(one.update for one in good), len(outcomes) - len(good))


def _scores(outcomes: Mapping[str, Sequence[Outcome]], recipe: Recipe) -> dict[str, list[ComparedScore]]:
    """Of each combination, with the paired bootstrap against the first: of the text in the recipe's target language."""
    whole = {name: found for name, found in outcomes.items() if not any(one.diverged or not one.texts for one in found)}
    if not whole:
        return {}
    best, *_ = whole
    texts = {
        name: list(chain.from_iterable(_of_language(one, recipe.target_language)[0] for one in found))
        for name, found in whole.items()
    }
    _, references = _of_language(whole[best][0], recipe.target_language)
    metrics = corpus_metrics(recipe.task, recipe.target_language)
    return Counts(metrics, texts, references, runs=len(whole[best])).compare(best) if references else {}


def _of_language(outcome: Outcome, language: str) -> tuple[list[str], list[str]]:
    chosen = [text for text in outcome.texts.values() if text.language == language]
    return [*chain.from_iterable(one.texts for one in chosen)], [*chain.from_iterable(one.references for one in chosen)]
