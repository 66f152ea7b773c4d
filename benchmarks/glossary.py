"""`tandem bench glossary`: how well a glossary is enforced, and what it costs the translations, on a parallel text.

Told are the share of the terms' places whose translation has the target term, counted in the text that comes back; how
many of the misses the reply names; and chrF of the lines without and with terms, each translated with and without the
glossary. The bundle runs as it is served, in one worker.
"""

from __future__ import annotations

import asyncio
import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sacrebleu.metrics.chrf import CHRF

from benchmarks.options import GlossaryOptions
from deploy.report import environment, say, show_environment
from service.bundles.loading import build_engine
from service.settings import Settings
from service.text.glossary import Glossary
from service.translation.requests import TranslateTask
from service.translation.results import TermUse
from service.translation.texts import TextService
from training.data.corpus import read_parallel

Pairs = list[tuple[str, str]]
_WORD = re.compile(r"[^\W\d_]{4,}")
_TWO_WORDS = 0.2  # of the terms
_MOST_LINES = 8  # that a term stands in


@dataclass(frozen=True, slots=True)
class TranslatedLines:
    """Lines as they came back, and what the reply says of the terms in each."""

    lines: list[str]
    terms: list[list[TermUse]]


def words(line: str, size: int = 1) -> list[str]:
    """Runs of so many words with single spaces between them."""
    found = list(_WORD.finditer(line))
    runs = [found[at : at + size] for at in range(len(found) - size + 1)]
    return [line[run[0].start() : run[-1].end()] for run in runs if run[-1].end() - run[0].start() == _width(run)]


def _width(run: Sequence[re.Match[str]]) -> int:
    return sum(len(match[0]) for match in run) + len(run) - 1


def unseen_terms(pairs: Pairs, seen: Pairs, count: int, rng: np.random.Generator) -> dict[str, str]:
    """Source terms with target terms that never translate them."""
    chosen: dict[str, str] = {}
    for size, wanted in ((2, round(_TWO_WORDS * count)), (1, count)):
        places: dict[str, list[int]] = defaultdict(list)
        for number, (source, _) in enumerate(pairs):
            for term in set(words(source, size)):
                places[term].append(number)
        terms = sorted(term for term, lines in places.items() if len(lines) <= _MOST_LINES)
        targets = sorted({one for _, target in pairs for one in words(target, size)})
        taken: set[str] = set()
        for index in rng.permutation(len(terms)).tolist():
            if len(chosen) >= wanted:
                break
            term = terms[index]
            known = {word for other in chosen for word in other.split()}
            if known.isdisjoint(term.split()) and not taken & {*places[term]}:
                target = _unrelated(term, targets, [*pairs, *seen], rng)
                if target:
                    chosen[term] = target
    return chosen


def _unrelated(term: str, targets: Sequence[str], pairs: Pairs, rng: np.random.Generator) -> str:
    """A target that stands in no line that translates the term; empty where ten drawn ones all do."""
    texts = [target.casefold() for source, target in pairs if term.casefold() in source.casefold()]
    for index in rng.integers(0, len(targets), 10).tolist():
        if not any(targets[index].casefold() in text for text in texts):
            return str(targets[index])
    return ""


def usual_terms(pairs: Pairs, count: int) -> dict[str, str]:
    """The words that go together most: of the commoner source words the target word with the best Dice score."""
    together: dict[str, Counter[str]] = defaultdict(Counter)
    sources, targets = Counter[str](), Counter[str]()
    for source, target in pairs:
        read, written = set(words(source)), {word.lower() for word in words(target)}
        sources.update(read)
        targets.update(written)
        for word in read:
            together[word].update(written)
    scored = []
    for word, amount in sources.items():
        if 3 <= amount <= 30:
            other, both = max(together[word].items(), key=lambda one: 2 * one[1] / (amount + targets[one[0]]))
            scored.append((2 * both / (amount + targets[other]), word, other))
    return {word: other for _, word, other in sorted(scored, reverse=True)[:count]}


