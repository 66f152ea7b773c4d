"""One step of beam search as a function of static tensors: nothing is allocated that outlives it, nothing read back.

    look -> advance the model -> candidates -> retire -> extend

The rules are those of models/search/beam.py. What is written is written at the end: where the model raises, the
buffers are as they were.

Shape suffixes: B slots, K rows of a slot, R = B x K rows, L target positions, P = L x K pool slots, V vocabulary,
C = 2 K candidates, X = min(2 K, V) of one row.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from models.device.records import RecordBuffers
from models.device.sizes import Shape, Sizes
from models.device.slots import FREE, Slots
from models.errors import ConfigError, OptionError
from models.graphs import AnyModel
from models.protocol import Update
from models.vocabulary.base import BOS, EOS


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

    Raises:
        ConfigError: more target positions than the model has.
        OptionError: a beam of no width.

    Attributes:
        records: the model's memory and state.
        slots: the search's.
    """

    def __init__(
        self, model: AnyModel, *, beam_size: int, sizes: Sizes | None = None, bos: int = BOS, eos: int = EOS
    ) -> None:
        super().__init__()
        self.model, self.beam_size, self.sizes, self.eos = model, beam_size, sizes or Sizes(), eos
        self.vocabulary_size: int = model.config.target_vocabulary
        positions = getattr(model.config, "max_positions", None)
        if positions is not None and self.sizes.target[-1] > positions:
            raise ConfigError(f"target must be at most the model's {positions} positions, but is {self.sizes.target}")
        if beam_size < 1:
            raise OptionError("beam_size", "at least 1", beam_size)
        self.records = RecordBuffers(model, beam_size, self.sizes)
        self.slots = Slots(
            self.sizes,
            beam_size=beam_size,
            vocabulary_size=self.vocabulary_size,
            bos=bos,
            device=self.records.device,
        )

    def forward(self, shape: Shape) -> None:
        """One step of the sentences in the first ``shape.sentences`` slots; all must fit the shape."""
        s, count = self.slots, shape.sentences
        running_B = s.running_B[:count]
        # A slot that stopped goes on computing, at position 0, which every model has; nobody looks at what comes of it.
        position_B = torch.where(running_B, s.age_B[:count], 0)
        logits_RV, update = self._look(shape, position_B)
        candidates = self._candidates(logits_RV, running_B, position_B)
        self._count(shape)
        retire_into(s, candidates, position_B, eos=self.eos)
        self._extend(shape, candidates, update, position_B)

    def _look(self, shape: Shape, position_B: Tensor) -> tuple[Tensor, Update]:
        """Logits R x V of the next token of every row, and what the model wants to keep."""
        rows, history = self.beam_size, self._history(shape)
        position_R = position_B[:, None].expand(-1, rows).reshape(-1)
        state = self.records.state(shape, position_R, history.reshape(position_R.size(0), history.size(2)))
        token_R = self.slots.token_BK[: shape.sentences].reshape(-1)
        features, update = self.model.advance_one(token_R, state, self.records.memory(shape))
        return self.model.project(features).float(), update

    def _history(self, shape: Shape) -> Tensor:
        return self.slots.history_BKP[: shape.sentences, :, : shape.target * self.beam_size]

    def _candidates(self, logits_RV: Tensor, running_B: Tensor, position_B: Tensor) -> StaticCandidates:
        sentences, rows = running_B.size(0), self.beam_size
        score_BK = self.slots.score_BK[:sentences]
        alive_BK = torch.isfinite(score_BK) & running_B[:, None]
        log_BKV = torch.log_softmax(logits_RV, dim=-1).reshape(sentences, rows, -1)
        finite_BK = torch.isfinite(log_BKV.amax(dim=-1))  # a logit that is NaN or infinite makes the whole row NaN
        wrong_B = (alive_BK & ~finite_BK).any(dim=1)
        going_B = running_B & ~wrong_B
        best_BKX, token_BKX = self._best_by_row(log_BKV, position_B)
        # Chosen by what lives, not by -inf alone: a row of nobody may well be NaN.
        possible_BK1 = (alive_BK & going_B[:, None])[:, :, None]
        total_BKX = torch.where(possible_BK1, best_BKX + score_BK[:, :, None], -torch.inf)
        scores_BC, flat_BC = torch.topk(total_BKX.flatten(1), 2 * rows, dim=-1)
        tokens_BC = token_BKX.flatten(1).gather(1, flat_BC)
        parents_BC = torch.div(flat_BC, best_BKX.size(2), rounding_mode="floor")
        return StaticCandidates(*in_order(scores_BC, tokens_BC, parents_BC, self.vocabulary_size), going_B, wrong_B)

    def _best_by_row(self, log_BKV: Tensor, position_B: Tensor) -> tuple[Tensor, Tensor]:
        """The best X continuations of each row, without the banned, or the forced one alone; what is forced is never
        banned."""
        s, sentences = self.slots, position_B.size(0)
        prefix_B = s.prefix_BL[:sentences].gather(1, position_B[:, None]).squeeze(1)
        last_B = torch.where(position_B >= s.longest_B[:sentences], self.eos, FREE)
        forced_B11 = torch.where(prefix_B == FREE, last_B, prefix_B)[:, None, None]
        held_BK1 = forced_B11.clamp_min(0).expand(-1, self.beam_size, -1)
        allowed_BKV = log_BKV + s.penalty_BV[:sentences, None]
        early_B1 = (position_B < s.shortest_B[:sentences])[:, None]
        allowed_BKV.select(2, self.eos).masked_fill_(early_B1, -torch.inf)
        best_BKX, token_BKX = torch.topk(allowed_BKV, min(2 * self.beam_size, self.vocabulary_size), dim=-1)
        is_forced, first_X = forced_B11 != FREE, torch.arange(best_BKX.size(2), device=log_BKV.device) == 0
        alone_BKX = torch.where(first_X, log_BKV.gather(2, held_BK1), -torch.inf)
        return torch.where(is_forced, alone_BKX, best_BKX), torch.where(is_forced & first_X, held_BK1, token_BKX)

    def _count(self, shape: Shape) -> None:
        """Rows that live and pool slots that are seen at this step."""
        running_B1 = self.slots.running_B[: shape.sentences, None]
        alive_BK = torch.isfinite(self.slots.score_BK[: shape.sentences]) & running_B1
        seen_BP = (self._history(shape).amax(dim=1) == 0) & running_B1
        self.slots.used_2.add_(torch.stack([alive_BK.sum(), seen_BP.sum()]))

    def _extend(self, shape: Shape, candidates: StaticCandidates, update: Update, position_B: Tensor) -> None:
        """The first K candidates that do not end live on; where there are fewer, the remaining rows are dead."""
        s, sentences, rows = self.slots, shape.sentences, self.beam_size
        goes_on_BC = (candidates.tokens_BC != self.eos) & torch.isfinite(candidates.scores_BC)
        order_BK = torch.argsort((~goes_on_BC).to(torch.uint8), dim=1, stable=True)[:, :rows]
        alive_BK = goes_on_BC.gather(1, order_BK)
        # A dead row still runs through the model: it needs a valid parent, and the token that nothing follows.
        parent_BK = torch.where(alive_BK, candidates.parents_BC.gather(1, order_BK), 0)
        token_BK = torch.where(alive_BK, candidates.tokens_BC.gather(1, order_BK), self.eos)
        score_BK = torch.where(alive_BK, candidates.scores_BC.gather(1, order_BK), -torch.inf)
        over_B = (s.ended_B[:sentences] >= rows) | ~alive_BK.any(dim=1)
        place_B = torch.arange(sentences, device=position_B.device)
        self.records.advance(update, position_B, (place_B[:, None] * rows + parent_BK).reshape(-1))
        self._remember(shape, position_B, parent_BK)
        nowhere = s.tokens_LBK.size(0) - 1
        written_B = torch.where(candidates.going_B, position_B, nowhere) * s.tokens_LBK.size(1) + place_B
        for buffer, value in ((s.tokens_LBK, token_BK), (s.parents_LBK, parent_BK), (s.totals_LBK, score_BK)):
            buffer.flatten(0, 1).index_copy_(0, written_B, value)
        s.token_BK[:sentences].copy_(token_BK)
        s.age_B[:sentences].add_(candidates.going_B)
        s.faulty_B[:sentences].logical_or_(candidates.wrong_B)
        s.running_B[:sentences].copy_(candidates.going_B & ~over_B)
        s.score_BK[:sentences].copy_(torch.where(s.running_B[:sentences, None], score_BK, -torch.inf))

    def _remember(self, shape: Shape, position_B: Tensor, parent_BK: Tensor) -> None:
        """Each new row sees what its parent saw, and the entry that its parent made at this position."""
        history_BKP = self._history(shape)
        inherited = history_BKP.gather(1, parent_BK[:, :, None].expand(-1, -1, history_BKP.size(2)))
        entry_BK1 = (position_B[:, None] * self.beam_size + parent_BK)[:, :, None]
        history_BKP.copy_(inherited.scatter(2, entry_BK1, 0.0))


def retire_into(slots: Slots, candidates: StaticCandidates, position_B: Tensor, *, eos: int) -> None:
    """Note the hypotheses that end now: EOS counts only among the first K candidates."""
    sentences, rows = slots.score_BK[: position_B.size(0)].shape
    scores_BK, parents_BK = candidates.scores_BC[:, :rows], candidates.parents_BC[:, :rows]
    ends_BK = (candidates.tokens_BC[:, :rows] == eos) & torch.isfinite(scores_BK)
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
