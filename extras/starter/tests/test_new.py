"""`tandem new`: languages off the files' names, what is printed, and a bundle by the commands that it prints."""

from __future__ import annotations

import bz2
import re
import shlex
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from tandem.deploy.cli import app
from tandem.extras.shared.tmx import TmxPair, write_tmx
from tandem.models.bundle import Bundle
from tandem.training.recipe import load_recipe
from tests.command import fails, succeeds

WORDS = ["".join(word) for word in np.random.default_rng(4).choice(list("abcdefghijklmnoprstuvwz"), (400, 6))]


@pytest.fixture
def texts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files in the working folder: 1,200 lines that rise through the words, and their translation."""
    monkeypatch.chdir(tmp_path)
    lines = [" ".join(WORDS[(number * step) % 400] for step in range(1, 4 + number % 7)) for number in range(1200)]
    lines = [f"{line} {number}" for number, line in enumerate(lines)]
    for name, text in (("mine.de", lines), ("mine.en", [line.upper() for line in lines]), ("mine.txt", lines)):
        (tmp_path / name).write_text("".join(f"{line}\n" for line in text), encoding="utf-8")


@pytest.mark.usefixtures("texts")
def test_it_tells_what_was_found_and_how_to_go_on() -> None:
    output = succeeds("new", "mine", "--source", "mine.de", "--target", "mine.en")
    assert "1,200 lines; left out: none" in output
    assert "960 train, 120 valid, 120 test; no sentence of valid and test is in train" in output
    assert "mine.toml: German to English" in output
    assert load_recipe(Path("mine.toml")).languages == ("de", "en")
    (prepare,) = re.findall(r"^ +tandem (prepare .*)$", output, re.MULTILINE)
    assert "960 pairs" in succeeds(*shlex.split(prepare))


def test_text_of_few_words_can_be_prepared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    pairs = [(f"seite {number} von {word}", f"page {number} of {word}") for number in range(750) for word in WORDS[:4]]
    for name, lines in zip(("mine.de", "mine.en"), zip(*pairs, strict=True), strict=True):
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    output = succeeds("new", "mine", "--source", "mine.de", "--target", "mine.en")
    size = load_recipe(Path("mine.toml")).data.vocabulary.size
    assert 280 < size < 340
    (prepare,) = re.findall(r"^ +tandem (prepare .*)$", output, re.MULTILINE)
    succeeds(*shlex.split(prepare))
    recipe = Path("mine.toml").read_text(encoding="utf-8").replace(f"size = {size}", "size = 1000")
    Path("mine.toml").write_text(recipe.replace('name = "mine"', 'name = "more"', 1), encoding="utf-8")
    assert "[data.vocabulary] size: cannot train a vocabulary of 1000 pieces" in fails(*shlex.split(prepare))


@pytest.mark.usefixtures("texts")
def test_a_translation_memory_becomes_two_files() -> None:
    """As a server exports it, with pairs of other languages, and line ends within a segment."""
    lines = Path("mine.de").read_text(encoding="utf-8").splitlines()
    pairs = [TmxPair("de", "en", line.replace(" ", "\n", 1), line.upper()) for line in lines]
    pairs += [TmxPair("de", "fr", "haus", "maison"), TmxPair("en", "de", "HOUSE", "haus")]
    Path("memory.tmx").write_text("".join(write_tmx([(pair, 0.0) for pair in pairs], "1")), encoding="utf-8")
    languages = ("--source-language", "de", "--target-language", "en")
    output = succeeds("new", "mine", "--source", "memory.tmx", *languages)
    assert "1,201 lines; left out: none" in output
    assert Path("memory.de").read_text(encoding="utf-8").splitlines() == [*lines, "haus"]
    for arguments, fault in ((languages, "memory.de is there already"), ((), "--source-language and --target")):
        refused = CliRunner().invoke(app, ["new", "mine", "--source", "memory.tmx", *arguments])
        assert fault in str(refused.exception)


def test_the_shipped_summarizer_goes_on_as_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Long texts with titles, neither of whose names ends in a language: no warning but that texts are cut."""
    monkeypatch.chdir(tmp_path)
    bundle = Path(__file__).parents[3] / "bundles" / "arxiv-title"
    rng = np.random.default_rng(5)
    for name, least, most in (("texts.txt", 20, 120), ("titles.txt", 3, 9)):
        lines = [" ".join(rng.choice(WORDS, rng.integers(least, most))) for _ in range(300)]
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    output = succeeds("new", "pkg", "--source", "texts.txt", "--target", "titles.txt", "--from", bundle)
    (warning,) = re.findall(r"^warning: (.*)$", output, re.MULTILINE)
    assert re.match(r"[0-9.]+% of the sources are longer than about 128 tokens: the model reads their beg", warning)
    recipe = load_recipe(Path("pkg.toml"))
    assert (recipe.task, recipe.training.metric, recipe.start) == ("summarize", "rouge", str(bundle))
    assert (recipe.data.truncate_source, recipe.data.max_source_tokens) == (True, 128)
    assert "--from" not in output[output.index("Look at the recipe") :]
    again = ("new", "other", "--source", "texts.txt", "--target", "titles.txt", "--from", bundle, "--task", "translate")
    assert "--task must be summarize, as arxiv-title is for that, but is translate" in fails(*again)


