"""BLEU as papers printed it before sacreBLEU: ``multi-bleu.perl`` on Moses tokens, and ``mteval-v11b.pl``.

sacreBLEU counts, with smoothing off. It has no Moses tokeniser; the tokens are those that ``tandem corpus`` writes
(sacremoses).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, TypeAlias

from sacrebleu.metrics.bleu import BLEU

Tokens: TypeAlias = Callable[[str], str]


def moses_tokens(language: str) -> Tokens:
    """A line -> its Moses tokens, separated by spaces; each line is tokenised once, however many metrics ask.

    Args:
        language: of the text, for its abbreviations; a region (``pt-BR``) changes nothing.
    """
    from tandem.extras.evaluation.tokens import (
        moses_line,  # where tokens are asked for: packages that scores do without
    )

    primary = language.split("-")[0].lower()
    return lru_cache(maxsize=None)(lambda line: moses_line(" ".join(line.split()), primary))


class TokenisedBleu(BLEU):
    """Corpus BLEU of tokens without smoothing: a test set without a matching 4-gram has 0, as with the script.

    Args:
        tokens: of a line; None where the lines are tokens already, which are what stands between spaces.
        name: of the tokens, for the signature.
        lowercase: compare in lower case (the script's ``-lc``), once there are tokens: abbreviations are known by case.
    """

    def __init__(self, tokens: Tokens | None, name: str, *, lowercase: bool = False) -> None:
        super().__init__(lowercase=lowercase, force=True, tokenize="none", smooth_method="none")
        self._tokens = tokens
        self.tokenizer_signature = name

    def _preprocess_segment(self, sent: str) -> str:
        line = " ".join(sent.split()) if self._tokens is None else self._tokens(sent)
        return line.lower() if self.lowercase else line


class MtevalBleu(BLEU):
    """``mteval-v11b.pl``: case-insensitive, and of several references the shortest is the length to reach.

    ``multi-bleu.perl``, sacreBLEU and mteval from version 13 on take the reference whose length is closest.

    Args:
        tokens: sacreBLEU's name of the tokeniser: 13a is the script's, which knows of no text without spaces.
    """

    def __init__(self, tokens: str = "13a") -> None:
        super().__init__(lowercase=True, force=True, tokenize=tokens, smooth_method="none")

    def _get_closest_ref_len(self, hyp_len: int, ref_lens: list[int]) -> int:
        return min(ref_lens)

    def get_signature(self) -> Any:
        signature = super().get_signature()
        signature.update("length", "shortest")
        return signature
