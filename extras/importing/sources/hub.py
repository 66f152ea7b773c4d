"""``hf:Helsinki-NLP/opus-mt-de-en``: models of Hugging Face, from there to a bundle; and bundles that are there."""

from __future__ import annotations

import re
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tandem.extras.fetching.downloads import PullError
from tandem.extras.fetching.sources import FetchOptions, Offer
from tandem.extras.importing.folders import import_folder
from tandem.extras.importing.model import Asked, Labels
from tandem.models.bundle import MANIFEST, Bundle
from tandem.models.errors import ConfigError
from tandem.models.folders import whole_folder

_REPOSITORY = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")
_PAIR = re.compile(r".*?([a-z]{2,3}-[a-z]{2,3})")
_FILES = ("*.json", "*.spm", "*.model", "*.txt", "*.yml")
_OF_THE_HUB = ("README.md", ".git*", ".cache")  # beside a bundle's own files
_SAFE, _PICKLED = "model*.safetensors", "pytorch_model*.bin"


class Hub:
    """Brings models of Hugging Face; a name is that of a repository."""

    def bundle_name(self, name: str) -> str:
        own = checked_name(name).partition("/")[2]
        pair = _PAIR.fullmatch(own) if own.startswith("opus-mt-") else None
        return pair[1] if pair else own

    def offers(self, registry: str) -> Sequence[Offer]:
        """None: nobody lists all that can be imported."""
        return ()

    def fetch(self, name: str, out: Path, scratch: Path, options: FetchOptions) -> Bundle:
        folder = scratch / checked_name(name).partition("/")[2]  # its name says the languages
        licence, origin = "", ""
        if options.registry:
            _copy(Path(options.registry) / name, folder)
        else:
            licence, origin = _download(name, folder)
        options.report(f"hf:{name}, licence {licence or 'not said'}")
        if (folder / MANIFEST).is_file():
            return _placed(folder, out)
        labels = Labels(licence, origin, overwrite=options.overwrite)
        return import_folder(folder, out, Asked(), labels, options.report)


HUB = Hub()


def checked_name(name: str) -> str:
    """The name of a repository. Raises ConfigError where it is none."""
    if not _REPOSITORY.fullmatch(name):
        raise ConfigError(f"hf: takes a repository, such as hf:Helsinki-NLP/opus-mt-de-en, but not {name!r}")
    return name


def _placed(folder: Path, out: Path) -> Bundle:
    """A bundle that `tandem publish` has put there, without what the hub adds. Raises BundleError."""
    with whole_folder(out) as partial:
        shutil.copytree(folder, partial, dirs_exist_ok=True, ignore=shutil.ignore_patterns(*_OF_THE_HUB))
        Bundle.load(partial, weights=True)
    return Bundle.load(out)


def _copy(there: Path, folder: Path) -> None:
    if not there.is_dir():
        raise PullError(f"{there}: there is no such folder; --registry takes one with a copy of the repository in it")
    shutil.copytree(there, folder)


def _download(name: str, folder: Path) -> tuple[str, str]:
    """Bring the files of a repository's newest commit. Returns the licence, empty where it is not said, and the URL.

    Raises:
        ModuleNotFoundError: the client is not installed; the command says with what it comes.
        PullError: they cannot be fetched.
    """
    from huggingface_hub import HfApi, snapshot_download

    try:
        about: Any = HfApi().model_info(name)
        names = [one.rfilename for one in about.siblings or ()]
        safe = any(Path(one).match(_SAFE) for one in names)
        patterns = None if MANIFEST in names else [*_FILES, _SAFE if safe else _PICKLED]
        snapshot_download(name, revision=about.sha, allow_patterns=patterns, local_dir=folder)
    except Exception as error:  # those of its client of HTTP share no base
        remedy = "a proxy is taken from HTTPS_PROXY, a mirror from HF_ENDPOINT; --registry takes a folder with copies"
        raise PullError(f"hf:{name}: {' '.join(str(error).split())}; {remedy}") from error
    licence = getattr(about.card_data, "license", None)
    return licence if isinstance(licence, str) else "", f"https://huggingface.co/{name}/tree/{about.sha}"
