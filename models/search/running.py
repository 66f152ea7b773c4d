"""A running batch as one frozen record: start, advance, merge, select.

Every function returns a new record and leaves the old one usable: a step that fails changes nothing. Pools alone are
written in place, at slots that no row of the old record sees.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tandem.models.search import beam
from tandem.models.search.beam import Candidates, Live
from tandem.models.search.constraints import constrain
from tandem.models.search.graphs import Array
from tandem.models.search.hypotheses import Admitted, Counters, Ended, SentenceError
from tandem.models.search.model import Model
from tandem.models.search.sampling import draw, log_sum_exp
from tandem.models.search.tensors import (
    Tensors,
    blank,
    fit,
    fresh_slots,
    join,
    padded_length,
    seen_slots,
    slots_for,
    take,
)

ENCODE_STRETCH, ENCODE_SLACK = 1.5, 8  # sources are encoded together up to 1.5 x shortest + 8 tokens


@dataclass(frozen=True, slots=True, eq=False)
class BatchShortlist:
    """The tokens that some sentence of a batch may use, W of them.

    Attributes:
        entries_W: their ids, rising.
        mask_BW: additive mask, 0 where the place's own list holds the entry.
        place_V: for each token id its place among the entries, W for those that are not there and for V itself.
    """

    entries_W: NDArray[np.int64]
    mask_BW: NDArray[np.float32]
    place_V: NDArray[np.int64]

    @classmethod
    def of(cls, places: Sequence[Admitted | None], vocabulary_size: int) -> BatchShortlist | None:
        """That of the places' sentences; None where they have no lists. An empty place gets the whole list."""
        lists = [None if one is None else one.shortlist for one in places]
        if all(one is None for one in lists):
            return None
        used_V = np.zeros(vocabulary_size + 1, np.bool_)
        for one in lists:
            if one is not None:
                used_V[one] = True
        entries_W = np.flatnonzero(used_V)
        place_V = np.full(vocabulary_size + 1, len(entries_W), np.int64)
        place_V[entries_W] = np.arange(len(entries_W))
        mask_BW = np.full((len(places), len(entries_W)), -np.inf, np.float32)
        for own_W, one in zip(mask_BW, lists, strict=True):
            own_W[slice(None) if one is None else place_V[one]] = 0.0
        return cls(entries_W, mask_BW, place_V)


@dataclass(frozen=True, slots=True, eq=False)
class Running:
    """A batch between two steps.

    Attributes:
        places: the sentence of each place; None where one left and its place waits for another.
        ended: per place, the hypotheses that ended so far.
        live: the live hypotheses; their parents point into ``rows`` and ``history``.
        memory: what encode returned, a place each.
        rows: row state as the last step returned it, not yet reordered.
        pools: append-only state, a place each.
        history: the slots each row of the last step sees, not yet reordered; None for models without pools.
        sizes: current size of each source axis and of the slot axis.
        shortlist: where sentences have shortlists, those of all places as the graph reads them.
    """

    places: tuple[Admitted | None, ...]
    ended: tuple[tuple[Ended, ...], ...]
    live: Live
    memory: Tensors
    rows: Tensors
    pools: Tensors
    history: Array | None
    sizes: Mapping[str, int]
    shortlist: BatchShortlist | None = None

    @property
    def occupied(self) -> list[int]:
        return [place for place, admitted in enumerate(self.places) if admitted is not None]

    @property
    def vacant(self) -> list[int]:
        return [place for place, admitted in enumerate(self.places) if admitted is None]

    def vacate(self, places: Sequence[int]) -> Running:
        """The same with those places empty; their rows are dead from now on."""
        gone = set(places)
        return replace(
            self,
            places=tuple(None if place in gone else one for place, one in enumerate(self.places)),
            ended=tuple(() if place in gone else one for place, one in enumerate(self.ended)),
            live=self.live.vacate(places),
        )


