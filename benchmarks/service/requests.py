"""The requests that a service is loaded with: distinct texts, each with the target length that it is held to."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from benchmarks.workload import check_one_text
from benchmarks.workload import texts as pseudo_texts
from models.bundle import Bundle
from models.errors import ConfigError

TASKS = ("translate", "summarize")


@dataclass(frozen=True, slots=True)
class ForcedText:
    """A text and how many tokens, without EOS, its translation must have."""

    text: str
    tokens: int


def forced_texts(bundle: Bundle, count: int, seed: int = 0) -> list[ForcedText]:
    """Distinct pseudo-texts, ``count`` at most, whose target length is their source length, so that the work does not
    depend on any weights.

    Raises:
        ConfigError: the bundle reads anything but one text, post-edits, or takes no text of such a length.
    """
    check_servable(bundle)
    vocabulary, limits = bundle.source_vocabularies[0], bundle.manifest.limits
    longest = min(limits.max_source_tokens, limits.max_target_tokens)
    sized = {text: len(vocabulary.encode(text)) for text in pseudo_texts(vocabulary, count, seed)}
    found = [ForcedText(text, tokens) for text, tokens in sized.items() if tokens <= longest]
    if not found:
        raise ConfigError(f"the pseudo-text has no line of at most {longest} tokens")
    return found


def check_servable(bundle: Bundle) -> None:
    """Raises ConfigError where a bundle is not one that translates or summarizes one text."""
    check_one_text(bundle)
    if bundle.manifest.task not in TASKS:
        raise ConfigError(f"{bundle.path} must translate or summarize to be loaded with requests of one text")


def tandem_path(bundle: Bundle) -> str:
    """The route that answers for a bundle."""
    return f"/{bundle.manifest.task}"


def tandem_body(bundle: Bundle, text: str | list[str], **options: Any) -> bytes:
    """A request for Tandem as JSON; ``options`` are further fields."""
    manifest = bundle.manifest
    languages = {"source": manifest.source_languages[0], "target": manifest.target_language}
    where = languages if manifest.task == "translate" else {"language": manifest.source_languages[0]}
    return json.dumps({"q": text, "model": manifest.name, **where, **options}).encode()


def forced_bodies(bundle: Bundle, forced: list[ForcedText], beam_size: int) -> list[bytes]:
    """Requests for Tandem in which every text gets its length."""
    return [
        tandem_body(bundle, one.text, beam_size=beam_size, min_length=one.tokens, max_length=one.tokens)
        for one in forced
    ]


def naive_bodies(forced: list[ForcedText], beam_size: int) -> list[bytes]:
    """The same requests for :mod:`benchmarks.service.naive`."""
    return [json.dumps({"q": one.text, "length": one.tokens, "beam_size": beam_size}).encode() for one in forced]
