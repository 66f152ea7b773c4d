"""What no model can read: characters that its vocabulary has no piece for."""

from __future__ import annotations

from itertools import pairwise

import pytest

from tandem.models.bundle import Bundle
from tandem.models.vocabulary import WordVocabulary
from tandem.service.text.foreign import Alphabet, find_foreign
from tandem.service.text.masking import Hidden, Masked
from tandem.service.text.spans import Span
from tests.service.support import tiny_vocabulary
from tests.shipped import SHIPPED

TINY = Alphabet(tiny_vocabulary())
CYRILLIC = Alphabet(WordVocabulary(["привет", "мир"]))


def found(text: str, alphabet: Alphabet, *, rare: bool = False) -> list[str]:
    places = find_foreign(Masked.of(text), alphabet, rare=rare)
    assert all(text[span.start : span.end] == part.target and not part.asked for span, part in places)
    assert all(before.end < after.start for (before, _), (after, _) in pairwise(places))
    return [part.source for _, part in places]


def test_what_stands_in_no_longer_piece_is_rare() -> None:
    rare = Alphabet(Bundle.load(SHIPPED).source_vocabularies[0]).rare
    assert {*"½ΩαŁźñø″²"} <= rare
    assert rare.isdisjoint("aZ5äßÄéçœŒÀëï„«–’$%")


@pytest.mark.parametrize(
    ("text", "foreign"),
    [
        ("das haus ist alt: $ + = ^", ["$", "+", "=", "^"]),
        ("ein 🍕haus👍🏽🎉 und 🏴󠁧󠁢󠁳󠁣󠁴󠁿", ["🍕", "👍🏽🎉", "🏴󠁧󠁢󠁳󠁣󠁴󠁿"]),
        ("neu \U0001fa77 und \U0001fae8\ufe0f", ["\U0001fa77", "\U0001fae8\ufe0f"]),
        ("wir haben 2️⃣ im haus ❤️ #️⃣", ["2️⃣", "❤️", "#️⃣"]),
        ("das § haus ‰ • alt † heute → morgen", ["§", "‰", "•", "†", "→"]),
        ("ein \ue123 haus", ["\ue123"]),  # of a font of icons
        ("Ein 日本、мир", ["日本、мир"]),
        ("日本haus", ["日本"]),
        ("haŭs, ŭh, ŭĥ", ["ŭĥ"]),
        ("ha\u0304us haus", []),
        ("„das“ – haus… ‘es’ «ist» alt.", []),  # marks, which no language keeps as they are
        ("das ha\u00adus\u200b heute\u00a0morgen", []),  # not read
        ("es *ist* das **haus** und _gross_", ["*", "*", "**", "**", "_", "_"]),
        ("haus|dir | alt", ["|", "|"]),
        ("wo <- und :=", ["<-", ":="]),
        ("@wo AT&T C++ [geht] 50%", ["@wo", "AT&T", "C++", "[geht]", "50%"]),
        ("[[es]] #haus gut~ x_y", ["[[es]]", "#haus", "gut~", "x_y"]),
        ("[wo ist es]", ["[", "]"]),
        ("⟨ < ▁", ["⟨", "<", "▁"]),  # in the names of pieces only
    ],
)  # fmt: skip
def test_signs_and_whole_words_are_foreign(text: str, foreign: list[str]) -> None:
    assert found(text, TINY) == foreign


def test_without_bytes_a_word_with_one_unknown_letter_is_lost() -> None:
    """So it is hidden whole: of "Müller" an imported model read "Mller"."""
    assert TINY.spells and not CYRILLIC.spells
    assert found("привет мир мирü", CYRILLIC) == ["мирü"]
    assert found("haus haŭs", TINY) == []


def test_what_is_hidden_is_no_foreign_sign() -> None:
    masked = Masked.of("das {x}→ haus").hide([(Span(4, 7), Hidden.kept("{x}"))])
    assert [part.source for _, part in find_foreign(masked, TINY)] == ["→"]


@pytest.mark.parametrize("joiner", ["\ufe0f", "\u200d", "\U0001f3fd"])
def test_what_is_hidden_is_no_part_of_an_emoji(joiner: str) -> None:
    masked = Masked.of(f"das {{x}}{joiner} haus {{y}}").hide([(Span(4, 7), Hidden.kept("{x}"))])
    hidden = masked.hide(find_foreign(masked, TINY))
    assert [part.source for part in hidden.hidden] == ["{x}", joiner, "{", "}"]
    assert hidden.fill([part.source for part in hidden.hidden]) == f"das {{x}}{joiner} haus {{y}}"


def test_each_model_knows_other_characters() -> None:
    assert found("привет, мир", CYRILLIC) == []
    assert found("мир и haus", CYRILLIC) == ["haus"]
    assert found("мир и haus", TINY) == ["мир", "и"]


def test_what_is_hardly_known_may_count_as_unknown() -> None:
    alphabet = Alphabet(Bundle.load(SHIPPED).source_vocabularies[0])
    assert found("Łódź und Müller", alphabet) == []
    assert found("Łódź und Müller", alphabet, rare=True) == ["Łódź"]


def test_a_vocabulary_is_asked_for_each_character_once() -> None:
    asked: list[str] = []

    class Asked(WordVocabulary):
        def reads(self, character: str) -> bool:
            asked.append(character)
            return super().reads(character)

    alphabet = Alphabet(Asked(["haus"]))
    for _ in range(3):
        assert found("haus § → haus", alphabet) == ["§", "→"]
    assert len(asked) == len(set(asked)) and {*"haus§→"} <= {*asked}
