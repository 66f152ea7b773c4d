"""Corpora of single words: ``python -m tandem.extras.rewriting.word_corpora BUNDLE CORPORA`` writes ``words-de-en`` and
three more.

Of the bundle's lexicon those entries whose translation translates back, and names of days, months, countries, languages
and currencies from Unicode's CLDR, which Babel brings.
"""

from __future__ import annotations

import gzip
import lzma
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from babel import Locale

PAIRS = (("de", "en"), ("en", "de"), ("fr", "en"), ("en", "fr"))
_OFTEN = 3  # times that a name of CLDR is repeated: there are few of them
_HELD = 50  # pairs that validation and test show; they are of the training text


def entries(lexicon: Path) -> dict[tuple[str, str], list[tuple[str, str]]]:
    """By languages, the words whose first translation has them among its own."""
    first: dict[tuple[str, str], dict[str, str]] = defaultdict(dict)
    every: dict[tuple[str, str], dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    content = lexicon.read_bytes()
    for line in (gzip.decompress(content) if lexicon.suffix == ".gz" else content).decode().splitlines():
        source, target, word, *translations = line.split("\t")
        first[source, target][word] = translations[0]
        every[source, target][word.lower()].update(map(str.lower, translations))
    return {
        (source, target): [
            (word, other)
            for word, other in words.items()
            if len(word) > 1 and word.lower() != other.lower() and word.lower() in every[target, source][other.lower()]
        ]
        for (source, target), words in first.items()
    }


def names(source: str, target: str) -> Iterator[tuple[str, str]]:
    """CLDR's, where the languages differ."""
    one, other = Locale(source), Locale(target)
    for table in ("territories", "languages", "currencies", "scripts"):
        there = getattr(other, table)
        for code, name in getattr(one, table).items():
            if code in there and name != there[code] and "(" not in name + there[code]:
                yield name, there[code]
    for table in ("days", "months"):
        there = getattr(other, table)["format"]["wide"]
        yield from ((name, there[code]) for code, name in getattr(one, table)["format"]["wide"].items())


def main(bundle: Path, corpora: Path) -> None:
    known = entries(next(bundle.glob("lexicon.tsv*")))
    for source, target in PAIRS:
        pairs = known[source, target] + [*names(source, target)] * _OFTEN
        folder = corpora / f"words-{source}-{target}"
        folder.mkdir(parents=True, exist_ok=True)
        for split, part in (("train", pairs), ("valid", pairs[:_HELD]), ("test", pairs[:_HELD])):
            for side, language in enumerate((source, target)):
                with lzma.open(folder / f"{split}.{language}.xz", "wt", encoding="utf-8") as file:
                    file.writelines(f"{pair[side]}\n" for pair in part)
        print(f"{folder}: {len(pairs):,} pairs")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
