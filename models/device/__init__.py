"""Beam search whose whole step lies on the model's device: static buffers, slots, masks, nothing read back per step.

step = StaticStep(model, beam_size=5, sizes=Sizes(sentences=(8, 64), source=(64, 128), target=(32, 64, 129)))
batch = StaticBatch(step, poll_every=4)      # join / step / remove / ids / rows / counters as DecodeBatch has them

The search is the one of :mod:`models.search`, rule for rule: a :class:`StaticBatch` returns the same hypotheses, with
scores equal to rounding. All state lies in tensors allocated once (:mod:`models.device.records` for the model's,
:mod:`models.device.slots` for the search's): memory by slot, row state, pools laid out by position (the entry of row k
at position t is slot t x K + k of its sentence), the history as an additive mask, back-pointers, finished hypotheses.
One step (:mod:`models.device.step`) is a function of tensors alone that updates them in place: no shape depends on
data, the host looks at no tensor, every address stays what it was. The host chooses which parts of the buffers a step
reads by what it knows anyway (:mod:`models.device.sizes`), and reads two masks every few steps. Options that this
search does not have go to ``DecodeBatch`` (:class:`DeviceBatches`).

This is the form that CUDA graphs need: a step recorded once per :class:`Shape` can be replayed. What is there has run
on the CPU only. Open, since they need a CUDA device to be run, tested and measured: capturing one graph per shape and
replaying it in place of the call; reading the masks asynchronously (the copy of one poll looked at in the next);
encoding newcomers on a second stream; bfloat16 weights and pools (logits and scores are float32 whatever the model
computes in, the history mask is float32 too and would have to follow the pools).
"""

from __future__ import annotations

from models.device.batch import StaticBatch
from models.device.routing import DeviceBatches, RoutedBatch
from models.device.sizes import Shape, Sizes
from models.device.step import StaticStep

__all__ = ["DeviceBatches", "RoutedBatch", "Shape", "Sizes", "StaticBatch", "StaticStep"]
