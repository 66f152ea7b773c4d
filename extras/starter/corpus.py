"""Makes a corpus of two text files, and the recipe that trains on it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from tandem.extras.starter.holdout import Splits, hold_out
from tandem.extras.starter.recipes import (
    READ,
    DraftRecipe,
    StarterRequest,
    base_recipe,
    recipe_from_bundle,
    recipe_from_scratch,
)
from tandem.extras.starter.sizes import Amount, held_out
from tandem.extras.starter.text import Screened, screen
from tandem.models.bundle.manifest import NAME
from tandem.models.errors import ConfigError, CorpusError
from tandem.models.folders import is_vacant, whole_folder
from tandem.training.data.config import SPLITS
from tandem.training.data.corpus import file_digest, file_names

ORIGIN = "origin.json"  # beside the text; also says that the folder may be made anew
LEAST, LEAST_TO_TUNE = 1000, 100  # pairs
FEW = 20_000


@dataclass(frozen=True, slots=True)
class MadeCorpus:
    """What came of it.

    Attributes:
        folder: of the corpus.
        screened: what the files held.
        pairs: of each split.
        draft: the recipe.
        warnings: what looks wrong, each with what to do.
    """

    folder: Path
    screened: Screened
    pairs: dict[str, int]
    draft: DraftRecipe
    warnings: tuple[str, ...]


def make_corpus(job: StarterRequest) -> MadeCorpus:
    """Check the files, hold out, write ``corpora/NAME/{split}.{language}`` and a recipe; same job, same bytes.

    Raises:
        ConfigError: a name, place, language or bundle that does not do.
        CorpusError: the files cannot be read or are not parallel, or hold too little.
    """
    _check(job)
    screened = screen(*job.texts, same_language=job.languages[0] == job.languages[1])
    least = LEAST if job.bundle is None else LEAST_TO_TUNE
    if len(screened.pairs) < least:
        raise CorpusError(_too_few(job, len(screened.pairs), least))
    share = held_out(len(screened.pairs))
    valid, test = (share if wanted is None else wanted for wanted in (job.valid, job.test))
    if valid + test > len(screened.pairs) // 2:
        raise ConfigError(
            f"--valid and --test must leave at least half of the {len(screened.pairs):,} pairs to train on, but are"
            f" {valid:,} and {test:,}"
        )
    splits = hold_out(screened.pairs, valid, test, job.seed)
    if job.bundle is not None:
        data = base_recipe(job.bundle, job).data
        amount = Amount.of(splits["train"], data.max_source_tokens if data.truncate_source else None)
        draft = recipe_from_bundle(job, amount, job.bundle)
    else:
        amount = Amount.of(splits["train"], READ if job.summarizes else None)
        draft = recipe_from_scratch(job, amount, screened)
    folder = job.corpora / job.name
    _write(job, folder, splits, screened)
    job.recipe_file.parent.mkdir(parents=True, exist_ok=True)
    job.recipe_file.write_text(draft.text, encoding="utf-8", newline="\n")
    warnings = screened.warnings(draft.recipe.data, summaries=draft.recipe.task == "summarize")
    pairs = {name: len(splits[name]) for name in SPLITS}
    return MadeCorpus(folder, screened, pairs, draft, (*warnings, *_few(job, pairs["train"])))


def _check(job: StarterRequest) -> None:
    if not NAME.fullmatch(job.name) or "@" in job.name:
        raise ConfigError(f"NAME must be letters, digits, '.', '_' and '-', at most 100, but is {job.name!r}")
    if job.bundle is not None:
        base_recipe(job.bundle, job)
        if job.task not in (None, task := job.bundle.manifest.task):
            raise ConfigError(f"--task must be {task}, as {job.bundle.manifest.name} is for that, but is {job.task}")
    elif job.languages[0] == job.languages[1] and not job.summarizes:
        raise ConfigError(f"source and target are both {job.languages[0]!r}: --task must be summarize, or left out")
    folder = job.corpora / job.name
    own = (folder / ORIGIN).is_file()
    if not own and not is_vacant(folder):
        raise ConfigError(f"{folder} exists and was not made by this command; take another NAME or folder of corpora")
    for path in (folder / ORIGIN, job.recipe_file):
        if path.exists() and not job.force:
            raise ConfigError(
                f"{path} is there already: add --force to replace corpus and recipe, or take another NAME"
            )
    if job.recipe_file.is_dir():
        raise ConfigError(f"the recipe must be a file, but {job.recipe_file} is a folder")


def _write(job: StarterRequest, folder: Path, splits: Splits, screened: Screened) -> None:
    origin = {
        "files": {str(path): file_digest(path) for path in job.texts},
        "languages": list(job.languages),
        "lines": screened.lines,
        "left_out": screened.dropped,
        "seed": job.seed,
        "pairs": {name: len(pairs) for name, pairs in splits.items()},
    }
    with whole_folder(folder) as partial:
        for name in SPLITS:
            for side, ending in enumerate(file_names(job.languages)):
                lines = (f"{pair[side]}\n" for pair in splits[name])
                with (partial / f"{name}.{ending}").open("w", encoding="utf-8", newline="\n") as file:
                    file.writelines(lines)
        text = json.dumps(origin, ensure_ascii=False, indent=1)
        (partial / ORIGIN).write_text(f"{text}\n", encoding="utf-8", newline="\n")


def _too_few(job: StarterRequest, pairs: int, least: int) -> str:
    remedy = "" if job.bundle is not None else ", or let a bundle of these languages go on learning (--from BUNDLE)"
    kind = "training from scratch" if job.bundle is None else "fine-tuning"
    source, target = job.texts
    return f"{kind} needs at least {least:,} pairs, but {source} and {target} hold {pairs:,}: collect more{remedy}"


def _few(job: StarterRequest, pairs: int) -> list[str]:
    if job.bundle is not None or pairs >= FEW:
        return []
    what = "summarizing" if job.summarizes else "two languages"
    return [
        f"{pairs:,} pairs are few to learn {what} from: where a bundle of these languages exists, --from BUNDLE will do"
        " better"
    ]
