"""Comparing systems: scores as everywhere else, and p-values that tell a difference from none."""

from __future__ import annotations

import random

import pytest

from tandem.extras.evaluation import significance
from tandem.extras.evaluation.scoring import all_metrics
from tandem.extras.evaluation.significance import Bootstrap, ComparedScore, Counts
from tandem.models.errors import CorpusError
from tandem.training.quality.metrics import OWN, corpus_metrics, task_scores

WORDS = ["eins", "zwei", "drei", "vier", "fünf", "sechs", "sieben", "acht", "neun", "zehn"]


def noisy(lines: list[str], share: float, seed: int) -> list[str]:
    """The lines with a share of their words replaced."""
    rng = random.Random(seed)
    return [" ".join("null" if rng.random() < share else word for word in line.split()) for line in lines]


def compare_systems(
    task: str,
    systems: dict[str, list[str]],
    references: list[str],
    *,
    baseline: str,
    sampling: Bootstrap | None = None,
) -> dict[str, list[ComparedScore]]:
    return Counts(corpus_metrics(task, "en"), systems, references).compare(baseline, sampling=sampling or Bootstrap())


@pytest.fixture(scope="module")
def references() -> list[str]:
    rng = random.Random(7)
    return [" ".join(rng.choices(WORDS, k=9)) for _ in range(80)]


@pytest.mark.parametrize("task", ["translate", "postedit", "summarize"])
def test_scores_are_those_of_evaluation(references: list[str], task: str) -> None:
    systems = {"a": noisy(references, 0.2, 1), "b": noisy(references, 0.4, 2)}
    found = compare_systems(task, systems, references, baseline="b", sampling=Bootstrap(20))
    assert list(found) == ["a", "b"]
    for name, scores in found.items():
        expected = task_scores(task, "en", systems[name], references)
        assert [(s.metric, s.value) for s in scores] == [(s.metric, s.value) for s in expected]


def test_a_great_difference_is_told_from_a_small_one(references: list[str]) -> None:
    systems = {"base": noisy(references, 0.2, 1), "like": noisy(references, 0.2, 2), "worse": noisy(references, 0.6, 3)}
    found = compare_systems("translate", systems, references, baseline="base", sampling=Bootstrap(200))
    assert [(score.p_value, score.difference) for score in found["base"]] == [(None, None), (None, None)]
    for like, worse in zip(found["like"], found["worse"], strict=True):
        assert worse.p_value is not None and worse.p_value < 0.01
        assert worse.difference is not None and worse.difference_interval is not None
        assert worse.difference_interval[0] <= worse.difference <= worse.difference_interval[1] < 0
        assert like.p_value is not None and like.p_value > 0.05
        assert 0 < like.interval < like.value
        assert like.difference_interval is not None
        assert like.difference_interval[0] < 0 < like.difference_interval[1]
    assert "seed:12345" in found["base"][0].signature and "bs:200" in found["base"][0].signature


def test_equal_systems_do_not_differ(references: list[str]) -> None:
    """The library alone would call the same output a significant difference."""
    hypotheses = noisy(references, 0.3, 1)
    found = compare_systems(
        "postedit", {"a": hypotheses, "b": list(hypotheses)}, references, baseline="a", sampling=Bootstrap(50)
    )
    assert [score.p_value for score in found["b"]] == [1.0, 1.0, 1.0]
    assert {score.difference_interval for score in found["b"]} == {(0.0, 0.0)}


def test_a_few_sentences_tell_no_difference(references: list[str]) -> None:
    """The library alone would call any difference in one sentence significant: all of its draws are the same."""
    systems = {"a": references, "b": noisy(references, 0.8, 1)}
    counts = Counts(corpus_metrics("translate", "en"), systems, references)
    for size, least in ((1, 1.0), (2, 0.5), (5, 1 / 16)):
        found = counts.compare("a", rows=range(size), sampling=Bootstrap(200))["b"]
        assert all(score.p_value is not None and score.p_value >= least for score in found)
    assert [score.p_value for score in counts.compare("a", sampling=Bootstrap(200))["b"]] == [1 / 201, 1 / 201]


def test_what_cannot_be_compared_is_refused() -> None:
    with pytest.raises(CorpusError, match="the baseline must be one of a, b, but is 'c'"):
        compare_systems("translate", {"a": ["x"], "b": ["x"]}, ["x"], baseline="c")
    with pytest.raises(CorpusError, match="b has 2 hypotheses for 1 references"):
        compare_systems("translate", {"a": ["x"], "b": ["x", "y"]}, ["x"], baseline="a")
    with pytest.raises(CorpusError, match="a has 0 hypotheses for 0 references"):
        compare_systems("translate", {"a": []}, [], baseline="a")


@pytest.mark.parametrize("task", OWN)
def test_numbers_are_those_of_sacrebleu(references: list[str], task: str) -> None:
    """Its own paired test draws the same test sets; it sums in float32."""
    from sacrebleu.significance import PairedTest, Result

    systems = {"base": noisy(references, 0.3, 1), "other": noisy(references, 0.35, 2)}
    found = compare_systems(task, systems, references, baseline="base", sampling=Bootstrap(200))
    for index, (name, metric) in enumerate(corpus_metrics(task, "en").items()):
        test = PairedTest(list(systems.items()), {name: metric}, [references], test_type="bs", n_samples=200)
        signatures, results = test()
        ((key, signature),) = signatures.items()
        for system, result in zip(systems, results[key], strict=True):
            assert isinstance(result, Result) and result.ci is not None
            own = found[system][index]
            assert own.value == pytest.approx(result.score, abs=0.006)
            assert own.interval == pytest.approx(result.ci, abs=0.006)
            assert own.p_value == pytest.approx(result.p_value, abs=1.1 / 201)  # where gaps tie
            assert own.signature == str(signature)


