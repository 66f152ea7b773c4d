"""Sentences of our own, free of any corpus' terms, to prove a bundle on where the user gives none."""

from __future__ import annotations

from pathlib import Path

from tandem.models.errors import ConfigError

_FOLDER = Path(__file__).parent


def proof_sentences(language: str) -> list[str]:
    """200 inputs: every sentence, then runs of two to four, and twenty runs of eight (60 tokens and more).

    Raises:
        ConfigError: there are none in this language.
    """
    files = {path.suffixes[0][1:]: path for path in sorted(_FOLDER.glob("sentences.*.txt"))}
    if language not in files:
        known = ", ".join(files)
        raise ConfigError(f"there are no built-in sentences in {language!r}, only in {known}: give some with --text")
    lines = files[language].read_text(encoding="utf-8").splitlines()

    def runs(size: int, count: int) -> list[str]:
        return [" ".join(lines[(start * 7 + k * 11) % len(lines)] for k in range(size)) for start in range(count)]

    return [*lines, *runs(2, 40), *runs(3, 40), *runs(4, 40), *runs(5, 20), *runs(8, 20)]
