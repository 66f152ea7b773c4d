"""Who takes part in `tandem bench decode`: Tandem, and of the peers asked for those that are installed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory

from deploy.bench.measure import Workload
from deploy.bench.options import RANDOM_TRANSFORMER, DecodeOptions
from deploy.bench.rows import Row
from deploy.bench.systems import TANDEM, Label, Opening
from deploy.bench.tandem import SHORTLIST_GRAPH, TandemOpening, check_one_text
from models.bundle import Bundle

NEEDS = {"ctranslate2": ("ctranslate2",), "huggingface": ("torch", "transformers")}


@dataclass(frozen=True, slots=True)
class Entrant:
    """A system that takes part.

    Attributes:
        opening: how to load it.
        works: the kinds of work that it does.
    """

    opening: Opening
    works: tuple[Workload, ...]


def entrants(bundle: Bundle, options: DecodeOptions, workers: int, stack: ExitStack) -> tuple[list[Entrant], list[Row]]:
    """Those that take part, and a row for each that does not.

    Args:
        bundle: Tandem's.
        options: of the benchmark.
        workers: threads of each system.
        stack: keeps the peers' models on disk for as long as it is open.

    Raises:
        ConfigError: a shortlist is asked for that the bundle does not have; ``ct2_from`` names a bundle that is not a
            Transformer with one source.
    """
    works: tuple[Workload, ...] = ("forced", "text") if options.text.source else ("forced",)
    found, skipped = [Entrant(one, works) for one in _tandem(bundle, options, workers)], list[Row]()
    for peer in options.peers:
        if missing := [package for package in NEEDS[peer] if not _installed(package)]:
            reason = f"needs {' and '.join(missing)}, not installed: install tandem with its extra [bench]"
            skipped += [Row(peer, workload=work, skipped=reason) for work in works]
        elif peer == "ctranslate2":
            found += _ctranslate2_random(bundle, options, workers, stack)
            if options.text.source and options.text.ct2_from:
                found += _ctranslate2_trained(options.text.ct2_from, bundle, options, workers, stack)
            elif options.text.source:
                skipped.append(Row(peer, workload="text", skipped="real text needs a trained model: --ct2-from BUNDLE"))
        else:
            found.append(Entrant(_huggingface(bundle, options, workers), ("forced",)))
            if options.text.source:
                skipped.append(Row(peer, workload="text", skipped="its model is random: it has nothing to say on text"))
    return found, skipped


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


def _random_size(options: DecodeOptions) -> str:
    layers, width, hidden = (RANDOM_TRANSFORMER[name] for name in ("layers", "width", "hidden"))
    return f"random Transformer {layers}+{layers}, d={width}, f={hidden}, V={options.peer_vocabulary}"


def _ctranslate2_random(bundle: Bundle, options: DecodeOptions, workers: int, stack: ExitStack) -> Iterator[Entrant]:
    from deploy.bench.peers.conversion import random_tokens, write_random

    tokens = tuple(random_tokens(options.peer_vocabulary))
    for precision in options.peer_precisions:
        folder = Path(stack.enter_context(TemporaryDirectory(prefix="tandem-bench-")))
        write_random(
            folder,
            vocabulary=options.peer_vocabulary,
            precision=precision,
            **RANDOM_TRANSFORMER,
        )
        label = Label("ctranslate2", _random_size(options), precision)
        yield Entrant(_ct2_opening(label, folder, (tokens, tokens), bundle, options, workers), ("forced",))


def _ctranslate2_trained(
    path: Path, bundle: Bundle, options: DecodeOptions, workers: int, stack: ExitStack
) -> Iterator[Entrant]:
    """CTranslate2 with our trained Transformer, and Tandem with the same bundle beside it."""
    from deploy.bench.peers.conversion import pieces, write_bundle_model

    trained = Bundle.load(path)
    check_one_text(trained)
    if trained.path.resolve() != bundle.path.resolve():
        plain = replace(options, shortlist=False)
        yield from (Entrant(one, ("text",)) for one in _tandem(trained, plain, workers))
    names = (tuple(pieces(trained.source_vocabularies[0])), tuple(pieces(trained.target_vocabulary)))
    for precision in options.peer_precisions:
        folder = Path(stack.enter_context(TemporaryDirectory(prefix="tandem-bench-")))
        write_bundle_model(folder, trained, precision)
        label = Label("ctranslate2", trained.manifest.name, precision)
        yield Entrant(_ct2_opening(label, folder, names, trained, options, workers), ("text",))


def _ct2_opening(
    label: Label,
    folder: Path,
    names: tuple[tuple[str, ...], tuple[str, ...]],
    bundle: Bundle,
    options: DecodeOptions,
    workers: int,
) -> Opening:
    from deploy.bench.peers.ctranslate2 import Ct2Opening

    return Ct2Opening(label, folder, names, bundle.path, options.beam_size, workers)


def _huggingface(bundle: Bundle, options: DecodeOptions, workers: int) -> Opening:
    from deploy.bench.peers.huggingface import HuggingFaceOpening

    return HuggingFaceOpening(
        label=Label("huggingface", _random_size(options), "float32"),
        bundle=bundle.path,
        beam_size=options.beam_size,
        workers=workers,
        vocabulary=options.peer_vocabulary,
        **RANDOM_TRANSFORMER,
    )