def test_summaries_are_learnt_from_scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Texts and summaries of one language: long texts are cut, and no ratio of lengths leaves any out."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(5)
    for name, least, most in (("texts.en", 20, 160), ("summaries.en", 3, 20)):
        lines = [" ".join(rng.choice(WORDS, rng.integers(least, most))) for _ in range(1200)]
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    output = succeeds("new", "short", "--source", "texts.en", "--target", "summaries.en", "--architecture", "dpn")
    assert "960 pairs are few to learn summarizing from" in output
    assert re.search(r"[0-9.]+% of the sources are longer than about 256 tokens: the model reads their beg", output)
    recipe = load_recipe(Path("short.toml"))
    assert (recipe.task, recipe.training.metric, recipe.languages) == ("summarize", "rouge", ("en", "en"))
    assert (recipe.data.truncate_source, recipe.data.max_source_tokens, recipe.data.copy_share) == (True, 256, 0.1)
    assert (recipe.data.filters.max_length_ratio, recipe.data.join_share) == (None, 0.0)
    assert (recipe.decoding.max_length_ratio, recipe.decoding.no_repeat_ngram_size) == (None, 3)
    (prepare,) = re.findall(r"^ +tandem (prepare .*)$", output, re.MULTILINE)
    assert "960 pairs" in succeeds(*shlex.split(prepare))


@pytest.mark.usefixtures("texts")
def test_summaries_may_be_in_another_language() -> None:
    succeeds("new", "mine", "--source", "mine.de", "--target", "mine.en", "--task", "summarize")
    recipe = load_recipe(Path("mine.toml"))
    assert (recipe.task, recipe.languages, recipe.data.truncate_source) == ("summarize", ("de", "en"), True)


@pytest.mark.usefixtures("texts")
def test_files_may_be_packed(tmp_path: Path) -> None:
    for name in ("mine.de", "mine.en"):
        (tmp_path / f"{name}.bz2").write_bytes(bz2.compress((tmp_path / name).read_bytes()))
    output = succeeds("new", "mine", "--source", "mine.de.bz2", "--target", "mine.en.bz2")
    assert "mine.toml: German to English" in output


@pytest.mark.usefixtures("texts")
def test_help_has_an_example() -> None:
    assert "tandem new" in succeeds("new", "--help")


@pytest.mark.usefixtures("texts")
@pytest.mark.parametrize(
    ("arguments", "fault"),
    [
        (("--source", "mine.txt", "--target", "mine.en"), "--source-language is needed: mine.txt does not end in"),
        (("--source", "mine.de", "--target", "mine.en", "--target-language", "?"), "must be a code such as de"),
        (("--source", "mine.de", "--target", "mine.en", "--from", "."), "manifest.json"),
        (("--source", "mine.de", "--target", "mine.en", "--architecture", "rnn"), "convs2s, dpn, transformer"),
        (("--source", "mine.de", "--target", "none.en"), "none.en"),
    ],
)
def test_faults_are_one_line(arguments: tuple[str, ...], fault: str) -> None:
    message = fails("new", "mine", *arguments)
    assert fault in message and message.count("\n") == 1
    assert not Path("mine.toml").exists() and not Path("corpora").exists()


@pytest.mark.slow
@pytest.mark.usefixtures("texts")
def test_from_two_files_to_scores_and_on_from_there() -> None:
    """By the printed commands, as short as can be; then the new bundle is tuned, and shown beside itself."""
    options = ("--source", "mine.de", "--target", "mine.en", "--updates", "2")
    for name, start in (("mine", ()), ("tuned", ("--from", "bundles/mine"))):
        output = succeeds("new", name, *options, *start)
        recipe = Path(f"{name}.toml")
        recipe.write_text(
            re.sub(r"(?<=[\[ ])256(?=[,\]])|(?<=embedding = )256", "32", recipe.read_text("utf-8")), "utf-8"
        )
        for line in re.findall(r"^ +tandem (.*)$", output, re.MULTILINE):
            succeeds(*shlex.split(line))
    test = ("--source", "corpora/tuned/test.de", "--references", "corpora/tuned/test.en", "--limit", "4")
    assert "BLEU" in succeeds("evaluate", "bundles/tuned", *test, "--against", "bundles/mine", "--beam-size", "1")
    corpora = Bundle.load(Path("bundles/tuned")).manifest.training.corpora
    assert [corpus.name for corpus in corpora] == ["tuned", "mine"], "what it began from is owed attribution too"
