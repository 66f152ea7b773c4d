"""The options of `tandem corpus` and `tandem new`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def corpus(
    name: Annotated[str | None, typer.Argument(metavar="[NAME]", help="A corpus of the papers. [list them]")] = None,
    raw: Annotated[
        Path | None, typer.Option(help="Folder of the files that you fetched. [only say which these are]")
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder of corpora; NAME is made in it.")] = Path("corpora"),
    force: Annotated[bool, typer.Option(help="Replace the corpus that is there.")] = False,
    workers: Annotated[int, typer.Option(min=1, help="Processes that tokenise.")] = 1,
) -> None:
    """Prepare a corpus of the papers from files that you fetched: check, normalise, split.

    Example: tandem corpus iwslt14-de-en --raw fetched --out corpora
    """
    from deploy.commands.corpora import corpus_command

    corpus_command(name, raw, out, force=force, workers=workers)


def new(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Of the corpus, the recipe, the run and the bundle.")],
    source: Annotated[Path, typer.Option(help="Your texts, one segment a line (plain, .xz, .gz; UTF-8).")],
    target: Annotated[Path, typer.Option(help="Their translations, line by line.")],
    start: Annotated[
        Path | None, typer.Option("--from", metavar="BUNDLE", help="Fine-tune this bundle. [train from scratch]")
    ] = None,
    source_language: Annotated[
        str, typer.Option(help="Code of the texts' language. [end of the file's name, or the bundle's]")
    ] = "",
    target_language: Annotated[
        str, typer.Option(help="Code of the translations' language. [end of the file's name, or the bundle's]")
    ] = "",
    corpora: Annotated[Path, typer.Option(help="Folder of corpora; NAME is made in it.")] = Path("corpora"),
    recipe: Annotated[Path | None, typer.Option(help="Recipe to write. [NAME.toml]")] = None,
    architecture: Annotated[
        str, typer.Option(help="convs2s, dpn or transformer, for a model from scratch.")
    ] = "convs2s",
    valid: Annotated[int | None, typer.Option(min=1, help="Pairs held out for validation. [by amount]")] = None,
    test: Annotated[int | None, typer.Option(min=1, help="Pairs held out for the test. [by amount]")] = None,
    updates: Annotated[int | None, typer.Option(min=1, help="Length of the training. [by amount]")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Of what is held out, and of the training.")] = 1,
    licence: Annotated[str, typer.Option(help="Of the text, for the bundle's manifest.")] = "",
    attribution: Annotated[str, typer.Option(help="Whom to name there.")] = "",
    force: Annotated[bool, typer.Option(help="Replace an earlier corpus and recipe of this name.")] = False,
) -> None:
    """Begin with text of your own: two parallel files become corpora/NAME and a recipe that suits their size.

    The files are checked; what is held out for validation and test shares no sentence with what is trained on.
    docs/training.md goes on from there.

    Example: tandem new mine --source mine.de --target mine.en    |
    tandem new mine --source mine.de --target mine.en --from bundles/de-en
    """
    from deploy.commands.new import new_command
    from training.starter.corpus import StarterRequest

    job = StarterRequest(
        name=name,
        source=source,
        target=target,
        languages=(source_language, target_language),
        corpora=corpora,
        recipe=recipe or Path(f"{name}.toml"),
        architecture=architecture,
        valid=valid,
        test=test,
        updates=updates,
        seed=seed,
        licence=licence,
        attribution=attribution,
        force=force,
    )
    new_command(job, start)
