"""`tandem evaluate`: one bundle on a test set, alone and against another system, with its report."""

from __future__ import annotations

import json
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from deploy.evaluation.evaluation import store_scores
from deploy.evaluation.systems import load_systems
from models.bundle import Bundle, Score, Vocabularies, VocabularyFile
from models.errors import ConfigError
from models.search import SearchOptions
from models.vocabulary import EOS
from tests.command import fails, succeeds
from tests.deploy.small import SMALL, VOCABULARY, WORDS, Make, Write, make, text
from tests.determinism import one_thread, seeded
from tests.service.support import tiny_bundle
from training.quality.metrics import all_metrics

__all__ = ["make", "one_thread", "seeded", "text"]

WAYS = (("gains of", "over"), ("losses of", "against"))
TRANSLATION = list(all_metrics("translate", "en"))


def run(*arguments: object) -> str:
    return succeeds("evaluate", *arguments, "--runtime", "torch")


def found_by(*arguments: object) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(run(*arguments, "--json"))
    return found


def by_metric(scores: list[dict[str, Any]], what: str = "value") -> dict[str, Any]:
    return {score["metric"]: score[what] for score in scores}


class Parts(HTMLParser):
    """The text of headings and list entries, and the tags of a page."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.tags: list[str] = []
        self._open: list[str] = []
        self.headings: list[str] = []
        self.entries: list[str] = []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        if tag not in ("meta", "img"):
            self._open.append(tag)
        if tag == "dd":
            self.entries.append("")

    def handle_endtag(self, tag: str) -> None:
        self._open.pop()

    def handle_data(self, data: str) -> None:
        if {"h1", "h2", "h3", "h4"} & set(self._open):
            self.headings.append(data)
        if "dd" in self._open:
            self.entries[-1] += data


def test_a_bundle_alone(make: Make, text: Write) -> None:
    bundle = make("one", "de")
    found = found_by(bundle, "--source", text("de"), "--references", text("en"))
    assert list(found["scores"]) == ["one"] and found["against"] is None
    assert [score["metric"] for score in found["scores"]["one"]] == TRANSLATION
    assert all(score["interval"] >= 0 and score["p_value"] is None for score in found["scores"]["one"])
    assert found["segments"] == sum(one["sentences"] for one in found["by_length"]) == 12
    assert list(by_metric(found["by_length"][0]["scores"]["one"])) == ["BLEU", "chrF"]
    assert (found["runtime"], found["beam_size"]) == ("torch", 2) and found["segments_per_s"] > 0


def test_against_another_bundle(make: Make, text: Write, tmp_path: Path) -> None:
    """Its scores are those it has by itself; the difference is between the two."""
    one, two = make("one", "de"), make("two", "de", seed=2)
    files = ("--source", text("de"), "--references", text("en"))
    found = found_by(one, *files, "--against", two, "--out", tmp_path / "out.txt")
    assert list(found["scores"]) == ["one", "two"] and found["against"] == "two"
    alone = found_by(two, *files)["scores"]["two"]
    assert by_metric(found["scores"]["two"]) == by_metric(alone)
    assert by_metric(found["scores"]["two"], "interval") == by_metric(alone, "interval")
    own = by_metric(found["scores"]["one"])
    for score in found["scores"]["two"]:
        assert score["difference"] == pytest.approx(score["value"] - own[score["metric"]], abs=0.011)
        assert 0 < score["p_value"] <= 1
    kept = found_by(two, *files, "--against", tmp_path / "out.txt")  # the other way round, from a file
    assert by_metric(kept["scores"]["out.txt"]) == own
    swapped, straight = (by_metric(each, "p_value") for each in (kept["scores"]["out.txt"], found["scores"]["two"]))
    assert swapped == straight


def test_another_bundle_may_read_more_languages(make: Make, text: Write) -> None:
    one, two = make("one", "fr"), make("two", "de", "fr")
    sources = ("--source", f"de={text('de')}", "--source", f"fr={text('fr')}")
    assert list(found_by(one, *sources, "--references", text("en"), "--against", two)["scores"]) == ["one", "two"]


def test_the_seed_decides_the_draws(make: Make, text: Write) -> None:
    files = (make("one", "de"), "--source", text("de"), "--references", text("en"))
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


def test_a_report_shows_gains_losses_and_attention(make: Make, text: Write, tmp_path: Path) -> None:
    """The references are the bundle's own output and other text in turn, which the other system has spoilt or right."""
    silent = tuple({*range(VOCABULARY.size)} - {EOS, *map(VOCABULARY.id_of, WORDS)})
    bundle = make("one", "de", decoding=SearchOptions(beam_size=2, max_length=6, min_length=4, suppressed=silent))
    gold, other, page = Path(text("en")), tmp_path / "other.txt", tmp_path / "reports" / "page.html"
    run(bundle, "--source", text("de"), "--references", gold, "--out", other)
    own, different = (path.read_text(encoding="utf-8").splitlines() for path in (other, gold))
    assert not set(own) & set(different) and all(own)
    bad = "<SCRIPT>X()</SCRIPT>"  # no letter of the references
    lines = [(own[row], bad) if row % 2 else (different[row],) * 2 for row in range(len(own))]
    for column, path in enumerate((gold, other)):
        path.write_text("".join(f"{line[column]}\n" for line in lines), encoding="utf-8")
    files = (bundle, "--source", text("de"), "--references", gold, "--against", other)
    shown = run(*files, "--report", page, "--examples", 3, "--heat-maps", 1)
    assert "by source length" in shown and "tok:moses-en|smooth:none" in shown
    parts = Parts(page)
    assert "script" not in parts.tags and parts.tags.count("img") == 1
    assert parts.headings[0] == "Evaluation: one against other.txt"
    start, middle = (parts.headings.index(f"Greatest {what} one {to} other.txt") for what, to in WAYS)
    gains, losses = parts.headings[start + 1 : middle], parts.headings[middle + 1 :]
    assert len(gains) == 3 and all(heading.endswith(": chrF 100.0 against 0.0 (+100.0)") for heading in gains)
    assert len(losses) == 3 and all(" against 100.0 (-" in heading for heading in losses)
    assert parts.entries.count(bad) == 3 and set(own) & set(parts.entries)


