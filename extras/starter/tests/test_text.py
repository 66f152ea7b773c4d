"""Two files become pairs: what is left out, what is warned of, and how text is measured."""

from __future__ import annotations

import gzip
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tandem.extras.starter.text import Screened, character_count, estimated_tokens, screen
from tandem.models.errors import CorpusError
from tandem.training.data.config import CorpusConfig, DataConfig, FilterConfig
from tandem.training.data.corpus import clean_line
from tests.training.toy import write_lines

DATA = DataConfig(
    (CorpusConfig("a", ("{split}.de",), "{split}.en", "CC0", "nobody"),),
    filters=FilterConfig(max_length_ratio=4.0),
    max_source_tokens=256,
    max_target_tokens=256,
)


def screened(folder: Path, source: list[str], target: list[str], *, same_language: bool = False) -> Screened:
    for name, lines in (("a.de", source), ("a.en", target)):
        write_lines(folder / name, lines)
    return screen(folder / "a.de", folder / "a.en", same_language=same_language)


def test_what_is_left_out_is_counted(tmp_path: Path) -> None:
    source = ["ein Hund", "", "zwei", "ein Hund", "nicht übersetzt ist das", "Tom Smith", " ein  Hund "]
    target = ["a dog", "x", " \t", "a dog", "nicht übersetzt ist das", "Tom Smith", "a dog"]
    found = screened(tmp_path, source, target)
    assert found.pairs == (("ein Hund", "a dog"), ("Tom Smith", "Tom Smith"), ("ein  Hund", "a dog"))
    assert found.dropped == {"empty": 2, "duplicate": 1, "untranslated": 1}
    assert found.lines == 7
    assert "untranslated" not in screened(tmp_path, source, target, same_language=True).dropped


def test_lines_are_cleaned(tmp_path: Path) -> None:
    (tmp_path / "a.de").write_bytes("\ufeffein Hund\r\nzwei\u2028Hunde\r\n".encode())
    (tmp_path / "a.en.gz").write_bytes(gzip.compress(b"a dog\ntwo dogs"))
    found = screen(tmp_path / "a.de", tmp_path / "a.en.gz")
    assert found.pairs == (("ein Hund", "a dog"), ("zwei\u2028Hunde", "two dogs"))
    assert clean_line("e\u0301\x00\t") == "é"


@pytest.mark.parametrize(
    ("source", "target", "fault"),
    [
        (b"a\nb\nc\n", b"a\nb\n", r"a\.de, line 3: no counterpart; it has 3 lines, but .*a\.en has 2"),
        (b"a\nb\xff\n", b"a\nb\n", r"a\.de, line 2: not UTF-8"),
        (b"\n\n", b"a\nb\n", r"no pair is left of 2 lines \(2 empty\)"),
        (b"", b"", r"no pair is left of 0 lines \(the files are empty\)"),
    ],
)
def test_files_that_are_no_corpus(tmp_path: Path, source: bytes, target: bytes, fault: str) -> None:
    (tmp_path / "a.de").write_bytes(source)
    (tmp_path / "a.en").write_bytes(target)
    with pytest.raises(CorpusError, match=fault):
        screen(tmp_path / "a.de", tmp_path / "a.en")


def sentences(count: int) -> list[str]:
    rng = np.random.default_rng(1)
    return [f"{number} " + "wort " * int(rng.integers(1, 30)) for number in range(count)]


def test_text_that_is_as_it_should_be_is_not_warned_of(tmp_path: Path) -> None:
    source = sentences(300)
    found = screened(tmp_path, source, [line.replace("wort", "words") for line in source])
    assert found.correlation > 0.9
    assert found.warnings(DATA) == []


@pytest.mark.parametrize(
    ("source", "target", "fault"),
    [
        (sentences(300), [*sentences(300)[7:], *sentences(7)], "hardly go together"),
        (sentences(300), [*sentences(60), *(f"{line} x" for line in sentences(300)[60:])], "of the lines equal"),
        (["lang " * 250] * 3 + sentences(97), ["long " * 250] * 3 + sentences(97), "3.0% of the pairs are longer"),
        (
            ["a"] * 30 + sentences(70),
            [f"a b c d e f g h {n}" for n in range(30)] + sentences(70),
            "4 times as many words",
        ),
    ],
)
def test_what_looks_wrong_is_said(tmp_path: Path, source: list[str], target: list[str], fault: str) -> None:
    source = [f"{line} {number}" if fault != "of the lines equal" else line for number, line in enumerate(source)]
    found = screened(tmp_path, source, target, same_language=fault != "of the lines equal").warnings(DATA)
    assert [fault in warning for warning in found].count(True) == 1, found


def test_words_do_not_count_where_text_has_no_spaces(tmp_path: Path) -> None:
    source = [f"我们在图书馆里学习第{number}课" for number in range(50)]
    target = [f"we are studying lesson {number} in the library" for number in range(50)]
    found = screened(tmp_path, source, target)
    assert found.uneven(4.0) == 1.0 and not found.has_words
    assert not any("words" in warning for warning in found.warnings(DATA))


def test_summaries_are_as_short_as_they_like(tmp_path: Path) -> None:
    """Twenty of a hundred texts have about 143 tokens, of which the recipe reads 128; one summary has 58 of 48."""
    source = ["lang " * 100] * 20 + ["kurz " * 20] * 80
    source = [f"{line}{number}" for number, line in enumerate(source)]
    target = [f"{'a' * (7 * (number % 9) + 1)} {number}" for number in range(98)] + ["b" * 200, "c" * 200]
    found = screened(tmp_path, source, target, same_language=True)
    data = replace(DATA, filters=FilterConfig(), max_source_tokens=128, max_target_tokens=48, truncate_source=True)
    assert found.correlation < 0.3
    assert found.warnings(data, summaries=True) == [
        "20.0% of the sources are longer than about 128 tokens: the model reads their beginning, and the rest is cut"
        " off",
        "2.0% of the targets are longer than about 48 tokens, and those pairs will not be trained on: shorten them",
    ]
    assert (
        "22.0% of the pairs are longer than about 128 tokens and will not be"
        in found.warnings(replace(data, truncate_source=False), summaries=True)[0]
    )


def test_lines_of_one_length_are_not_called_unrelated(tmp_path: Path) -> None:
    assert screened(tmp_path, ["ab", "cd", "ef"], ["abc", "def", "g"]).correlation == 1.0


def test_tokens_are_estimated_by_script() -> None:
    assert estimated_tokens("a" * 35) == 10
    assert estimated_tokens("我们学习") == 4
    assert estimated_tokens("я" * 35) == 10
    assert estimated_tokens("") == 0


def test_rare_characters_do_not_count() -> None:
    assert character_count(["ab" * 5000, "z"]) == 2
    assert character_count(["ab" * 5000, "z" * 100]) == 3
    assert character_count(["a"]) == 1
