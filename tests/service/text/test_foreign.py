"""What no model can read: characters that its vocabulary has no piece for."""

from __future__ import annotations

import pytest

from models.vocabulary import WordVocabulary
from service.text.foreign import Alphabet, find_foreign
from tests.service.support import tiny_vocabulary

TINY = Alphabet(tiny_vocabulary())
CYRILLIC = Alphabet(WordVocabulary(["привет", "мир"]))


@pytest.mark.parametrize(
    ("text", "foreign"),
    [
        ("das haus ist alt: $ + = ^", []),
        ("ein 🍕haus👍🏽🎉 und 🏴󠁧󠁢󠁳󠁣󠁴󠁿", ["🍕", "👍🏽🎉", "🏴󠁧󠁢󠁳󠁣󠁴󠁿"]),
        ("Ein 日本、мир", ["日本", "мир"]),
        ("haŭs, ŭh und 日本haus", []),  # parts of words
        ("„das“ – haus…", []),  # marks are no signs
    ],
)
def test_signs_and_whole_words_are_foreign(text: str, foreign: list[str]) -> None:
    places = find_foreign(text, [TINY])
    assert [part.source for _, part in places] == foreign
    assert all(text[span.start : span.end] == part.target and not part.asked for span, part in places)


def test_all_models_must_know_a_character() -> None:
    assert find_foreign("привет, мир", [CYRILLIC]) == []
    assert [part.source for _, part in find_foreign("мир и haus", [CYRILLIC, TINY])] == ["мир", "и"]
