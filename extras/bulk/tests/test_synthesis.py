"""`tandem distil`, `tandem backtranslate` and `tandem robustness`, with a bundle whose model copies."""

from __future__ import annotations

import json
import lzma
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import typer

from tandem.extras.bulk.lines import Line
from tandem.extras.bulk.options import BulkOptions
from tandem.extras.bulk.robustness import robustness
from tandem.extras.bulk.synthesis import Synthesis, synthesise
from tandem.extras.bulk.synthetic import Sieve, nearest
from tandem.extras.bulk.tests.support import Opener, open_copying
from tandem.extras.bulk.translator import BulkTranslator
from tandem.models.errors import ConfigError, CorpusError
from tandem.training.data.corpus import read_lines
from tests.service.support import tiny_bundle

PAIRS = (("de", "en"), ("en", "de"))
LINES = ["wo ist der bahnhof heute", "guten morgen", "", "das haus ist gross", "guten morgen", "wie geht es dir so"]
REFERENCES = ["where is it today", "good morning", "", "das haus ist alt", "good morning", "how are you then"]


@pytest.fixture
def opened() -> Opener:
    return Opener()


def write(path: Path, lines: list[str]) -> Path:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def wanted(folder: Path, **changes: Any) -> Synthesis:
    files = (write(folder / "train.de", LINES),), (write(folder / "train.en", REFERENCES),)
    return replace(Synthesis("distilled", *files, folder / "made", Sieve()), **changes)


def test_a_teacher_writes_targets(tmp_path: Path, opened: Opener, capsys: pytest.CaptureFixture[str]) -> None:
    path = tiny_bundle(tmp_path).path
    made = synthesise(path, wanted(tmp_path), BulkOptions(), opened)
    # A copier writes what it reads, which is no translation but where the reference is the same.
    assert made.dropped == {"copied": 5, "empty": 1} and made.pairs == 0
    assert made.languages == ("de", "en")
    assert 'name = "made"' in capsys.readouterr().out
    assert json.loads((tmp_path / "made/synthetic.json").read_text())["model"] == "de-en"
    stamp = (tmp_path / "made/translated/0.txt.xz").stat().st_mtime_ns
    write(tmp_path / "train.en", [*REFERENCES[:1], "guten morgen", *REFERENCES[2:]])
    again = replace(wanted(tmp_path), references=(write(tmp_path / "other.en", LINES),))
    assert synthesise(path, again, BulkOptions(), opened).dropped == {"empty": 1}
    assert (tmp_path / "made/translated/0.txt.xz").stat().st_mtime_ns == stamp, "translated once"
    assert read_lines(tmp_path / "made/train.de.xz") == read_lines(tmp_path / "made/train.en.xz")
    with pytest.raises(ConfigError, match="cannot resume: beam_size was 4 and is 2"):
        synthesise(path, again, BulkOptions(beam_size=2), opened)


def test_sources_are_made_for_targets(tmp_path: Path, opened: Opener, capsys: pytest.CaptureFixture[str]) -> None:
    """With the other direction of a bundle of two."""
    path = tiny_bundle(tmp_path, "both", pairs=PAIRS).path
    text = write(tmp_path / "mono.en", ["One TWO three", "guten morgen"])
    job = Synthesis("back-translated", (text,), (), tmp_path / "back", Sieve())
    made = synthesise(path, job, BulkOptions(target="de"), opened)
    assert opened.bundles[0].manifest.target_language == "de"
    assert made.languages == ("de", "en"), "German sources for English text"
    assert "back_translated = true" in capsys.readouterr().out
    assert made.pairs + sum(made.dropped.values()) == 2


def test_lines_that_were_cut_are_no_pairs(tmp_path: Path, opened: Opener) -> None:
    path = tiny_bundle(tmp_path).path
    long = " ".join(["wo ist der bahnhof"] * 40)
    texts = (write(tmp_path / "long.de", [long, "das haus"]),)
    made = synthesise(path, wanted(tmp_path, texts=texts, references=()), BulkOptions(), opened)
    assert made.dropped == {"bad_line": 1, "copied": 1}


