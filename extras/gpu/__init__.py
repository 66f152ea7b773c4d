"""Beam search whose whole step lies on the model's device: static buffers, slots, masks, nothing read back per step.

graphs = DeviceGraphs(model, sizes=Sizes.within(sentences=256, source=160, target=160))
batch = graphs.start_batch(5)                # or models.search.start_batch(graphs, beam_size=5)

step = CapturedStep(model, beam_size=5, sizes=Sizes(sentences=(8, 64), source=(64, 128), target=(32, 64, 129)))
batch = StaticBatch(step)                    # join / step / remove / ids / rows / counters as DecodeBatch has them

The search is the one of :mod:`models.search`, rule for rule: a :class:`StaticBatch` returns the same hypotheses, with
scores equal to rounding. All state lies in tensors allocated once (:mod:`extras.gpu.records` for the model's,
:mod:`extras.gpu.slots` for the search's): memory by slot, row state, pools laid out by position (the entry of row k
at position t is slot t x K + k of its sentence), what each row sees of them, back-pointers, finished hypotheses, and
what rules need (:mod:`extras.gpu.rules`). One step (:mod:`extras.gpu.step`) is a function of tensors alone that
updates them in place: no shape depends on data, the host looks at no tensor, every address stays what it was. The host
chooses which parts of the buffers a step reads by what it knows anyway (:mod:`extras.gpu.sizes`), and asks for two
masks every few steps (:mod:`extras.gpu.batch`). On a GPU a step is captured once per :class:`Shape` and replayed
(:mod:`extras.gpu.capture`), and nothing waits for a copy (:mod:`extras.gpu.transfer`). Sampling, exhaustive
search, shortlists and what does not fit the buffers go through ``DecodeBatch`` and are counted
(:mod:`extras.gpu.routing`).

The same classes run on the CPU, where a step is a call; there every test of this package runs. This module imports none
of them: the core looks at the port where there is no torch.
"""
