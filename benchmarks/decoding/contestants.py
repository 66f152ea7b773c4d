"""Who takes part in `tandem bench decode`: Tandem, and of the peers asked for those that are installed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.decoding.passes import Kind
from benchmarks.decoding.systems import TANDEM, DecodingSystem, Label
from benchmarks.decoding.tandem import SHORTLIST_GRAPH, Tandem
from benchmarks.options import PEERS, DecodeOptions
from benchmarks.workload import check_one_text
from deploy.report import names
from models.bundle import Bundle


@dataclass(frozen=True, slots=True, eq=False)
class Entrant:
    """A system that takes part.

    Attributes:
        label: of its rows.
        open: loads it; plain data behind it, so that another process can load it as well.
        kinds: of workload that it does.
    """

    label: Label
    open: Callable[[], DecodingSystem]
    kinds: tuple[Kind, ...]


def entrants(
    bundle: Bundle, options: DecodeOptions, workers: int, stack: ExitStack
) -> tuple[list[Entrant], dict[str, str]]:
    """Those that take part, and why a peer does not.

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
    taking_part, left_out = list(_tandem(bundle, options, workers, kinds)), dict[str, str]()
    if names(options.peers, "--peers", PEERS):
        if find_spec("ctranslate2") is None:
            left_out["ctranslate2"] = "not installed: install tandem with its extra [bench]"
        else:
            taking_part += _ctranslate2(bundle, None, options, workers, stack)
            if options.source and options.ct2_from:
                taking_part += _trained(bundle, options.ct2_from, options, workers, stack)
            elif options.source:
                left_out["ctranslate2, text"] = "real text needs a trained model: --ct2-from BUNDLE"
    return taking_part, left_out


def _tandem(bundle: Bundle, options: DecodeOptions, workers: int, kinds: tuple[Kind, ...]) -> Iterator[Entrant]:
    """With the whole vocabulary, and with the shortlist where that is asked for or simply there."""
    has = bundle.shortlist is not None and SHORTLIST_GRAPH in bundle.graph_specs(options.precision)
    for shortlist in (False, True) if options.shortlist or (options.shortlist is None and has) else (False,):
        label = Label(TANDEM, bundle.manifest.name, options.precision, shortlist)
        yield Entrant(label, partial(Tandem.open, label, bundle.path, options.beam_size, workers), kinds)


def _trained(bundle: Bundle, path: Path, options: DecodeOptions, workers: int, stack: ExitStack) -> Iterator[Entrant]:
    """CTranslate2 with our trained Transformer, and Tandem with the same bundle beside it."""
    trained = Bundle.load(path)
    check_one_text(trained)
    if trained.path.resolve() != bundle.path.resolve():
        yield from _tandem(trained, replace(options, shortlist=False), workers, ("text",))
    yield from _ctranslate2(trained, trained, options, workers, stack)


def _ctranslate2(
    bundle: Bundle, trained: Bundle | None, options: DecodeOptions, workers: int, stack: ExitStack
) -> Iterator[Entrant]:
    """With the weights of a bundle on real text, else with random ones, behind a bundle's vocabularies."""
    from benchmarks.decoding import conversion
    from benchmarks.decoding.ctranslate2 import Ct2
    from benchmarks.workload import TransformerSize

    size, types = TransformerSize(), options.peer_vocabulary
    random = f"random Transformer {size.layers}+{size.layers}, d={size.width}, f={size.hidden}, V={types}"
    for precision in names(options.peer_precisions, "--peer-precisions", ("int8", "float32")):
        folder = Path(stack.enter_context(TemporaryDirectory(prefix="tandem-bench-")))
        if trained is None:
            pieces = (conversion.random_tokens(types),) * 2
            conversion.write_random(folder, size, types, precision)
        else:
            pieces = (conversion.pieces(trained.source_vocabularies[0]), conversion.pieces(trained.target_vocabulary))
            conversion.write_bundle_model(folder, trained, precision)
        label = Label("ctranslate2", random if trained is None else trained.manifest.name, precision)
        opening = partial(Ct2, label, folder, pieces, bundle.path, options.beam_size, workers)
        yield Entrant(label, opening, ("forced",) if trained is None else ("text",))
