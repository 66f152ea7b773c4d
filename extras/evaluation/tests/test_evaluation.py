"""`tandem evaluate`: bundles on a test set, alone and beside other systems, and what is written of it."""

from __future__ import annotations

import csv
import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tandem.extras.evaluation.decoding import Decoding, translate_texts
from tandem.extras.evaluation.evaluation import store_scores
from tandem.extras.evaluation.scoring import all_metrics
from tandem.extras.evaluation.systems import SourceFiles, load_systems
from tandem.models.bundle import Bundle, Limits, Score, Training, Vocabularies, VocabularyFile
from tandem.models.errors import ConfigError
from tandem.models.search import SearchOptions
from tandem.models.vocabulary import EOS, UNK
from tests.command import fails, succeeds
from tests.deploy.small import SMALL, VOCABULARY, WORDS, Make, Write, make, text
from tests.determinism import one_thread, seeded
from tests.service.support import tiny_bundle

__all__ = ["make", "one_thread", "seeded", "text"]

TRANSLATION = list(all_metrics("translate", "en"))


def run(*arguments: object) -> str:
    return succeeds("evaluate", *arguments, "--runtime", "torch")


def found_by(*arguments: object) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(run(*arguments, "--json"))
    return found


def by_metric(scores: list[dict[str, Any]], what: str = "value") -> dict[str, Any]:
    return {score["metric"]: score[what] for score in scores}


def test_a_bundle_alone(make: Make, text: Write) -> None:
    bundle = make("one", "de")
    found = found_by(bundle, "--source", text("de"), "--references", text("en"))
    assert list(found["scores"]) == ["one"] and found["baseline"] == "one"
    assert [score["metric"] for score in found["scores"]["one"]] == TRANSLATION
    assert all(score["interval"] >= 0 and score["p_value"] is None for score in found["scores"]["one"])
    assert found["segments"] == sum(one["sentences"] for one in found["by_length"]) == 12
    assert list(by_metric(found["by_length"][0]["scores"]["one"])) == ["BLEU", "chrF"]
    assert (found["runtime"], found["systems"]["one"]["beam_size"]) == ("torch", 2)
    assert found["systems"]["one"]["segments_per_s"] > 0


def test_against_another_bundle(make: Make, text: Write, tmp_path: Path) -> None:
    """Its scores are those it has by itself; the difference is between the two."""
    one, two = make("one", "de"), make("two", "de", seed=2)
    files = ("--source", text("de"), "--references", text("en"))
    found = found_by(one, *files, "--against", two, "--hypotheses", tmp_path)
    assert list(found["scores"]) == ["one", "two"] and found["baseline"] == "one"
    assert found == found_by(one, two, *files) | {"systems": found["systems"]}  # speeds differ from run to run
    alone = found_by(two, *files)["scores"]["two"]
    assert by_metric(found["scores"]["two"]) == by_metric(alone)
    assert by_metric(found["scores"]["two"], "interval") == by_metric(alone, "interval")
    own = by_metric(found["scores"]["one"])
    for score in found["scores"]["two"]:
        assert score["difference"] == pytest.approx(score["value"] - own[score["metric"]], abs=0.011)
        assert 0 < score["p_value"] <= 1
    kept = found_by(two, *files, "--against", tmp_path / "one.txt")  # the other way round, from a file
    assert by_metric(kept["scores"]["one.txt"]) == own
    swapped, straight = (by_metric(each, "p_value") for each in (kept["scores"]["one.txt"], found["scores"]["two"]))
    assert swapped == straight


def test_another_bundle_may_read_more_languages(make: Make, text: Write) -> None:
    one, two = make("one", "fr"), make("two", "de", "fr")
    sources = ("--source", f"de={text('de')}", "--source", f"fr={text('fr')}")
    assert list(found_by(one, *sources, "--references", text("en"), "--against", two)["scores"]) == ["one", "two"]