def start(model: Model, admitted: Sequence[Admitted]) -> Running:
    """Encode sentences, those of similar length together, and set up one row each, about to read BOS."""
    ordered = sorted(admitted, key=lambda one: tuple(map(len, one.sentence.sources)))
    groups: list[list[Admitted]] = []
    for one in ordered:
        if groups and _alike(groups[-1][0], one):
            groups[-1].append(one)
        else:
            groups.append([one])
    encoded = [model.encode([one.sentence.sources for one in group]) for group in groups]
    sizes = {**_source_sizes(ordered), "slot": slots_for(0)}
    initial = {spec.field: spec for spec in model.graphs.specs["encode"].outputs_of_kind("init")}
    rows: Tensors = {}
    for spec in model.rows:
        first = initial.get(spec.field)
        parts = [one[first.name] for one in encoded] if first else []
        rows[spec.name] = join(parts, first, sizes) if first else blank(spec, len(ordered), sizes)
    return Running(
        places=tuple(ordered),
        ended=((),) * len(ordered),
        live=beam.begin(len(ordered), model.bos),
        memory={spec.name: join([one[spec.name] for one in encoded], spec, sizes) for spec in model.memory},
        rows=rows,
        pools={spec.name: blank(spec, len(ordered), sizes) for spec in model.pools},
        history=blank(model.inputs["history"], len(ordered), sizes) if model.pools else None,
        sizes=sizes,
        shortlist=BatchShortlist.of(ordered, model.vocabulary_size),
    )


def advance(model: Model, running: Running) -> tuple[Running, Counters]:
    """One step for every place: the hypotheses that end are added to ``ended``, the others live on.

    Raises:
        SentenceError: the log-sum-exp of a live row is NaN or infinite; ``running`` is still good.
    """
    alive_R = running.live.alive_BK.reshape(-1)
    slots = _reserve(model, running, alive_R)
    if slots.size != running.sizes["slot"]:
        running = replace(running, pools=slots.pools, sizes={**running.sizes, "slot": slots.size})
    inputs, constraints = _inputs(model, running, slots.history)
    outputs = model.graphs.run(model.step, inputs)
    found = _found(model, running, outputs, constraints)
    slots.write(model, outputs, alive_R)
    ended = beam.retire(running.live, found, beam_size=model.beam_size, eos=model.eos)
    after = replace(
        running,
        ended=tuple((*old, *ended[place]) if place in ended else old for place, old in enumerate(running.ended)),
        live=beam.extend(running.live, found, beam_size=model.beam_size, eos=model.eos),
        rows={spec.name: outputs[spec.name] for spec in model.rows},
        history=slots.history,
    )
    return after, _count(running, slots, int(np.count_nonzero(alive_R)))


@dataclass(frozen=True, slots=True, eq=False)
class _Slots:
    """Where the entries that a step makes will go.

    Attributes:
        pools: large enough for them.
        size: slots of each sentence's pool.
        history: that of the step's rows, reordered; None for models without pools.
        place_R, slot_R: the place of each row, and the slot that it may write.
        seen: slots of all sentences that some row sees.
    """

    pools: Tensors
    size: int
    history: Array | None = None
    place_R: Array | None = None
    slot_R: Array | None = None
    seen: int = 0

    def write(self, model: Model, outputs: Tensors, alive_R: Array) -> None:
        """Put the new entries of live rows into the pools, and let the rows see them."""
        if self.history is None or self.place_R is None or self.slot_R is None:
            return
        row_R, every = alive_R.nonzero()[0], bool(alive_R.all())
        place_R, slot_R = (self.place_R, self.slot_R) if every else (self.place_R[row_R], self.slot_R[row_R])
        for spec in model.pools:
            new = outputs[f"append.{spec.field}"]
            self.pools[spec.name][place_R, ..., slot_R, :] = new if every else new[row_R]
        self.history[row_R, slot_R] = 0.0


