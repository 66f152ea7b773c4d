"""``MODEL_CARD.md``, rendered from the manifest and from nothing else."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tandem.models.bundle.manifest import ImportedFrom, Manifest
from tandem.models.config import to_mapping
from tandem.models.search.confidence import Confidence

_TASKS = {"translate": "Translation", "summarize": "Summarisation", "postedit": "Automatic post-editing"}


def render_card(manifest: Manifest) -> str:
    """The model card: what the model is, what it was trained on and under which terms, and how well it does."""
    training = manifest.training
    parts = [
        f"# {manifest.name}",
        f"{_TASKS[manifest.task]}, {', '.join(manifest.source_languages)} to {manifest.target_language}. "
        f"Architecture `{manifest.architecture}`. Weights: {manifest.licence}.",
        _matrices(manifest.vocabularies.features),
        _directions(manifest.pairs),
        manifest.about.strip(),
        "This card is rendered from `manifest.json`.",
        "## Scores",
        _table(
            ("test set", "metric", "value", "signature"),
            ((one.test_set, one.metric, f"{one.value:g}", one.signature) for one in manifest.scores),
            "Not measured.",
        ),
        _commands([one.command for one in manifest.scores]),
        _confidence(manifest.confidence, "## Confidence"),
        *(_confidence(one, f"## Confidence, `{code}`") for code, one in sorted(manifest.further_confidence.items())),
        "## Training data",
        _table(
            ("corpus", "segments", "licence", "attribution", "source"),
            ((c.name, f"{c.segments:,}", c.licence, c.attribution, c.url) for c in training.corpora),
            "Not stated.",
        ),
        f"Trained for {training.updates:,} updates on {training.target_tokens:,} target tokens."
        if manifest.origin is None
        else _origin(manifest.origin),
        "## Use",
        f"At most {manifest.limits.max_source_tokens} source and {manifest.limits.max_target_tokens} target tokens a "
        f"sentence. Text is normalised to {manifest.normalisation.upper()} first. Defaults of the search:",
        _table(("option", "value"), ((k, f"{v}") for k, v in to_mapping(manifest.decoding).items()), ""),
        f"A server looks words and short phrases that stand alone up in `{manifest.lexicon}`."
        if manifest.lexicon
        else "",
        "## Configuration",
        _table(("key", "value"), ((k, f"{v}") for k, v in sorted(manifest.config.items())), "Defaults."),
        "## Export",
        _table(("measurement", "result"), ((k, f"{v}") for k, v in sorted(manifest.proof.items())), "Not proved yet."),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _confidence(confidence: Confidence | None, heading: str) -> str:
    if confidence is None:
        return ""
    kinds = (("sentences", confidence.sentence_reliability), ("words", confidence.word_reliability))
    curve = _table(
        ("tenths of", "how many", "confidence", "measured"),
        (
            (kind, f"{one.count:,}", f"{one.confidence:.3f}", f"{one.measured:.3f}")
            for kind, reliability in kinds
            for one in reliability.bins
        ),
        "",
    )
    text = (
        heading,
        "Measured on text that it was not calibrated on: of sentences the mean chrF (0 to 1), of words the share that "
        "the reference has as well. The AUC, how well bad ones are told from others (0.5: not at all), is "
        f"{confidence.sentence_reliability.auc:.3f} for sentences of a chrF below the median and "
        f"{confidence.word_reliability.auc:.3f} for words that the reference lacks.",
        curve,
        _commands([confidence.command]),
    )
    return "\n\n".join(part for part in text if part)


def _origin(origin: ImportedFrom) -> str:
    where = f" from {origin.url}" if origin.url else ", whose source was not said"
    files = _table(("file", "SHA-256"), sorted(origin.files.items()), "")
    made = f"Not trained here: imported from a model in the form of {origin.form}{where}. What it was trained on is"
    return f"{made} said there.\n\n{files}".rstrip()


def _matrices(features: Sequence[int]) -> str:
    numbered = enumerate(features, 1)
    found = [f"source {number} is a matrix of vectors of width {width}" for number, width in numbered if width]
    return f"Not every source is text: {'; '.join(found)}." if found else ""


def _directions(pairs: Sequence[tuple[str, str]]) -> str:
    named = ", ".join(f"{source} to {target}" for source, target in pairs)
    return f"Directions: {named}. A tag at the source's start says which language to translate into." if named else ""


def _table(head: Sequence[str], rows: Iterable[Sequence[str]], otherwise: str) -> str:
    body = [_row(row) for row in rows]
    return "\n".join([_row(head), _row(["---"] * len(head)), *body]) if body else otherwise


def _row(cells: Sequence[str]) -> str:
    plain = (" ".join(cell.split()).replace("|", "\\|").replace("<", "&lt;") for cell in cells)
    return f"| {' | '.join(plain)} |"


def _commands(commands: Sequence[str]) -> str:
    different = list(dict.fromkeys(" ".join(command.split()) for command in commands if command.strip()))
    return "Measured with:\n\n" + "\n".join(f"    {command}" for command in different) if different else ""
