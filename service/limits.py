"""What one request may amount to."""

from __future__ import annotations

from dataclasses import dataclass

MAX_GLOSSARY, MAX_TERM = 5_000, 500
"""Terms of a glossary, and characters of a term: with a request or stored."""


@dataclass(frozen=True, slots=True)
class RequestLimits:
    """The settings that the text service goes by: ``Settings.request_limits``. Each is described there.

    Attributes:
        seconds: of a request, at most and where it asks for none.
        threads: that split, tokenise and write texts.
    """

    max_characters: int
    max_texts: int
    max_markup_depth: int
    max_markup_elements: int
    max_beam_size: int
    max_decoding_cost: int
    bulk_characters: int
    seconds: float
    threads: int
