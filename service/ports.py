"""Ports: what an extra may bring, and the one place where the core finds extras.

An extra is a folder of ``extras`` with a ``port``, or an entry point in the group ``tandem.extras`` of an installed
distribution. It is found by looking, not by name: the core imports none, and runs as well where they are deleted. A
port names what it brings as ``module:attribute``, as entry points do, so that looking at it imports none of it. The
types of what stands there are the core's, beside their use:

    settings    pydantic model          its fields are settings of the service (``service.settings``)
    accounts    ``AccountsOpener``      who calls, and what they have stored (``service.callers``)
    resources   ``Opener``              opened and closed with the running service (``service.http.dependencies``)
    http        ``HttpPart``            routes, errors, dialects, bounds of bodies, documents (``service.http.parts``)
    markup      ``MarkupReader``        texts with markup in them (``service.text.blocks``)
    aligner     ``WordAligner``         which words belong together (``service.bundles.aligning``)
    extracts    ``ExtractText``         summaries without a model (``service.translation.summaries``)
    reranker    ``DecodeRanked``        the choice among hypotheses by a model back (``service.translation.plans``)
    strings     ``ProgramStrings``      what is done to strings of programs (``service.translation.stages``)
    fidelity    ``Fidelity``            translations held against sources (``service.translation.fidelity``)
    stages      ``StageMaker``          text stages (``service.translation.stages``)
    readers     ``StageReader``         what these need of bundles (``models.bundle``)
    versions    function                versions that aliases were switched to (``service.bundles.loading``)
    tracing     ``OpenTracing``         traces of requests (``service.http.parts``)
    operators   ``OpenOperators``       operators for ONNX Runtime on the CPU (``service.runtimes.sessions``)
    searches    ``OpenSearch``          a search where a torch model lies (``models.steps.device_search``)
    sources     ``ModelSource``         public models by a scheme, such as ``firefox:`` (``extras.fetching.sources``)
    augmentation ``OpenAugmentation``   what rewrites training pairs (``training.loop.commands``)
    dictionary  ``BuildDictionary``     what aligns the words of word vocabularies (``training.data.prepare``)
    selection   ``OpenSelection``       words of the output layer while training (``training.loop.objective``)
    trackers    ``FindTrackers``        places for a training's progress (``training.loop.reporting``)
    formats     file types              of the extra ``files`` (``extras.files.formats.record``)
    commands    function or group       of `tandem` (``deploy.cli``)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache, reduce
from importlib import import_module
from importlib.metadata import entry_points
from importlib.util import find_spec
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from tandem.models.bundle import StageReader

_FOLDER = _GROUP = "tandem.extras"


@dataclass(frozen=True, slots=True, kw_only=True)
class Extra:
    """What an extra brings. It is the ``EXTRA`` of its port, or what the entry point names.

    The table above says what the others are, each once or by a name that is asked for; what is left out, it brings not.

    Attributes:
        name: its folder's, or its entry point's.
        commands: of `tandem`, by name: where they are, and their lines in the list.
        measurements: of `tandem bench`, by name: where the record of their options is, and their module.
        needs: of those of its commands and measurements that need other extras, by name, these: where one is missing
            the command or measurement is not there.
        packages: those that its commands need, by the extra of the distribution that brings them.
        stages: by the names that bundles ask for them with; so are ``readers``.
        searches: by the kind of device on which the model lies, ``cpu`` or ``cuda``.
        sources: by the scheme that their names begin with.
        accounts: one extra at most brings it.
        resources: in the order in which they open; those that close last are the first.
        versions: of the data folder which version each alias was switched to, given the configured one.
        http: each with the names of the other extras that it needs: where one of these is missing, that part is not
            there.
    """

    name: str
    commands: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    measurements: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    needs: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    packages: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    markup: str | None = None
    aligner: str | None = None
    extracts: str | None = None
    reranker: str | None = None
    strings: str | None = None
    fidelity: str | None = None
    stages: Mapping[str, str] = field(default_factory=dict)
    readers: Mapping[str, str] = field(default_factory=dict)
    operators: str | None = None
    searches: Mapping[str, str] = field(default_factory=dict)
    sources: Mapping[str, str] = field(default_factory=dict)
    augmentation: str | None = None
    dictionary: str | None = None
    selection: str | None = None
    trackers: str | None = None
    formats: str | None = None
    settings: str | None = None
    accounts: str | None = None
    resources: tuple[str, ...] = ()
    tracing: str | None = None
    versions: str | None = None
    http: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@cache
def extras() -> tuple[Extra, ...]:
    """All there are: those of the folder by name, and then those of other distributions."""
    own = tuple(import_module(port).EXTRA for port in _ports())
    return own + tuple(point.load() for point in sorted(entry_points(group=_GROUP), key=lambda point: point.name))


def of_all(kind: Literal["commands", "measurements"]) -> dict[str, tuple[str, str]]:
    """The commands or measurements of all extras, by name, but for those whose needs are not met."""
    there = {extra.name for extra in extras()}
    return {
        name: place
        for extra in extras()
        for name, place in getattr(extra, kind).items()
        if there.issuperset(extra.needs.get(name, ()))
    }


def load(place: str) -> Any:
    """What stands at ``module:attribute``; the attribute may be one of a class."""
    module, _, attributes = place.partition(":")
    return reduce(getattr, attributes.split("."), import_module(module))


@cache
def stage_readers() -> Mapping[str, StageReader]:
    """What text stages read of bundles, by their names."""
    return {stage: load(place) for extra in extras() for stage, place in extra.readers.items()}


def _ports() -> Iterator[str]:
    """The modules that say what an extra of the folder brings, by name."""
    spec = find_spec(_FOLDER)
    folders = spec.submodule_search_locations if spec else None
    for module in iter_modules(folders or []):
        port = f"{_FOLDER}.{module.name}.port"
        if module.ispkg and find_spec(port) is not None:
            yield port
