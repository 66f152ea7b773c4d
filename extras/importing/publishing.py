"""`tandem publish`: a bundle as a repository of Hugging Face, from where `tandem pull hf:OWNER/NAME` brings it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Annotated

import typer

from tandem.extras.importing.sources.hub import checked_name
from tandem.models.bundle import MANIFEST, Bundle
from tandem.models.bundle.card import render_card
from tandem.models.bundle.manifest import Manifest
from tandem.models.command import BundleFolder, report
from tandem.models.errors import ConfigError, TandemError

_PAGE = "README.md"
_TASKS = {"translate": "translation", "postedit": "translation", "summarize": "summarization"}
_SCHEME = "hf:"
_LICENCE = re.compile(r"[A-Za-z0-9.+-]+")


class PublishError(TandemError):
    """The hub has not taken a bundle."""


def publish(
    path: BundleFolder,
    repository: Annotated[str, typer.Argument(metavar="hf:OWNER/NAME", help="Where it is to be; made if need be.")],
    private: Annotated[bool, typer.Option(help="A new repository is for its owner alone.")] = False,
    message: Annotated[str, typer.Option(help="Of the commit. [the bundle's name]")] = "",
) -> None:
    """Upload a bundle to Hugging Face, from where `tandem pull` brings it: its files and its card, in one commit.

    The token is that of `hf auth login`, or HF_TOKEN. What was built here (`tandem export --add`) stays here.

    Example: tandem publish bundles/de-fr-en hf:example/de-fr-en
    """
    if not repository.startswith(_SCHEME):
        raise ConfigError(f"the repository must be such as {_SCHEME}example/de-fr-en, but is {repository!r}")
    name = checked_name(repository.removeprefix(_SCHEME))
    bundle = Bundle.load(path, weights=True)  # every file as its hash says
    files = published_files(bundle)
    size = sum(file.stat().st_size for file in files.values() if isinstance(file, Path))
    report(f"{len(files)} files, {size / 1e6:.1f} MB, licence {bundle.manifest.licence or 'not said'}")
    print(_upload(name, files, private, message or bundle.manifest.name))


def published_files(bundle: Bundle) -> dict[str, Path | bytes]:
    """What is uploaded, by the name that it has there: a bundle's own files, and its card as the repository's page."""
    own = {name: bundle.path / name for name in (MANIFEST, *bundle.manifest.files)}
    return {**own, _PAGE: page(bundle.manifest).encode()}


def page(manifest: Manifest, library: str = "tandem") -> str:
    """The card with what the hub reads of a model, as YAML in front (of which JSON is a part).

    Args:
        manifest: of its bundle.
        library: the program that runs it.
    """
    licence = manifest.licence.lower()
    known = bool(_LICENCE.fullmatch(licence))
    facts = {
        "library_name": library,
        "pipeline_tag": _TASKS[manifest.task],
        "language": sorted({*manifest.source_languages, manifest.target_language, *_targets(manifest)}),
        "license": licence if known else "other",
        **({} if known or not manifest.licence else {"license_name": manifest.licence}),
        "tags": ["tandem", manifest.architecture],
    }
    front = "\n".join(f"{key}: {json.dumps(value, ensure_ascii=False)}" for key, value in facts.items())
    return f"---\n{front}\n---\n\n{render_card(manifest)}"


def _targets(manifest: Manifest) -> list[str]:
    return [target for _, target in manifest.pairs]


def _upload(name: str, files: dict[str, Path | bytes], private: bool, message: str) -> str:
    """Commit files to a repository. Returns the commit's address.

    Raises:
        ModuleNotFoundError: the client is not installed; the command says with what it comes.
        PublishError: the hub refuses, or cannot be reached.
    """
    from huggingface_hub import CommitOperationAdd, HfApi

    try:
        api = HfApi()
        api.create_repo(name, private=private, exist_ok=True)
        operations = [CommitOperationAdd(path_in_repo=place, path_or_fileobj=file) for place, file in files.items()]
        done = api.create_commit(name, operations, commit_message=message)
    except Exception as error:  # those of its client of HTTP share no base
        remedy = "log in with `hf auth login`, or set HF_TOKEN to a token that may write there"
        raise PublishError(f"{_SCHEME}{name}: {' '.join(str(error).split())}; {remedy}") from error
    return str(done.commit_url)
