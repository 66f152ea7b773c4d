"""Passes: who runs when, what is counted, and what rows make of it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from tandem.extras.laboratory.decoding.passes import (
    Case,
    DecodingPass,
    MeasuredCase,
    Workload,
    against,
    measure_cases,
    output_hash,
    row_of,
    run,
)
from tandem.extras.laboratory.decoding.systems import Ids, Label, Task
from tandem.models.search import Hypothesis

TEXTS = tuple(" ".join("w" * n) for n in (2, 9, 4, 6, 3, 8, 5, 7))
LABEL = Label("tandem", "echo", "int8")


class Echo:
    """Answers each text with its own tokens, as many as it is told to; notes what it is asked to do."""

    def __init__(self, label: Label = LABEL, *, wandering: bool = False) -> None:
        self.label = label
        self.tasks: list[Task] = []
        self.alone: list[Task] = []
        self._wandering = wandering

    def tokenise(self, texts: Sequence[str]) -> list[Ids]:
        return [np.array([*range(10, 10 + len(text.split())), 3], np.int64) for text in texts]

    def decode(self, tasks: Sequence[Task]) -> list[list[Hypothesis]]:
        self.tasks += tasks
        return [self._answer(task) for task in tasks]

    def decode_alone(self, task: Task) -> list[Hypothesis]:
        self.alone.append(task)
        return self._answer(task)

    def detokenise(self, texts: Sequence[str], hypotheses: Sequence[Hypothesis]) -> list[str]:
        assert len(texts) == len(hypotheses)
        return [" ".join(map(str, one.tokens)) for one in hypotheses]

    def close(self) -> None:
        pass

    def _answer(self, task: Task) -> list[Hypothesis]:
        shift = len(self.tasks) + len(self.alone) if self._wandering else 0
        found = [np.resize(source[:-1], task.target or len(source) - 1) + shift for source in task.sources]
        return [Hypothesis(tuple(tokens.tolist()), 0.0, 0.0, True, ()) for tokens in found]


def case_of(system: Echo, batch_size: int, work: str = "forced") -> Case:
    made = Workload("forced" if work == "forced" else "text", TEXTS)
    return Case.of(system, made, batch_size, workers=2, single=4)


def test_systems_take_turns_after_the_warm_up() -> None:
    first, second = case_of(Echo(), 4), case_of(Echo(), 4)
    seen: list[tuple[int, int]] = []
    measured = measure_cases(
        [first, second], 3, lambda case, number: seen.append(([first, second].index(case), number))
    )
    assert seen == [(0, 0), (1, 0), (0, 1), (1, 1), (0, 2), (1, 2), (0, 3), (1, 3)]
    assert [len(one.passes) for one in measured] == [3, 3]


def test_a_batch_decodes_its_mean_source_length() -> None:
    system = Echo()
    case = case_of(system, 4)
    made = run(case, case.batches)
    assert sorted((task.target or 0, sorted(len(s) - 1 for s in task.sources)) for task in system.tasks) == [
        (4, [2, 3, 4, 5]),  # 3.5, rounded to even
        (8, [6, 7, 8, 9]),
    ]
    assert not system.alone
    assert sorted(made.hypotheses) == list(range(len(TEXTS)))
    for index, hypothesis in made.hypotheses.items():
        own = list(range(10, 10 + len(TEXTS[index].split())))
        assert hypothesis.tokens == tuple(np.resize(own, 4 if len(own) <= 5 else 8))
        assert made.texts[index] == " ".join(map(str, hypothesis.tokens))
    assert 0 < made.decode_seconds <= made.seconds


def test_one_sentence_alone_is_one_thread_and_a_sample() -> None:
    system = Echo()
    case = case_of(system, 1)
    made = run(case, case.batches)
    assert case.threads == 1 and case_of(Echo(), 2).threads == 2
    assert not system.tasks and all(len(task.sources) == 1 for task in system.alone)
    assert len(made.latencies) == len(made.texts) == 4
    assert made.seconds == pytest.approx(sum(made.latencies))
    assert [task.target for task in system.alone] == [task.longest for task in system.alone]


def test_real_text_stops_by_itself() -> None:
    system = Echo()
    case = case_of(system, 3, "text")
    run(case, case.batches)
    assert {task.target for task in system.tasks} == {None}


def test_outputs_are_told_apart() -> None:
    assert output_hash([[1, 2], [3]]) != output_hash([[1], [2, 3]]) != output_hash([[3], [1, 2]])
    (steady,) = measure_cases([case_of(Echo(), 4)], 2)
    (wandering,) = measure_cases([case_of(Echo(wandering=True), 4)], 2)
    assert row_of(steady, 5)["stable"]
    assert not row_of(wandering, 5)["stable"]


def timing(seconds: float, latencies: tuple[float, ...], hypotheses: dict[int, Hypothesis]) -> DecodingPass:
    return DecodingPass(seconds, seconds / 2, latencies, hypotheses, {})


def measured_in(seconds: Sequence[float], label: Label = LABEL, batch_size: int = 4) -> MeasuredCase:
    case = case_of(Echo(label), batch_size)
    hypotheses = run(case, case.batches).hypotheses
    latencies = tuple(0.01 * n for n in range(1, 5)) if batch_size == 1 else ()
    return MeasuredCase(case, [timing(one, latencies, hypotheses) for one in seconds])


def test_a_row_has_medians() -> None:
    row = row_of(measured_in([2.0, 4.0, 1.0]), 5)
    assert (row["system"], row["model"], row["precision"], row["shortlist"]) == ("tandem", "echo", "int8", False)
    assert (row["threads"], row["batch"], row["beam"], row["workload"], row["passes"]) == (2, 4, 5, "forced", 3)
    assert (row["sentences"], row["target_tokens"]) == (8, 48)
    assert (row["sentences_per_s"], row["tokens_per_s"], row["decode_sentences_per_s"]) == (4.0, 24.0, 8.0)
    assert row["spread"] == pytest.approx((4.0 + 8.0) / 2 - (2.0 + 4.0) / 2)
    assert (row["p50_ms"], row["p95_ms"]) == (None, None)


def test_latencies_belong_to_single_sentences() -> None:
    row = row_of(measured_in([2.0, 4.0], batch_size=1), 5)
    assert row["p50_ms"] == pytest.approx(25.0)
    assert row["p95_ms"] == pytest.approx(38.5)


def test_a_ratio_compares_passes_pairwise() -> None:
    """A machine that is half as fast in one pass is so for both: no pass says anything but twice as fast."""
    ours = measured_in([1.0, 4.0, 2.0])
    peer = measured_in([2.0, 8.0, 4.0], Label("peer", "random", "int8"))
    elsewhere = measured_in([9.0, 9.0, 9.0], Label("peer", "random", "float32"), batch_size=2)
    assert against(ours, [ours, peer, elsewhere]) == {"peer int8": 2.0}
    assert against(peer, [ours, peer]) is None
    assert against(ours, [ours, elsewhere]) is None
