"""M2M100 (Fan et al. 2021) and NLLB (Costa-jussà et al. 2022) as Hugging Face publishes them: one model for many pairs.

Decoding begins with the end of a sequence, and positions count from 2 on. NLLB's list of pieces follows from its
sentencepiece model. Its first files had the source's tag at its end (``legacy_behaviour``), which did harm: they are
refused.
"""

from __future__ import annotations

import re
from pathlib import Path

from tandem.extras.importing.joint import FolderKind, filled, read_joint
from tandem.extras.importing.model import Asked, ForeignModel
from tandem.extras.importing.pieces import listed_names, sentencepiece_names

MODEL = "sentencepiece.bpe.model"
_TRANSFORMER = {"norm": "pre", "positions": "tensor2tensor", "first_position": 2}
_FIXED = {"model_type": "m2m_100", "pad_token_id": 1}  # theirs count positions from the padding's id on


def fairseq_names(folder: Path, size: int, faults: list[str]) -> list[str]:
    """fairseq's order: four special pieces, then those of the sentencepiece model without its own three."""
    own = sentencepiece_names(folder / MODEL)
    return filled(["<s>", "<pad>", "</s>", "<unk>", *own[3:]], size, MODEL, faults) if own else []


M2M100 = FolderKind(
    form="Hugging Face M2M100",
    model=MODEL,
    names=lambda folder, size, faults: listed_names(folder / "vocab.json", size, faults),
    transformer=_TRANSFORMER,
    fixed=_FIXED,
    tag=re.compile(r"__([a-z]{2,3})__"),
    silent=("<s>",),
)
NLLB = FolderKind(
    form="Hugging Face NLLB",
    model=MODEL,
    names=fairseq_names,
    transformer=_TRANSFORMER,
    fixed=_FIXED,
    tokenizer={"legacy_behaviour": False},
    tag=re.compile(r"([a-z]{3}_[A-Z][a-z]{3})"),
    silent=("<s>",),
)


def read_m2m(folder: Path, asked: Asked, faults: list[str]) -> ForeignModel | None:
    """A folder of either: M2M100 alone has a list of pieces. See :func:`extras.importing.joint.read_joint`."""
    return read_joint(M2M100 if (folder / "vocab.json").is_file() else NLLB, folder, asked, faults)
