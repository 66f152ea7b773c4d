"""Stages one after another, whatever they do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from service.text.masking import Masked
from service.translation.candidates import Candidate
from service.translation.stages import (
    LONGEST_KNOWN,
    Recalled,
    Retry,
    StagedSentence,
    finished,
    judged,
    prepared,
    recalled,
)

HELLO = StagedSentence(Masked("hello"), Masked("hello"))


@dataclass
class Signed:
    """Leaves its name wherever it is asked."""

    name: str
    knows: Recalled | None = None
    wants: Retry | None = None
    asked: list[str] = field(default_factory=list)

    def prepare(self, sentence: Masked) -> Masked:
        return replace(sentence, text=sentence.text + self.name)

    def known(self, sentence: StagedSentence) -> Recalled | None:
        self.asked.append(sentence.sent.text)
        return self.knows

    def judge(self, sentence: StagedSentence, candidates: Sequence[Candidate]) -> Retry | None:
        return self.wants

    def finish(self, text: str, sentence: StagedSentence) -> str:
        return text + self.name


def test_the_last_to_prepare_is_the_first_to_finish() -> None:
    stages = [Signed("a"), Signed("b")]
    assert prepared(stages, HELLO.sent).text == "helloab"
    assert finished(stages, "hallo", HELLO) == "halloba"


def test_the_first_that_knows_or_wants_something_is_heard() -> None:
    knows, wants = Recalled(("hallo",)), Retry(frozenset({1}), 9)
    stages = [Signed("a"), Signed("b", knows, wants), Signed("c", Recalled(("hi",)), Retry(frozenset(), 1))]
    assert recalled(stages, HELLO) is knows
    assert judged(stages, HELLO, [Candidate("hallo", None)]) is wants
    assert stages[2].asked == []


def test_without_stages_a_sentence_is_as_it_was() -> None:
    assert prepared([], HELLO.sent) is HELLO.sent
    assert recalled([], HELLO) is None
    assert judged([], HELLO, [Candidate("hallo", None)]) is None
    assert finished([], "hallo", HELLO) == "hallo"


def test_of_long_sentences_nobody_is_asked() -> None:
    stage = Signed("a", Recalled(("hallo",)))
    longest, longer = (Masked("a" * (LONGEST_KNOWN + more)) for more in (0, 1))
    assert (
        recalled([stage], StagedSentence(longest, longest))
        and recalled([stage], StagedSentence(longer, longer)) is None
    )
    assert stage.asked == [longest.text]
