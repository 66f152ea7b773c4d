"""Of a range of days or hours neither end is written anew, since both share what stands behind the second."""

from __future__ import annotations

import pytest

from tandem.extras.rewriting.casing import calm
from tandem.extras.rewriting.conventions.dates import find_dates


@pytest.mark.parametrize(
    ("text", "languages", "found"),
    [
        ("von 14 bis 16 Uhr", ("de", "en"), 0),
        ("um 14 und 16 Uhr", ("de", "en"), 0),
        ("Am 3. Mai 2024, 14 Uhr", ("de", "en"), 2),
        ("Raum 5, 14 Uhr", ("de", "en"), 1),
        ("vom 3. bis 5. Mai", ("de", "en"), 0),
        ("von 14 Uhr bis 16 Uhr", ("de", "en"), 2),
        ("um 16 Uhr", ("de", "en"), 1),
        ("de 10h à 12h et de 14 h 30 à 18 heures", ("fr", "en"), 0),
        ("il vient à 12h", ("fr", "en"), 1),
        ("Open from 2 to 4 pm.", ("en", "de"), 0),
        ("Open from 2 pm to 4 pm.", ("en", "de"), 2),
        ("Meet between 1 and 3 pm.", ("en", "fr"), 0),
    ],
)
def test_the_second_number_of_a_range_is_left(text: str, languages: tuple[str, str], found: int) -> None:
    assert len(find_dates(text, *languages)) == found


def test_two_acronyms_are_no_shouted_sentence() -> None:
    known = {"DAS": "das", "IST": "ist", "HAUS": "Haus", "das": "das", "ist": "ist", "haus": "Haus"}

    def spelling(word: str) -> str:
        return known.get(word, word)

    assert calm("DIN A4", spelling) == "DIN A4"
    assert calm("DAS HAUS", spelling) == "Das Haus"
