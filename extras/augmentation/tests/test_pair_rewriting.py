"""Things to copy and surroundings: what is put into one side stands in the other, and the words stay what they were."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from random import Random

import pytest

from tandem.extras.augmentation import borders, copyables, names
from tandem.extras.augmentation.borders import Texts
from tandem.extras.augmentation.pairs import PairRewriter, capitalised
from tandem.extras.augmentation.substitution import substituted
from tandem.models.errors import ConfigError
from tandem.models.text import as_read, normalise
from tandem.training.data.config import AugmentationConfig
from tests.shipped import ROOT

MAKERS = (copyables.number, copyables.identifier, copyables.slot, copyables.emoji, names.name)
PAIR = ("Wir haben 3 Hunde in Boston gesehen.", "We saw 3 dogs in Boston.")
LABEL = ("Datei öffnen", "Open file")


def draws(make: Callable[[Random], str], seed: int = 0, count: int = 400) -> list[str]:
    random = Random(seed)
    return [make(random) for _ in range(count)]


@pytest.mark.parametrize("make", MAKERS)
def test_what_is_made_is_read_as_it_stands_and_is_of_many_kinds(make: Callable[[Random], str]) -> None:
    made = draws(make)
    assert all(text and text == as_read(normalise(text)) for text in made)
    assert not any("⟨" in text for text in made)
    assert len(set(made)) > 60
    assert made == draws(make)  # a function of the generator alone
    assert made != draws(make, seed=1)


def test_numbers_have_up_to_twenty_digits_and_the_forms_of_dates_and_addresses() -> None:
    made = draws(copyables.number, count=3000)
    lengths = {len(text) for text in made if text.isdigit()}
    assert {1, 6, 10, 20} <= lengths and max(lengths) == 20
    for form in (
        r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ",
        r"(\d+\.){3}\d+",
        r"\+\d\d .*",
        r"\d+\.\d+\.\d+-rc1",
        r"\d{1,2}:\d\d",
    ):
        assert any(re.fullmatch(form, text) for text in made), form


@pytest.mark.parametrize(
    ("make", "forms"),
    [
        (
            copyables.identifier,
            (r"[0-9a-f]{40}", r"\w+@\w+\.\w+", r"https://.*", r"@\w+", r"#\w+", r":\w+:", r"C:\\.*", r"`.*`"),
        ),
        (
            copyables.slot,
            (r"\{\w+\}", r"%s", r"%\d\$s", r"\{\{.*\|.*\}\}", r"<%= \w+ %>", r"\*\|\w+\|\*", r"%d%%", r"\\n"),
        ),
    ],
)
def test_identifiers_and_placeholders_are_of_the_common_families(
    make: Callable[[Random], str], forms: tuple[str, ...]
) -> None:
    made = draws(make, count=4000)
    for form in forms:
        assert any(re.fullmatch(form, text) for text in made), form


def test_names_are_of_people_and_places_and_none_is_called_otherwise_elsewhere() -> None:
    made = draws(names.name, count=4000)
    assert not {"München", "Köln", "Warszawa", "Praha", "Berlin"} & set(made)
    assert any(not text.isascii() for text in made) and any(" " in text for text in made)
    assert any(re.fullmatch(r"[Ѐ-ӿ ]+", text) for text in made)  # other scripts, which are spelt in bytes


def test_without_faker_an_error_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "faker", None)
    for module in [name for name in sys.modules if name.startswith("faker.")]:
        monkeypatch.delitem(sys.modules, module)
    names._provider.cache_clear()
    names._listed.cache_clear()
    with pytest.raises(ConfigError, match=r"names needs the lists of Faker.*the extra \[train\]"):
        draws(names.name)
    names._provider.cache_clear()
    names._listed.cache_clear()


def test_names_are_drawn_alike_in_every_process() -> None:
    """Some of Faker's lists come from sets, whose order depends on the process."""
    draw = "print([names.name(random) for _ in range(3000)])"
    code = f"from random import Random; from tandem.extras.augmentation import names; random = Random(1); {draw}"
    printed = {
        subprocess.run(
            [sys.executable, "-c", code],
            cwd=ROOT,
            env=os.environ | {"PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(printed) == 1


def test_a_number_or_name_of_both_sides_gives_way_to_the_same_thing_on_both() -> None:
    random = Random(2)
    for _ in range(300):
        texts = substituted(PAIR, random, names=0.4)
        assert texts is not None
        found = [
            re.fullmatch(form, text)
            for form, text in zip(
                (r"Wir haben (.+) Hunde in (.+) gesehen\.", r"We saw (.+) dogs in (.+)\."), texts, strict=True
            )
        ]
        assert found[0] and found[1] and found[0].groups() == found[1].groups()
        assert found[0].groups() != ("3", "Boston")


@pytest.mark.parametrize(
    "texts",
    [
        ("Der Hund bellt.", "The dog barks."),
        ("Am 3. Mai", "On 3 May 2003"),  # the digit is a part of another number on one side
        ("Tom sah Tom.", "Tom saw himself, and Tom."),
        ("Um 3.5 Uhr", "At 3.5"),  # numbers with points mean what their language makes of them
    ],
)
def test_what_stands_on_one_side_or_twice_or_in_a_number_stays(texts: Texts) -> None:
    random = Random(1)
    assert all(substituted(texts, random, names=0.5) is None for _ in range(50))


@pytest.mark.parametrize("around", [borders.wrapped, borders.preceded, borders.followed])
def test_surroundings_are_the_same_on_both_sides(around: Callable[[Texts, Random], Texts]) -> None:
    random = Random(3)
    seen = set()
    for _ in range(300):
        source, target = around(PAIR, random)
        before, inside, after = source.partition(PAIR[0])
        assert inside and target == f"{before}{PAIR[1]}{after}" and before + after
        seen.add((before, after))
    assert len(seen) > 20


def test_quotation_marks_are_the_targets_own_and_straight_ones_stay() -> None:
    random = Random(4)
    made = {borders.quoted(LABEL, random, (("en",), "fr")) for _ in range(100)}
    assert made == {
        ('"Datei öffnen"', '"Open file"'),
        ("“Datei öffnen”", "«\u00a0Open file\u00a0»"),
        ("‘Datei öffnen’", "«\u00a0Open file\u00a0»"),
    }
    sources = {borders.quoted(LABEL, random, (("de", "fr"), "en"))[0] for _ in range(200)}
    assert {"„Datei öffnen“", "»Datei öffnen«", "« Datei öffnen »"} <= sources
    assert all(borders.quoted(LABEL, random, (("xx",), "yy"))[0] == '"Datei öffnen"' for _ in range(20))


def test_entries_of_a_row_stand_in_the_same_order_on_both_sides() -> None:
    random = Random(5)
    for _ in range(100):
        source, target = borders.joined([LABEL, ("Ja", "Yes"), ("Nein", "No")], random)
        between = source.removeprefix("| ").removeprefix("Datei öffnen").split("Ja")[0]
        assert source.strip("| ") == f"Datei öffnen{between}Ja{between}Nein"
        assert target.strip("| ") == f"Open file{between}Yes{between}No"


def test_ends_change_alike_or_not_at_all() -> None:
    random = Random(6)
    made = {borders.ended(("Das ist gut.", "That is good."), random) for _ in range(100)}
    assert ("Das ist gut", "That is good") in made and ("Das ist gut!", "That is good!") in made
    assert all(source[len("Das ist gut") :] == target[len("That is good") :] for source, target in made)
    assert borders.ended(("Ja.", "Yes"), random) == ("Ja.", "Yes")
    assert borders.ended(("und so weiter...", "and so on..."), random) == ("und so weiter...", "and so on...")


def test_capitals_are_of_the_whole_pair_or_of_a_source_or_of_a_label() -> None:
    random = Random(7)
    assert {capitalised(("datei öffnen", "open file"), random) for _ in range(60)} == {
        ("DATEI ÖFFNEN", "OPEN FILE"),
        ("Datei Öffnen", "open file"),
        ("Datei öffnen", "Open file"),
    }


ALL = AugmentationConfig(0.3, 0.3, 0.3, 0.3, 0.2, 0.3)


def rewriter(config: AugmentationConfig, *, seed: int = 1) -> PairRewriter:
    pairs = [PAIR, LABEL, ("Das ist gut.", "That is good.")] * 40
    columns = [source for source, _ in pairs], [target for _, target in pairs]
    return PairRewriter(config, columns, [(("de",), "en")] * 120, [False] * 120, Random(seed))


def test_what_is_drawn_is_changed_and_is_a_function_of_the_generator() -> None:
    changed = rewriter(ALL).rewritten()
    assert 60 < len(changed) < 120
    assert changed == rewriter(ALL).rewritten()
    assert changed != rewriter(ALL, seed=2).rewritten()
    assert rewriter(AugmentationConfig()).rewritten() == {}


def test_each_kind_can_be_switched_off() -> None:
    for field in ("substitutes", "borders", "joins", "capitals", "ends"):
        assert rewriter(replace(AugmentationConfig(), **{field: 0.9})).rewritten(), field


def test_pairs_with_placeholders_keep_their_spelling() -> None:
    texts = ("⟨ph3⟩ Hunde in Boston", "⟨ph3⟩ dogs in Boston")
    config = AugmentationConfig(0.9, 0.5, 0.5, 0.5, 0.9, 0.5)
    changed = PairRewriter(config, [[side] * 50 for side in texts], [(("de",), "en")] * 50, [True] * 50, Random(1))
    made = changed.rewritten()
    assert made
    for pair in made.values():
        assert all(text in side for text, side in zip(texts, pair, strict=True))
