"""What `tandem bench decode` is asked to do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from models.errors import ConfigError

LARGEST_BATCH = 4096  # sentences

# Of the peers' random model, in the decode benchmark and behind the naive service alike.
RANDOM_TRANSFORMER = {"layers": 6, "width": 256, "hidden": 1024, "heads": 4, "positions": 1024}


@dataclass(frozen=True, slots=True)
class RealText:
    """Text that is decoded with real stopping.

    Attributes:
        source: one sentence a line; None for none.
        references: parallel to it; None for none.
        limit: lines, None for all.
        ct2_from: the Transformer bundle that CTranslate2 runs on it.
    """

    source: Path | None = None
    references: Path | None = None
    limit: int | None = None
    ct2_from: Path | None = None

    def __post_init__(self) -> None:
        for option, value in (("--references", self.references), ("--ct2-from", self.ct2_from)):
            if value is not None and self.source is None:
                raise ConfigError(f"{option} is for real text: give it with --source FILE")


@dataclass(frozen=True, slots=True)
class DecodeOptions:
    """The benchmark's settings; see the options of the command.

    Attributes:
        bundle: Tandem's bundle folder.
        batch_sizes: sentences of a batch; 1 = one alone on one thread.
        workers: threads of each system; 0 = one per usable core.
        beam_size: hypotheses kept at each step.
        passes: measured ones.
        sentences: of the forced-length work.
        single: sentences decoded at batch size 1.
        precision: of Tandem's graphs.
        shortlist: whether Tandem is also measured with its shortlist; None = where the bundle has one.
        peers: by name.
        peer_precisions: of CTranslate2.
        peer_vocabulary: types of random models.
        rescore: sentences whose search is checked; 0 = none.
        text: real text.
    """

    bundle: Path
    batch_sizes: tuple[int, ...] = (1, 32, 64)
    workers: int = 0
    beam_size: int = 5
    passes: int = 5
    sentences: int = 2048
    single: int = 256
    precision: str = "int8"
    shortlist: bool | None = None
    peers: tuple[str, ...] = ()
    peer_precisions: tuple[str, ...] = ("int8",)
    peer_vocabulary: int = 10_000
    rescore: int = 256
    text: RealText = field(default_factory=RealText)


def numbers(text: str, option: str) -> tuple[int, ...]:
    """Whole numbers from ``1,32,64``, each once. Raises ConfigError for anything else."""
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if not parts or not all(part.isdecimal() and len(part) < 6 and 1 <= int(part) <= LARGEST_BATCH for part in parts):
        raise ConfigError(f"{option} must be whole numbers from 1 to {LARGEST_BATCH}, such as 1,32,64, but is {text!r}")
    return tuple(dict.fromkeys(map(int, parts)))


def names(text: str, option: str, known: Sequence[str]) -> tuple[str, ...]:
    """Names from ``a,b``, each once, all of them known; none is allowed. Raises ConfigError otherwise."""
    found = tuple(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))
    if unknown := [name for name in found if name not in known]:
        raise ConfigError(f"{option} must be of {', '.join(known)}, but has {', '.join(unknown)}")
    return found
