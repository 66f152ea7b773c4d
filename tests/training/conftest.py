"""What the tests of training share: one thread, a fixed seed, and a corpus small enough to learn in seconds."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.determinism import one_thread, seeded
from tests.training.toy import DATA, LETTERS
from training.data.prepare import prepare

__all__ = ["one_thread", "prepared", "seeded"]


@pytest.fixture(scope="session")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A prepared folder: sentences of made-up words and the same words translated one by one."""
    root, out = tmp_path_factory.mktemp("corpora"), tmp_path_factory.mktemp("prepared") / "data"
    (root / "toy").mkdir()
    rng = np.random.default_rng(5)
    for split, count in (("train", 160), ("valid", 12), ("test", 12)):
        lines = [rng.choice(list(LETTERS), size=rng.integers(1, 8)).tolist() for _ in range(count)]
        (root / f"toy/{split}.de").write_text("".join(f"{' '.join(line)}\n" for line in lines), encoding="utf-8")
        translated = [[f"the-{word}" for word in line] for line in lines]
        (root / f"toy/{split}.en").write_text("".join(f"{' '.join(line)}\n" for line in translated), encoding="utf-8")
    prepare(DATA, languages=("de", "en"), root=root, out=out, seed=1)
    return out
