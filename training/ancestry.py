"""What a run's weights are owed to besides its own text: the training of the bundle that it began from (``--from``)."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from models.bundle import Corpus, Training
from models.config import load_dataclass, to_mapping
from models.errors import CheckpointError, ConfigError

FILE = "began.json"


@dataclass(frozen=True, slots=True)
class Ancestry:
    """What a run's first weights had learnt: from which corpora, in how many updates of how many target tokens.

    ``seconds`` is how long that took; 0 where it was not kept.
    """

    corpora: tuple[Corpus, ...] = ()
    updates: int = 0
    target_tokens: int = 0
    seconds: float = 0.0

    @classmethod
    def of(cls, training: Training) -> Ancestry:
        """What a bundle says of itself."""
        return cls(training.corpora, training.updates, training.target_tokens, training.seconds)

    def together(self, training: Training) -> Training:
        """A run's own training with this one before it; the recipe stays the run's."""
        known = not self.updates or self.seconds > 0
        return replace(
            training,
            corpora=merged_corpora((*training.corpora, *self.corpora)),
            updates=self.updates + training.updates,
            target_tokens=self.target_tokens + training.target_tokens,
            seconds=self.seconds + training.seconds if known else 0.0,
        )


def write_ancestry(run: Path, ancestry: Ancestry) -> None:
    """Remember in a run's folder what its first weights had learnt; nothing, for a run from scratch."""
    path = run / FILE
    if ancestry == Ancestry():
        path.unlink(missing_ok=True)
    else:
        run.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(to_mapping(ancestry), indent=1) + "\n", encoding="utf-8")


def read_ancestry(run: Path) -> Ancestry:
    """What :func:`write_ancestry` wrote.

    Raises:
        CheckpointError: the file is damaged.
    """
    path = run / FILE
    try:
        return load_dataclass(Ancestry, json.loads(path.read_text(encoding="utf-8")), str(path))
    except FileNotFoundError:
        return Ancestry()
    except (OSError, ValueError, TypeError, ConfigError) as error:
        raise CheckpointError(f"{path}: not readable ({error}): it names what the run's weights came from") from error


def merged_corpora(corpora: Iterable[Corpus]) -> tuple[Corpus, ...]:
    """Every corpus once, in order, with as many segments as it had where most of it was seen."""
    largest: dict[Corpus, int] = {}
    for corpus in corpora:
        key = replace(corpus, segments=0)
        largest[key] = max(largest.get(key, 0), corpus.segments)
    return tuple(replace(key, segments=segments) for key, segments in largest.items())
