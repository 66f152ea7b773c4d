"""`tandem distil` and `tandem backtranslate`: corpora that a model writes, for recipes to name."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated, Literal

import typer

from tandem.extras.bulk.options import BulkOptions
from tandem.extras.bulk.run import Request, Stopped, translate_files
from tandem.extras.bulk.synthetic import (
    Provenance,
    Sieve,
    Sifter,
    parallel_lines,
    recipe_table,
    write_pairs,
    write_provenance,
)
from tandem.extras.bulk.translator import BulkTranslator
from tandem.extras.shared.outputs import check_folder
from tandem.extras.shared.runtime import Opener
from tandem.models.bundle import Bundle
from tandem.models.command import BundleFolder, Without, Workers, report
from tandem.models.errors import ConfigError
from tandem.service.runtimes import open_graphs
from tandem.training.data.corpus import file_names

Kind = Literal["distilled", "back-translated"]
_TRANSLATED = "translated"  # the folder of what the model wrote, before pairs are dropped


@dataclass(frozen=True, slots=True)
class Synthesis:
    """What is to be made.

    Attributes:
        kind: which side of a pair the model writes: the target ("distilled") or the source ("back-translated").
        texts: what it translates, one segment a line.
        references: what people wrote in the place of the translations, a file for each text; empty for nothing.
        out: folder of the new corpus.
        sieve: which pairs are kept.
        workers: processes that translate.
    """

    kind: Kind
    texts: tuple[Path, ...]
    references: tuple[Path, ...]
    out: Path
    sieve: Sieve
    workers: int = 1

    def __post_init__(self) -> None:
        if self.references and len(self.references) != len(self.texts):
            counts = f"{len(self.texts)} and {len(self.references)}"
            raise ConfigError(f"--references must be one for each --source, but there are {counts}")
        if self.sieve.min_chrf and not self.references:
            raise ConfigError("--min-chrf needs --references: there is nothing to be like")


Corpus = Annotated[Path, typer.Option("--out", help="Folder of the new corpus, in the folder of the recipe's corpora.")]
# Of how lines are translated: the same in every corpus.
_UNUSED = frozenset({"shortlist", "sentences", "bad", "max_line_bytes"})


def distil(
    bundle: BundleFolder,
    sources: Annotated[
        list[Path],
        typer.Option("--source", help="Training text for the teacher, one segment a line (.xz, .gz, plain)."),
    ],
    out: Corpus,
    sieve: Sieve,
    options: Annotated[BulkOptions, Without(_UNUSED)],
    references: Annotated[
        list[Path] | None, typer.Option("--references", help="What people wrote, one file for each --source.")
    ] = None,
    workers: Workers = 0,
) -> None:
    """Have a teacher translate the training text, for a smaller model to learn from: a corpus that a recipe can name.

    Sequence-level knowledge distillation. What is translated is kept: the same command goes on where it was ended, and
    with other bounds translates nothing again. Prints the table for the recipe.

    Example: tandem distil bundles/teacher --source corpora/tatoeba-de-en/train.de.xz --references
    corpora/tatoeba-de-en/train.en.xz --out corpora/distilled-de-en
    """
    _run(bundle, Synthesis("distilled", tuple(sources), tuple(references or ()), out, sieve, workers), options)


def backtranslate(
    bundle: BundleFolder,
    texts: Annotated[
        list[Path], typer.Option("--text", help="Text in the new model's target language, one segment a line.")
    ],
    out: Corpus,
    sieve: Annotated[Sieve, Without({"min_chrf"})],
    options: Annotated[BulkOptions, Without(_UNUSED | {"candidates"})],
    workers: Workers = 0,
) -> None:
    """Make sources for text of which only the target side exists, with a bundle of the other direction.

    The recipe's table, which is printed, says that the sources are no people's: they get a tag (Caswell et al. 2019).
    The same command goes on where it was ended.

    Example: tandem backtranslate bundles/en-de --text news.en.xz --out corpora/back-de-en
    """
    _run(bundle, Synthesis("back-translated", tuple(texts), (), out, sieve, workers), options)


def _run(path: Path, wanted: Synthesis, options: BulkOptions) -> None:
    """The command, with exit status 128 + N after signal N."""
    try:
        synthesise(path, replace(wanted, workers=options.processes(wanted.workers)), options)
    except Stopped as stopped:
        report(f"tandem: {stopped}; the same command goes on")
        raise typer.Exit(128 + stopped.signal) from stopped


def synthesise(path: Path, wanted: Synthesis, options: BulkOptions, opener: Opener = open_graphs) -> Provenance:
    """Translate, drop what is not worth training on, write the corpus, and print the table that names it in a recipe.

    What was translated stays under ``translated/``: the same command goes on where it was ended, and with other bounds
    for the pairs it translates nothing again.

    Args:
        path: the bundle.
        wanted: what to make.
        options: how to translate.
        opener: opens the bundle's graphs.

    Raises:
        ConfigError: options that do not fit each other, or the bundle.
        CorpusError: a text cannot be read, or its reference is not parallel.
        Stopped: by a signal; the same command goes on.
    """
    if options.candidates > 1 and not wanted.references:
        raise ConfigError("--candidates needs --references, of which the nearest candidate is taken")
    options = replace(options, sentences=False, bad="empty")
    translator = BulkTranslator(path, options, opener)
    bundle = translator.open()
    languages = _languages(bundle, options, wanted.kind)
    check_folder(wanted.out / _TRANSLATED, "--out")
    translated = [_translated(translator, wanted, number) for number in range(len(wanted.texts))]
    sifter = Sifter(wanted.sieve)
    pairs = write_pairs(wanted.out, languages, _pairs(wanted, translated, sifter))
    provenance = Provenance(
        kind=wanted.kind,
        model=bundle.manifest.name,
        licence=bundle.manifest.licence,
        texts=tuple(map(str, wanted.texts)),
        languages=languages,
        options=asdict(translator.settled),
        sieve=wanted.sieve,
        pairs=pairs,
        dropped=dict(sorted(sifter.dropped.items())),
    )
    write_provenance(wanted.out, provenance)
    _tell(wanted.out, provenance)
    return provenance


def _languages(bundle: Bundle, options: BulkOptions, kind: Kind) -> tuple[str, str]:
    """Source and target of the new corpus.

    Raises:
        ConfigError: the bundle does not write text of one text.
    """
    manifest = bundle.manifest
    if len(bundle.sources) != 1 or bundle.sources[0] is None or manifest.target_form != "text":
        raise ConfigError(f"{manifest.name} cannot write a corpus: it must read one text and write text")
    if kind == "back-translated" and manifest.task != "translate":
        raise ConfigError(f"back-translation needs a translator, but {manifest.name} has the task {manifest.task!r}")
    source, target = options.language or manifest.source_languages[0], manifest.target_language
    return (source, target) if kind == "distilled" else (target, source)


def _translated(translator: BulkTranslator, wanted: Synthesis, number: int) -> Path:
    """One text's translations, line by line, empty where there is none."""
    out = wanted.out / _TRANSLATED / f"{number}.txt.xz"
    sources = wanted.texts[number : number + 1]
    if len(translator.widths) > len(sources):
        sources += wanted.references[number : number + 1]
    resume = out.with_name(f"{out.name}.journal").exists()
    translate_files(translator, Request(sources, out, resume=resume, workers=wanted.workers))
    return out


