"""`tandem bench decode`: a small real run of the shipped bundle, what it refuses, and what it does without peers."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tandem.extras.laboratory.decoding.decode import measure, show
from tandem.extras.laboratory.decoding.systems import Label, Task
from tandem.extras.laboratory.decoding.tandem import Tandem, search_options
from tandem.extras.laboratory.options import DecodeOptions
from tandem.extras.laboratory.workload import lengths
from tandem.extras.shared.report import names, numbers
from tandem.models.bundle import Bundle
from tandem.models.errors import ConfigError
from tandem.models.search import SearchOptions
from tandem.models.search.shortlist import Shortlist, Table
from tandem.models.steps.loading import load_bundle_model
from tandem.models.steps.torch_graphs import TorchGraphs
from tests.command import fails, succeeds
from tests.determinism import one_thread, seeded
from tests.shipped import SHIPPED

__all__ = ["one_thread", "seeded"]

KEYS = {
    *("system", "model", "threads", "batch", "beam", "precision", "shortlist", "native", "workload"),
    *("sentences", "passes"),
    *("target_tokens", "sentences_per_s", "tokens_per_s", "decode_sentences_per_s", "p50_ms", "p95_ms", "spread"),
    *("output_hash", "stable", "bleu", "against", "memory_mb"),
}
GERMAN = ("Wo ist der Bahnhof?", "Das Buch liegt auf dem Tisch.", "Ich habe Hunger.", "Wir gehen morgen ins Kino.")
ENGLISH = ("Where is the station?", "The book is on the table.", "I'm hungry.", "We are going to the movies tomorrow.")


def bench(*arguments: object) -> str:
    return succeeds("bench", "decode", "--bundle", SHIPPED, *arguments)


def write(path: Path, lines: Sequence[str]) -> Path:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """A run with everything but peers and shortlist."""
    folder = tmp_path_factory.mktemp("text")
    text = {"source": write(folder / "a.de", (*GERMAN, "")), "references": write(folder / "a.en", (*ENGLISH, ""))}
    sizes: dict[str, Any] = {"batch_sizes": "1,2", "sentences": 6, "single": 3, "passes": 2, **text}
    return measure(DecodeOptions(bundle=SHIPPED, workers=2, beam_size=3, shortlist=False, peers="", **sizes))


@pytest.mark.slow
@pytest.mark.usefixtures("no_memory")
def test_a_bundles_shortlist_has_rows_of_its_own(listed: Path) -> None:
    sizes: dict[str, Any] = {"batch_sizes": "2", "sentences": 2, "passes": 1, "peers": ""}
    rows = measure(DecodeOptions(bundle=listed, workers=1, beam_size=2, **sizes))["rows"]
    assert [(row["shortlist"], row["target_tokens"]) for row in rows] == [
        (kind, rows[0]["target_tokens"]) for kind in (False, True)
    ]


@pytest.mark.slow  # twelve layers are exported
@pytest.mark.usefixtures("no_memory")
def test_random_weights_are_measured_at_any_size() -> None:
    sizes: dict[str, Any] = {"batch_sizes": "2", "sentences": 4, "passes": 1, "peers": ""}
    options = DecodeOptions(random="small", vocabulary=300, shortlist=True, workers=1, beam_size=2, **sizes)
    rows = measure(options)["rows"]
    assert [row["shortlist"] for row in rows] == [False, True]
    for row in rows:
        assert (row["model"], row["native"]) == ("random-small-300", False)
        assert (row["sentences"], row["stable"]) == (4, True)
        assert row["target_tokens"] > 0


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ({}, "--bundle FOLDER, or --random SHAPE"),
        ({"bundle": SHIPPED, "random": "small"}, "--bundle FOLDER, or --random SHAPE"),
        ({"random": "large"}, "one of small, opus-mt, but is 'large'"),
        ({"random": "small", "source": Path("a")}, "leave out --source"),
    ],
)
def test_what_is_measured_is_named_once(asked: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(says)):
        measure(DecodeOptions(**asked))


def test_rows_say_what_was_measured(result: dict[str, Any]) -> None:
    rows = result["rows"]
    assert [(row["workload"], row["batch"], row["sentences"]) for row in rows] == [
        ("forced", 1, 3),
        ("forced", 2, 6),
        ("text", 1, 3),
        ("text", 2, 4),
    ]
    assert result["environment"]["threads"] == 2
    for row in rows:
        assert set(row) == KEYS
        assert (row["system"], row["precision"], row["shortlist"], row["beam"]) == ("tandem", "int8", False, 3)
        assert row["threads"] == (1 if row["batch"] == 1 else 2)
        assert row["passes"] == 2 and row["stable"]
        assert 0 < row["sentences_per_s"] <= row["decode_sentences_per_s"] and row["spread"] >= 0
        assert row["tokens_per_s"] == pytest.approx(row["sentences_per_s"] * row["target_tokens"] / row["sentences"])
        assert (row["p50_ms"] is not None) == (row["batch"] == 1)
        if row["memory_mb"] is not None:
            assert 0 < row["memory_mb"]["loaded"] <= row["memory_mb"]["peak"]
        assert (row["memory_mb"] is not None) == sys.platform.startswith("linux")


def test_forced_lengths_are_decoded_exactly(result: dict[str, Any]) -> None:
    by_length = sorted((lengths(6) + 1).tolist())  # the tag that names a language is a symbol of the source, too
    pairs = [by_length[start : start + 2] for start in range(0, 6, 2)]
    wanted = sum(2 * round(float(np.mean(pair))) for pair in pairs)
    assert result["rows"][1]["target_tokens"] == wanted


def test_bleu_belongs_to_text_that_was_decoded_as_a_whole(result: dict[str, Any]) -> None:
    assert [row["bleu"] is None for row in result["rows"]] == [True, True, True, False]
    assert 20 < result["rows"][3]["bleu"] <= 100


def test_a_run_is_shown(result: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    show(result)
    shown = capsys.readouterr().out
    for words in ("Forced lengths", "Real text", "tandem int8: de-fr-en"):
        assert words in shown


@pytest.mark.usefixtures("no_memory")
def test_the_command_prints_json_and_leaves_out_a_peer_that_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tandem.extras.laboratory.decoding.decode.find_spec", lambda name: None)
    small = ("--batch-sizes", "2", "--sentences", 2, "--passes", 1, "--workers", 1, "--beam", 2)
    out = tmp_path / "made" / "result.json"
    printed = json.loads(bench(*small, "--no-shortlist", "--peers", "ctranslate2", "--json", "--out", out))
    assert printed == json.loads(out.read_text(encoding="utf-8"))
    (tandem,) = printed["rows"]
    assert (tandem["system"], tandem["against"]) == ("tandem", None)
    assert "not installed" in printed["left_out"]["ctranslate2"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--batch-sizes", "1,0"), "--batch-sizes must be whole numbers from 1 to 4096, such as 1,32,64, but is '1,0'"),
        (("--batch-sizes", ""), "--batch-sizes must be whole numbers"),
        (("--peers", "ctranslate2,x"), "--peers must be of ctranslate2, but has x"),
        (("--references", "x"), "--references is for real text: give it with --source FILE"),
        (("--ct2-from", "x"), "--ct2-from is for real text: give it with --source FILE"),
        (("--source", "no-such-file"), "no-such-file"),
    ],
)
def test_what_cannot_be_measured_is_refused(arguments: tuple[str, ...], message: str) -> None:
    assert message in fails("bench", "decode", "--bundle", SHIPPED, *arguments)


def test_lists_are_read_once_each() -> None:
    assert numbers("1, 32,1", "--batch-sizes") == (1, 32)
    assert names("", "--peers", ("a",)) == ()
    assert names("b,a,b", "--peers", ("a", "b")) == ("b", "a")


def test_a_shortlist_bounds_what_is_written() -> None:
    """Measured in a row of its own; a bundle without one says so."""
    plain = Bundle.load(SHIPPED)
    tokens = plain.target_vocabulary.encode("The station is on the table.")
    vocabularies = (plain.source_vocabularies[0], plain.target_vocabulary)
    table = Table.of([()] * vocabularies[0].size, vocabularies[1].size)
    shortlist = Shortlist((table,), np.unique([*tokens, 3]), vocabularies[1].size)
    bundle, graphs = replace(plain, shortlist=shortlist), TorchGraphs(load_bundle_model(plain))
    label = Label("tandem", "de-en", "float32", shortlist=True)
    system = Tandem(bundle, graphs, SearchOptions(beam_size=2, max_length=30), 1, label)
    decoded = system.decode_alone(Task(tuple(system.tokenise(GERMAN)), 9))
    assert {token for one in decoded for token in one.tokens} <= set(tokens)
    assert [len(one.tokens) for one in decoded] == [9] * len(GERMAN)
    system.close()
    with pytest.raises(ConfigError, match="has no shortlist for float32 graphs"):
        Tandem(replace(plain, shortlist=None), graphs, SearchOptions(), 1, label)


def test_a_forced_search_ends_at_its_length() -> None:
    given = SearchOptions(beam_size=2, max_length=50, max_length_ratio=1.5, min_length_ratio=0.5)
    assert search_options(given, None) == given
    assert search_options(given, 70).bounds(3) == (70, 70)
