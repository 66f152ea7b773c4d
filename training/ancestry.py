"""What a run's weights are owed to besides its own text: the corpora of the bundle that it began from (``--from``)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, replace
from pathlib import Path

from models.bundle import Corpus
from models.config import load_dataclass
from models.errors import CheckpointError, ConfigError

FILE = "began.json"


def write_ancestry(run: Path, corpora: Sequence[Corpus]) -> None:
    """Remember in a run's folder what its first weights were trained on; nothing, for a run from scratch."""
    path = run / FILE
    if corpora:
        run.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps([asdict(corpus) for corpus in corpora], indent=1) + "\n", encoding="utf-8")
    else:
        path.unlink(missing_ok=True)


def read_ancestry(run: Path) -> tuple[Corpus, ...]:
    """What :func:`write_ancestry` wrote.

    Raises:
        CheckpointError: the file is damaged.
    """
    path = run / FILE
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        return tuple(load_dataclass(Corpus, corpus, str(path)) for corpus in found)
    except FileNotFoundError:
        return ()
    except (OSError, ValueError, TypeError, ConfigError) as error:
        raise CheckpointError(f"{path}: not readable ({error}): it names what the run's weights came from") from error


def merged_corpora(corpora: Iterable[Corpus]) -> tuple[Corpus, ...]:
    """Every corpus once, in order, with as many segments as it had where most of it was seen."""
    largest: dict[Corpus, int] = {}
    for corpus in corpora:
        key = replace(corpus, segments=0)
        largest[key] = max(largest.get(key, 0), corpus.segments)
    return tuple(replace(key, segments=segments) for key, segments in largest.items())
