"""One step of beam search as a function of static tensors: nothing is allocated that outlives it, nothing read back.

    look -> advance the model -> candidates -> retire -> extend

Candidates are found by :mod:`models.steps.continuations`, the rules are those of models/search. What is written is
written at the end: where the model raises, the buffers are as they were.

Shape suffixes: B slots, K rows of a slot, R = B x K rows, L target positions, P = L x K pool slots, V vocabulary,
M required tokens, J bans of a row, C = 2 K candidates, X = min(2 K, V) of one row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from tandem.extras.gpu.records import RecordBuffers
from tandem.extras.gpu.rules import FREE, append_text, pay, repeating, require
from tandem.extras.gpu.sizes import Shape, Sizes
from tandem.extras.gpu.slots import Slots
from tandem.extras.gpu.transfer import Streams, upload
from tandem.models.architectures.protocol import Update, max_positions
from tandem.models.errors import ConfigError, OptionError
from tandem.models.search.graphs import Array
from tandem.models.steps.continuations import best_of_rows, best_per_row
from tandem.models.steps.device_search import DeviceCounters
from tandem.models.steps.torch_graphs import AnyModel
from tandem.models.vocabulary.base import BOS, EOS


@dataclass(frozen=True, slots=True, eq=False)
class StaticCandidates:
    """Continuations of each sentence, best first: by score, then parent, then token.

    Attributes:
        scores_BC: accumulated log-probabilities; -inf for what cannot be.
        tokens_BC, parents_BC: the token, and the row of the sentence that it follows.
        going_B: whether the sentence is decoded and its probabilities are finite.
        wrong_B: whether it is decoded and they are not.
    """

    scores_BC: Tensor
    tokens_BC: Tensor
    parents_BC: Tensor
    going_B: Tensor
    wrong_B: Tensor


class StaticStep(nn.Module):
    """A model with its buffers; calling it advances every sentence by one token, in place.

    Args:
        model: prepared for inference, where it shall run.
        beam_size: K.
        sizes: the last bucket of each axis is what is allocated.
        bos, eos: of the target vocabulary.
        counters: to count on.

    Raises:
        ConfigError: more target positions than the model has.
        OptionError: a beam of no width.

    Attributes:
        records: the model's memory and state.
        slots: the search's.
        streams: in which all that reads or writes them is queued.
    """

    def __init__(
        self,
        model: AnyModel,
        *,
        beam_size: int,
        sizes: Sizes | None = None,
        bos: int = BOS,
        eos: int = EOS,
        counters: DeviceCounters | None = None,
    ) -> None:
        super().__init__()
        self.model, self.beam_size, self.sizes = model, beam_size, sizes or Sizes()
        self.bos, self.eos = bos, eos
        self.counters = counters or DeviceCounters()
        self.vocabulary_size: int = model.config.target_vocabulary
        positions = max_positions(model.config)
        if positions is not None and self.sizes.target[-1] > positions:
            raise ConfigError(f"target must be at most the model's {positions} positions, but is {self.sizes.target}")
        if beam_size < 1:
            raise OptionError("beam_size", "at least 1", beam_size)
        self.device = next(model.parameters()).device
        self.streams = Streams(self.device)
        with self.streams.stepping():
            self.records = RecordBuffers(model, beam_size, self.sizes)
            self.slots = Slots(
                self.sizes,
                beam_size=beam_size,
                vocabulary_size=self.vocabulary_size,
                bos=bos,
                device=self.device,
                pooled=self.records.pooled,
            )

    def index(self, slots: Sequence[int]) -> Tensor:
        """Slots as the device reads them."""
        return upload(np.array(slots, np.int64), self.device)

    def encode(self, sources: Sequence[tuple[Array, ...]]) -> dict[str, Tensor]:
        """What the model derives from sentences, by name, for ``records.put``."""
        return self.records.encode(sources)

    def forward(self, shape: Shape) -> None:
        """One step of the sentences in the first ``shape.sentences`` slots; all must fit the shape."""
        s, count = self.slots, shape.sentences
        running_B = s.running_B[:count]
        # A slot that stopped goes on computing, at position 0, which every model has; nobody looks at what comes of it.
        position_B = torch.where(running_B, s.age_B[:count], 0)
        logits_RV, update = self._look(shape, position_B)
        candidates = self._candidates(shape, logits_RV, position_B)
        self._count(shape)
        retire_into(s, candidates, position_B, eos=self.eos)
        self._extend(shape, candidates, update, position_B)

    def _look(self, shape: Shape, position_B: Tensor) -> tuple[Tensor, Update]:
        """Logits R x V of the next token of every row, and what the model wants to keep."""
        rows, seen_BKP = self.beam_size, self._seen(shape)
        position_R = position_B[:, None].expand(-1, rows).reshape(-1)
        history_BKP = torch.zeros_like(seen_BKP, dtype=self.records.dtype).masked_fill(~seen_BKP, -torch.inf)
        state = self.records.state(shape, position_R, history_BKP.reshape(position_R.size(0), seen_BKP.size(2)))
        token_R = self.slots.token_BK[: shape.sentences].reshape(-1)
        features, update = self.model.advance_one(token_R, state, self.records.memory(shape))
        return self.model.project(features).float(), update

    def _seen(self, shape: Shape) -> Tensor:
        return self.slots.seen_BKP[: shape.sentences, :, : shape.target * self.beam_size]

    def _candidates(self, shape: Shape, logits_RV: Tensor, position_B: Tensor) -> StaticCandidates:
        sentences, rows = shape.sentences, self.beam_size
        running_B, score_BK = self.slots.running_B[:sentences], self.slots.score_BK[:sentences]
        alive_BK = (score_BK > -torch.inf) & running_B[:, None]
        banned_BKJ, forced_BK = self._constraints(shape, position_B)
        most = min(2 * rows, self.vocabulary_size)
        best_RX, token_RX, total_R = best_per_row(logits_RV, banned_BKJ.flatten(0, 1), forced_BK.flatten(), most)
        wrong_B = (alive_BK & ~total_R.isfinite().view_as(alive_BK)).any(dim=1)
        going_B = running_B & ~wrong_B
        # Chosen by what lives, not by -inf alone: a row of nobody may well be NaN.
        possible_R1 = (alive_BK & going_B[:, None]).reshape(-1, 1)
        total_RX = torch.where(possible_R1, best_RX + score_BK.reshape(-1, 1), -torch.inf)
        found = in_order(*best_of_rows(total_RX, token_RX, sentences, 2 * rows), self.vocabulary_size)
        return StaticCandidates(*found, going_B, wrong_B)

    def _constraints(self, shape: Shape, position_B: Tensor) -> tuple[Tensor, Tensor]:
        """What each row may not produce, B x K x J, the vocabulary's size standing for nothing; and what alone it may,
        B x K, or ``FREE``. What is forced is never banned."""
        s, sentences, nothing = self.slots, shape.sentences, self.vocabulary_size
        early_B1 = torch.where(position_B < s.shortest_B[:sentences], self.eos, nothing)[:, None]
        shared_BJ = torch.cat([s.suppressed_BJ[:sentences], early_B1], dim=1)
        banned_BKJ = shared_BJ[:, None].expand(-1, self.beam_size, -1)
        owed_BK: Tensor | None = None
        if shape.repeats:
            bounds = s.ngram_B[:sentences], s.rounds_B[:sentences]
            repeating_BKL = repeating(*self._text(shape), position_B, bounds, nothing=nothing)
            banned_BKJ = torch.cat([banned_BKJ, repeating_BKL], dim=2)
        if shape.required:
            debts, room_B = (s.required_BM[:sentences], s.owed_BKM[:sentences]), s.longest_B[:sentences] - position_B
            banned_BKJ, owed_BK = require(banned_BKJ, *debts, room_B, eos=self.eos, nothing=nothing)
        return banned_BKJ, self._forced(owed_BK, position_B)

    def _forced(self, owed_BK: Tensor | None, position_B: Tensor) -> Tensor:
        """The only token that each row may produce: of its prefix, EOS at its end, or what it owes; else ``FREE``."""
        s, sentences = self.slots, position_B.size(0)
        prefix_B = s.prefix_BL[:sentences].gather(1, position_B[:, None]).squeeze(1)
        last_B = torch.where(position_B >= s.longest_B[:sentences], self.eos, FREE)
        forced_B1 = torch.where(prefix_B == FREE, last_B, prefix_B)[:, None]
        if owed_BK is None:
            return forced_B1.expand(-1, self.beam_size)
        return torch.where(forced_B1 == FREE, owed_BK, forced_B1)

    def _text(self, shape: Shape) -> tuple[Tensor, Tensor]:
        s = self.slots
        return s.text_BKL[: shape.sentences, :, : shape.target], s.match_BKL[: shape.sentences, :, : shape.target]

    def _count(self, shape: Shape) -> None:
        """Rows that live and pool slots that are seen at this step."""
        running_B1 = self.slots.running_B[: shape.sentences, None]
        alive_BK = (self.slots.score_BK[: shape.sentences] > -torch.inf) & running_B1
        seen_BP = self._seen(shape).any(dim=1) & running_B1
        self.slots.used_2.add_(torch.stack([alive_BK.sum(), seen_BP.sum()]))

    def _extend(self, shape: Shape, candidates: StaticCandidates, update: Update, position_B: Tensor) -> None:
        """The first K candidates that do not end live on; where there are fewer, the remaining rows are dead."""
        s, sentences, rows = self.slots, shape.sentences, self.beam_size
        goes_on_BC = (candidates.tokens_BC != self.eos) & (candidates.scores_BC > -torch.inf)
        order_BK = torch.argsort((~goes_on_BC).to(torch.uint8), dim=1, stable=True)[:, :rows]
        alive_BK = goes_on_BC.gather(1, order_BK)
        # A dead row still runs through the model: it needs a valid parent, and the token that nothing follows.
        parent_BK = torch.where(alive_BK, candidates.parents_BC.gather(1, order_BK), 0)
        token_BK = torch.where(alive_BK, candidates.tokens_BC.gather(1, order_BK), self.eos)
        score_BK = torch.where(alive_BK, candidates.scores_BC.gather(1, order_BK), -torch.inf)
        over_B = (s.ended_B[:sentences] >= rows) | ~alive_BK.any(dim=1)
        place_B = torch.arange(sentences, device=position_B.device)
        self.records.advance(update, position_B, (place_B[:, None] * rows + parent_BK).reshape(-1))
        self._remember(shape, position_B, parent_BK, token_BK)
        nowhere = s.tokens_LBK.size(0) - 1
        written_B = torch.where(candidates.going_B, position_B, nowhere) * s.tokens_LBK.size(1) + place_B
        for buffer, value in ((s.tokens_LBK, token_BK), (s.parents_LBK, parent_BK), (s.totals_LBK, score_BK)):
            buffer.flatten(0, 1).index_copy_(0, written_B, value)
        s.token_BK[:sentences].copy_(token_BK)
        s.age_B[:sentences].add_(candidates.going_B)
        s.faulty_B[:sentences].logical_or_(candidates.wrong_B)
        s.running_B[:sentences].copy_(candidates.going_B & ~over_B)
        s.score_BK[:sentences].copy_(torch.where(s.running_B[:sentences, None], score_BK, -torch.inf))

    def _remember(self, shape: Shape, position_B: Tensor, parent_BK: Tensor, token_BK: Tensor) -> None:
        """Each new row sees what its parent saw, and the entry that its parent made at this position; so do rules."""
        if self.records.pooled:
            seen_BKP = self._seen(shape)
            inherited = seen_BKP.gather(1, parent_BK[:, :, None].expand(-1, -1, seen_BKP.size(2)))
            entry_BK1 = (position_B[:, None] * self.beam_size + parent_BK)[:, :, None]
            seen_BKP.copy_(inherited.scatter(2, entry_BK1, True))
        if shape.repeats:
            append_text(*self._text(shape), parent_BK, token_BK, position_B)
        if shape.required:
            pay(self.slots.required_BM[: shape.sentences], self.slots.owed_BKM[: shape.sentences], parent_BK, token_BK)


def retire_into(slots: Slots, candidates: StaticCandidates, position_B: Tensor, *, eos: int) -> None:
    """Note the hypotheses that end now: EOS counts only among the first K candidates."""
    sentences, rows = slots.score_BK[: position_B.size(0)].shape
    scores_BK, parents_BK = candidates.scores_BC[:, :rows], candidates.parents_BC[:, :rows]
    ends_BK = (candidates.tokens_BC[:, :rows] == eos) & (scores_BK > -torch.inf)
    ended_B = slots.ended_B[:sentences]
    nowhere = slots.ended_row_BE.size(1) - 1
    place_BK = torch.where(ends_BK, ended_B[:, None] + ends_BK.cumsum(dim=1) - 1, nowhere)
    slots.ended_total_BE[:sentences].scatter_(1, place_BK, scores_BK)
    slots.ended_age_BE[:sentences].scatter_(1, place_BK, position_B[:, None].expand(-1, rows))
    slots.ended_row_BE[:sentences].scatter_(1, place_BK, parents_BK)
    ended_B.add_(ends_BK.sum(dim=1))


def in_order(
    scores_BC: Tensor, tokens_BC: Tensor, parents_BC: Tensor, vocabulary_size: int
) -> tuple[Tensor, Tensor, Tensor]:
    """StaticCandidates by score, then parent, then token: top-k kernels differ in how they order ties."""
    first_BC = torch.argsort(parents_BC * vocabulary_size + tokens_BC, dim=1)
    then_BC = torch.argsort(scores_BC.gather(1, first_BC), dim=1, descending=True, stable=True)
    order_BC = first_BC.gather(1, then_BC)
    return scores_BC.gather(1, order_BC), tokens_BC.gather(1, order_BC), parents_BC.gather(1, order_BC)
