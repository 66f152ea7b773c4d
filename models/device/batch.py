"""A continuous batch over static buffers: the host's side, which knows slots and ages and reads two masks now and then.

admit -> step, step, step, step -> poll -> harvest
"""

from __future__ import annotations

import bisect
from collections import deque
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from models.device.sizes import Shape
from models.device.step import StaticStep
from models.errors import ConfigError, OptionError
from models.search.hypotheses import Admitted, Counters, Finished, Sentence, SentenceError
from models.search.ranking import rank

OFF = {
    "sampling": None, "no_repeat_ngram_size": 0, "max_rounds": 0, "coverage_penalty": 0, "exhaustive": False,
    "attention": False, "required": (),
}  # fmt: skip
"""Options that only :class:`models.search.DecodeBatch` has, and what they must be here."""


@dataclass(slots=True)
class Occupant:
    """A sentence in a slot.

    Attributes:
        steps: taken since it joined, which is its age while it runs.
    """

    admitted: Admitted
    steps: int = 0

    @property
    def lengths(self) -> list[int]:
        """Of its sources."""
        return [len(source) for source in self.admitted.sentence.sources]


class StaticBatch:
    """``DecodeBatch`` for one beam size, decoded by a :class:`StaticStep` that no other batch uses meanwhile.

    Its hypotheses are ``DecodeBatch``'s, with scores equal to rounding. What differs is when things are known:

    - ``step`` returns sentences at every ``poll_every``-th call only (and once all must be done); one that ended in
      between idles, which changes nothing of its result.
    - ``join`` encodes; a sentence whose probabilities are not finite from the first step on is reported by ``step``.
      ``SentenceError`` names the step at which it happened; the others have gone on meanwhile and stay good.
    - More sentences than there are slots wait their turn in the order in which they joined.
    - ``counters`` move when the masks are read.

    Args:
        step: its buffers are cleared.
        poll_every: steps between two looks at the masks.

    Raises:
        ConfigError: ``poll_every`` below 1.
    """

    def __init__(self, step: StaticStep, *, poll_every: int = 4) -> None:
        if poll_every < 1:
            raise ConfigError(f"poll_every must be at least 1, but is {poll_every}")
        self._step, self._poll_every = step, poll_every
        self._free = list(range(step.sizes.sentences[-1]))  # ascending: what is occupied lies at the front
        self._occupied: dict[int, Occupant] = {}
        self._waiting: deque[Admitted] = deque()
        self._faults: dict[Hashable, int] = {}  # the position of what is not finite, until the sentence is removed
        self._left: list[Finished] = []
        self._counters, self._uncounted = Counters(), Counters()
        self._since = 0  # steps since the masks were read
        step.slots.clear()

    def __len__(self) -> int:
        """Sentences that ``step`` has not returned yet."""
        return len(self._occupied) + len(self._waiting) + len(self._left)

    @property
    def ids(self) -> tuple[Hashable, ...]:
        """The sentences still being decoded, as far as the host knows."""
        here = (occupant.admitted for occupant in self._occupied.values())
        return tuple(admitted.sentence.id for admitted in (*here, *self._waiting))

    @property
    def rows(self) -> int:
        """Rows that the next step runs, dead ones and those of idle slots included."""
        return self._shape().sentences * self._step.beam_size if self._occupied else 0

    @property
    def counters(self) -> Counters:
        """What the batch has computed since it was made, up to when the masks were last read."""
        return self._counters

    def supports(self, sentence: Sentence) -> bool:
        """Whether the device can decode the sentence: its options, and whether it fits the buffers."""
        return isinstance(self._admitted(sentence), Admitted)

    def join(self, sentences: Sequence[Sentence]) -> None:
        """Encode sentences into free slots; those for which there is none wait.

        Raises:
            OptionError: options that do not fit this batch or model, or that the device does not have.
            ValueError: a sentence whose id is already in the batch, or whose sources do not fit the model.
        """
        admitted = self._checked(sentences)
        self._waiting.extend(admitted)
        try:
            self._admit()
        except Exception:
            for one in admitted:
                self._waiting.remove(one)
            raise

    @torch.inference_mode()
    def step(self) -> list[Finished]:
        """Advance every sentence by one token and return those that are known to be done.

        Raises:
            SentenceError: probabilities that are not finite; names the sentences at fault and their step. Repeated
                until they are removed.
        """
        self._complain()
        self._admit()
        if self._occupied:
            shape = self._shape()
            self._step(shape)
            self._since += 1
            self._note(shape)
            over = all(occupant.steps > occupant.admitted.longest for occupant in self._occupied.values())
            if over or self._since >= self._poll_every:
                self._poll()
        self._complain()
        left, self._left = self._left, []
        return left

    def remove(self, ids: Iterable[Hashable]) -> None:
        """Drop sentences without a result; ids that are not in the batch are ignored."""
        gone = set(ids)
        self._left = [one for one in self._left if one.id not in gone]
        self._waiting = deque(one for one in self._waiting if one.sentence.id not in gone)
        self._faults = {name: position for name, position in self._faults.items() if name not in gone}
        slots = [slot for slot, occupant in self._occupied.items() if occupant.admitted.sentence.id in gone]
        if slots:
            self._step.slots.drop(self._index(slots))
            self._vacate(slots)

    @torch.inference_mode()
    def _admit(self) -> None:
        """Waiting sentences into free slots, in order."""
        count = min(len(self._free), len(self._waiting))
        if not count:
            return
        joining, slots = [self._waiting[number] for number in range(count)], self._free[:count]
        slot_N = self._index(slots)
        self._step.records.put(slot_N, [one.sentence.sources for one in joining])
        self._step.slots.put(slot_N, joining)
        for slot, one in zip(slots, joining, strict=True):
            self._waiting.popleft()
            self._occupied[slot] = Occupant(one)
        del self._free[:count]

    def _index(self, slots: Sequence[int]) -> Tensor:
        return torch.tensor(slots, device=self._step.records.device)

    def _shape(self) -> Shape:
        """The smallest that holds every occupied slot, its sources, and the positions that it has or will write."""
        lengths = zip(*(occupant.lengths for occupant in self._occupied.values()), strict=True)
        oldest = max(min(occupant.steps, occupant.admitted.longest) for occupant in self._occupied.values())
        return self._step.sizes.shape(max(self._occupied) + 1, map(max, lengths), oldest + 1)

    def _note(self, shape: Shape) -> None:
        """Count a step, but for what only the device knows."""
        cells = shape.sentences * sum(shape.sources)
        read = sum(sum(occupant.lengths) for occupant in self._occupied.values())
        rows = shape.sentences * self._step.beam_size
        slots = rows * shape.target if self._step.records.pooled else 0
        self._uncounted += Counters(1, rows, rows, cells, cells - read, slots, slots)
        for occupant in self._occupied.values():
            occupant.steps += 1

    def _poll(self) -> None:
        """Read the masks, take out what is done, and keep what is at fault until it is removed."""
        running_B, fault_B, (alive, seen) = self._step.slots.poll()
        self._since = 0
        used = seen + alive if self._step.records.pooled else 0  # every row sees its new entry too
        self._counters += self._uncounted + Counters(dead_rows=-alive, slot_padding=-used)
        self._uncounted = Counters()
        done = [slot for slot in self._occupied if not running_B[slot] and fault_B[slot] < 0]
        for slot, occupant in self._occupied.items():
            if fault_B[slot] >= 0:
                self._faults[occupant.admitted.sentence.id] = int(fault_B[slot])
        if done:
            self._harvest(done)
            self._vacate(done)

    def _harvest(self, slots: Sequence[int]) -> None:
        members = [self._occupied[slot] for slot in slots]
        positions = max(occupant.steps for occupant in members)
        harvest = self._step.slots.harvest(self._index(slots), min(positions, self._step.sizes.target[-1]))
        for occupant, ended in zip(members, harvest.hypotheses(), strict=True):
            sentence = occupant.admitted.sentence
            self._left.append(Finished(sentence.id, rank(ended, sentence.options)))

    def _vacate(self, slots: Iterable[int]) -> None:
        for slot in slots:
            del self._occupied[slot]
            bisect.insort(self._free, slot)

    def _complain(self) -> None:
        if self._faults:
            named = ", ".join(f"{name!r} at step {position}" for name, position in self._faults.items())
            message = f"the model's probabilities are not finite for {named}"
            raise SentenceError(message, tuple(self._faults))

    def _checked(self, sentences: Sequence[Sentence]) -> list[Admitted]:
        taken = {*self.ids, *(one.id for one in self._left)}
        admitted = []
        for sentence in sentences:
            if sentence.id in taken:
                raise ValueError(f"a sentence with the id {sentence.id!r} is already in the batch")
            taken.add(sentence.id)
            found = self._admitted(sentence)
            if isinstance(found, Exception):
                raise found
            admitted.append(found)
        return admitted

    def _admitted(self, sentence: Sentence) -> Admitted | OptionError | ValueError:
        """The sentence with its bounds, or why the device cannot decode it."""
        if fault := self._source_fault(sentence) or self._option_fault(sentence):
            return fault
        try:
            admitted = Admitted.of(sentence, vocabulary_size=self._step.vocabulary_size, eos=self._step.eos)
        except OptionError as error:
            return error
        room = self._step.sizes.target[-1] - 1
        if admitted.longest > room:
            return OptionError("max_length", f"at most {room} tokens on the device", admitted.longest)
        return admitted

    def _option_fault(self, sentence: Sentence) -> OptionError | None:
        options = sentence.options
        if options.beam_size != self._step.beam_size:
            return OptionError("beam_size", f"the batch's, {self._step.beam_size}", options.beam_size)
        for name, off in OFF.items():
            if getattr(options, name) != off:
                return OptionError(name, f"{off!r} on the device", getattr(options, name))
        shortlist = getattr(sentence, "shortlist", None)  # scores over some of the vocabulary: another graph
        return None if shortlist is None else OptionError("shortlist", "None on the device", len(shortlist))

    def _source_fault(self, sentence: Sentence) -> ValueError | None:
        wanted = [("length", *spec.fixed) for spec in self._step.records.sources]
        shapes = [source.shape for source in sentence.sources]
        if [shape[1:] for shape in shapes] != [shape[1:] for shape in wanted] or not all(map(len, sentence.sources)):
            return ValueError(f"{sentence.id!r} must have sources of the shapes {wanted}, none empty, but has {shapes}")
        longest, room = max(map(len, sentence.sources)), self._step.sizes.source[-1]
        if longest > room:
            return ValueError(f"{sentence.id!r} must have sources of at most {room} on the device, but has {longest}")
        return None