async def translate(
    service: TextService, route: tuple[str, str], lines: Sequence[str], glossary: Mapping[str, str]
) -> TranslatedLines:
    """Lines as the service translates them, some at a time."""
    found = TranslatedLines([], [])
    for at in range(0, len(lines), 50):
        task = TranslateTask(
            texts=lines[at : at + 50], source=route[0], target=route[1], glossary=glossary, priority="bulk"
        )
        for written in (await service.translate(task)).texts:
            found.lines.append(written.text)
            found.terms.append(list(written.glossary))
    return found


def enforced(lines: Sequence[str], found: TranslatedLines, glossary: Mapping[str, str]) -> dict[str, Any]:
    """Places of terms, how many of their translations have the target term, and how many misses the reply names."""
    finder = Glossary.of(glossary)
    places = kept = named = 0
    for line, written, terms in zip(lines, found.lines, found.terms, strict=True):
        due = Counter(hidden.target for _, hidden in finder.find(line))
        for target, amount in due.items():
            there = len(re.findall(rf"(?<!\w){re.escape(target)}(?!\w)", written, re.IGNORECASE))
            places, kept = places + amount, kept + min(amount, there)
            named += there < amount and any(one.target == target and not one.found for one in terms)
    share = 100 * kept / places if places else 100.0
    return {"terms": len(glossary), "places": places, "enforced": kept, "percent": round(share, 2), "named": named}


def chrf(lines: Sequence[str], references: Sequence[str]) -> float:
    """Of a corpus, as sacrebleu has it."""
    return round(CHRF().corpus_score(list(lines), [list(references)]).score, 2) if lines else 0.0


async def enforce(
    service: TextService, route: tuple[str, str], pairs: Pairs, glossary: Mapping[str, str], most: int
) -> dict[str, Any]:
    """Everything about one glossary."""
    finder = Glossary.of(glossary)
    having = [pair for pair in pairs if finder.find(pair[0])]
    lacking = [pair for pair in pairs if not finder.find(pair[0])]
    result: dict[str, Any] = {}
    for name, some in (("with terms", having[:most]), ("without terms", lacking[:most])):
        lines, references = [source for source, _ in some], [target for _, target in some]
        plain = await translate(service, route, lines, {})
        found = await translate(service, route, lines, glossary)
        if name == "with terms":
            result |= enforced(lines, found, glossary)
            result["plain percent"] = enforced(lines, plain, glossary)["percent"]
        result[name] = {
            "lines": len(lines),
            "chrF plain": chrf(plain.lines, references),
            "chrF with glossary": chrf(found.lines, references),
            "changed": sum(one != other for one, other in zip(plain.lines, found.lines, strict=True)),
        }
    return result


def measure(options: GlossaryOptions) -> dict[str, Any]:
    """``environment`` and the figures of both glossaries, ``unseen`` and ``usual``.

    Raises:
        CorpusError: files that cannot be read or are not parallel.
        BundleError: the bundle cannot be used.
    """
    return {"environment": environment(1), "glossaries": asyncio.run(_measure(options))}


async def _measure(options: GlossaryOptions) -> dict[str, Any]:
    pairs = list(zip(*read_parallel([options.source, options.target]), strict=True))
    seen = list(zip(*read_parallel(list(options.seen)), strict=True)) if options.seen else []
    settings = Settings(bundles=(options.bundle,), workers=1, cache_sentences=0, log_level="error")
    engine = build_engine(settings)
    service = TextService(engine, settings.request_limits())
    engine.start()
    try:
        (bundle,) = engine.bundles.values()
        route = bundle.manifest.source_languages[0], bundle.manifest.target_language
        glossaries = {
            "unseen": unseen_terms(pairs, seen, options.terms, np.random.default_rng(options.seed)),
            "usual": usual_terms(pairs, options.terms),
        }
        return {name: await enforce(service, route, pairs, one, options.lines) for name, one in glossaries.items()}
    finally:
        engine.stop()
        service.close()


def show(result: Mapping[str, Any]) -> None:
    """Print the figures of both glossaries."""
    say(show_environment(result["environment"]))
    for name, one in result["glossaries"].items():
        say(
            f"{name}: {one['terms']} terms, {one['places']} places, {one['enforced']} enforced = {one['percent']} %",
            f"  without glossary {one['plain percent']} %; misses that the reply names: {one['named']}",
            *(
                f"  lines {kind}: " + ", ".join(f"{key} {value}" for key, value in one[kind].items())
                for kind in ("with terms", "without terms")
            ),
        )
