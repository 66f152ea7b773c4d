"""How a run learnt: the table and the picture of its validations."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tandem.deploy.cli import app
from tandem.extras.evaluation.curve import learning_curve
from tandem.models.errors import CheckpointError

LINES = [
    {"group": "train", "update": 50, "epoch": 0, "target_tokens": 900_000, "seconds": 9.0, "loss": 5.0},
    *(
        {
            **{"group": "valid", "update": update, "epoch": 0, "target_tokens": 20_000 * update, "seconds": 1.0},
            **{"loss": loss, "chrf": chrf, "chrf/news-de-en": chrf - 4, "chrf/news-de-en.reversed": chrf - 6},
            "chrf/talk-de-en": chrf + 10,
        }
        for update, loss, chrf in ((100, 4.0, 30.0), (1200, 3.5, 40.0))
    ),
]


@pytest.fixture
def run(tmp_path: Path) -> Path:
    (tmp_path / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in LINES), encoding="utf-8")
    return tmp_path


def test_rows_are_validations_with_the_mean_of_each_kind_of_text(run: Path) -> None:
    assert learning_curve(run / "metrics.jsonl", "chrf") == [
        {"update": 100, "tokens": 2.0, "loss": 4.0, "chrf": 30.0, "news": 25.0, "talk": 40.0},
        {"update": 1200, "tokens": 24.0, "loss": 3.5, "chrf": 40.0, "news": 35.0, "talk": 50.0},
    ]


def test_the_command_prints_a_table_and_draws_it(run: Path, tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["curve", str(run), "--out", str(tmp_path / "drawn" / "curve")])
    assert result.exit_code == 0, result.output
    assert result.output.splitlines()[:4] == [
        "| update | tokens | loss | chrf | news | talk |",
        "|--:|--:|--:|--:|--:|--:|",
        "| 100 | 2.0M | 4.000 | 30.0 | 25.0 | 40.0 |",
        "| 1,200 | 24.0M | 3.500 | 40.0 | 35.0 | 50.0 |",
    ]
    written = {path.name: path.read_bytes() for path in (tmp_path / "drawn").iterdir()}
    assert set(written) == {"curve.png", "curve.svg"} and written["curve.png"].startswith(b"\x89PNG")


def test_a_run_without_such_validations_is_refused(run: Path) -> None:
    with pytest.raises(CheckpointError, match="has no validation with 'rouge': set validation_sentences"):
        learning_curve(run / "metrics.jsonl", "rouge")
    with pytest.raises(CheckpointError, match=r"cannot be read .*: train first"):
        learning_curve(run / "missing.jsonl", "chrf")