def test_the_seed_decides_the_draws(make: Make, text: Write) -> None:
    files = (make("one", "de"), "--source", text("de"), "--references", text("en"), "--segments")
    default, same, other = found_by(*files), found_by(*files, "--seed", 12345), found_by(*files, "--seed", 6)
    assert default["scores"] == same["scores"]
    assert by_metric(default["scores"]["one"]) == by_metric(other["scores"]["one"])
    assert by_metric(default["scores"]["one"], "interval") != by_metric(other["scores"]["one"], "interval")


def test_tokens_may_be_those_of_the_text(make: Make, text: Write, tmp_path: Path) -> None:
    gold = Path(text("en"))
    gold.write_text("a's b-c, d.\n" * 12, encoding="utf-8")
    other = tmp_path / "other.txt"
    other.write_text("a's b-c, x.\n" * 12, encoding="utf-8")
    files = (make("one", "de"), "--source", text("de"), "--references", gold, "--against", other)
    moses, words = (by_metric(found_by(*files, *flag)["scores"]["other.txt"]) for flag in ((), ("--tokenised",)))
    # a 's b-c , d . : 5/6 of the words, 3/5, 2/4 and 1/3 of longer runs; of three words no run of four
    assert moses["tokenised BLEU"] == pytest.approx(100 * (5 / 6 * 3 / 5 * 2 / 4 * 1 / 3) ** 0.25, abs=0.01)
    assert words["tokenised BLEU"] == 0.0
    assert moses["BLEU"] == words["BLEU"] > 0


def test_segments_stand_beside_each_other_with_their_scores(make: Make, text: Write, tmp_path: Path) -> None:
    """The references are the bundle's own output and other text in turn, which the other system has spoilt or right."""
    silent = tuple({*range(VOCABULARY.size)} - {EOS, *map(VOCABULARY.id_of, WORDS)})
    bundle = make("one", "de", decoding=SearchOptions(beam_size=2, max_length=6, min_length=4, suppressed=silent))
    gold, other = Path(text("en")), tmp_path / "other.txt"
    run(bundle, "--source", text("de"), "--references", gold, "--hypotheses", tmp_path)
    own, different = (path.read_text(encoding="utf-8").splitlines() for path in (tmp_path / "one.txt", gold))
    assert not set(own) & set(different) and all(own)
    bad = '"X", Y'  # no letter of the references
    lines = [(own[row], bad) if row % 2 else (different[row],) * 2 for row in range(len(own))]
    for column, path in enumerate((gold, other)):
        path.write_text("".join(f"{line[column]}\n" for line in lines), encoding="utf-8")
    files = (bundle, "--source", text("de"), "--references", gold, "--against", other)
    shown = run(*files, "--hypotheses", tmp_path / "written")
    assert "by source length" in shown and "tok:moses-en|smooth:none" in shown
    rows = read_csv((tmp_path / "written" / "segments.csv").read_text(encoding="utf-8"))
    sources = Path(text("de")).read_text(encoding="utf-8").splitlines()
    assert [row["line"] for row in rows] == [str(number) for number in range(1, 13)]
    for row, source, line, output in zip(rows, sources, lines, own, strict=True):
        assert (row["source 1"], row["reference"], row["other.txt"], row["one"]) == (source, *line, output)
        right, wrong = ("one", "other.txt") if line[1] == bad else ("other.txt", "one")
        assert float(row[f"chrF of {right}"]) == 100 > float(row[f"chrF of {wrong}"])


def read_csv(written: str) -> list[dict[str, str]]:
    return list(csv.DictReader(written.splitlines()))


