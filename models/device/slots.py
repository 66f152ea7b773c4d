"""The static buffers of the search itself: live rows, histories, back-pointers, finished hypotheses, rules by slot.

Shape suffixes: B slots, K rows of a slot, L target positions, P = L x K pool slots, V vocabulary, N chosen slots,
E = 2 K finished hypotheses (K - 1 are there, K more may end at once; one is never read).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from models.device.harvest import Harvest
from models.device.sizes import Sizes
from models.search.hypotheses import Admitted

FREE = -1  # where no token is forced


class Slots(nn.Module):
    """What search keeps of every slot, in tensors allocated once.

    Attributes:
        running_B: whether its sentence goes on; false from the step on that ended it.
        faulty_B: whether it stopped because its probabilities were not finite.
        age_B: tokens so far, which is the position of the next input; stands still once the sentence stopped.
        shortest_B, longest_B: its bounds in tokens without EOS.
        prefix_BL: the token forced at each position, ``FREE`` where none is.
        penalty_BV: -inf for suppressed tokens, 0 for the others.
        score_BK: accumulated log-probability of each row, -inf where it is dead.
        token_BK: the next input of each row.
        history_BKP: additive mask over the pool: 0 where the row's own past lies, -inf elsewhere.
        tokens_LBK, parents_LBK, totals_LBK: per position the token of each row, the row it continued, its score then.
            One position more than there are takes what is written for sentences that stopped.
        ended_B: hypotheses that ended.
        ended_total_BE, ended_age_BE, ended_row_BE: of each the score after EOS, its tokens without EOS, and the row
            that EOS followed. The last column takes what is written for candidates that do not end.
        used_2: rows that lived and pool slots that a row saw, summed over the steps since they were last read.
    """

    running_B: Tensor
    faulty_B: Tensor
    age_B: Tensor
    shortest_B: Tensor
    longest_B: Tensor
    prefix_BL: Tensor
    penalty_BV: Tensor
    score_BK: Tensor
    token_BK: Tensor
    history_BKP: Tensor
    tokens_LBK: Tensor
    parents_LBK: Tensor
    totals_LBK: Tensor
    ended_B: Tensor
    ended_total_BE: Tensor
    ended_age_BE: Tensor
    ended_row_BE: Tensor
    used_2: Tensor

    def __init__(self, sizes: Sizes, *, beam_size: int, vocabulary_size: int, bos: int, device: torch.device) -> None:
        super().__init__()
        self._bos, self._device = bos, device
        slots, rows, length = sizes.sentences[-1], beam_size, sizes.target[-1]
        for name, dtype, shape in (
            ("running_B", torch.bool, (slots,)),
            ("faulty_B", torch.bool, (slots,)),
            ("age_B", torch.int64, (slots,)),
            ("shortest_B", torch.int64, (slots,)),
            ("longest_B", torch.int64, (slots,)),
            ("prefix_BL", torch.int64, (slots, length)),
            ("penalty_BV", torch.float32, (slots, vocabulary_size)),
            ("score_BK", torch.float32, (slots, rows)),
            ("token_BK", torch.int64, (slots, rows)),
            ("history_BKP", torch.float32, (slots, rows, length * rows)),
            ("tokens_LBK", torch.int64, (length + 1, slots, rows)),
            ("parents_LBK", torch.int64, (length + 1, slots, rows)),
            ("totals_LBK", torch.float32, (length + 1, slots, rows)),
            ("ended_B", torch.int64, (slots,)),
            ("ended_total_BE", torch.float32, (slots, 2 * rows)),
            ("ended_age_BE", torch.int64, (slots, 2 * rows)),
            ("ended_row_BE", torch.int64, (slots, 2 * rows)),
            ("used_2", torch.int64, (2,)),
        ):
            self.register_buffer(name, torch.zeros(shape, dtype=dtype, device=device), persistent=False)
        self.clear()

    def clear(self) -> None:
        """No slot has a sentence."""
        self.running_B.fill_(False)
        self.score_BK.fill_(-torch.inf)
        self.used_2.zero_()

    def put(self, slot_N: Tensor, admitted: Sequence[Admitted]) -> None:
        """Sentences about to read BOS: only the first row of each lives, or the beam would start with K twins."""
        prefix_NL = np.full((len(admitted), self.prefix_BL.size(1)), FREE, np.int64)
        penalty_NV = np.zeros((len(admitted), self.penalty_BV.size(1)), np.float32)
        for place, one in enumerate(admitted):
            options = one.sentence.options
            prefix_NL[place, : len(options.prefix)] = options.prefix
            penalty_NV[place, list(options.suppressed)] = -np.inf
        for buffer, values in (
            (self.prefix_BL, prefix_NL),
            (self.penalty_BV, penalty_NV),
            (self.shortest_B, np.array([one.shortest for one in admitted])),
            (self.longest_B, np.array([one.longest for one in admitted])),
        ):
            buffer.index_copy_(0, slot_N, torch.from_numpy(values).to(self._device))
        self.token_BK.index_fill_(0, slot_N, self._bos)
        self.history_BKP.index_fill_(0, slot_N, -torch.inf)
        self.score_BK.index_fill_(0, slot_N, -torch.inf)
        self.score_BK[:, 0].index_fill_(0, slot_N, 0.0)
        self.age_B.index_fill_(0, slot_N, 0)
        self.ended_B.index_fill_(0, slot_N, 0)
        self.faulty_B.index_fill_(0, slot_N, False)
        self.running_B.index_fill_(0, slot_N, True)

    def drop(self, slot_N: Tensor) -> None:
        """Those slots have no sentence any more."""
        self.running_B.index_fill_(0, slot_N, False)
        self.score_BK.index_fill_(0, slot_N, -torch.inf)

    def poll(self) -> tuple[NDArray[np.bool_], NDArray[np.int64], tuple[int, int]]:
        """What the host must know from time to time, read in one piece.

        Returns:
            Of each slot whether its sentence goes on; the position of each that is at fault, -1 for the others;
            ``used_2`` since the last call.
        """
        fault_B = torch.where(self.faulty_B, self.age_B, -1)
        read = torch.cat([self.running_B.long(), fault_B, self.used_2]).cpu().numpy()
        self.used_2.zero_()
        slots = self.running_B.size(0)
        return read[:slots].astype(np.bool_), read[slots : 2 * slots], (int(read[-2]), int(read[-1]))

    def harvest(self, slot_N: Tensor, positions: int) -> Harvest:
        """All that is known of the hypotheses of sentences that stopped, none of which has more than ``positions``."""
        return Harvest(
            *(x[:positions].index_select(1, slot_N).cpu().numpy() for x in self._by_position()),
            *(x.index_select(0, slot_N).cpu().numpy() for x in self._by_slot()),
        )

    def _by_position(self) -> tuple[Tensor, ...]:
        return self.tokens_LBK, self.parents_LBK, self.totals_LBK

    def _by_slot(self) -> tuple[Tensor, ...]:
        return self.age_B, self.ended_B, self.ended_total_BE, self.ended_age_BE, self.ended_row_BE