def test_the_candidate_nearest_to_the_reference_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[Sequence[str]] = []

    def noted(candidates: Sequence[str], reference: str) -> str:
        found.append(candidates)
        return nearest(candidates, reference)

    monkeypatch.setattr("tandem.extras.bulk.synthetic.nearest", noted)
    assert nearest(["a cat", "a dog barks", "a dog"], "a dog barks loudly") == "a dog barks"
    assert nearest(["first", "first"], "x") == "first"
    bundle = tiny_bundle(tmp_path)
    options = BulkOptions(sentences=False, candidates=3, bad="empty")
    teacher = BulkTranslator(bundle.path, options, open_copying)
    lines: list[Line] = [
        ("das haus ist gross", "das haus ist gross"),
        ("", "nichts"),
        (b"\xff", "x"),
        ("guten morgen", "guten"),
    ]
    first, empty, bad, last = teacher.translate_block(lines)
    assert first.text == "das haus ist gross"
    assert (empty.text, empty.bad) == ("", False)
    assert (bad.text, bad.findings[0].reason) == ("", "invalid_utf8")
    assert len(found) == 2 and len(found[1]) == 3
    assert last.text == nearest(found[1], "guten")
    assert teacher.widths == (0, 0)


def test_interpolation_reads_references_from_files(tmp_path: Path, opened: Opener) -> None:
    path = tiny_bundle(tmp_path).path
    job = wanted(tmp_path, references=(write(tmp_path / "same.en", LINES),))
    made = synthesise(path, job, BulkOptions(candidates=3), opened)
    assert made.options["candidates"] == 3
    assert made.pairs == 5 and made.dropped == {"empty": 1}
    short = replace(job, references=(write(tmp_path / "short.en", LINES[:2]),), out=tmp_path / "other")
    with pytest.raises(CorpusError):
        synthesise(path, short, BulkOptions(candidates=3), opened)


@pytest.mark.parametrize(
    ("changes", "options", "fault"),
    [
        ({"references": ()}, BulkOptions(candidates=2), "--candidates needs --references"),
        ({"kind": "back-translated"}, BulkOptions(language="fr"), "must be one of de"),
        ({}, BulkOptions(target="fr"), "--language and --target must be of de-en"),
    ],
)
def test_what_does_not_fit_is_refused(
    tmp_path: Path, opened: Opener, changes: dict[str, Any], options: BulkOptions, fault: str
) -> None:
    path = tiny_bundle(tmp_path).path
    with pytest.raises(ConfigError, match=fault):
        synthesise(path, wanted(tmp_path, **changes), options, opened)
    assert not (tmp_path / "made").exists()


def test_references_must_be_one_for_each_text(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="1 and 2"):
        wanted(tmp_path, references=(tmp_path / "a", tmp_path / "b"))
    with pytest.raises(ConfigError, match="--min-chrf needs --references"):
        wanted(tmp_path, references=(), sieve=Sieve(min_chrf=10))


@pytest.fixture
def judged(opened: Opener, monkeypatch: pytest.MonkeyPatch) -> None:
    """`tandem robustness` opens copying graphs."""
    monkeypatch.setattr("tandem.extras.bulk.robustness.BulkTranslator", partial(BulkTranslator, opener=opened))


@pytest.mark.usefixtures("judged")
def test_robustness_tells_every_state(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tiny_bundle(tmp_path).path
    lines = [f"wo ist der bahnhof heute in Berlin, bitte {number}?" for number in range(12)]
    sources = write(tmp_path / "test.de", lines)
    packed = tmp_path / "test.en.xz"
    packed.write_bytes(lzma.compress("".join(f"{line}\n" for line in lines).encode()))
    robustness(path, sources, packed, BulkOptions(), limit=10, max_lost=1.0, as_json=True)
    found = json.loads(capsys.readouterr().out)
    assert [one["segments"] for one in found] == [10, 10, 10, 10, 2]
    assert found[0]["loss"] == 0 and found[3]["loss"] > 0
    robustness(path, sources, packed, BulkOptions())
    table = capsys.readouterr().out
    assert "lower case" in table and "symptoms" in table
    # Joined lines are cut at 40 tokens: what is missing of them is a symptom, and over the bound.
    with pytest.raises(typer.Exit) as ended:
        robustness(path, sources, packed, BulkOptions(), max_lost=0.0, as_json=True)
    assert ended.value.exit_code == 1


@pytest.mark.usefixtures("judged")
def test_robustness_is_of_translators(tmp_path: Path) -> None:
    path = tiny_bundle(tmp_path, "headline", task="summarize", source_languages=("en",)).path
    files = (write(tmp_path / "a", ["x"]), write(tmp_path / "b", ["x"]))
    with pytest.raises(ConfigError, match="translators of one text"):
        robustness(path, *files, BulkOptions())
