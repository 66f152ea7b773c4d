"""Validation by decoded text, while a model trains."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice
from pathlib import Path
from typing import Any

from tandem.models.architectures.protocol import Seq2SeqModel, max_positions
from tandem.models.search import Array, Failed, Graphs, OfflineDecoder
from tandem.models.search.offline import NBest
from tandem.models.steps.device_search import OpenSearch, SearchRoom
from tandem.models.steps.torch_graphs import TorchGraphs
from tandem.models.translation.rendering import Renderer
from tandem.models.translation.translator import Column, encode_columns, translate_lines
from tandem.models.vocabulary import EOS, TaggedVocabulary, Vocabulary
from tandem.training.data.corpus import read_lines
from tandem.training.data.dataset import load_dictionary, load_sources, open_features, side_names, text_path
from tandem.training.data.directions import Directed, directed_corpora
from tandem.training.data.summary import PreparedSummary
from tandem.training.loop.reporting import SeenSource, ShownSentence
from tandem.training.quality.metrics import pooled_scores
from tandem.training.recipe import Recipe

EXAMPLES = 5
_SLOTS = 64  # of a search on a GPU, beside what training holds there


@dataclass(frozen=True, slots=True)
class Validated:
    """What a validation by text found.

    Attributes:
        scores: by name.
        examples: some sentences, the same ones every time.
    """

    scores: Mapping[str, float]
    examples: tuple[ShownSentence, ...] = ()


@dataclass(frozen=True, slots=True)
class DecodedText:
    """What a model made of the sentences of one corpus.

    Attributes:
        language: of the references.
        texts: the translations.
        references: one for each.
    """

    language: str
    texts: tuple[str, ...]
    references: tuple[str, ...]


class TextValidator:
    """Decodes every so-manieth validation sentence of every corpus and scores them, together and by corpus.

    Args:
        recipe: decides how many sentences, the search and the metric.
        data: the prepared folder.
        search: opens a search where a model on a GPU lies; None = there is none, and the general one decodes.
    """

    def __init__(self, recipe: Recipe, data: Path, search: OpenSearch | None = None) -> None:
        self._recipe, self._search = recipe, search
        self._vocabularies = load_sources(data)
        sources, target = self._vocabularies
        self._renderer = Renderer(
            sources, target, recipe.data.target_form, load_dictionary(data), recipe.data.keep_unknown
        )
        sides = side_names(len(recipe.source_languages))
        # Lines, or feature matrices, of each corpus; by the language that a tag names, "" where there is none.
        self._columns: dict[str, dict[str, list[list[Any]]]] = {}
        self._languages: dict[str, str] = {}  # of each corpus' references
        features = PreparedSummary.load(data).features
        directed = directed_corpora(recipe.data, recipe.languages)
        share = max(1, recipe.training.validation_sentences // len(directed))
        for one in directed:
            if "valid" not in one.corpus.splits:
                continue
            self._languages[one.corpus.name] = one.languages[-1]
            columns = self._columns.setdefault(_tag(recipe, one), {})[one.corpus.name] = []
            for side in sides:
                if side in features:
                    whole: Sequence[Any] = open_features(data, "valid", features[side], evaluation=one.corpus.name)
                else:
                    whole = read_lines(text_path(data, one.corpus.name, "valid", side))
                # Corpora stand in the order of their documents, whose first may be unlike the others.
                columns.append([whole[place] for place in range(0, len(whole), max(1, len(whole) // share))][:share])
        # A package that scores need is missed here, not hours later at the first validation.
        self._scores([DecodedText(language, ("a",), ("a",)) for language in sorted({*self._languages.values()})])

    def __call__(self, model: Seq2SeqModel[Any, Any]) -> Validated:
        """Greedy scores by metric name in lower case ("bleu", "ter", "rouge" for ROUGE-1, …), where the model lies.

        Where there are several corpora, those of each follow as ``metric/corpus``. The examples are the same sentences
        every time, of all corpora.
        """
        graphs = self._graphs(model)
        found = self._decoded(graphs)
        scores = self._scores(found.values())
        if len(found) > 1:
            for name, text in found.items():
                scores |= {f"{metric}/{name}": value for metric, value in self._scores([text]).items()}
        return Validated(scores, self._examples(graphs, found))

    def _examples(self, graphs: Graphs, found: Mapping[str, DecodedText]) -> tuple[ShownSentence, ...]:
        whole = [(name, line) for name, text in found.items() for line in range(len(text.texts))]
        count = min(EXAMPLES, len(whole))
        chosen = [whole[place * len(whole) // count] for place in range(count)]
        return tuple(self._example(graphs, name, line, found[name]) for name, line in chosen)

    def _example(self, graphs: Graphs, corpus: str, line: int, found: DecodedText) -> ShownSentence:
        """A sentence with what the model looks at in it, where it reads any text."""
        tag = next(tag for tag, corpora in self._columns.items() if corpus in corpora)
        *sources, _ = ([column[line]] for column in self._columns[tag][corpus])
        texts = [text for (text,) in sources if isinstance(text, str)]
        limit = self._recipe.data.max_source_tokens
        empty = texts and not any(map(str.strip, texts))
        (seen,) = [()] if empty else seen_sources(self._decoder(graphs), self._tagged(tag), sources, limit)
        return ShownSentence(" | ".join(texts), found.texts[line], found.references[line], seen)

    def _decoder(self, graphs: Graphs) -> OfflineDecoder:
        return OfflineDecoder(graphs, replace(self._recipe.decoding, beam_size=1, n_best=1))

    def decode(self, model: Seq2SeqModel[Any, Any]) -> dict[str, DecodedText]:
        """What the model makes of the sentences of each corpus, greedily, where it lies."""
        return self._decoded(self._graphs(model))

    def _decoded(self, graphs: Graphs) -> dict[str, DecodedText]:
        found: dict[str, DecodedText] = {}
        for tag, corpora in self._columns.items():
            *sources, target = (list(chain.from_iterable(side)) for side in zip(*corpora.values(), strict=True))
            decoded = iter(
                translate_lines(
                    self._decoder(graphs),
                    self._tagged(tag),
                    sources,
                    max_source_tokens=self._recipe.data.max_source_tokens,
                    renderer=self._renderer,
                )
            )
            references = iter(target)
            for name, columns in corpora.items():
                count = len(columns[-1])
                texts = tuple(islice(decoded, count)), tuple(islice(references, count))
                found[name] = DecodedText(self._languages[name], *texts)
        return found

    def _scores(self, found: Iterable[DecodedText]) -> dict[str, float]:
        """Of what was decoded of some corpora together."""
        by_language: dict[str, tuple[list[str], list[str]]] = {}
        for one in found:
            together = by_language.setdefault(one.language, ([], []))
            together[0].extend(one.texts)
            together[1].extend(one.references)
        scores = {name.lower(): value for name, value in pooled_scores(self._recipe.task, by_language).items()}
        if "rouge-1" in scores:
            scores["rouge"] = scores["rouge-1"]
        return scores

    def _graphs(self, model: Seq2SeqModel[Any, Any]) -> Graphs:
        """On a GPU with a search there: else memory and state would go to and fro at every step."""
        if self._search is None or not _on_gpu(model):
            return TorchGraphs(model)
        target = min(self._recipe.decoding.max_length + 1, max_positions(model.config) or sys.maxsize)
        source = self._recipe.data.max_source_tokens
        return self._search(model, SearchRoom(sentences=_SLOTS, source=source, target=target))

    def _tagged(self, language: str) -> tuple[tuple[Vocabulary | None, ...], Vocabulary]:
        sources, target = self._vocabularies
        if not language:
            return sources, target
        return tuple(TaggedVocabulary(one, language) if one else None for one in sources), target


def _on_gpu(model: Seq2SeqModel[Any, Any]) -> bool:
    return next(model.parameters()).is_cuda


def _tag(recipe: Recipe, directed: Directed) -> str:
    return directed.languages[-1] if recipe.data.tagged else ""


def seen_sources(
    decoder: OfflineDecoder,
    vocabularies: tuple[Sequence[Vocabulary | None], Vocabulary],
    columns: Sequence[Column],
    max_source_tokens: int,
) -> list[tuple[SeenSource, ...]]:
    """For each sentence what was looked at in each source; nothing where the model has no ``align`` graph.

    Args:
        decoder: of the model; it decodes the sentences once more.
        vocabularies: one per source (None for feature matrices), and the target's.
        columns: one list of lines, or of feature matrices, per source, parallel.
        max_source_tokens: longer lines are cut there (EOS included).
    """
    if "align" not in decoder.graphs.specs:
        return [()] * len(columns[-1])
    sources, target = vocabularies
    decoder = replace(decoder, options=replace(decoder.options, attention=True))
    encoded = list(zip(*encode_columns(sources, columns, max_source_tokens), strict=True))
    outcomes = decoder.decode(encoded)
    return [tuple(_seen(found, one, sources, target)) for found, one in zip(outcomes, encoded, strict=True)]


def _seen(
    found: NBest, encoded: Sequence[Array], sources: Sequence[Vocabulary | None], target: Vocabulary
) -> Iterator[SeenSource]:
    if isinstance(found, Failed):
        return
    rows = tuple(target.piece_of(token) for token in (*found[0].tokens, EOS))
    for vocabulary, one, weights_TS in zip(sources, encoded, found[0].attention or (), strict=True):
        numbers = range(len(one))
        names = map(str, numbers) if vocabulary is None else (vocabulary.piece_of(int(one[n])) for n in numbers)
        yield SeenSource(rows, tuple(names), weights_TS)