def test_a_report_of_one_system_is_the_same_each_time(make: Make, text: Write, tmp_path: Path) -> None:
    files = (make("one", "de"), "--source", text("de"), "--references", text("en"), "--heat-maps", 0)
    pages = [tmp_path / "first.html", tmp_path / "second.html"]
    for page in pages:
        run(*files, "--report", page)
    assert pages[0].read_bytes() == pages[1].read_bytes()
    parts = Parts(pages[0])
    assert {"Lowest scores", "Highest scores"} <= set(parts.headings)
    assert parts.tags.count("article") == 12 and "img" not in parts.tags


def test_a_report_of_a_bundle_that_also_sees(make: Make, text: Write, tmp_path: Path) -> None:
    """Features have no text, and no words to look at; their attention has columns by number."""
    file = VocabularyFile("all.words", "words")
    sizes = {"source_vocabularies": [VOCABULARY.size, 0], "target_vocabulary": VOCABULARY.size, "features": [0, 3]}
    vocabularies = Vocabularies((file,), file, features=(0, 3))
    bundle = make("seeing", "de", "zxx", config=SMALL["multisource"] | sizes, vocabularies=vocabularies)
    np.save(tmp_path / "test.npy", np.ones((12, 2, 3), np.float32))
    sources = ("--source", text("de"), "--source", tmp_path / "test.npy")
    page = tmp_path / "page.html"
    run(bundle, *sources, "--references", text("en"), "--report", page, "--examples", 1, "--heat-maps", 1)
    parts = Parts(page)
    assert parts.tags.count("article") == 2 and parts.tags.count("img") >= 2


def test_post_edits_are_held_against_the_translation(make: Make, text: Write, tmp_path: Path) -> None:
    bundle, page = make("ape", "en", "de", task="postedit", target_language="de"), tmp_path / "page.html"
    files = (bundle, "--source", text("src"), "--source", text("mt"), "--references", text("mt"))
    found = found_by(*files, "--report", page, "--heat-maps", 0)
    assert found["against"] == "as it is"
    assert by_metric(found["scores"]["as it is"])["TER"] == 0.0
    assert "Evaluation: ape against as it is" in Parts(page).headings


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
    files, written = (make("one", "de"), "--source", text("de")), tmp_path / "written.txt"
    alone = by_metric(found_by(*files, "--references", text("en"), "--out", written)["scores"]["one"])
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
    assert "beam[b].txt ┃" in shown
    assert "tokenised BLEU, lower case" in shown


def test_a_model_of_the_other_direction_chooses_too(make: Make, text: Write, tmp_path: Path) -> None:
    """It stands beside the bundle alone, with its own speed, and its scores are recorded under a name of their own."""
    bundle, back = make("one", "de"), make("back", "en", seed=2, target_language="de")
    files = (bundle, "--source", text("de"), "--references", text("en"), "--rerank", back, "--beam-size", 6)
    found = found_by(*files, "--record", "test")
    alone, ranked = found["scores"]["one"], found["scores"]["one, reranked"]
    assert by_metric(alone) != by_metric(ranked)
    assert all(0 <= p <= 1 for p in by_metric(ranked, "p_value").values())
    assert found["segments_per_s"] > 0 and found["segments_per_s_reranked"] > 0
    recorded = {score.test_set for score in Bundle.load(bundle).manifest.scores}
    assert recorded == {"test", "test, reranked"}
    assert "one, reranked" in run(*files)


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
    assert "--report must be a file" in message(*files, "--report", tmp_path)
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
