"""`tandem verify` of a bundle of several directions: which one it proves, and what it keeps."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tandem.extras.proofs import verify
from tandem.extras.proofs.proof import Proof
from tandem.extras.shared.sentences import proof_sentences
from tandem.models.bundle import Bundle
from tests.command import fails, succeeds
from tests.service.support import tiny_bundle

PAIRS = (("de", "en"), ("en", "de"))


@pytest.fixture
def proven(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Bundle, Any]]:
    """What was to be proven: the bundle and its text; nothing is decoded, and nothing fails."""
    asked: list[tuple[Bundle, Any]] = []

    def prove(bundle: Bundle, *given: Any, **_: object) -> Proof:
        asked.append((bundle, given[2]))
        return Proof(True, 2, 0, (), (), (), ())

    monkeypatch.setattr(verify, "prove", prove)
    monkeypatch.setattr(verify, "add_precision", lambda *_, **__: None)
    return asked


@pytest.mark.parametrize(("more", "source", "target"), [((), "de", "en"), (("--target", "de"), "en", "de")])
def test_one_direction_is_proven(
    tmp_path: Path, proven: list[tuple[Bundle, Any]], more: Sequence[str], source: str, target: str
) -> None:
    path = tiny_bundle(tmp_path, "both", pairs=PAIRS).path
    succeeds("verify", path, *more)
    ((bundle, lines),) = proven
    assert bundle.manifest.target_language == target
    assert lines == [proof_sentences(source)]


def test_the_proof_of_the_first_direction_is_kept(tmp_path: Path, proven: list[tuple[Bundle, Any]]) -> None:
    path = tiny_bundle(tmp_path, "both", pairs=PAIRS).path
    assert "keeps the proof into 'en'" in fails("verify", path, "--target", "de", "--record", status=2)
    assert not proven and not Bundle.load(path).manifest.proof
    succeeds("verify", path, "--record")
    manifest = Bundle.load(path).manifest
    assert manifest.pairs == PAIRS and manifest.proof["passed"]