def _pairs(wanted: Synthesis, translated: Sequence[Path], sifter: Sifter) -> Iterator[tuple[str, str]]:
    """The pairs that are kept, source first."""
    for number, (text, written) in enumerate(zip(wanted.texts, translated, strict=True)):
        files = [text, written, *wanted.references[number : number + 1]]
        bad = _bad_lines(written)
        for line, (own, translation, *reference) in enumerate(parallel_lines(files), 1):
            if line in bad and translation:
                sifter.dropped["bad_line"] += 1
            elif sifter.keep(own, translation, *reference):
                yield (own, translation) if wanted.kind == "distilled" else (translation, own)


def _bad_lines(written: Path) -> set[int]:
    """The lines of which not all could be translated, as the report beside the translations has them."""
    report = written.with_name(f"{written.name}.report.jsonl")
    if not report.exists():
        return set()
    return {json.loads(line)["line"] for line in report.read_text(encoding="utf-8").splitlines()}


def _tell(out: Path, provenance: Provenance) -> None:
    dropped = ", ".join(f"{count:,} {reason}" for reason, count in provenance.dropped.items()) or "none"
    source, target = file_names(provenance.languages)
    report(f"{provenance.pairs:,} pairs in {out / f'train.{source}.xz'} and train.{target}.xz; dropped: {dropped}")
    print(recipe_table(out.name, provenance))