def test_every_score_is_a_row_of_csv(make: Make, text: Write, tmp_path: Path) -> None:
    one, two = make("one", "de"), make("two", "de", seed=2)
    files = (one, two, "--source", text("de"), "--references", text("en"))
    shown = run(*files, "--csv", tmp_path / "scores" / "all.csv", "--json")
    found, written = json.loads(shown), (tmp_path / "scores" / "all.csv").read_text(encoding="utf-8")
    assert run(*files, "--csv", "-") == written
    rows = read_csv(written)
    whole = [row for row in rows if not row["source_tokens"]]
    assert [(row["system"], row["metric"]) for row in whole] == [
        (name, m) for name in ("one", "two") for m in TRANSLATION
    ]
    for row, score in zip(whole, [*found["scores"]["one"], *found["scores"]["two"]], strict=True):
        numbers = ("value", "interval", "difference", "p_value")
        assert [row[name] for name in numbers] == ["" if score[name] is None else str(score[name]) for name in numbers]
        between = score["difference_interval"] or ("", "")
        assert (row["difference_from"], row["difference_to"]) == tuple(map(str, between))
        assert (row["segments"], row["signature"]) == ("12", score["signature"])
    parts = sum(len(found) for one in found["by_length"] for found in one["scores"].values())
    assert len(rows) == len(whole) + parts
    assert {row["source_tokens"] for row in rows} > {""}


def test_post_edits_are_held_against_the_translation(make: Make, text: Write) -> None:
    bundle = make("ape", "en", "de", task="postedit", target_language="de")
    files = (bundle, "--source", text("src"), "--source", text("mt"), "--references", text("mt"))
    found = found_by(*files, "--baseline", "as it is")
    assert found["baseline"] == "as it is" and by_metric(found["scores"]["ape"], "p_value")["TER"] is not None
    assert by_metric(found["scores"]["as it is"])["TER"] == 0.0


def test_summaries_stand_beside_the_beginning_of_their_text(make: Make, text: Write) -> None:
    found = found_by(make("heads", "en", task="summarize"), "--source", text("en"), "--references", text("title"))
    assert list(found["scores"]) == ["heads", "first sentence", "first 10 words"]
    names = [score["metric"] for score in found["scores"]["heads"]]
    assert names[0] == "ROUGE-1" and {"ROUGE-2 recall", "ROUGE-L recall, 75 bytes"} <= set(names)
    assert all(score["p_value"] is not None for score in found["scores"]["first sentence"])


def test_the_tasks_own_scores_are_stored(make: Make, text: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["tandem", "evaluate", "x"])
    bundle = make("one", "de")
    found = found_by(bundle, "--source", text("de"), "--references", text("en"), "--record", "toy/test")
    own = {score["metric"]: (score["value"], score["signature"]) for score in found["scores"]["one"][:2]}
    stored = Bundle.load(bundle).manifest.scores
    assert {one.metric: (one.value, one.signature) for one in stored} == own
    assert {(one.test_set, one.command) for one in stored} == {("toy/test", "tandem evaluate x")}


def test_every_reference_counts(make: Make, text: Write, tmp_path: Path) -> None:
    """The bundle's own output among them makes its scores better, to what the metrics make of both references."""
    files, written = (make("one", "de"), "--source", text("de")), tmp_path / "one.txt"
    alone = by_metric(found_by(*files, "--references", text("en"), "--hypotheses", tmp_path)["scores"]["one"])
    both = found_by(*files, "--references", text("en"), "--references", written)
    columns = [Path(path).read_text(encoding="utf-8").splitlines() for path in (text("en"), written)]
    for name, metric in all_metrics("translate", "en").items():
        value = by_metric(both["scores"]["one"])[name]
        assert value == round(metric.corpus_score(columns[1], columns).score, 2)
    assert by_metric(both["scores"]["one"])["chrF"] > alone["chrF"]
    assert all("nrefs:2|" in score["signature"] for score in both["scores"]["one"])


def test_a_limit_takes_the_first_hypotheses_too(make: Make, text: Write) -> None:
    files = (make("one", "de"), "--source", text("de"), "--references", text("en"), "--limit", 5)
    found = found_by(*files, "--against", text("en"))
    assert found["segments"] == 5
    assert by_metric(found["scores"]["test.en"])["chrF"] == 100.0


