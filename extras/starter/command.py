"""`tandem new`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from tandem.extras.starter.corpus import MadeCorpus, make_corpus
from tandem.extras.starter.recipes import StarterRequest
from tandem.models.bundle import Bundle
from tandem.models.command import say
from tandem.models.errors import ConfigError
from tandem.models.folders import write_text
from tandem.service.text.languages import NAMES, bare_code, is_language_code, language_name

_COMPRESSED = (".xz", ".gz", ".bz2")


def new(
    job: StarterRequest,
    start: Annotated[
        Path | None, typer.Option("--from", metavar="BUNDLE", help="Fine-tune this bundle. [train from scratch]")
    ] = None,
    source_language: Annotated[
        str, typer.Option(help="Code of the texts' language. [end of the file's name, or the bundle's]")
    ] = "",
    target_language: Annotated[
        str, typer.Option(help="Code of the translations' language. [end of the file's name, or the bundle's]")
    ] = "",
) -> None:
    """Begin with text of your own: two parallel files become corpora/NAME and a recipe that suits their size.

    A translation memory (`--source memory.tmx`, without `--target`) is written as two such files beside it first.
    The files are checked; what is held out for validation and test shares no sentence with what is trained on.
    docs/training.md goes on from there.

    Example: tandem new mine --source mine.de --target mine.en    |
    tandem new mine --source mine.de --target mine.en --from bundles/de-fr-en
    """
    bundle = Bundle.load(start) if start is not None else None
    job = replace(job, languages=(source_language, target_language))
    if job.source.suffix == ".tmx" and job.target is None:
        job = _of_memory(job, bundle)
    languages = _languages(job, bundle)
    made = make_corpus(replace(job, bundle=bundle, languages=languages))
    _tell(job, made)
    _tell_next(job)


def _languages(job: StarterRequest, bundle: Bundle | None) -> tuple[str, str]:
    """As they were given, else of the files' endings, else of the bundle.

    Raises:
        ConfigError: a language is not given and stands nowhere, or is no code.
    """
    own, found = _of_bundle(bundle), []
    for side, path, given, started in zip(("source", "target"), job.texts, job.languages, own, strict=True):
        code = given or _ending(path) or started
        if not code:
            raise ConfigError(f"--{side}-language is needed: {path.name} does not end in a language's code")
        if not is_language_code(code):
            raise ConfigError(f"--{side}-language must be a code such as de or pt-BR, but is {code!r}")
        found.append(code)
    return found[0], found[1]


def _of_bundle(bundle: Bundle | None) -> tuple[str, str]:
    return ("", "") if bundle is None else (bundle.manifest.source_languages[0], bundle.manifest.target_language)


def _of_memory(job: StarterRequest, bundle: Bundle | None) -> StarterRequest:
    """The job with two files in the place of a translation memory, one line of each a pair of that.

    Raises:
        ConfigError: the languages are not given, the memory cannot be read or has none of their pairs, or one of the
            files is there already.
    """
    from tandem.extras.shared.tmx import TmxError, read_tmx  # needs lxml, which machines that only train may lack

    source, target = (given or own for given, own in zip(job.languages, _of_bundle(bundle), strict=True))
    if not source or not target:
        raise ConfigError("--source-language and --target-language are needed: a memory may hold several languages")
    files = tuple(job.source.with_suffix(f".{code}") for code in (source, target))
    for file in files:
        if file.exists() and not job.force:
            raise ConfigError(f"{file} is there already: add --force to write the memory's texts there")
    try:
        with job.source.open("rb") as memory:
            pairs = [(pair.text, pair.translation) for pair in read_tmx(memory, source, target)]
    except (OSError, TmxError) as error:
        raise ConfigError(f"{job.source}: {error}") from error
    if not pairs:
        raise ConfigError(f"{job.source} has no texts in {source} with a translation into {target}")
    for file, texts in zip(files, zip(*pairs, strict=True), strict=True):
        write_text(file, "".join(f"{' '.join(text.split())}\n" for text in texts))
    return replace(job, source=files[0], target=files[1], languages=(source, target))


def _ending(path: Path) -> str:
    """The language that a file's name ends with, as in ``mine.de`` and ``mine.de.xz``; else nothing."""
    code = (path.with_suffix("") if path.suffix in _COMPRESSED else path).suffix.removeprefix(".")
    return code if bare_code(code) in NAMES else ""


def _tell(job: StarterRequest, made: MadeCorpus) -> None:
    screened, recipe = made.screened, made.draft.recipe
    left_out = ", ".join(f"{count:,} {reason}" for reason, count in screened.dropped.items()) or "none"
    say(f"{screened.lines:,} lines; left out: {left_out}")
    pairs = ", ".join(f"{count:,} {name}" for name, count in made.pairs.items())
    say(f"{made.folder}: {pairs}; no sentence of valid and test is in train")
    for warning in made.warnings:
        say(f"warning: {warning}")
    names = " to ".join(language_name(code) for code in recipe.languages)
    say(
        f"{job.recipe_file}: {names}, {recipe.architecture}, {recipe.training.updates:,} updates of about"
        f" {recipe.training.batch_tokens:,} target tokens ({made.draft.passes:.1f} passes over the text)"
    )


def _tell_next(job: StarterRequest) -> None:
    folder = f" --corpora {job.corpora}" if job.corpora != Path("corpora") else ""
    say("\nLook at the recipe, then:")
    say(f"  tandem prepare {job.recipe_file}{folder}")
    say(f"  tandem train {job.recipe_file}")
    say(f"  tandem export runs/{job.name} --out bundles/{job.name}")
