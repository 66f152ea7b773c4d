"""What is done to strings of programs: the stages of labels and of escaped apostrophes, and what finds code."""

from __future__ import annotations

import re
from dataclasses import replace

from tandem.extras.strings.accelerators import (
    find_accelerator,
    split_accelerator,
    with_accelerator,
    with_behind,
    with_word_shown,
    without_accelerator,
)
from tandem.extras.strings.code import find_code
from tandem.service.text.masking import Masked
from tandem.service.translation.fidelity import ESCAPED
from tandem.service.translation.stages import ProgramStrings, Recalled, StagedSentence


class AcceleratorStage:
    """Reads labels without their accelerators, and gives these back to their translations; models know none."""

    def prepare(self, sentence: Masked) -> Masked:
        """The label as a reader sees it."""
        return replace(sentence, text=without_accelerator(sentence.text, shown=True))

    def known(self, sentence: StagedSentence) -> Recalled | None:
        """Nothing."""
        return None

    def finish(self, text: str, sentence: StagedSentence) -> str:
        """The translation with the mark in it."""
        label, behind = split_accelerator(sentence.sent.text)
        if behind:
            return with_behind(text, behind)
        found = find_accelerator(label, shown=True)
        return text if found is None else with_accelerator(text, label[found.end - 1], label[found.start])


class ApostropheStage:
    r"""Reads apostrophes that a program wants behind a backslash (``can\'t``) as such, and writes all of them so."""

    def prepare(self, sentence: Masked) -> Masked:
        """The text without these backslashes."""
        return replace(sentence, text=sentence.text.replace(ESCAPED, "'")) if _escapes(sentence) else sentence

    def known(self, sentence: StagedSentence) -> Recalled | None:
        """Nothing."""
        return None

    def finish(self, text: str, sentence: StagedSentence) -> str:
        """The translation with a backslash before each apostrophe."""
        return _APOSTROPHE.sub(lambda _: ESCAPED, text) if _escapes(sentence.sent) else text


def _escapes(sentence: Masked) -> bool:
    return ESCAPED in sentence.text and not _APOSTROPHE.search(sentence.text)


_APOSTROPHE = re.compile(r"(?<!\\)'")


STRINGS = ProgramStrings((ApostropheStage(), AcceleratorStage()), find_code, with_word_shown, without_accelerator)