def merge(model: Model, running: Running, joining: Running) -> Running:
    """Both batches, each with at least one sentence, as one: joiners take vacant places where they fit."""
    moved = replace(joining.live, parent_BK=joining.live.parent_BK + _old_rows(running))
    joining = replace(joining, live=moved)
    vacant = running.vacant[: len(joining.places)]
    if len(vacant) < len(joining.places) or any(running.sizes[a] < n for a, n in joining.sizes.items()):
        return _append(model, select(model, running, running.occupied), joining)
    for group, specs in ((joining.memory, model.memory), (joining.pools, model.pools)):
        for spec in specs:
            target = running.memory if group is joining.memory else running.pools
            target[spec.name][vacant] = fit(group[spec.name], spec, running.sizes)
    joined = dict(zip(vacant, range(len(vacant)), strict=True))
    places = tuple(joining.places[joined[p]] if p in joined else one for p, one in enumerate(running.places))
    return replace(
        running,
        places=places,
        shortlist=BatchShortlist.of(places, model.vocabulary_size),
        ended=tuple(joining.ended[joined[p]] if p in joined else one for p, one in enumerate(running.ended)),
        live=running.live.put(vacant, joining.live),
        **_joined_rows(model, running, joining, running.sizes),
    )


def select(model: Model, running: Running, places: Sequence[int]) -> Running:
    """Only those places, in that order, with all padding that they do not need cut off."""
    chosen = list(places)
    kept = [one for place in chosen if (one := running.places[place]) is not None]
    sizes = {**running.sizes, **_source_sizes(kept)}
    live = running.live.select(chosen)
    if running.history is not None and kept:
        alive_rows = live.parent_BK[live.alive_BK]
        last = np.flatnonzero((running.history[alive_rows] == 0).any(axis=0))
        sizes["slot"] = slots_for(int(last[-1]) + 1 if len(last) else 0)
    history = running.history
    places_left = tuple(running.places[place] for place in chosen)
    return Running(
        places=places_left,
        shortlist=BatchShortlist.of(places_left, model.vocabulary_size),
        ended=tuple(running.ended[place] for place in chosen),
        live=live,
        memory={spec.name: take(running.memory[spec.name], chosen, spec, sizes) for spec in model.memory},
        rows={spec.name: fit(running.rows[spec.name], spec, sizes) for spec in model.rows},
        pools={spec.name: take(running.pools[spec.name], chosen, spec, sizes) for spec in model.pools},
        history=None if history is None else fit(history, model.inputs["history"], sizes),
        sizes=sizes,
    )


def _append(model: Model, running: Running, joining: Running) -> Running:
    sizes = {axis: max(size, joining.sizes[axis]) for axis, size in running.sizes.items()}
    places = (*running.places, *joining.places)
    return Running(
        places=places,
        shortlist=BatchShortlist.of(places, model.vocabulary_size),
        ended=(*running.ended, *joining.ended),
        live=running.live.join(joining.live),
        memory={s.name: join([running.memory[s.name], joining.memory[s.name]], s, sizes) for s in model.memory},
        pools={s.name: join([running.pools[s.name], joining.pools[s.name]], s, sizes) for s in model.pools},
        sizes=sizes,
        **_joined_rows(model, running, joining, sizes),
    )


def _joined_rows(model: Model, running: Running, joining: Running, sizes: Mapping[str, int]) -> dict[str, Any]:
    history = running.history
    if history is not None and joining.history is not None:
        history = join([history, joining.history], model.inputs["history"], sizes)
    rows = {spec.name: join([running.rows[spec.name], joining.rows[spec.name]], spec, sizes) for spec in model.rows}
    return {"rows": rows, "history": history}


def _old_rows(running: Running) -> int:
    """Rows of the last step, which the parents of this one count over."""
    if running.history is not None:
        return len(running.history)
    return max([len(array) for array in running.rows.values()], default=0)


def _reserve(model: Model, running: Running, alive_R: Array) -> _Slots:
    """The reordered history, and for each row a slot that nobody sees, in pools that are grown where they must be."""
    if running.history is None:
        return _Slots(running.pools, running.sizes["slot"])
    live, pools, size = running.live, running.pools, running.sizes["slot"]
    sentences, rows = live.score_BK.shape
    history = running.history[live.parent_BK.reshape(-1)]
    if not alive_R.all():
        history[~alive_R] = -np.inf
    seen_BP = seen_slots(history.reshape(sentences, rows, size))
    count_B = np.count_nonzero(seen_BP, axis=1)
    needed = slots_for(int(count_B.max()) + rows)
    if needed > size:
        needed = max(needed, 2 * size) if model.free_slots else needed  # copied as seldom as may be
        sizes = {**running.sizes, "slot": needed}
        pools = {spec.name: fit(pools[spec.name], spec, sizes) for spec in model.pools}
        history = fit(history, model.inputs["history"], sizes)
        seen_BP = np.pad(seen_BP, ((0, 0), (0, needed - size)))
        size = needed
    return _Slots(pools, size, history, *fresh_slots(seen_BP, rows), int(count_B.sum()))


