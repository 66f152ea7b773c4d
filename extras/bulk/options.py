"""How lines are translated: what a result depends on, and what may therefore not change in the middle of a file."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, Literal, TypeAlias

import typer

from tandem.extras.shared.runtime import RuntimeOptions, translates_text
from tandem.models.bundle import Bundle
from tandem.models.command import (
    LARGEST_BEAM,
    BeamSize,
    KeepUnknown,
    ReadLanguage,
    WrittenLanguage,
)
from tandem.models.errors import ConfigError

Bad: TypeAlias = Literal["keep", "empty"]


@dataclass(frozen=True, slots=True)
class BulkOptions(RuntimeOptions):
    """How to translate lines. Plain values: they travel to other processes and machines, and into a journal.

    A line's translation does not depend on the lines around it where ``threads`` is 1. ``sentences`` None: a line is a
    text, split into sentences, where the bundle translates one text. ``language`` is for the sentence borders; empty
    for the bundle's first. ``target`` empty: the first that fits ``language``.
    """

    beam_size: BeamSize = None
    shortlist: Annotated[
        bool | None,
        typer.Option(
            "--shortlist/--no-shortlist",
            help="Only tokens of the bundle's shortlist. [for sentences where the bundle has one, as the service]",
        ),
    ] = None
    sentences: Annotated[
        bool | None,
        typer.Option(
            "--sentences/--segments",
            help="Split each line into sentences, or decode it as a whole. [sentences, where a bundle translates one"
            " text]",
        ),
    ] = None
    language: ReadLanguage = ""
    bad: Annotated[Bad, typer.Option(help="What a line that cannot be translated becomes.")] = "keep"
    target: WrittenLanguage = ""
    keep_unknown: KeepUnknown = None
    max_line_bytes: Annotated[int, typer.Option(min=1, help="Longer lines are bad.")] = 1 << 20
    candidates: Annotated[
        int, typer.Option(min=1, max=LARGEST_BEAM, help="Hypotheses of which that nearest to the reference is taken.")
    ] = 1

    def settled(self, bundle: Bundle) -> BulkOptions:
        """The same with what was left to the bundle.

        Raises:
            ConfigError: lines are to be split into sentences, and the bundle cannot have that; or it does not read the
                language; or there is no such device here.
        """
        manifest = bundle.manifest
        splits = translates_text(bundle)
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
        shortlist = sentences and bundle.shortlist is not None if self.shortlist is None else self.shortlist
        keep_unknown = manifest.keep_unknown if self.keep_unknown is None else self.keep_unknown
        return replace(
            self.placed(),
            sentences=sentences,
            shortlist=shortlist,
            language=language,
            beam_size=beam_size,
            keep_unknown=keep_unknown,
        )
