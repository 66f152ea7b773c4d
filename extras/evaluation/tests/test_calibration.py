"""`tandem calibrate`: what it measures, and where it goes."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sacrebleu.metrics.chrf import CHRF

from tandem.extras.evaluation import calibration
from tandem.extras.evaluation.calibration import Judged
from tandem.extras.evaluation.decoding import Decoding, decode_lines
from tandem.models.bundle import Bundle, extend_bundle
from tandem.models.bundle.files import SHORTLIST
from tandem.models.config import to_mapping
from tandem.models.search import Hypothesis, translate_batch
from tandem.models.search.shortlist import Shortlist, Table
from tests.command import fails, succeeds
from tests.deploy.small import WORDS, Make, make
from tests.determinism import one_thread, seeded
from tests.service.support import copying, tiny_bundle

__all__ = ["make", "one_thread", "seeded"]

Splits = Callable[[str], str]


@pytest.fixture
def splits(tmp_path: Path) -> Splits:
    """Writes sixty lines of each split in a language, the second of them empty; names the two files."""

    def write(language: str) -> str:
        rng = np.random.default_rng(list(language.encode()))
        for split in ("valid", "test"):
            lines = [" ".join(rng.choice(WORDS, size=rng.integers(1, 7))) for _ in range(60)]
            lines[1] = ""
            (tmp_path / f"{split}.{language}").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        return str(tmp_path / f"{{split}}.{language}")

    return write


def test_what_is_measured_is_kept(make: Make, splits: Splits, tmp_path: Path) -> None:
    path, sources, references = make("one", "de"), splits("de"), splits("en")
    command = ["calibrate", str(path), "--source", sources, "--references", references, "--runtime", "torch"]
    result = succeeds(*command, "--record", "--json")
    bundle = Bundle.load(path)
    assert to_mapping(bundle.manifest.confidence) == json.loads(result)
    assert "## Confidence" in (path / "MODEL_CARD.md").read_text(encoding="utf-8")

    lines, gold = ((tmp_path / f"test.{language}").read_text().splitlines() for language in ("de", "en"))
    written = decode_lines(bundle, *Decoding(runtime="torch").prepare(bundle), [lines])
    pairs = [pair for line, *pair in zip(lines, written, gold, strict=True) if line]
    assert bundle.manifest.confidence is not None
    of_sentences, of_words = (
        bundle.manifest.confidence.sentence_reliability,
        bundle.manifest.confidence.word_reliability,
    )
    scores = [CHRF().sentence_score(text, [reference]).score / 100 for text, reference in pairs]
    assert np.average([b.measured for b in of_sentences.bins], weights=[b.count for b in of_sentences.bins]) == (
        pytest.approx(np.mean(scores), abs=1e-4)
    )
    right = sum((Counter(text.split()) & Counter(reference.split())).total() for text, reference in pairs)
    words = sum(b.count for b in of_words.bins)
    assert words == sum(len(text.split()) for text, _ in pairs)
    assert sum(b.measured * b.count for b in of_words.bins) == pytest.approx(right, abs=1e-4 * words)

    printed = succeeds(*command)
    assert f"AUC for chrF below the median: {of_sentences.auc:.3f}" in printed


def test_it_is_measured_with_the_shortlist_that_the_service_uses(
    make: Make, splits: Splits, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = make("one", "de")
    bundle = Bundle.load(path)
    size = bundle.target_vocabulary.size
    made = Shortlist((Table.of([[]] * bundle.source_vocabularies[0].size, size),), np.arange(size), size)
    extend_bundle(path, {SHORTLIST: made.to_bytes()}, replace(bundle.manifest, shortlist=SHORTLIST))
    used = []

    def decode(*arguments: Any, shortlist: Shortlist | None = None) -> list[list[Hypothesis]]:
        used.append(shortlist and shortlist.to_bytes())
        return translate_batch(*arguments, shortlist=shortlist)

    monkeypatch.setattr(calibration, "translate_batch", decode)
    command = ["calibrate", str(path), "--source", splits("de"), "--references", splits("en"), "--runtime", "torch"]
    succeeds(*command)
    assert used == [made.to_bytes()] * 2


@pytest.mark.parametrize("telling", [True, False])
def test_attention_is_weighed_where_it_tells_more_than_scores(telling: bool) -> None:
    """The last number is what attention says: half of the worth, or the score in noise."""
    rng = np.random.default_rng(3)
    score, seen = rng.normal(size=(2, 400))
    numbers = np.column_stack([score, seen if telling else np.sign(rng.normal(size=400)) * 9 + score])
    worth = 1 / (1 + np.exp(-score - seen))
    judged = Judged(numbers, worth, float(np.median(worth)))
    plain, attentive = judged.scales(1)
    assert len(plain.weights) == 1
    if telling:
        assert attentive is not None and attentive.weights[1] == pytest.approx(attentive.weights[0], rel=0.1)
        assert judged.reliability(plain, attentive).auc > judged.reliability(plain, None).auc + 0.1
    else:
        assert attentive is None


def test_each_language_that_is_written_has_its_own(
    splits: Splits, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tiny_bundle(tmp_path, "both", pairs=(("de", "en"), ("en", "de"))).path
    monkeypatch.setattr(Decoding, "open_graphs", lambda _, bundle: copying(bundle))
    kept = {}
    for source, target in (("en", "de"), ("de", "en")):
        files = ["--source", splits(source), "--references", splits(target)]
        kept[target] = json.loads(succeeds("calibrate", path, *files, "--target", target, "--record", "--json"))
    assert kept["en"] != kept["de"]
    bundle = Bundle.load(path)
    for view in bundle.views:
        assert to_mapping(view.manifest.confidence) == kept[view.manifest.target_language]
    card = (path / "MODEL_CARD.md").read_text(encoding="utf-8")
    assert "## Confidence\n" in card and "## Confidence, `de`\n" in card
    assert bundle.direction("en", "de").manifest.confidence == bundle.manifest.further_confidence["de"]


@pytest.mark.parametrize(
    ("given", "changes", "fault"),
    [
        ({"--references": "en"}, {}, "must be named with {split}"),
        ({"--source": "{split}.de", "--references": "{split}.en"}, {"task": "summarize"}, "is of translations"),
        ({"--source": "{split}.de", "--references": "{split}.en"}, {}, "valid.de"),
    ],
)
def test_what_it_refuses(make: Make, given: dict[str, str], changes: dict[str, str], fault: str) -> None:
    files = {"--source": "de", "--references": "en"} | given
    arguments = [part for pair in files.items() for part in pair]
    assert fault in fails("calibrate", make("one", "de", **changes), *arguments, "--runtime", "torch")
