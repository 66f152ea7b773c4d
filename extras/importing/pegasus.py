"""Pegasus (Zhang et al. 2020) as Hugging Face publishes it: summarization, with 103 ids before the pieces'."""

from __future__ import annotations

from pathlib import Path

from tandem.extras.importing.joint import FolderKind, filled
from tandem.extras.importing.pieces import sentencepiece_names

MODEL = "spiece.model"
_OFFSET = 103
_SPECIAL = ("<pad>", "</s>", "<mask_1>", "<mask_2>", *(f"<unk_{number}>" for number in range(2, _OFFSET)))


def _names(folder: Path, size: int, faults: list[str]) -> list[str]:
    """Special pieces, and from id 105 on the sentencepiece model's, whose own first two are padding and end."""
    own = sentencepiece_names(folder / MODEL)
    return filled([*_SPECIAL[: _OFFSET + 2], *own[2:]], size, MODEL, faults) if own else []


PEGASUS = FolderKind(
    form="Hugging Face Pegasus",
    model=MODEL,
    names=_names,
    transformer={"norm": "pre", "positions": "halves"},
    fixed={
        "model_type": "pegasus",
        "normalize_before": True,
        "normalize_embedding": False,
        "add_final_layer_norm": True,
    },
    silent=_SPECIAL[2:],
    task="summarize",
    language="en",
)
