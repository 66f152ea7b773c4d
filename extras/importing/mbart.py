"""mBART-50 (Tang et al. 2020) as Hugging Face publishes it: fifty languages, learned positions, norms everywhere.

The first mBART's sources end with their tag, behind the end of the sequence; such files are refused.
"""

from __future__ import annotations

import re

from tandem.extras.importing.joint import FolderKind
from tandem.extras.importing.m2m import MODEL, fairseq_names

MBART50 = FolderKind(
    form="Hugging Face mBART-50",
    model=MODEL,
    names=fairseq_names,
    transformer={"norm": "pre", "positions": "learned", "embedding_norm": True},
    fixed={
        "model_type": "mbart",
        "decoder_start_token_id": 2,  # another one is a language's: the first mBART
        "normalize_before": True,
        "normalize_embedding": True,
        "add_final_layer_norm": True,
        "static_position_embeddings": False,
    },
    tokenizer={"tokenizer_class": "MBart50Tokenizer"},
    tag=re.compile(r"([a-z]{2,3})_[A-Z]{2}"),
    silent=("<s>",),
    position_offset=2,
)
