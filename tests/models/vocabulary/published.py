"""Small sentencepiece models as published ones are: without the bytes and the placeholders of ours."""

from __future__ import annotations

import io
from collections.abc import Iterable

import sentencepiece


def sentencepiece_model(lines: Iterable[str], types: int) -> bytes:
    """A model of at most so many types."""
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines),
        model_writer=model,
        vocab_size=types,
        character_coverage=1.0,
        hard_vocab_limit=False,
        num_threads=1,
        minloglevel=2,
    )
    return model.getvalue()


def pieces(model: bytes) -> list[str]:
    """Its normal pieces."""
    processor = sentencepiece.SentencePieceProcessor(model_proto=model)
    return [processor.id_to_piece(token) for token in range(3, processor.get_piece_size())]
