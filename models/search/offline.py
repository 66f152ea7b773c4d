"""Decoding a list of sentences with nothing else going on: validation, evaluation, bulk files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from models.search.batch import DecodeBatch
from models.search.graphs import Array, Graphs
from models.search.hypotheses import Hypothesis, Sentence
from models.search.options import SearchOptions
from models.shortlist import Shortlist
from models.vocabulary.base import BOS, EOS


def translate_batch(
    graphs: Graphs,
    sources: Sequence[tuple[Array, ...]],
    options: SearchOptions,
    *,
    token_budget: int = 8192,
    shortlist: Shortlist | None = None,
    bos: int = BOS,
    eos: int = EOS,
) -> list[list[Hypothesis]]:
    """Decode sentences in batches of similar length.

    Args:
        sources: per sentence, its sources (ids ending with EOS, or features).
        options: for all of them.
        token_budget: most rows x source length of a batch.
        shortlist: where given, a sentence may use the target tokens that it selects, and no others.

    Returns:
        The hypotheses of each sentence, best first, in the order of ``sources``.

    Raises:
        SentenceError: probabilities that are not finite; its ids are indices into ``sources``.
    """
    results: list[list[Hypothesis]] = [[] for _ in sources]
    for chosen in batches([max(map(len, one)) for one in sources], max(1, token_budget // options.beam_size)):
        batch = DecodeBatch(graphs, beam_size=options.beam_size, shortlist=shortlist, bos=bos, eos=eos)
        batch.join([Sentence(index, sources[index], options) for index in chosen])
        while len(batch):
            for finished in batch.step():
                results[int(str(finished.id))] = list(finished.hypotheses)
    return results


def batches(lengths: Sequence[int], token_budget: int) -> Iterator[list[int]]:
    """Indices by falling length, cut so that count x longest stays within the budget; never fewer than one."""
    batch: list[int] = []
    for index in sorted(range(len(lengths)), key=lambda one: -lengths[one]):
        if batch and (len(batch) + 1) * lengths[batch[0]] > token_budget:
            yield batch
            batch = []
        batch.append(index)
    if batch:
        yield batch