def test_names_are_shown_as_they_are(make: Make, text: Write, tmp_path: Path) -> None:
    """Brackets in the name of a file are no markup, and a table that is piped is not cut or wrapped."""
    other = tmp_path / "beam[b].txt"
    other.write_text("das haus\n" * 12, encoding="utf-8")
    shown = run(make("one", "de"), "--source", text("de"), "--references", text("en"), "--against", other)
    assert "beam[b].txt │" in shown
    assert "tokenised BLEU, lower case" in shown


def test_a_model_of_the_other_direction_chooses_too(make: Make, text: Write, tmp_path: Path) -> None:
    """It stands beside the bundle alone, with its own speed, and its scores are recorded under a name of their own."""
    bundle, back = make("one", "de"), make("back", "en", seed=2, target_language="de")
    files = (bundle, "--source", text("de"), "--references", text("en"), "--rerank", back, "--beam-size", 6)
    found = found_by(*files, "--record", "test")
    alone, ranked = found["scores"]["one"], found["scores"]["one, reranked"]
    assert by_metric(alone) != by_metric(ranked)
    assert all(0 <= p <= 1 for p in by_metric(ranked, "p_value").values())
    assert all(found["systems"][name]["segments_per_s"] > 0 for name in ("one", "one, reranked"))
    recorded = {score.test_set for score in Bundle.load(bundle).manifest.scores}
    assert recorded == {"test", "test, reranked"}
    assert "one, reranked" in run(*files)


def test_texts_are_translated_by_what_the_judge_prefers(make: Make) -> None:
    lines = ["a b c", "h g f e", "", "d d a", "b", "c a e g h"]
    forward, back = Bundle.load(make("one", "de")), Bundle.load(make("back", "en", seed=2, target_language="de"))

    def translated(channel: Bundle | None) -> list[str]:
        how = Decoding("torch", "float32", beam_size=4)
        return translate_texts(forward, how.open_graphs(forward), how, lines, "de", channel=channel)[0]

    plain, ranked = translated(None), translated(back)
    assert plain[2] == ranked[2] == "", "a line without text stays one"
    assert plain != ranked
    short = replace(back, manifest=replace(back.manifest, limits=Limits(12, 1)))
    assert translated(short)[0] == plain[0], "too long to be judged"


def test_what_cannot_be_evaluated(make: Make, text: Write, tmp_path: Path) -> None:
    bundle = make("one", "de")
    files = (bundle, "--source", text("de"), "--references", text("en"))

    def message(*arguments: object) -> str:
        return " ".join(fails("evaluate", *arguments, "--runtime", "torch").split())

    assert "--against must be a bundle or a file of hypotheses" in message(*files, "--against", tmp_path / "none")
    (tmp_path / "short.txt").write_text("a\nb\n", encoding="utf-8")
    assert "has 2 hypotheses, but" in message(*files, "--against", tmp_path / "short.txt")
    assert "given twice" in message(*files, "--against", bundle)
    assert "one task, but have" in message(*files, "--against", make("heads", "de", task="summarize"))
    assert "--csv must be a file" in message(*files, "--csv", tmp_path)
    assert "--baseline must be one of one, but is 'x'" in message(*files, "--baseline", "x")
    assert "two reads 2 sources" in message(make("two", "de", "fr"), *files[1:])
    assert "has no shortlist" in message(*files, "--shortlist")
    assert "one translates de-en, not en-de" in message(*files, "--rerank", bundle)
    several = (make("three", "de", "fr"), "--source", f"de={text('de')}", "--source", f"fr={text('fr')}")
    assert "nothing translates back" in message(*several, *files[3:], "--rerank", bundle)


def test_the_language_of_the_source_chooses_between_directions_into_one_language(tmp_path: Path) -> None:
    pairs = (("de", "en"), ("fr", "en"))
    path = tiny_bundle(tmp_path, "many", source_languages=("de", "fr"), pairs=pairs).path
    for language in ("de", "fr"):
        assert load_systems([path], "en", (language,))["many"].manifest.source_languages == (language,)


