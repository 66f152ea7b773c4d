"""What runs a bundle where nobody waits: what commands that decode have in common, options and checks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

from tandem.local import SENTENCES, LocalService, log_quietly
from tandem.models.bundle import Bundle
from tandem.models.command import MaxBatchSentences, Precision, RuntimeThreads, UsedDevice, UsedRuntime
from tandem.models.errors import ConfigError, CorpusError
from tandem.models.search import Graphs
from tandem.models.search.shortlist import Shortlist
from tandem.models.search.start import slots_of
from tandem.service.bundles.loading import OpenBundle
from tandem.service.engine import Backend
from tandem.service.runtimes import Placement, open_graphs, resolve_device
from tandem.service.telemetry.cgroups import usable_cores

Opener = Callable[[Bundle, str, str, int, Placement], Graphs]
"""Opens graphs as :func:`service.runtimes.open_graphs` does."""
_SENTENCES = 256  # of a batch on a GPU, unless it is told


@dataclass(frozen=True, slots=True)
class RuntimeOptions:
    """What runs a bundle, and where. ``int8``, the default, means ``float16`` on a GPU.

    The last is for torch on a GPU, named as the service's setting; where ``auto`` finds none it is dropped.
    """

    runtime: UsedRuntime = "onnx"
    precision: Precision = "int8"
    threads: RuntimeThreads = 1
    device: UsedDevice = "cpu"
    max_batch_sentences: MaxBatchSentences = _SENTENCES

    def placed(self) -> Self:
        """The same with what device and precision stand for on this machine.

        Raises:
            ConfigError: no such device here, the runtime cannot use it, or ``max_batch_sentences`` is for a GPU.
        """
        if self.max_batch_sentences != _SENTENCES and (self.runtime != "torch" or self.device == "cpu"):
            raise ConfigError(
                "--max-batch-sentences is for --runtime torch with a GPU as --device,"
                f" but these are {self.runtime} and {self.device}"
            )
        device = resolve_device(self.runtime, self.device)
        if device == "cpu":
            return replace(self, device=device, max_batch_sentences=_SENTENCES)
        narrow = self.precision == "int8"
        return replace(self, device=device, precision="float16" if narrow else self.precision)

    def open_graphs(self, bundle: Bundle, opener: Opener = open_graphs) -> Graphs:
        """A bundle's graphs. Raises as ``placed`` and :func:`service.runtimes.open_graphs`."""
        own = self.placed()
        placement = Placement(own.device, own.max_batch_sentences)
        return opener(bundle, own.runtime, own.precision, own.threads, placement)

    @property
    def backend(self) -> Backend:
        """The same as the service tells of a bundle. Raises as ``placed``."""
        own = self.placed()
        return Backend(
            own.runtime, own.precision if own.runtime == "onnx" or own.device != "cpu" else "float32", own.device
        )

    def local_service(self, opened: Sequence[OpenBundle], *, shortlist: bool) -> LocalService:
        """The text service over bundles that are opened as these say; it logs what goes wrong only."""
        log_quietly()
        own = self.placed()
        sentences = SENTENCES if own.device == "cpu" else own.max_batch_sentences
        return LocalService(opened, shortlist=shortlist, batch_sentences=sentences)

    def processes(self, wanted: int) -> int:
        """How many processes decode where so many are wanted, 0 for one on each core; a GPU has enough of one."""
        return wanted or (usable_cores() if self.placed().device == "cpu" else 1)

    def __str__(self) -> str:
        return str(self.backend)


def directed(bundle: Bundle, language: str = "", target: str = "") -> Bundle:
    """A bundle of several directions as one of that which the languages name, empty for any.

    Raises:
        ConfigError: it has none such.
    """
    manifest = bundle.manifest
    if not manifest.pairs and target in ("", manifest.target_language):
        return bundle
    found = [(read, into) for read, into in manifest.pairs if language in ("", read) and target in ("", into)]
    if found:
        return bundle.direction(*found[0])
    pairs = manifest.pairs or tuple((read, manifest.target_language) for read in manifest.source_languages)
    known = ", ".join("-".join(pair) for pair in pairs)
    asked = f"{language or '…'}-{target or '…'}"
    raise ConfigError(f"--language and --target must be of {known}, which {manifest.name} translates, not {asked}")


def translates_text(bundle: Bundle) -> bool:
    """Whether it translates one text: what ``POST /translate`` asks of it."""
    return bundle.manifest.task == "translate" and len(bundle.sources) == 1 and bundle.sources[0] is not None


def check_count(bundle: Bundle, sources: Sequence[Path]) -> None:
    """Raises CorpusError where there is not one file for each of the bundle's sources."""
    if len(sources) != len(bundle.sources):
        raise CorpusError(f"{bundle.path} has {len(bundle.sources)} sources, but {len(sources)} are given")


def check_shortlist(bundle: Bundle, graphs: Graphs) -> Shortlist:
    """The bundle's shortlist. Raises ConfigError where it has none, no graph reads one, or the search uses none."""
    if bundle.shortlist is None:
        raise ConfigError(f"{bundle.path} has no shortlist: build one with `tandem shortlist`")
    if "step_shortlist" not in graphs.specs:
        raise ConfigError(f"{bundle.path} has a shortlist, but these graphs read none: export them again")
    if slots_of(graphs):
        raise ConfigError("the search of the runtime torch uses no shortlist: leave it out, or take --runtime onnx")
    return bundle.shortlist
