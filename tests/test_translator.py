"""Tandem as a library: what a program gets that imports it, from the wheel, beside modules of its own."""

from __future__ import annotations

import asyncio
import math
import subprocess
import sys
import sysconfig
import time
import zipfile
from collections.abc import Coroutine, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import tandem
from tandem import Bundle, TandemError, Translator
from tandem.models.errors import BundleError, ConfigError, OptionError
from tandem.service.engine import Draining
from tandem.service.errors import InvalidOption, LanguageNotServed
from tests.service.support import PATIENCE, tiny_bundle
from tests.shipped import BUNDLES, ROOT, SHIPPED


@pytest.fixture(scope="module")
def translator() -> Iterator[Translator]:
    with Translator(SHIPPED) as opened:
        yield opened


def test_texts_are_translated(translator: Translator) -> None:
    assert ("de", "en") in translator.pairs and ("fr", "de") in translator.pairs
    assert "station" in translator.translate("Wo ist der Bahnhof?", source="de", target="en").text
    found = translator.translate(["Wo ist der Bahnhof?", ""], source="de", target="en", n_best=3, scores=True)
    assert found[1].text == "" and not found[1].sentences
    (sentence,) = found[0].sentences
    assert len({found[0].text, *found[0].alternatives}) == 3
    assert sentence.score is not None and sentence.token_scores
    assert sentence.score == pytest.approx(sum(sentence.token_scores), abs=1e-3)
    kept = {"glossary": {"Haus": "mansion"}, "protect": ["X-9"]}
    assert {"mansion", "X-9"} <= {
        *translator.translate("Das Haus X-9 ist alt.", source="de", target="en", **kept).text.split()
    }


@pytest.mark.parametrize(
    ("source", "target", "text", "kept"),
    [
        ("de", "en", "Gib ½ Tasse Zucker dazu.", "½"),
        ("de", "en", "Herr Łukasz kommt aus Łódź.", "Łukasz Łódź"),
        ("de", "en", "Der Wert α ist größer als β.", "α β"),
        ("de", "en", "Frau Ñúñez wohnt hier.", "Ñúñez"),
        ("en", "de", "The distance is 3½ miles.", "3½"),
        ("fr", "en", "La résistance est de 50 Ω.", "50 Ω"),
        ("en", "fr", "The screen is 24″ wide.", "24″"),
    ],
)
def test_characters_that_models_hardly_know_come_back(
    translator: Translator, source: str, target: str, text: str, kept: str
) -> None:
    written = translator.translate(text, source=source, target=target).text
    assert all(part in written for part in kept.split()) and written != text


def test_what_is_wrong_is_said_with_its_field(translator: Translator) -> None:
    for error, options in (
        (OptionError, {"source": "de"}),
        (LanguageNotServed, {"source": "de", "target": "tr"}),
        (InvalidOption, {"source": "de", "target": "en", "beam_size": 1000}),
        (OptionError, {"source": "de", "target": "en", "no_such_field": 1}),
        (OptionError, {"source": "de", "target": "en", "protect": "numbers"}),
    ):
        with pytest.raises(error):
            translator.translate("Haus", **options)
    assert issubclass(LanguageNotServed, TandemError)
    with pytest.raises(OptionError, match="targets must be as many as sources, 1"):
        translator.score(["Haus"], [], source="de", target="en")
    with pytest.raises(OptionError, match="targets must be at most 159 tokens each, but is 400"):
        translator.score(["Haus"], ["house " * 400], source="de", target="en")
    with pytest.raises(OptionError, match="targets must be texts with words in them"):
        translator.score(["Haus"], [" "], source="de", target="en")
    with pytest.raises(ConfigError, match="holds no bundle"):
        Translator(ROOT / "docs")
    with pytest.raises(AttributeError, match="has no attribute 'Nobody'"):
        tandem.Nobody  # noqa: B018


