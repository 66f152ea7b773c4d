"""`tandem compare`: every bundle takes its own sources, and one table says how they differ."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest

from deploy.evaluation.systems import SourceFiles
from models.bundle import Bundle, Training, Vocabularies, VocabularyFile
from models.errors import ConfigError
from tests.command import fails, succeeds
from tests.deploy.small import SMALL, VOCABULARY, Make, Write, make, text
from tests.determinism import one_thread, seeded

__all__ = ["make", "one_thread", "seeded", "text"]


def run(*arguments: object) -> str:
    return succeeds("compare", *arguments, "--runtime", "torch")


def test_one_source_beside_two(make: Make, text: Write, tmp_path: Path) -> None:
    """Each reads its languages, whatever the order of the files; scores are those of what was kept."""
    one, two = make("one", "fr"), make("two", "de", "fr")
    sources = ("--source", f"fr={text('fr')}", "--source", f"de={text('de')}")
    kept = tmp_path / "kept"
    found = json.loads(run(one, two, *sources, "--references", text("en"), "--hypotheses", kept, "--json"))
    assert list(found["systems"]) == ["one", "two"]
    assert found["baseline"] == "one"
    assert found["setting"] == "12 segments, torch float32, the bundles' own beam sizes, 1 thread"
    for name, system in found["systems"].items():
        assert [score["metric"] for score in system["scores"]] == ["BLEU", "chrF"]
        assert all((score["p_value"] is None) == (name == "one") for score in system["scores"])
        assert system["training_tokens_per_s"] == 2000.0
        assert system["segments_per_s"] > 0
    swapped = json.loads(
        run(two, one, *sources[2:], *sources[:2], "--references", text("en"), "--hypotheses", tmp_path / "b", "--json")
    )
    for name in ("one", "two"):
        assert (kept / f"{name}.txt").read_text() == (tmp_path / "b" / f"{name}.txt").read_text()
        assert len((kept / f"{name}.txt").read_text().splitlines()) == 12
        values = [[s["value"] for s in each["systems"][name]["scores"]] for each in (found, swapped)]
        assert values[0] == values[1]


def test_a_source_of_feature_vectors(make: Make, text: Write, tmp_path: Path) -> None:
    """A bundle that also sees images stands beside one that does not."""
    file = VocabularyFile("all.words", "words")
    sizes = {"source_vocabularies": [VOCABULARY.size, 0], "target_vocabulary": VOCABULARY.size, "features": [0, 3]}
    seeing = make(
        "seeing",
        "de",
        "zxx",
        config=SMALL["multisource"] | sizes,
        vocabularies=Vocabularies((file,), file, features=(0, 3)),
    )
    np.save(tmp_path / "test.npy", np.ones((12, 2, 3), np.float32))
    sources = ("--source", f"zxx={tmp_path / 'test.npy'}", "--source", f"de={text('de')}")
    found = json.loads(run(make("blind", "de"), seeing, *sources, "--references", text("en"), "--json"))
    assert list(found["systems"]) == ["blind", "seeing"]


def test_parameters_are_those_of_describe(make: Make, text: Write) -> None:
    bundle = make("one", "de")
    described = json.loads(succeeds("describe", bundle, "--json"))
    found = json.loads(run(bundle, "--source", text("de"), "--references", text("en"), "--json"))
    assert found["systems"]["one"]["parameters"] == described["parameters"]["total"]


def test_post_editing_is_compared_with_leaving_the_translation(make: Make, text: Write) -> None:
    """The same by role as by language; the translation scores as its own file does."""
    bundle = make("ape", "en", "de", task="postedit", target_language="de")
    files = [text("src"), text("mt")]
    by_role = ("--source", f"mt={files[1]}", "--source", f"src={files[0]}")
    found = json.loads(run(bundle, *by_role, "--references", files[1], "--json"))
    assert list(found["systems"]) == ["as it is", "ape"]
    assert found["baseline"] == "as it is"
    unedited = found["systems"]["as it is"]
    assert {score["metric"]: score["value"] for score in unedited["scores"]} == {"BLEU": 100, "chrF": 100, "TER": 0}
    assert (unedited["parameters"], unedited["segments_per_s"]) == (None, None)
    by_language = ("--source", f"en={files[0]}", "--source", f"de={files[1]}", "--baseline", "ape")
    again = json.loads(run(bundle, *by_language, "--references", files[1], "--json"))
    assert again["baseline"] == "ape"
    for name in ("ape", "as it is"):
        values = [[s["value"] for s in each["systems"][name]["scores"]] for each in (found, again)]
        assert values[0] == values[1]


def test_markdown_is_one_table_with_its_command(
    make: Make, text: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["tandem", "compare", "x y"])
    bundles = (make("first", "de"), make("second", "de", seed=2, training=Training((), {}, 0, 0)))
    arguments = (*bundles, "--source", text("de"), "--references", text("en"), "--limit", 5, "--beam-size", 1)
    file = tmp_path / "results" / "table.md"
    shown = run(*arguments, "--markdown", file)
    written = file.read_text(encoding="utf-8")
    assert "first" in shown and "second" in shown
    head, line, *rows = [row.strip("|").split("|") for row in written.split("\n\n")[0].splitlines()]
    titles = [title.strip() for title in head]
    assert titles[:5] == ["system", "BLEU", "p (BLEU)", "chrF", "p (chrF)"]
    assert len(line) == len(head) == len(rows[0]) == len(rows[1])
    assert [row[0].strip() for row in rows] == ["first", "second"]
    assert [row[titles.index("training tokens/s")].strip() for row in rows] == ["2,000", "–"]
    assert rows[0][2].strip() == "–" and rows[1][2].strip() != "–"
    assert "5 segments, torch float32, beam 1, 1 thread." in written
    assert 'paired bootstrap against "first", 1,000 draws' in written
    assert "    tandem compare 'x y'" in written
    same = run(*arguments, "--markdown", "-")
    assert same.startswith("| system | BLEU | p (BLEU) |")


def test_summaries_are_tested_too(make: Make, text: Write) -> None:
    bundle = make("heads", "en", task="summarize")
    shown = run(bundle, "--source", text("en"), "--references", text("title"), "--markdown", "-")
    assert shown.startswith("| system | ROUGE-1 | p (ROUGE-1) | ROUGE-2 | p (ROUGE-2) | ROUGE-L | p (ROUGE-L) |")
    assert "paired bootstrap" in shown


def test_equal_names_go_by_folder(make: Make, text: Write) -> None:
    old, new = make("m", "de", folder="old"), make("m", "de", folder="new", seed=2)
    found = json.loads(run(old, new, "--source", text("de"), "--references", text("en"), "--json"))
    assert list(found["systems"]) == [str(old), str(new)]


def test_what_cannot_be_compared(make: Make, text: Write) -> None:
    one, two = make("one", "de"), make("two", "de", "fr")
    source, references = ("--source", f"de={text('de')}"), ("--references", text("en"))

    def message(*arguments: object) -> str:
        return fails("compare", *arguments, *references, "--runtime", "torch")

    assert "two reads de, fr, but --source is given for de: add --source fr=FILE" in message(one, two, *source)
    assert "two reads 2 sources (de, fr), but 1 files are given without a language" in message(
        one, two, "--source", text("de")
    )
    assert "--baseline must be one of one, but is 'x'" in message(one, *source, "--baseline", "x")
    assert "is given twice" in message(one, one, *source)
    french = make("french", "de", target_language="fr")
    assert "one target language, but have one: en, french: fr" in message(one, french, *source)
    short = make("short", "de", task="summarize")
    assert "one task, but have one: translate, short: summarize" in message(one, short, *source)


def test_files_of_one_language_are_taken_in_order(make: Make) -> None:
    manifest = Bundle.load(make("twice", "de", "de")).manifest
    assert SourceFiles.parse(["de=a", "fr=b", "de=c"]).of(manifest) == (0, 2)
    assert SourceFiles.parse(["a", "b"]).of(manifest) == (0, 1)
    with pytest.raises(ConfigError, match="either all or none"):
        SourceFiles.parse(["de=a", "b"])
    assert SourceFiles.parse(["./de=a"]).paths == (Path("./de=a"),)


def test_a_bundle_of_one_source_takes_any_of_its_languages(make: Make) -> None:
    manifest = Bundle.load(make("any", "de", source_languages=("de", "fr"))).manifest
    assert SourceFiles.parse(["fr=a"]).of(manifest) == (0,)
    assert SourceFiles.parse(["cs=a", "de=b", "fr=c"]).of(manifest) == (1,)
    with pytest.raises(ConfigError, match="add --source de=FILE"):
        SourceFiles.parse(["cs=a"]).of(manifest)
