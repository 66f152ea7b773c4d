"""`tandem export`: what it refuses before any work, and the text that renewed graphs are calibrated on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tandem.models.errors import BundleError, ConfigError
from tandem.models.steps.loading import model_tensors
from tandem.training.checkpoint import TrainingProgress, save_weights
from tandem.training.export import bundle as export_module
from tandem.training.export.exporting import export
from tandem.training.recipe import recipe_mapping
from tests.service.support import tiny_bundle
from tests.training.export.conftest import Exported
from tests.training.toy import write_lines

RUN = Path("run")


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What graphs would be calibrated on; none are made, and no model is loaded."""
    sources: list[Any] = []

    def built(model: Any, precisions: Any, lines: Any, *_: Any) -> dict[str, bytes]:
        sources.extend(lines)
        return {}

    monkeypatch.setattr(export_module, "built_graphs", built)
    monkeypatch.setattr(export_module, "load_bundle_model", lambda bundle: None)
    return sources


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"checkpoint": RUN, "average": 2}, r"--checkpoint is one alone: leave out --average"),
        ({"weights": RUN, "out": RUN, "share": 0.5}, r"--weights writes no bundle: leave out --out, --share"),
        ({"add": "float32", "out": RUN, "average": 2}, r"--add is for a bundle: leave out --average, --out"),
        ({"add": "float32", "renew": [RUN]}, r"--renew is for all graphs: leave out --add"),
    ],
)
def test_options_without_effect_are_refused(options: dict[str, Any], complaint: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=complaint):
        export(tmp_path, **options)


def test_what_is_there_is_not_replaced_unasked(one: Exported, prepared: Path, tmp_path: Path, seen: list[Any]) -> None:
    """And no graph is made in vain."""
    weights, out = tmp_path / "weights.safetensors", tmp_path / "out"
    save_weights(weights, model_tensors(one.trained), TrainingProgress(), recipe_mapping(one.recipe))
    out.mkdir()
    with pytest.raises(BundleError, match="already something at this path; remove it, or replace it with --force"):
        export(prepared.parent, out, checkpoint=weights)
    assert not seen


def test_renewed_graphs_are_calibrated_on_every_direction(tmp_path: Path, seen: list[Any]) -> None:
    bundle = tiny_bundle(tmp_path, pairs=(("de", "en"), ("en", "de")))
    for language, line, count in (("de", "das haus", 4), ("en", "the house", 5)):
        write_lines(tmp_path / language, [line] * count)
    with pytest.raises(ConfigError, match=r"needs 2 times --renew TEXT, in de, en, but 1 are given"):
        export(bundle.path, renew=[tmp_path / "de"])
    export(bundle.path, renew=[tmp_path / "de", tmp_path / "en"])
    expected = {
        tuple(bundle.direction(*pair).source_vocabularies[0].encode(line))
        for pair, line in ((("de", "en"), "das haus"), (("en", "de"), "the house"))
    }
    assert {tuple(source[:-1]) for (source,) in seen} >= expected
    tags = {bundle.target_vocabulary.language_tag(language) for language in ("de", "en")}
    assert {int(source[0]) for (source,) in seen} == tags