def test_of_several_directions_one_is_evaluated_and_all_stay(tmp_path: Path) -> None:
    path = tiny_bundle(tmp_path, "both", pairs=(("de", "en"), ("en", "de"))).path
    assert load_systems([path])["both"].manifest.target_language == "en"
    assert load_systems([path], "de")["both"].manifest.target_language == "de"
    with pytest.raises(ConfigError, match="must be of de-en, en-de, which both translates, not …-fr"):
        load_systems([path], "fr")
    assert load_systems([path], languages=("fr", "en"))["both"].manifest.target_language == "de"
    for test_set, value in (("news", 30.0), ("talks", 20.0), ("news", 31.0)):
        store_scores(path, [Score("bleu", value, test_set, "signature", "tandem evaluate")])
    manifest = Bundle.load(path).manifest
    assert manifest.pairs == (("de", "en"), ("en", "de"))
    assert [(score.test_set, score.value) for score in manifest.scores] == [("talks", 20.0), ("news", 31.0)]


def test_lines_that_are_cut_are_counted(make: Make, text: Write) -> None:
    """Two of fourteen are longer than any text that the bundle reads."""
    bundle, files = make("one", "de"), (text("de"), text("en"))
    for file, line in zip(files, (" ".join(WORDS[0] for _ in range(600)), "x"), strict=True):
        with Path(file).open("a", encoding="utf-8") as lines:
            lines.write(f"{line}\n" * 2)
    wanted = ("--source", files[0], "--references", files[1])
    assert found_by(bundle, *wanted)["cut"] == 2
    assert found_by(bundle, *wanted, "--limit", 12)["cut"] == 0
    longest = Bundle.load(bundle).manifest.limits.max_source_tokens
    shown = " ".join(run(bundle, *wanted).split())
    assert f"2 of 14 segments were cut: one reads the first {longest} tokens of one" in shown
    assert "segments were cut" not in run(bundle, *wanted, "--limit", 12)


def test_one_source_beside_two(make: Make, text: Write, tmp_path: Path) -> None:
    """Each reads its languages, whatever the order of the files; scores are those of what was kept."""
    one, two = make("one", "fr"), make("two", "de", "fr")
    sources = ("--source", f"fr={text('fr')}", "--source", f"de={text('de')}")
    kept = tmp_path / "kept"
    found = found_by(one, two, *sources, "--references", text("en"), "--hypotheses", kept)
    assert list(found["systems"]) == list(found["scores"]) == ["one", "two"]
    assert found["baseline"] == "one"
    assert (found["segments"], found["runtime"], found["precision"], found["threads"]) == (12, "torch", "int8", 1)
    for name, system in found["systems"].items():
        assert all((score["p_value"] is None) == (name == "one") for score in found["scores"][name])
        assert system["beam_size"] == 2
        assert system["training_tokens_per_s"] == 2000.0
        assert system["segments_per_s"] > 0
    swapped = found_by(two, one, *sources[2:], *sources[:2], "--references", text("en"), "--hypotheses", tmp_path / "b")
    for name in ("one", "two"):
        assert (kept / f"{name}.txt").read_text() == (tmp_path / "b" / f"{name}.txt").read_text()
        assert len((kept / f"{name}.txt").read_text().splitlines()) == 12
        assert by_metric(found["scores"][name]) == by_metric(swapped["scores"][name])


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
    found = found_by(make("blind", "de"), seeing, *sources, "--references", text("en"))
    assert list(found["systems"]) == ["blind", "seeing"]


