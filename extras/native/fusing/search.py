"""The end of a step: from logits to the best continuations."""

from __future__ import annotations

from typing import Any

from tandem.extras.native.fusing.graph import Graph, Node, NoMatch, setting

_SEARCHED = ("scores", "tokens", "parents", "logsumexp")


def end_of_step(graph: Graph) -> None:
    """From logits to the best continuations, whatever nodes that is."""
    if not {*_SEARCHED} <= graph.makers.keys():
        raise NoMatch
    last = graph.makers["parents"]
    inputs, kind, settings = _listed(graph) if "entries" in graph.inputs else _among_all(graph)
    graph.nodes = [*(node for node in graph.nodes if node is not last), last]
    graph.replace(last, kind, inputs, _SEARCHED, **settings)


def best_of_product(graph: Graph, search: Node) -> None:
    """The best of logits that are a product and nothing else reads: they are never all there."""
    logits, score, banned, forced, count, sentences = search.input
    product = graph.made_by(logits, "Product", "ProductOfLevels")
    rows, weights, scales, bias, largest, residual = [*product.input, "", ""][:6]
    plain = setting(product, "factor") == 1 and not setting(product, "rectified") and not setting(product, "flat")
    if residual or not plain or not graph.has_one_reader(logits):
        raise NoMatch
    settings = {name: setting(product, name) for name in ("scale", "zero", "least", "turned")}
    inputs = [rows, weights, scales, score, banned, forced, count, sentences, bias, largest]
    kind = product.op_type.replace("Product", "BestOfProduct")
    graph.replace(search, kind, inputs, search.output, **settings)


def _among_all(graph: Graph) -> tuple[list[str], str, dict[str, Any]]:
    """models/steps/continuations.py, best_continuations."""
    if "logits" not in graph.makers:
        raise NoMatch
    sentences = next(name for name in graph.inputs if name.startswith("memory."))
    return ["logits", "score", "banned", "forced", "count", sentences], "BestContinuations", {}


def _listed(graph: Graph) -> tuple[list[str], str, dict[str, Any]]:
    """models/steps/shortlisted.py, best_listed: from the sum with the lists, and what tokens beyond them count with."""
    masks = [node.output[0] for node in graph.readers("listed", "Unsqueeze")]
    powers = graph.readers("listed", "Exp")
    if len(masks) != 1 or len(powers) != 1:
        raise NoMatch
    masked = graph.read_by(masks[0], "Add")
    by_sentence = next(name for name in masked.input if name != masks[0])
    logits = graph.made_by(by_sentence, "Reshape").input[0]
    left = graph.read_by(graph.read_by(powers[0].output[0], "ReduceSum").output[0], "Sub")
    spread = graph.read_by(graph.read_by(left.output[0], "ReduceLogSum").output[0], "Add")
    rest = graph.read_by(spread.output[0], "Add")
    mean = graph.made_by(next(name for name in rest.input if name != spread.output[0]), "Reshape").input[0]
    settings = {"size": int(graph.number(left.input[0])), "spread": graph.number(spread.input[1])}
    inputs = [logits, mean, "score", "banned", "forced", "count", "entries", "listed"]
    return inputs, "BestListed", settings
