"""Beam search and sampling over any runtime's graphs. Needs no torch.

batch = start_batch(graphs, beam_size=5)
batch.join([Sentence("a", (ids,), options)])
while len(batch):
    for finished in batch.step(): ...
"""

from __future__ import annotations

from tandem.models.search.align import align
from tandem.models.search.batch import DecodeBatch
from tandem.models.search.graphs import (
    Array,
    Graphs,
    GraphSpec,
    GraphSpecs,
    TensorSpec,
    check_specs,
    specs_from_json,
    specs_to_json,
)
from tandem.models.search.hypotheses import Counters, Finished, Hypothesis, Sentence, SentenceError
from tandem.models.search.offline import Failed, OfflineDecoder, translate_batch
from tandem.models.search.options import Sampling, SearchOptions
from tandem.models.search.start import Batch, SearchingGraphs, start_batch

__all__ = [
    "Array",
    "Batch",
    "Counters",
    "DecodeBatch",
    "Failed",
    "Finished",
    "GraphSpec",
    "GraphSpecs",
    "Graphs",
    "Hypothesis",
    "OfflineDecoder",
    "Sampling",
    "SearchOptions",
    "SearchingGraphs",
    "Sentence",
    "SentenceError",
    "TensorSpec",
    "align",
    "check_specs",
    "specs_from_json",
    "specs_to_json",
    "start_batch",
    "translate_batch",
]
