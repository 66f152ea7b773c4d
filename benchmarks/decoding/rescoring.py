"""Whether speed was bought with a worse search: what was found, judged by the float32 model under teacher forcing.

The same sentences are searched again with PyTorch in float32. Both sets of hypotheses then get their log-probability
from one model, so that a search that is quick to overlook the better hypothesis shows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from benchmarks.decoding.systems import Ids
from benchmarks.decoding.tandem import search_options
from models.bundle import Bundle
from models.graphs import AnyModel, TorchGraphs
from models.loading import load_bundle_model
from models.protocol import Padded
from models.search import DecodeBatch, Hypothesis, SearchOptions, Sentence
from models.vocabulary import BOS, EOS, PAD

BATCH = 32  # sentences that are searched or scored together


@dataclass(frozen=True, slots=True, eq=False)
class Searched:
    """A sentence and what a search found for it.

    Attributes:
        source: token ids, EOS last.
        target: tokens that the hypothesis had to have; None where it could stop by itself.
        hypothesis: the best one.
    """

    source: Ids
    target: int | None
    hypothesis: Hypothesis


def rescored(bundle: Bundle, searched: Sequence[Searched], options: SearchOptions, threads: int) -> dict[str, float]:
    """Compare hypotheses with those of the float32 search.

    Args:
        bundle: whose float32 weights judge.
        searched: at least one sentence.
        options: of the search.
        threads: of PyTorch.

    Returns:
        ``sentences``; the mean log-probability of one sentence's hypothesis (``mean``), of those that the float32
        search finds (``float32_search_mean``), and their ``difference`` as a share of the latter's size, negative where
        ours are worse; the same of what the search ranks by, the log-probability after the length penalty
        (``normalised_...``); ``identical``, the share of equal hypotheses.
    """
    torch.set_num_threads(threads)
    model = load_bundle_model(bundle)
    again = search(TorchGraphs(model), searched, options)
    ours = log_probabilities(model, [(one.source, one.hypothesis.tokens) for one in searched])
    best = log_probabilities(model, [(one.source, other.tokens) for one, other in zip(searched, again, strict=True)])
    our_penalties = np.array([options.penalty(len(one.hypothesis.tokens) + 1) for one in searched])
    best_penalties = np.array([options.penalty(len(other.tokens) + 1) for other in again])
    same = [one.hypothesis.tokens == other.tokens for one, other in zip(searched, again, strict=True)]
    return {
        "sentences": len(searched),
        **_compared("", ours, best),
        **_compared("normalised_", ours / our_penalties, best / best_penalties),
        "identical": float(np.mean(same)),
    }


def search(graphs: TorchGraphs, searched: Sequence[Searched], options: SearchOptions) -> list[Hypothesis]:
    """The best hypothesis of every sentence, searched with these graphs under the same bounds."""
    best: dict[object, Hypothesis] = {}
    order = sorted(range(len(searched)), key=lambda index: len(searched[index].source))
    for start in range(0, len(order), BATCH):
        batch = DecodeBatch(graphs, beam_size=options.beam_size)
        chosen = [(index, searched[index]) for index in order[start : start + BATCH]]
        batch.join([Sentence(index, (one.source,), search_options(options, one.target)) for index, one in chosen])
        while len(batch):
            best.update((one.id, one.hypotheses[0]) for one in batch.step())
    return [best[index] for index in range(len(searched))]


@torch.inference_mode()
def log_probabilities(model: AnyModel, pairs: Sequence[tuple[Ids, Sequence[int]]]) -> np.ndarray:
    """Log-probability of each target (EOS included) given its source, under teacher forcing in float32."""
    scores = np.zeros(len(pairs))
    order = sorted(range(len(pairs)), key=lambda index: len(pairs[index][1]))
    for start in range(0, len(order), BATCH):
        chosen = order[start : start + BATCH]
        source_BS, lengths_B = _padded([pairs[index][0].tolist() for index in chosen])
        wanted_BT, targets_B = _padded([[*pairs[index][1], EOS] for index in chosen])
        given_BT = torch.cat([torch.full((len(chosen), 1), BOS), wanted_BT[:, :-1]], dim=1)
        logits_BTV = model.score(given_BT, model.encode((Padded(source_BS, lengths_B),)))
        each_BT = torch.log_softmax(logits_BTV.double(), dim=-1).gather(2, wanted_BT[:, :, None])[:, :, 0]
        kept = Padded(wanted_BT, targets_B).mask
        scores[chosen] = torch.where(kept, each_BT, 0.0).sum(dim=1).numpy()
    return scores


def _padded(sequences: Sequence[Sequence[int]]) -> tuple[Tensor, Tensor]:
    """Ids with padding, and their lengths."""
    lengths = torch.tensor([len(one) for one in sequences])
    ids = torch.full((len(sequences), int(lengths.max())), PAD)
    for row, one in zip(ids, sequences, strict=True):
        row[: len(one)] = torch.tensor(one)
    return ids, lengths


def _compared(name: str, ours: np.ndarray, best: np.ndarray) -> dict[str, float]:
    mean, wanted = float(ours.mean()), float(best.mean())
    difference = (mean - wanted) / abs(wanted) if wanted else 0.0
    return {f"{name}mean": mean, f"{name}float32_search_mean": wanted, f"{name}difference": difference}
