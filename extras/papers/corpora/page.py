"""What is said of corpora: the README beside a prepared one, and ``docs/corpora.md`` of all in the table.

``python -m tandem.extras.papers.corpora.page`` writes that page.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from tandem.extras.papers.corpora.specs import CORPORA, CorpusSpec, TextProcessing


@dataclass(slots=True)
class BuildReport:
    """What came of making a corpus.

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


def readme(corpus: CorpusSpec, report: BuildReport) -> str:
    """The page that goes with a prepared corpus: terms, what was done, counts."""
    return _templates().get_template("readme.md.jinja").render(corpus=corpus, report=report)


def corpora_page() -> str:
    """``docs/corpora.md``: how to get and prepare every corpus of the papers."""
    return _templates().get_template("page.md.jinja").render(corpora=CORPORA)


def _templates() -> Environment:
    templates = Environment(  # Markdown: nothing to escape
        loader=FileSystemLoader(Path(__file__).parent),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    templates.globals.update(
        made_by=made_by, cleaning=describe_cleaning, form=describe_form, bounds=show_bounds, files=expected_files
    )
    return templates


def made_by(corpus: CorpusSpec) -> str:
    """The sentence that marks a folder as this command's, which may be replaced."""
    return f"Prepared by `tandem corpus {corpus.name}`."


def describe_form(form: TextProcessing) -> str:
    """What happens to the text, in words."""
    steps = {
        "punctuation normalised": form.punctuation,
        "Moses tokens": form.tokens != "as-is",
        "dashes inside words split": form.tokens == "moses-dashes",
        "lowercased": form.lowercase or form.headline,
        "digits `#`, unknown words `UNK`": form.headline,
    }
    return ", ".join(step for step, done in steps.items() if done) or "as it is distributed"


def describe_cleaning(corpus: CorpusSpec) -> str:
    """Which training pairs stay, in words."""
    cleaning = corpus.cleaning
    if cleaning.max_length_ratio is None:
        return "all but those with an empty side"
    return f"1 to {cleaning.max_source_words} words a side, length ratio up to {cleaning.max_length_ratio}"


def show_bounds(bounds: tuple[int, int] | None) -> str:
    """The bounds of a number of pairs: one number where they are one."""
    if bounds is None:
        return ""
    return f"{bounds[0]:,}" if bounds[0] == bounds[1] else f"{bounds[0]:,} to {bounds[1]:,}"


def expected_files(corpus: CorpusSpec, download: str) -> list[str]:
    """The usual names of the files that come from a download, in order."""
    parts = [part for split in corpus.splits for part in split.parts if part.download.name == download]
    return list(dict.fromkeys(names[0] for part in parts for names in part.files))


if __name__ == "__main__":
    Path("docs/corpora.md").write_text(corpora_page(), encoding="utf-8")
