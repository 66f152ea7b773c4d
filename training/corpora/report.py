"""What came of making a corpus, and the README that is written beside it."""

from __future__ import annotations

from dataclasses import dataclass, field

from training.corpora.specs import Corpus, TextForm


@dataclass(slots=True)
class BuildReport:
    """What was made.

    Attributes:
        pairs: split -> pairs.
        dropped: training pairs left out in cleaning.
        features: splits that have feature matrices.
        warnings: what differs from what is expected: bound, value.
        notes: optional sets that were left out.
        files: the raw files that were read, relative to their folder.
    """

    pairs: dict[str, int] = field(default_factory=dict)
    dropped: int = 0
    features: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    files: list[str] = field(default_factory=list)


def readme(corpus: Corpus, report: BuildReport) -> str:
    """The page that goes with a prepared corpus: terms, what was done, counts."""
    bounds = dict(corpus.outputs)
    lines = [
        f"# {corpus.name}",
        "",
        f"{corpus.title}. {made_by(corpus)}",
        "",
        f"- Licence: {corpus.licence}",
        f"- Attribution: {corpus.attribution}",
        f"- Used by: {'; '.join(corpus.papers)}",
        f"- From: {'; '.join(f'{item.name}, {item.url}' for item in corpus.downloads)}",
        f"- Text: {describe_form(corpus.form)}; UTF-8, one segment a line, parallel by line number",
        f"- Training pairs: {describe_cleaning(corpus)}; {report.dropped:,} left out",
        "",
        "| files | pairs | expected |",
        "|---|--:|--:|",
    ]
    order = [name for output in bounds for name in (output, f"{output}_raw") if name in report.pairs]
    for name in order:
        expected = show_bounds(bounds.get(name))
        lines.append(f"| {show_files(corpus, name)} | {report.pairs[name]:,} | {expected} |")
    if corpus.features and report.features:
        made = ", ".join(f"`{name}.{corpus.features.name}.npy`" for name in report.features)
        lines += ["", f"Features, segments x {corpus.features.regions} x {corpus.features.width}: {made}."]
    for title, items in (("Differs from what is expected", report.warnings), ("Left out", report.notes)):
        if items:
            lines += ["", f"{title}:", "", *(f"- {item}" for item in items)]
    lines += ["", "Read:", "", *(f"- {name}" for name in report.files)]
    return "\n".join(lines) + "\n"


def made_by(corpus: Corpus) -> str:
    """The sentence that marks a folder as this command's, which may be replaced."""
    return f"Prepared by `tandem corpus {corpus.name}`."


def describe_form(form: TextForm) -> str:
    """What happens to the text, in words."""
    tokens = {
        "as-is": [],
        "moses": ["Moses tokens"],
        "moses-dashes": ["Moses tokens, dashes inside words split"],
    }[form.tokens]
    done = [
        *(["punctuation normalised"] if form.punctuation else []),
        *tokens,
        *(["lowercased"] if form.lowercase or form.headline else []),
        *(["digits `#`, unknown words `UNK`"] if form.headline else []),
    ]
    return ", ".join(done) or "as it is distributed"


def describe_cleaning(corpus: Corpus) -> str:
    """Which training pairs stay, in words."""
    if corpus.cleaning is None:
        return "all but those with an empty side"
    return f"1 to {corpus.cleaning.max_words} words a side, length ratio up to {corpus.cleaning.max_ratio}"


def show_bounds(bounds: tuple[int, int] | None) -> str:
    """The bounds of a number of pairs: one number where they are one."""
    if bounds is None:
        return ""
    return f"{bounds[0]:,}" if bounds[0] == bounds[1] else f"{bounds[0]:,} to {bounds[1]:,}"


def show_files(corpus: Corpus, split: str) -> str:
    """The files of a split, in the braces of a shell."""
    return f"`{split}.{{{','.join(corpus.fields)}}}{corpus.suffix}`"