def _inputs(model: Model, running: Running, history: Array | None) -> tuple[Tensors, tuple[Any, Any]]:
    live = running.live
    rows = live.score_BK.shape[1]
    banned, forced = constrain(running.places, live, vocabulary_size=model.vocabulary_size, eos=model.eos)
    parent_BK, age_B = live.parent_BK, live.age_B
    if running.vacant:  # dead rows of an empty place need some row to continue, and position 0 is always a valid one
        full_B = np.array([one is not None for one in running.places])
        parent_BK, age_B = parent_BK * full_B[:, None], age_B * full_B
    values: Tensors = {
        **running.memory,
        **running.rows,
        **running.pools,
        "token": live.last_BK.reshape(-1),
        "parent": parent_BK.reshape(-1),
        "position": age_B.repeat(rows),
        "score": live.score_BK.reshape(-1),
        "banned": banned,
        "forced": forced,
        "count": np.array(min(2 * model.beam_size, rows * model.vocabulary_size), np.int64),
    }
    if running.shortlist is not None:
        places = running.shortlist.place_V
        values |= {"entries": running.shortlist.entries_W, "listed": running.shortlist.mask_BW}
        values |= {"banned": places[banned], "forced": np.where(forced < 0, forced, places[forced])}
    if history is not None:
        values["history"] = history
    return {name: values[name] for name in model.inputs}, (banned, forced)


def _found(model: Model, running: Running, outputs: Tensors, constraints: tuple[Any, Any]) -> Candidates:
    live = running.live
    sampled = model.step == "step_logits"
    total_R = log_sum_exp(outputs["logits"]) if sampled else outputs["logsumexp"]
    rows = live.score_BK.shape[1]
    finite_R = np.isfinite(total_R)
    if not finite_R.all():
        _blame(running, np.flatnonzero(~finite_R & live.alive_BK.reshape(-1)) // rows)
    if sampled:
        return draw(running.places, live, outputs["logits"], constraints, beam_size=model.beam_size)
    return beam.candidates(
        outputs["scores"], outputs["tokens"], outputs["parents"], beam_size=model.beam_size, eos=model.eos
    )


def _blame(running: Running, places: Array) -> None:
    wrong = [
        (one.sentence.id, int(running.live.age_B[place]))
        for place in dict.fromkeys(places.tolist())
        if (one := running.places[place])
    ]
    if wrong:
        named = ", ".join(f"{name!r} at step {age}" for name, age in wrong)
        raise SentenceError(f"the model's probabilities are not finite for {named}", tuple(name for name, _ in wrong))


def _alike(first: Admitted, other: Admitted) -> bool:
    pairs = zip(first.sentence.sources, other.sentence.sources, strict=True)
    return all(min(map(len, pair)) * ENCODE_STRETCH + ENCODE_SLACK >= max(map(len, pair)) for pair in pairs)


def _source_sizes(admitted: Sequence[Admitted]) -> dict[str, int]:
    columns = list(zip(*(one.sentence.sources for one in admitted), strict=True))
    return {
        f"source{index}": padded_length(max(map(len, column)), len(columns)) for index, column in enumerate(columns)
    }


def _count(running: Running, slots: _Slots, alive: int) -> Counters:
    sentences, rows = running.live.score_BK.shape
    sizes = [size for axis, size in running.sizes.items() if axis != "slot"]
    used = sum(len(source) for one in running.places if one for source in one.sentence.sources)
    cells = sentences * sum(sizes)
    slot_cells = sentences * slots.size if slots.history is not None else 0
    unseen = slot_cells - slots.seen - alive if slots.history is not None else 0
    return Counters(1, sentences * rows, sentences * rows - alive, cells, cells - used, slot_cells, unseen)