@pytest.mark.parametrize("whole", [(), ("--segments",)], ids=["sentences", "segments"])
def test_unknown_words_stay_or_are_replaced(whole: tuple[str, ...], make: Make, text: Write, tmp_path: Path) -> None:
    """Of a model that writes two unknown words, by the bundle's manifest and by the switch."""
    every = set(range(VOCABULARY.size)) - {UNK, EOS}
    decoding = SearchOptions(beam_size=1, max_length=2, min_length=2, suppressed=tuple(every))
    paths = {
        keep: make("keeps" if keep else "replaces", "de", decoding=decoding, keep_unknown=keep)
        for keep in (True, False)
    }

    def written(keeps: bool, *flag: str) -> list[str]:
        files = ("--source", text("de"), "--references", text("en"), "--hypotheses", tmp_path / "out")
        found_by(paths[keeps], *files, *whole, *flag)
        return (tmp_path / "out" / f"{paths[keeps].name}.txt").read_text(encoding="utf-8").splitlines()

    kept, replaced = written(True), written(False)
    assert set(kept) == {"<unk> <unk>"}
    assert all(set(line.split()) <= set(WORDS) and line for line in replaced)
    assert written(False, "--keep-unknown") == kept
    assert written(True, "--replace-unknown") == replaced


def test_parameters_are_those_of_describe(make: Make, text: Write) -> None:
    bundle = make("one", "de")
    described = json.loads(succeeds("describe", bundle, "--json"))
    found = found_by(bundle, "--source", text("de"), "--references", text("en"))
    assert found["systems"]["one"]["parameters"] == described["parameters"]["total"]


def test_the_sources_of_post_editing_go_by_role_or_by_language(make: Make, text: Write) -> None:
    """Leaving the translation as it is scores as the translation's own file does."""
    bundle = make("ape", "en", "de", task="postedit", target_language="de")
    files = [text("src"), text("mt")]
    by_role = ("--source", f"mt={files[1]}", "--source", f"src={files[0]}", "--baseline", "as it is")
    found = found_by(bundle, *by_role, "--references", files[1])
    assert list(found["systems"]) == ["ape", "as it is"]
    assert found["baseline"] == "as it is"
    unedited = by_metric(found["scores"]["as it is"])
    assert (unedited["BLEU"], unedited["chrF"], unedited["TER"]) == (100, 100, 0)
    assert set(found["systems"]["as it is"].values()) == {None}
    by_language = ("--source", f"en={files[0]}", "--source", f"de={files[1]}")
    again = found_by(bundle, *by_language, "--references", files[1])
    assert again["baseline"] == "ape"
    for name in ("ape", "as it is"):
        assert by_metric(found["scores"][name]) == by_metric(again["scores"][name])


def test_markdown_is_one_table_with_its_command(
    make: Make, text: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["tandem", "evaluate", "x y"])
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
    assert "    tandem evaluate 'x y'" in written
    same = run(*arguments, "--markdown", "-")
    assert same.startswith("| system | BLEU | p (BLEU) |")


def test_markdown_of_summaries_has_their_scores(make: Make, text: Write) -> None:
    bundle = make("heads", "en", task="summarize")
    shown = run(bundle, "--source", text("en"), "--references", text("title"), "--markdown", "-")
    assert shown.startswith("| system | ROUGE-1 | p (ROUGE-1) | ROUGE-2 | p (ROUGE-2) | ROUGE-L | p (ROUGE-L) |")
    assert "paired bootstrap" in shown


def test_equal_names_go_by_folder(make: Make, text: Write) -> None:
    old, new = make("m", "de", folder="old"), make("m", "de", folder="new", seed=2)
    found = found_by(old, new, "--source", text("de"), "--references", text("en"))
    assert list(found["systems"]) == [str(old), str(new)]


def test_what_cannot_stand_beside_each_other(make: Make, text: Write) -> None:
    one, two = make("one", "de"), make("two", "de", "fr")
    source, references = ("--source", f"de={text('de')}"), ("--references", text("en"))

    def message(*arguments: object) -> str:
        return fails("evaluate", *arguments, *references, "--runtime", "torch")

    assert "two reads de, fr, but --source is given for de: add --source fr=FILE" in message(one, two, *source)
    assert "two reads 2 sources (de, fr), but 1 files are given without a language" in message(
        one, two, "--source", text("de")
    )
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
