"""The requests that a service is loaded with: distinct texts, each with the target length that it is held to."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.workload import check_one_text
from benchmarks.workload import texts as pseudo_texts
from models.bundle import Bundle
from models.errors import ConfigError
from models.text import normalise
from service.text import Document, is_translatable
from training.data.corpus import read_lines

TASKS = ("translate", "summarize")


@dataclass(frozen=True, slots=True)
class ForcedText:
    """A text and how many tokens, without EOS, its translation must have."""

    text: str
    tokens: int


def forced_texts(bundle: Bundle, file: Path | None, count: int, seed: int = 0) -> list[ForcedText]:
    """Distinct texts whose target length is their source length, so that the work does not depend on any weights.

    Args:
        bundle: whose source vocabulary counts the tokens.
        file: lines to take, the first ``count`` that differ and are one sentence within the bundle's limits; None =
            pseudo-text with the lengths of :func:`benchmarks.workload.lengths`.
        count: texts, at most.
        seed: of pseudo-text.

    Raises:
        ConfigError: the bundle reads anything but one text, post-edits, or no line can be taken.
        CorpusError: the file cannot be read.
    """
    check_servable(bundle)
    vocabulary, limits = bundle.source_vocabularies[0], bundle.manifest.limits
    longest = min(limits.max_source_tokens, limits.max_target_tokens)
    lines = pseudo_texts(vocabulary, count, seed) if file is None else read_lines(file)
    found: list[ForcedText] = []
    for line in dict.fromkeys(" ".join(normalise(line).split()) for line in lines):
        tokens = len(vocabulary.encode(line))
        if 0 < tokens <= longest and _is_one_sentence(line, bundle):
            found.append(ForcedText(line, tokens))
        if len(found) == count:
            break
    if not found:
        raise ConfigError(f"{file or 'the pseudo-text'} has no line that is one sentence of 1 to {longest} tokens")
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


def _is_one_sentence(line: str, bundle: Bundle) -> bool:
    """Whether the service decodes a line as it stands: in one sentence, nothing of it kept aside."""
    if bundle.manifest.task == "summarize":
        return is_translatable(line)
    source, target = bundle.manifest.source_languages[0], bundle.manifest.target_language
    measure: Callable[[str], int] = lambda text: len(bundle.source_vocabularies[0].encode(text))  # noqa: E731
    document = Document.parse(line, source, target, bundle.manifest.limits.max_source_tokens, measure)
    return [sentence.text for sentence in document.sentences] == [line]
