"""Text in, sentences out, and back again with the layout kept."""

from __future__ import annotations

from service.text.layout import Document, Piece, Splitting, is_translatable
from service.text.parallel import ParallelDocument
from service.text.segmentation import split_sentences
from service.text.splitting import Measure, cut_to_limit, split_long

__all__ = [
    "Document",
    "Measure",
    "ParallelDocument",
    "Piece",
    "Splitting",
    "cut_to_limit",
    "is_translatable",
    "split_long",
    "split_sentences",
]
