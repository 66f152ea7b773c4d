"""A continuous batch over static buffers: the host's side, which knows slots and ages and reads two masks now and then.

admit -> step, step, step, step -> look -> harvest
"""

from __future__ import annotations

import bisect
from collections import deque
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from tandem.extras.gpu.sizes import Shape
from tandem.extras.gpu.slots import Look
from tandem.extras.gpu.step import StaticStep
from tandem.extras.gpu.transfer import Readback, Stopwatch
from tandem.extras.gpu.unranked import Unranked
from tandem.models.errors import ConfigError, OptionError
from tandem.models.search.hypotheses import Admitted, Counters, Finished, Sentence, SentenceError

OFF = {"sampling": None, "exhaustive": False}
"""Options that only :class:`models.search.DecodeBatch` has, and what they must be here."""


@dataclass(frozen=True, slots=True)
class Occupant:
    """A sentence in a slot.

    Attributes:
        begun: steps that the batch had taken when it got its slot.
        looks: at the masks that the batch had asked for by then: they tell of whoever was there before.
    """

    admitted: Admitted
    begun: int
    looks: int

    @property
    def lengths(self) -> tuple[int, ...]:
        """Of its sources."""
        return self.admitted.sentence.lengths

    @property
    def repeats(self) -> bool:
        """Whether it must not repeat itself."""
        options = self.admitted.sentence.options
        return bool(options.no_repeat_ngram_size or options.max_rounds)


@dataclass(frozen=True, slots=True, eq=False)
class Arriving:
    """Sentences that are being encoded, and the slots that are kept for them."""

    admitted: tuple[Admitted, ...]
    slots: tuple[int, ...]
    encoded: dict[str, Tensor]
    mark: torch.cuda.Event | None

    @property
    def ready(self) -> bool:
        return self.mark is None or self.mark.query()


@dataclass(frozen=True, slots=True, eq=False)
class Leaving:
    """Sentences that are done, and what is known of their hypotheses, on its way to the host."""

    unranked: Unranked
    download: Readback
    positions: int


