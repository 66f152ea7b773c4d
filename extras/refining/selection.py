"""Vocabulary selection while training: the output layer of an update has the words that its batch makes likely.

Those are the targets that a word alignment finds for the batch's source words, the most frequent targets, and what the
batch is to predict (Mi, Wang and Ittycheriah 2016; L'Hostis, Grangier and Auli 2016; Gehring et al. 2017, section 5.4).
A large vocabulary then costs a fraction of its softmax. Validation has the whole of it.

Shape suffixes: V target types, L of them that are chosen, D features, B sentences, T target positions.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from tandem.extras.shared.alignment import sample_pairs
from tandem.extras.shared.shortlists import shortlist_of
from tandem.models.search.shortlist import Shortlist
from tandem.models.vocabulary import PAD
from tandem.training.data.batches import TrainingBatch
from tandem.training.data.dataset import PreparedData, TokenArray, load_vocabularies
from tandem.training.recipe import TrainingConfig


class WordSelection:
    """The part of the output layer that a batch needs.

    Args:
        shortlist: the targets of every source word, and those that are always there.
    """

    def __init__(self, shortlist: Shortlist) -> None:
        self._shortlist = shortlist

    def chosen(self, batch: TrainingBatch) -> Tensor:
        """The target ids of a batch, L, rising and each once; padding is the first."""
        texts = [source.values for source in batch.sources if not source.values.is_floating_point()]
        listed = self._shortlist.select([np.unique(ids.numpy()) for ids in texts])
        return torch.from_numpy(np.union1d(np.union1d(listed, batch.target_out.numpy()), PAD))

    def restrict(
        self, weight_VD: Tensor, bias_V: Tensor | None, batch: TrainingBatch
    ) -> tuple[Tensor, Tensor | None, Tensor]:
        chosen = self.chosen(batch)
        rows, gold_BT = chosen.to(weight_VD.device), torch.searchsorted(chosen, batch.target_out)
        bias = None if bias_V is None else bias_V.index_select(0, rows)
        return weight_VD.index_select(0, rows), bias, gold_BT


def training_selection(data: PreparedData, folder: Path, config: TrainingConfig) -> WordSelection:
    """The selection that a recipe asks for, from its training text.

    Args:
        data: the training split.
        folder: the prepared folder, for its vocabularies.
        config: how many targets are listed, and the seed of the sampling of very large text.
    """
    target = data.target_side
    pairs = []
    for side in data.source_sides:
        if isinstance(side, TokenArray):
            chosen = sample_pairs((side.lengths - 1) * target.lengths, seed=config.seed)
            source_ids = [side[index][:-1].astype(np.int64) for index in chosen]  # without EOS
            pairs.append((source_ids, [target[index].astype(np.int64) for index in chosen]))
    vocabularies = load_vocabularies(folder)
    counts = np.bincount(target.tokens, minlength=vocabularies[1].size)
    built = shortlist_of(vocabularies, pairs, counts, per_word=config.selection, common=config.selection_common)
    return WordSelection(built)
