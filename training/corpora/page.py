"""``docs/corpora.md``: how to get and prepare every corpus of the papers, written from the table."""

from __future__ import annotations

from training.corpora.report import describe_cleaning, describe_form, show_bounds, show_files
from training.corpora.specs import Corpus, Split
from training.corpora.table import CORPORA

_INTRODUCTION = """\
# The papers' corpora

None of them comes with this repository, and nothing here downloads them: fetch the files yourself, under the terms that
come with them, into one folder, and let the command check, read, split and write them:

```
tandem corpus                                        # what there is
tandem corpus iwslt14-de-en                          # what to fetch, and from where
tandem corpus iwslt14-de-en --raw fetched            # -> corpora/iwslt14-de-en, which the recipes name
```

Leave the files as they come: the command looks below the folder, and into `.tgz`, `.tar`, `.zip`, `.gz`, `.xz`, `.bz2`.
WMT's test sets may also be plain text or what sacreBLEU writes out (`wmt14_full.en-de.src`). Missing files are listed
all at once. Counts that differ from the distribution's or the paper's are warnings, with both numbers. The folder
appears whole or not at all, the same files give the same bytes, and what is there is only replaced with `--force`.
`--workers 8` tokenises in eight processes; large corpora take hours in one.

What is written is UTF-8, one segment a line, parallel by line number, with a README that says terms and counts.
Tokens are Moses' (sacremoses), without its escapes (`&apos;`), which are one to one with the plain characters. Length
limits that are not named here are filters of the recipe. A recipe's `valid_split` and `test_split` choose other sets
than `valid` and `test`.

This page is written by `python -m deploy.reference`.
"""


def corpora_page() -> str:
    """Every corpus of the table as a section."""
    overview = ["| corpus | | used by |", "|---|---|---|"]
    overview += [f"| [{item.name}](#{item.name}) | {item.title} | {'; '.join(item.papers)} |" for item in CORPORA]
    return "\n".join([_INTRODUCTION, *overview, *(line for item in CORPORA for line in _section(item))]) + "\n"


def _section(corpus: Corpus) -> list[str]:
    lines = [
        "",
        f"## {corpus.name}",
        "",
        f"{corpus.title}.",
        "",
        f"- Licence: {corpus.licence}.",
        f"- Attribution: {corpus.attribution}.",
        f"- Text: {describe_form(corpus.form)}.",
        f"- Training pairs that stay: {describe_cleaning(corpus)}.",
        "",
        "| fetch | files, or an archive with them |",
        "|---|---|",
    ]
    for download in corpus.downloads:
        terms = f" ({download.terms})" if download.terms else ""
        files = ", ".join(f"`{name}`" for name in expected_files(corpus.splits, download.name))
        lines.append(f"| {download.name}{terms}: <{download.url}> | {files} |")
    lines += ["", "| written | pairs |", "|---|---|"]
    optional = {split.name for split in corpus.splits if split.optional}
    for name, bounds in corpus.outputs:
        remark = "optional" if name in optional else ""
        lines.append(f"| {show_files(corpus, name)} | {', '.join(filter(None, (show_bounds(bounds), remark)))} |")
    lines += [f"| {show_files(corpus, f'{split.name}_raw')} | not tokenised |" for split in _plain(corpus)]
    if corpus.features:
        for split, _ in corpus.features.splits:
            shape = f"segments x {corpus.features.regions} x {corpus.features.width}"
            lines.append(f"| `{split}.{corpus.features.name}.npy` | {shape}, optional |")
    for note in corpus.notes:
        lines += ["", note]
    return lines


def expected_files(splits: tuple[Split, ...], download: str) -> list[str]:
    """The usual names of the files that come from a download, in order."""
    names = [
        file[0] for split in splits for part in split.parts if part.download.name == download for file in part.files
    ]
    return list(dict.fromkeys(names))


def _plain(corpus: Corpus) -> list[Split]:
    return [split for split in corpus.splits if split.plain_copy]
