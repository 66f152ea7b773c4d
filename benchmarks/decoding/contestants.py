"""Who takes part in `tandem bench decode`: Tandem, and of the peers asked for those that are installed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.decoding.passes import Kind
from benchmarks.decoding.systems import TANDEM, Label, Opening
from benchmarks.decoding.tandem import SHORTLIST_GRAPH, TandemOpening
from benchmarks.options import PEERS, DecodeOptions
from benchmarks.workload import check_one_text
from deploy.records import names
from models.bundle import Bundle

NEEDS = {"ctranslate2": ("ctranslate2",), "huggingface": ("torch", "transformers")}


@dataclass(frozen=True, slots=True)
class Entrant:
    """A system that takes part.

    Attributes:
        opening: how to load it.
        kinds: of workload that it does.
    """

    opening: Opening
    kinds: tuple[Kind, ...]


def entrants(
    bundle: Bundle, options: DecodeOptions, workers: int, stack: ExitStack
) -> tuple[list[Entrant], list[dict[str, Any]]]:
    """Those that take part, and a row for each that does not.

    Args:
        bundle: Tandem's.
        options: of the benchmark.
        workers: threads of each system.
        stack: keeps the peers' models on disk for as long as it is open.

    Raises:
        ConfigError: a peer that nobody knows, or a shortlist that the bundle does not have; ``ct2_from`` names a bundle
            that is not a Transformer with one source.
    """
    kinds: tuple[Kind, ...] = ("forced", "text") if options.source else ("forced",)
    taking_part, skipped = [Entrant(one, kinds) for one in _tandem(bundle, options, workers)], list[dict[str, Any]]()

    def skip(peer: str, reason: str, *skipped_kinds: Kind) -> None:
        skipped.extend({"system": peer, "workload": kind, "skipped": reason} for kind in skipped_kinds)

    for peer in names(options.peers, "--peers", PEERS):
        if missing := [package for package in NEEDS[peer] if not _installed(package)]:
            needs = f"needs {' and '.join(missing)}, not installed: install tandem with its extra [bench]"
            skip(peer, needs, *kinds)
        elif peer == "ctranslate2":
            taking_part += _ctranslate2(bundle, None, options, workers, stack)
            if options.source and options.ct2_from:
                taking_part += _trained(bundle, options.ct2_from, options, workers, stack)
            elif options.source:
                skip(peer, "real text needs a trained model: --ct2-from BUNDLE", "text")
        else:
            taking_part.append(Entrant(_huggingface(bundle, options, workers), ("forced",)))
            if options.source:
                skip(peer, "its model is random: it has nothing to say on text", "text")
    return taking_part, skipped


def _installed(package: str) -> bool:
    try:
        import_module(package)
    except ModuleNotFoundError:
        return False
    return True


def _tandem(bundle: Bundle, options: DecodeOptions, workers: int) -> list[TandemOpening]:
    """With the whole vocabulary, and with the shortlist where that is asked for or simply there."""
    has = bundle.shortlist is not None and SHORTLIST_GRAPH in bundle.graph_specs(options.precision)
    kinds = (False, True) if options.shortlist or (options.shortlist is None and has) else (False,)
    labels = [Label(TANDEM, bundle.manifest.name, options.precision, kind) for kind in kinds]
    return [TandemOpening(label, bundle.path, options.precision, options.beam_size, workers) for label in labels]


def _trained(bundle: Bundle, path: Path, options: DecodeOptions, workers: int, stack: ExitStack) -> Iterator[Entrant]:
    """CTranslate2 with our trained Transformer, and Tandem with the same bundle beside it."""
    trained = Bundle.load(path)
    check_one_text(trained)
    if trained.path.resolve() != bundle.path.resolve():
        plain = replace(options, shortlist=False)
        yield from (Entrant(opening, ("text",)) for opening in _tandem(trained, plain, workers))
    yield from _ctranslate2(trained, trained, options, workers, stack)


def _ctranslate2(
    bundle: Bundle, trained: Bundle | None, options: DecodeOptions, workers: int, stack: ExitStack
) -> Iterator[Entrant]:
    """With the weights of a bundle on real text, else with random ones, behind a bundle's vocabularies."""
    from benchmarks.decoding import conversion
    from benchmarks.decoding.ctranslate2 import Ct2Opening
    from benchmarks.transformers import TransformerSize

    if trained is None:
        types, model = [conversion.random_tokens(options.peer_vocabulary)] * 2, _random_size(options)
    else:
        vocabularies = (trained.source_vocabularies[0], trained.target_vocabulary)
        types, model = [conversion.pieces(one) for one in vocabularies], trained.manifest.name
    for precision in names(options.peer_precisions, "--peer-precisions", ("int8", "float32")):
        folder = Path(stack.enter_context(TemporaryDirectory(prefix="tandem-bench-")))
        if trained is None:
            conversion.write_random(folder, TransformerSize(), options.peer_vocabulary, precision)
        else:
            conversion.write_bundle_model(folder, trained, precision)
        label, pieces = Label("ctranslate2", model, precision), (tuple(types[0]), tuple(types[1]))
        opening = Ct2Opening(label, folder, pieces, bundle.path, options.beam_size, workers)
        yield Entrant(opening, ("forced",) if trained is None else ("text",))


def _huggingface(bundle: Bundle, options: DecodeOptions, workers: int) -> Opening:
    from benchmarks.decoding.huggingface import HuggingFaceOpening

    label = Label("huggingface", _random_size(options), "float32")
    return HuggingFaceOpening(label, bundle.path, options.beam_size, workers, options.peer_vocabulary)


def _random_size(options: DecodeOptions) -> str:
    from benchmarks.transformers import TransformerSize

    size = TransformerSize()
    return (
        f"random Transformer {size.layers}+{size.layers}, d={size.width}, f={size.hidden}, V={options.peer_vocabulary}"
    )