def test_another_seed_draws_other_sets(references: list[str]) -> None:
    systems = {"a": noisy(references, 0.2, 1), "b": noisy(references, 0.3, 2)}
    counts = Counts(corpus_metrics("translate", "en"), systems, references)
    first, again, other = (counts.compare("a", sampling=Bootstrap(100, seed)) for seed in (1, 1, 2))
    assert first == again
    assert [s.value for s in first["b"]] == [s.value for s in other["b"]]
    assert [s.interval for s in first["b"]] != [s.interval for s in other["b"]]
    assert "bs:100|seed:2|" in other["a"][0].signature


def test_what_is_held_at_once_changes_no_draw(references: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    systems = {"a": noisy(references, 0.2, 1), "b": noisy(references, 0.3, 2)}
    counts = Counts(corpus_metrics("translate", "en"), systems, references)
    whole = counts.compare("a", sampling=Bootstrap(70))
    monkeypatch.setattr(significance, "_HELD", 3 * len(references))
    assert counts.compare("a", sampling=Bootstrap(70)) == whole


def test_a_part_counts_as_a_set_of_its_own(references: list[str]) -> None:
    rows, sampling = [3, 4, 17, 60, 79], Bootstrap(50)
    systems = {"a": noisy(references, 0.2, 1), "b": noisy(references, 0.3, 2)}
    part = {name: [texts[row] for row in rows] for name, texts in systems.items()}
    metrics = all_metrics("translate", "de")
    alone = Counts(metrics, part, [references[row] for row in rows]).compare("a", sampling=sampling)
    found = Counts(metrics, systems, references).compare("a", rows=rows, sampling=sampling)
    assert found == alone
    chosen = Counts(metrics, systems, references).compare("a", rows=rows, metrics=["TER"], sampling=sampling)
    assert {name: [s for s in scores if s.metric == "TER"] for name, scores in alone.items()} == chosen


@pytest.mark.parametrize("task", ["postedit", "summarize"])
def test_of_several_references_all_count(references: list[str], task: str) -> None:
    further = [noisy(references, 0.5, 8), noisy(references, 0.1, 9)]
    systems = {"a": noisy(references, 0.2, 1), "b": noisy(references, 0.3, 2)}
    metrics = all_metrics(task, "de")
    found = Counts(metrics, systems, references, further).compare("a", sampling=Bootstrap(20))["b"]
    one = Counts(metrics, systems, references).compare("a", sampling=Bootstrap(20))["b"]
    for score, alone, metric in zip(found, one, metrics.values(), strict=True):
        expected = metric.corpus_score(systems["b"], [references, *further]).score
        assert score.value == pytest.approx(expected, abs=0.006)
        assert score.value != alone.value
        assert "nrefs:3|" in score.signature


def test_fewer_further_references_are_refused(references: list[str]) -> None:
    with pytest.raises(CorpusError, match="80 first references, but 79 further ones"):
        Counts(corpus_metrics("translate", "en"), {"a": references}, references, [references, references[1:]])


def test_sentences_are_scored_alone() -> None:
    counts = Counts(corpus_metrics("translate", "en"), {"a": ["abc", "", "abd"]}, ["abc", "abc", "abc"])
    whole, nothing, part = counts.sentence_scores("a", "chrF")
    assert (whole, nothing) == (100.0, 0.0) and 0 < part < 100


def test_what_is_shown() -> None:
    score = significance.ComparedScore("BLEU", 30.0, 1.25, -0.5, (-1.0, 0.25), 0.0009, "")
    assert (score.shown, score.p_shown) == ("30.00 ± 1.25", "< 0.001")
    assert score.difference_shown == "-0.50 (-1.00 to +0.25)"
    baseline = significance.ComparedScore("BLEU", 30.0, 1.25, None, None, None, "")
    assert (baseline.difference_shown, baseline.p_shown) == ("–", "–")


def test_several_runs_of_a_system_are_counted_together() -> None:
    """As one text of all of them is; draws take a sentence with all its translations, not one of them."""
    references = [f"the {word} is here now today" for word in "abcdefgh"]
    other = [line.replace("now", "then") for line in references]
    metrics = corpus_metrics("translate", "en")
    together = Counts(metrics, {"a": [*references, *other], "b": other * 2}, references, runs=2).compare("b")
    whole = Counts(metrics, {"a": [*references, *other]}, references * 2).compare("a")
    assert [one.value for one in together["a"]] == [one.value for one in whole["a"]]
    same = Counts(metrics, {"a": references, "b": other}, references).compare("b")
    twice = Counts(metrics, {"a": references * 2, "b": other * 2}, references, runs=2).compare("b")
    assert [one.interval for one in twice["b"]] == [one.interval for one in same["b"]], "no more sentences than before"
    with pytest.raises(CorpusError, match="a has 8 hypotheses for 2 times 8 references"):
        Counts(metrics, {"a": references}, references, runs=2)
