"""The static buffers of the search itself: live rows, histories, back-pointers, finished hypotheses, rules by slot.

Shape suffixes: B slots, K rows of a slot, L target positions, P = L x K pool slots, V vocabulary, N chosen slots,
M required and J suppressed tokens, E = 2 K finished hypotheses (K - 1 are there, K more may end at once; one is never
read).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from tandem.extras.gpu.harvest import Harvest
from tandem.extras.gpu.rules import FREE, repetition_bounds
from tandem.extras.gpu.sizes import Sizes
from tandem.extras.gpu.transfer import Readback, upload_parts
from tandem.models.search.graphs import Array
from tandem.models.search.hypotheses import Admitted


@dataclass(frozen=True, slots=True, eq=False)
class Look:
    """What the host must know from time to time, as it was when it was asked for.

    Attributes:
        running_B: whether the slot's sentence goes on.
        fault_B: the position of each that is at fault, -1 for the others.
        alive, seen: rows that lived and pool slots that a row saw, summed over the steps since the last look.
    """

    running_B: NDArray[np.bool_]
    fault_B: NDArray[np.int64]
    alive: int
    seen: int

    @classmethod
    def of(cls, download: Readback) -> Look:
        """What :meth:`Slots.look` sent, once it is here."""
        (read,) = download.arrays()
        slots = (len(read) - 2) // 2
        return cls(read[:slots].astype(np.bool_), read[slots : 2 * slots], int(read[-2]), int(read[-1]))


class Slots(nn.Module):
    """What search keeps of every slot, in tensors allocated once.

    Attributes:
        running_B: whether its sentence goes on; false from the step on that ended it.
        faulty_B: whether it stopped because its probabilities were not finite.
        age_B: tokens so far, which is the position of the next input; stands still once the sentence stopped.
        shortest_B, longest_B: its bounds in tokens without EOS.
        ngram_B, rounds_B: its bounds of repetition, see :mod:`extras.gpu.rules`.
        prefix_BL: the token forced at each position, ``FREE`` where none is.
        suppressed_BJ: its suppressed tokens, the vocabulary's size behind the last.
        required_BM: its required tokens, ``FREE`` behind the last.
        owed_BKM: which of them a row still owes.
        text_BKL, match_BKL: each row's tokens, and what repeats itself in them, see :mod:`extras.gpu.rules`.
        score_BK: accumulated log-probability of each row, -inf where it is dead.
        token_BK: the next input of each row.
        seen_BKP: which entries of the pool are the row's own past.
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
    ngram_B: Tensor
    rounds_B: Tensor
    prefix_BL: Tensor
    suppressed_BJ: Tensor
    required_BM: Tensor
    owed_BKM: Tensor
    text_BKL: Tensor
    match_BKL: Tensor
    score_BK: Tensor
    token_BK: Tensor
    seen_BKP: Tensor
    tokens_LBK: Tensor
    parents_LBK: Tensor
    totals_LBK: Tensor
    ended_B: Tensor
    ended_total_BE: Tensor
    ended_age_BE: Tensor
    ended_row_BE: Tensor
    used_2: Tensor

    def __init__(
        self, sizes: Sizes, *, beam_size: int, vocabulary_size: int, bos: int, device: torch.device, pooled: bool = True
    ) -> None:
        """``pooled``: whether the model has pools, and rows something to see there; else P is 0."""
        super().__init__()
        self._bos, self._device, self._vocabulary_size = bos, device, vocabulary_size
        slots, rows, length = sizes.sentences[-1], beam_size, sizes.target[-1]
        for name, dtype, shape in (
            ("running_B", torch.bool, (slots,)),
            ("faulty_B", torch.bool, (slots,)),
            ("age_B", torch.int64, (slots,)),
            ("shortest_B", torch.int64, (slots,)),
            ("longest_B", torch.int64, (slots,)),
            ("ngram_B", torch.int64, (slots,)),
            ("rounds_B", torch.int64, (slots,)),
            ("prefix_BL", torch.int64, (slots, length)),
            ("suppressed_BJ", torch.int64, (slots, sizes.suppressed)),
            ("required_BM", torch.int64, (slots, sizes.required)),
            ("owed_BKM", torch.bool, (slots, rows, sizes.required)),
            ("text_BKL", torch.int64, (slots, rows, length)),
            ("match_BKL", torch.int32, (slots, rows, length)),
            ("score_BK", torch.float32, (slots, rows)),
            ("token_BK", torch.int64, (slots, rows)),
            ("seen_BKP", torch.bool, (slots, rows, length * rows * pooled)),
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
        self.required_BM.fill_(FREE)
        self.text_BKL.fill_(FREE)
        self.used_2.zero_()

    def put(self, slots: Sequence[int], admitted: Sequence[Admitted]) -> None:
        """Sentences about to read BOS: only the first row of each lives, or the beam would start with K twins."""
        options = [one.sentence.options for one in admitted]
        bounds = ((one.shortest, one.longest, *repetition_bounds(one.sentence)) for one in admitted)
        slot_N, bounds_4N, prefix_NL, required_NM, suppressed_NJ = upload_parts(
            (
                np.array(slots, np.int64),
                np.array(list(bounds), np.int64).T,
                _filled([one.prefix for one in options], FREE),
                _filled([one.required for one in options], FREE, self.required_BM.size(1)),
                _filled([one.suppressed for one in options], self._vocabulary_size, self.suppressed_BJ.size(1)),
            ),
            self._device,
        )
        for buffer, bound_N in zip(
            (self.shortest_B, self.longest_B, self.ngram_B, self.rounds_B), bounds_4N, strict=True
        ):
            buffer.index_copy_(0, slot_N, bound_N)
        self.prefix_BL.index_fill_(0, slot_N, FREE)
        self.prefix_BL[:, : prefix_NL.size(1)].index_copy_(0, slot_N, prefix_NL)
        self.suppressed_BJ.index_copy_(0, slot_N, suppressed_NJ)
        self.required_BM.index_copy_(0, slot_N, required_NM)
        owed_NKM = (required_NM != FREE)[:, None].expand(-1, self.owed_BKM.size(1), -1)
        self.owed_BKM.index_copy_(0, slot_N, owed_NKM)
        self.text_BKL.index_fill_(0, slot_N, FREE)
        self.match_BKL.index_fill_(0, slot_N, 0)
        self.token_BK.index_fill_(0, slot_N, self._bos)
        self.seen_BKP.index_fill_(0, slot_N, False)
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

    def look(self) -> Readback:
        """The masks, on their way to the host in one piece; see :class:`Look`."""
        fault_B = torch.where(self.faulty_B, self.age_B, -1)
        download = Readback(torch.cat([self.running_B.long(), fault_B, self.used_2]))
        self.used_2.zero_()
        return download

    def harvest(self, slot_N: Tensor, positions: int) -> Readback:
        """All that is known of the hypotheses of sentences that stopped, none of which has more than ``positions``.

        It is on its way to the host, as :meth:`harvested` reads it; the slots may be used again at once.
        """
        by_position = (self.tokens_LBK, self.parents_LBK, self.totals_LBK)
        by_slot = (self.age_B, self.ended_B, self.ended_age_BE, self.ended_row_BE, self.ended_total_BE)
        chosen = [x[:positions].index_select(1, slot_N) for x in by_position]
        chosen += [x.index_select(0, slot_N) for x in by_slot]
        whole = [x.reshape(-1) for x in chosen if x.dtype == torch.int64]
        return Readback(torch.cat(whole), torch.cat([x.reshape(-1) for x in chosen if x.dtype == torch.float32]))

    def harvested(self, download: Readback, sentences: int, positions: int) -> Harvest:
        """What :meth:`harvest` sent, once it is here."""
        whole, floats = download.arrays()
        rows, ends = self.score_BK.size(1), self.ended_row_BE.size(1)
        table, slots, finished = (positions, sentences, rows), (sentences,), (sentences, ends)
        tokens, parents, age, ended, ended_age, ended_row = _cut(
            whole, (table, table, slots, slots, finished, finished)
        )
        totals, ended_total = _cut(floats, (table, finished))
        return Harvest(tokens, parents, totals, age, ended, ended_total, ended_age, ended_row)


def _filled(rows: Sequence[Sequence[int]], filler: int, width: int = 0) -> NDArray[np.int64]:
    """Rows of unlike length as one table, as wide as the longest or wider."""
    table = np.full((len(rows), max([width, *map(len, rows)])), filler, np.int64)
    for own, row in zip(table, rows, strict=True):
        own[: len(row)] = row
    return table


def _cut(flat: Array, shapes: Sequence[tuple[int, ...]]) -> list[Array]:
    """Arrays that were laid one after another."""
    ends = np.cumsum([int(np.prod(shape)) for shape in shapes])
    return [part.reshape(shape) for part, shape in zip(np.split(flat, ends[:-1]), shapes, strict=True)]