class StaticBatch:
    """``DecodeBatch`` for one beam size, decoded by a :class:`StaticStep` that no other batch uses meanwhile.

    Its hypotheses are ``DecodeBatch``'s, with scores equal to rounding. What differs is when things are known:

    - ``step`` takes up to ``poll_every`` steps, and then asks for the masks. Where ``lag`` is set it reads those that
      it asked for before: the host never waits for the device, and knows of the end of a sentence that much later.
      One that has ended idles, which changes nothing of its result.
    - ``join`` encodes; a sentence whose probabilities are not finite from the first step on is reported by ``step``.
      ``SentenceError`` names the step at which it happened; the others have gone on meanwhile and stay good.
    - Newcomers take their first step once they are encoded; those for which there is no slot wait in order.
    - ``counters`` move when the masks are read.

    Args:
        step: its buffers are cleared.
        poll_every: steps between two looks at the masks; None = 4 on a GPU, 1 elsewhere.
        lag: whether a look is read when the next is asked for; None = on a GPU.

    Raises:
        ConfigError: ``poll_every`` below 1.
    """

    def __init__(self, step: StaticStep, *, poll_every: int | None = None, lag: bool | None = None) -> None:
        gpu = step.device.type == "cuda"
        self._poll_every = (4 if gpu else 1) if poll_every is None else poll_every
        if self._poll_every < 1:
            raise ConfigError(f"poll_every must be at least 1, but is {poll_every}")
        self._step, self._lag = step, gpu if lag is None else lag
        self.device = step.device
        self._free = list(range(step.sizes.sentences[-1]))  # ascending: what is occupied lies at the front
        self._occupied: dict[int, Occupant] = {}
        self._waiting: deque[Admitted] = deque()
        self._arriving: deque[Arriving] = deque()
        self._leaving: deque[Leaving] = deque()
        self._looks: deque[tuple[int, Readback, Stopwatch]] = deque()
        self._faults: dict[Hashable, int] = {}  # the position of what is not finite, until the sentence is removed
        self._left: list[Finished] = []
        self._counters, self._uncounted = Counters(), Counters()
        self.device_counters = step.counters
        self._taken = self._asked = 0  # steps, and looks at the masks
        with step.streams.stepping():
            step.slots.clear()

    def __len__(self) -> int:
        """Sentences that ``step`` has not returned yet."""
        leaving = sum(len(group.unranked.ids) for group in self._leaving)
        return len(self.ids) + leaving + len(self._left)

    @property
    def ids(self) -> tuple[Hashable, ...]:
        """The sentences still being decoded, as far as the host knows."""
        here = [occupant.admitted for occupant in self._occupied.values()]
        here += [one for group in self._arriving for one in group.admitted]
        return tuple(admitted.sentence.id for admitted in (*here, *self._waiting))

    @property
    def rows(self) -> int:
        """Rows that the next step runs, dead ones and those of idle slots included."""
        return self._shape(1).sentences * self._step.beam_size if self._occupied else 0

    @property
    def counters(self) -> Counters:
        """What the batch has computed since it was made, up to when the masks were last read."""
        return self._counters

    def lacks(self, sentence: Sentence) -> str:
        """What keeps the device from decoding the sentence: an option's name, or ``source``; empty where it can."""
        admitted = self._admitted(sentence)
        if isinstance(admitted, Admitted):
            return ""
        return admitted.field if isinstance(admitted, OptionError) else "source"

    def join(self, sentences: Sequence[Sentence]) -> None:
        """Encode sentences into free slots; those for which there is none wait.

        Raises:
            OptionError: options that do not fit this batch or model, or that the device does not have.
            ValueError: a sentence whose id is already in the batch, or whose sources do not fit the model.
        """
        admitted = self._checked(sentences)
        self._waiting.extend(admitted)
        try:
            self._encode()
        except Exception:
            for one in admitted:
                self._waiting.remove(one)
            raise
        with self._step.streams.stepping():
            self._land(wait=False)
        self.device_counters.sentences += len(admitted)

    @torch.inference_mode()
    def step(self) -> list[Finished]:
        """Advance every sentence by up to ``poll_every`` tokens and return those that are known to be done.

        Raises:
            SentenceError: probabilities that are not finite; names the sentences at fault and their step. Repeated
                until they are removed.
        """
        self._complain()
        self._encode()
        with self._step.streams.stepping():
            self._land(wait=not self._occupied)
            if self._occupied:
                self._burst()
            self._deliver(wait=not self._occupied and not self._waiting and not self._arriving)
        self._complain()
        left, self._left = self._left, []
        return left

    @torch.inference_mode()
    def remove(self, ids: Iterable[Hashable]) -> None:
        """Drop sentences without a result; ids that are not in the batch are ignored."""
        gone = set(ids)
        self._left = [one for one in self._left if one.id not in gone]
        self._waiting = deque(one for one in self._waiting if one.sentence.id not in gone)
        self._faults = {name: position for name, position in self._faults.items() if name not in gone}
        for group in self._leaving:
            group.unranked.drop(gone)
        with self._step.streams.stepping():
            if any(one.sentence.id in gone for group in self._arriving for one in group.admitted):
                self._land(wait=True)
            slots = [slot for slot, occupant in self._occupied.items() if occupant.admitted.sentence.id in gone]
            if slots:
                self._step.slots.drop(self._step.index(slots))
                self._vacate(slots)

    @torch.inference_mode()
    def _encode(self) -> None:
        """Begin to encode as many of those that wait, in order, as there are free slots."""
        count = min(len(self._free), len(self._waiting))
        if not count:
            return
        joining, slots = [self._waiting[number] for number in range(count)], self._free[:count]
        with self._step.streams.encoding():
            encoded = self._step.encode([one.sentence.sources for one in joining])
            mark = self._step.streams.mark()
        self._arriving.append(Arriving(tuple(joining), tuple(slots), encoded, mark))
        for _ in joining:
            self._waiting.popleft()
        del self._free[:count]

    @torch.inference_mode()
    def _land(self, *, wait: bool) -> None:
        """Put into their slots who has been encoded; with ``wait`` also those who have not, once they are."""
        while self._arriving and (wait or self._arriving[0].ready):
            group = self._arriving[0]
            self._step.streams.meet(group.mark, list(group.encoded.values()))
            self._step.records.put(self._step.index(group.slots), group.encoded)
            self._step.slots.put(group.slots, group.admitted)
            self._arriving.popleft()
            for slot, one in zip(group.slots, group.admitted, strict=True):
                self._occupied[slot] = Occupant(one, self._taken, self._asked)

    def _burst(self) -> None:
        """Take steps, none of which any sentence must have ended before; then look."""
        ages = {slot: self._taken - occupant.begun for slot, occupant in self._occupied.items()}
        left = max(one.admitted.longest + 1 - ages[slot] for slot, one in self._occupied.items())
        count = max(0, min(self._poll_every, left))
        watch = Stopwatch(self._step.device)
        if count:
            shape = self._shape(count)
            for _ in range(count):
                self._step(shape)
            self._taken += count
            self._note(shape, count)
        watch.stop()
        self._looks.append((self._asked, self._step.slots.look(), watch))
        self._asked += 1
        while self._looks and (len(self._looks) > self._lag or count >= left):
            self._examine(*self._looks.popleft())

    def _shape(self, count: int) -> Shape:
        """The smallest for so many steps: it holds every occupied slot, its sources, and the positions that it has or
        will write."""
        members = self._occupied.values()
        lengths = zip(*(occupant.lengths for occupant in members), strict=True)
        oldest = max(min(self._taken - one.begun + count - 1, one.admitted.longest) for one in members)
        return self._step.sizes.shape(
            max(self._occupied) + 1,
            map(max, lengths),
            oldest + 1,
            repeats=any(one.repeats for one in members),
            required=any(one.admitted.sentence.options.required for one in members),
        )

    def _note(self, shape: Shape, count: int) -> None:
        """Count steps, but for what only the device knows."""
        cells = shape.sentences * sum(shape.sources)
        read = sum(sum(occupant.lengths) for occupant in self._occupied.values())
        rows = shape.sentences * self._step.beam_size
        slots = rows * shape.target if self._step.records.pooled else 0
        counted = (1, rows, rows, cells, cells - read, slots, slots)
        self._uncounted += Counters(*(count * number for number in counted))

    def _examine(self, number: int, download: Readback, watch: Stopwatch) -> None:
        """Read a look at the masks, take out what is done, and keep what is at fault until it is removed."""
        look = Look.of(download)
        self.device_counters.step_seconds += watch.seconds
        used = look.seen + look.alive if self._step.records.pooled else 0  # every row sees its new entry too
        self._counters += self._uncounted + Counters(dead_rows=-look.alive, slot_padding=-used)
        self._uncounted = Counters()
        known = {slot: occupant for slot, occupant in self._occupied.items() if occupant.looks <= number}
        done = [slot for slot in known if not look.running_B[slot] and look.fault_B[slot] < 0]
        for slot, occupant in known.items():
            if look.fault_B[slot] >= 0:
                self._faults[occupant.admitted.sentence.id] = int(look.fault_B[slot])
        if done:
            self._harvest(done)
            self._vacate(done)

    def _harvest(self, slots: Sequence[int]) -> None:
        members = [self._occupied[slot] for slot in slots]
        positions = min(max(self._taken - occupant.begun for occupant in members), self._step.sizes.target[-1])
        unranked = Unranked.of(self._step, [one.admitted for one in members], slots)
        self._leaving.append(Leaving(unranked, self._step.slots.harvest(self._step.index(slots), positions), positions))

    def _deliver(self, *, wait: bool) -> None:
        """Hand over whose hypotheses have arrived; with ``wait`` all that are on their way."""
        while self._leaving and (wait or not self._lag or self._leaving[0].download.ready):
            group = self._leaving.popleft()
            harvest = self._step.slots.harvested(group.download, len(group.unranked.members), group.positions)
            self._left += group.unranked.ranked(self._step, harvest)

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
        leaving = (name for group in self._leaving for name in group.unranked.ids)
        taken = {*self.ids, *leaving, *(one.id for one in self._left)}
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
        for name in ("required", "suppressed"):
            most, count = getattr(self._step.sizes, name), len(getattr(options, name))
            if count > most:
                return OptionError(name, f"at most {most} tokens on the device", count)
        if sentence.shortlist is None:
            return None
        # Scores over some of the vocabulary are estimates, which spare a CPU the most of the output layer.
        return OptionError("shortlist", "None on the device", len(sentence.shortlist))

    def _source_fault(self, sentence: Sentence) -> ValueError | None:
        wanted = [("length", *spec.fixed) for spec in self._step.records.sources]
        shapes = [source.shape for source in sentence.sources]
        if [shape[1:] for shape in shapes] != [shape[1:] for shape in wanted] or not all(map(len, sentence.sources)):
            return ValueError(f"{sentence.id!r} must have sources of the shapes {wanted}, none empty, but has {shapes}")
        longest, room = max(map(len, sentence.sources)), self._step.sizes.source[-1]
        if longest > room:
            return ValueError(f"{sentence.id!r} must have sources of at most {room} on the device, but has {longest}")
        return None
