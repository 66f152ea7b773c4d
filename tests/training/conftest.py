"""What the tests of training share: one thread, a fixed seed, and a corpus small enough to learn in seconds."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tandem.training.data.prepare import prepare
from tests.determinism import one_thread, seeded
from tests.training.toy import DATA, LETTERS, write_lines

__all__ = ["one_thread", "prepared", "seeded"]


@pytest.fixture(scope="session")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A prepared folder: sentences of made-up words and the same words translated one by one."""
    root, out = tmp_path_factory.mktemp("corpora"), tmp_path_factory.mktemp("prepared") / "data"
    rng = np.random.default_rng(5)
    for split, count in (("train", 160), ("valid", 12), ("test", 12)):
        lines = [rng.choice(list(LETTERS), size=rng.integers(1, 8)).tolist() for _ in range(count)]
        write_lines(root / f"toy/{split}.de", map(" ".join, lines))
        write_lines(root / f"toy/{split}.en", (" ".join(f"the-{word}" for word in line) for line in lines))
    prepare(DATA, languages=("de", "en"), root=root, out=out, seed=1)
    return out