def test_the_search_s_own_scores_are_those_of_scoring(translator: Translator) -> None:
    """Of a sentence that the model reads as it stands: beam search sums up what forced decoding does."""
    text = "Wo ist der Bahnhof?"
    (sentence,) = translator.translate(text, source="de", target="en", scores=True, lexicon=False).sentences
    answer = translator.translate(text, source="de", target="en").text
    same, other = translator.score([text] * 2, [answer, "The house is green."], source="de", target="en")
    assert sentence.score == pytest.approx(same.log_probability, abs=0.05)
    assert same.log_probability == pytest.approx(math.fsum(same.token_log_probabilities))
    assert len(same.tokens) + 1 == len(same.token_log_probabilities)
    assert same.log_probability - 10 > other.log_probability


def test_who_waits_is_told_where_it_is_closed() -> None:
    opened = Translator(SHIPPED)
    different = " ".join(f"Das Haus {number} ist alt." for number in range(2_000))  # equal ones are decoded once
    with ThreadPoolExecutor(1) as threads:
        waiting = threads.submit(opened.translate, different, source="de", target="en")
        time.sleep(0.2)
        opened.close()
        with pytest.raises(Draining):
            waiting.result(timeout=PATIENCE)
    opened.close()
    with pytest.raises(Draining):
        opened.translate("Haus", source="de", target="en")


def test_who_asks_while_it_is_closed_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    opened = Translator(SHIPPED)
    with ThreadPoolExecutor(1) as threads:

        def submit(answer: Coroutine[Any, Any, Any], loop: asyncio.AbstractEventLoop) -> Future[Any]:
            monkeypatch.undo()
            threads.submit(opened.close)
            time.sleep(0.2)  # closed in the meantime, if nothing holds it
            return asyncio.run_coroutine_threadsafe(answer, loop)

        monkeypatch.setattr("tandem.local.asyncio.run_coroutine_threadsafe", submit)
        with pytest.raises(Draining):
            opened.translate("Haus", source="de", target="en")


def test_samples_are_drawn(translator: Translator) -> None:
    way = {"source": "de", "target": "en", "sampling": {"temperature": 1.5, "seed": 3}}
    text = "Wo ist der nächste Bahnhof?"
    assert translator.translate(text, **way).text == translator.translate(text, **way).text


def test_texts_are_summarized() -> None:
    with Translator([BUNDLES / "arxiv-title"]) as summarizer:
        text = "We present a new method for training neural networks. It is faster. It was tested on three data sets."
        assert summarizer.summarize(text, method="model", language="en").text


def test_bundles_that_no_text_can_be_sent_to_are_refused(tmp_path: Path) -> None:
    folder = tiny_bundle(tmp_path, "editor", task="postedit").path
    assert Bundle.load(folder).manifest.task == "postedit"
    with pytest.raises(BundleError, match="a post-editor must have 2 sources"):
        Translator(folder)


PROGRAM = """
import models, importlib.util
assert models.mine
for name in ("service", "training", "deploy", "extras", "tests"):
    assert importlib.util.find_spec(name) is None, name
import tandem
from tandem import Translator
assert "unpacked" in tandem.__file__
with Translator({bundle!r}) as translator:
    print(translator.translate("Wo ist der Bahnhof?", source="de", target="en").text)
"""


def test_the_wheel_owns_one_name(tmp_path: Path) -> None:
    """A program in a folder with a ``models.py`` of its own uses the wheel."""
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--no-index"]
    subprocess.run([*command, "--wheel-dir", str(tmp_path), str(ROOT)], check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    unpacked = tmp_path / "unpacked"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(unpacked)
        names = archive.namelist()
    assert {name.partition("/")[0].removesuffix(f"-{wheel.name.split('-')[1]}.dist-info") for name in names} == {
        "tandem"
    }
    assert {"tandem/py.typed", "tandem/service/web/index.html", "tandem/extras/files/port.py"} <= {*names}
    assert not [name for name in names if "/tests/" in name and name.endswith(".py")]
    (tmp_path / "models.py").write_text("mine = True\n", encoding="utf-8")
    (tmp_path / "program.py").write_text(PROGRAM.format(bundle=str(SHIPPED)), encoding="utf-8")
    libraries = [sysconfig.get_path("purelib"), sysconfig.get_path("platlib")]
    start = f"import sys; sys.path[:0] = {[str(tmp_path), str(unpacked)]!r}; sys.path += {libraries!r}; import program"
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", start], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (done.returncode, "station" in done.stdout) == (0, True), done.stderr
    assert done.stderr == ""
