"""Apostrophes behind a backslash, as some programs want them."""

from __future__ import annotations

import pytest

from tandem.extras.strings.strings import ApostropheStage
from tandem.service.text.masking import Masked
from tandem.service.translation.fidelity import fidelity
from tandem.service.translation.stages import StagedSentence


@pytest.mark.parametrize(
    ("sent", "read", "written", "finished"),
    [
        (
            r"It isn\'t Anna\'s",
            "It isn't Anna's",
            "L'amie n'est pas l'une d'elles",
            r"L\'amie n\'est pas l\'une d\'elles",
        ),
        (r"It isn\'t", "It isn't", r"Nicht\'s", r"Nicht\'s"),
        (r"It isn\'t Anna's", r"It isn\'t Anna's", "L'amie", "L'amie"),  # the text does not keep to it
        ("It isn't", "It isn't", "L'amie", "L'amie"),
    ],
)
def test_apostrophes_are_written_as_they_were_sent(sent: str, read: str, written: str, finished: str) -> None:
    sentence = Masked(sent)
    stage = ApostropheStage()
    assert stage.prepare(sentence).text == read
    staged = StagedSentence(sentence, Masked(read))
    assert stage.finish(written, staged) == finished
    assert fidelity().check(finished, staged, "fr", frozenset(), begins=False)[1] == ()
