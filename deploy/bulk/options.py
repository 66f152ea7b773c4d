"""How lines are translated: what a result depends on, and what may therefore not change in the middle of a file."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from models.bundle import Bundle
from models.errors import ConfigError

Bad: TypeAlias = Literal["keep", "empty"]


@dataclass(frozen=True, slots=True)
class BulkOptions:
    """How to translate lines. Plain values: they travel to other processes and machines, and into a journal.

    Attributes:
        runtime: ``onnx``, ``torchscript`` or ``torch``.
        precision: of ONNX graphs.
        beam_size: None for the bundle's.
        threads: of one computation; with one, a line's translation does not depend on the lines around it.
        shortlist: whether to use only target tokens that the bundle's shortlist selects.
        sentences: whether a line is a text, split into sentences and put together again as the service does, or one
            segment, decoded as a whole as `tandem evaluate` does. None: a text where the bundle translates one text.
        language: that the text is in, for the sentence borders; empty for the bundle's first.
        bad: what stands in the place of a line that cannot be translated: the line itself (``keep``) or nothing.
        target: language to translate into, where the bundle has several; empty for the first that fits ``language``.
        candidates: hypotheses of which the one nearest to the line's reference is taken, which is one more field;
            1 = the best.
    """

    runtime: str = "onnx"
    precision: str = "int8"
    beam_size: int | None = None
    threads: int = 1
    shortlist: bool = False
    sentences: bool | None = None
    language: str = ""
    bad: Bad = "keep"
    target: str = ""
    candidates: int = 1

    def directed(self, bundle: Bundle) -> Bundle:
        """A bundle of several directions as one of that which the languages name.

        Raises:
            ConfigError: it has none such.
        """
        manifest = bundle.manifest
        if not manifest.pairs and self.target in ("", manifest.target_language):
            return bundle
        pairs = manifest.pairs or tuple((source, manifest.target_language) for source in manifest.source_languages)
        found = [(s, t) for s, t in manifest.pairs if self.language in ("", s) and self.target in ("", t)]
        if found:
            return bundle.direction(*found[0])
        known = ", ".join("-".join(pair) for pair in pairs)
        asked = f"{self.language or '…'}-{self.target or '…'}"
        raise ConfigError(f"--language and --target must be of {known}, which {manifest.name} translates, not {asked}")

    def settled(self, bundle: Bundle) -> BulkOptions:
        """The same with what was left to the bundle.

        Raises:
            ConfigError: lines are to be split into sentences, and the bundle cannot have that; or it does not read the
                language.
        """
        manifest = bundle.manifest
        splits = manifest.task == "translate" and len(bundle.sources) == 1 and bundle.sources[0] is not None
        if self.sentences and not splits:
            raise ConfigError(
                f"--sentences is for bundles that translate one text; {manifest.name} has the task {manifest.task!r}"
                f" and {len(bundle.sources)} sources: leave it out, and each line is decoded as a whole"
            )
        if self.language and self.language not in manifest.source_languages:
            known = ", ".join(manifest.source_languages)
            raise ConfigError(f"--language must be one of {known}, which {manifest.name} reads, not {self.language!r}")
        language = self.language or manifest.source_languages[0]
        beam_size = self.beam_size if self.beam_size is not None else manifest.decoding.beam_size
        sentences = splits if self.sentences is None else self.sentences
        return replace(self, sentences=sentences, language=language, beam_size=beam_size)
