"""Which loaded bundle answers which request."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from models.bundle import Bundle
from service.api.replies import Direction
from service.api.schemas import Combination, Language, ModelInfo
from service.engine import Engine, alias_of
from service.http.errors import InvalidFields, LanguageNotServed, ModelNotFound, PairNotServed
from service.text.languages import base_code, is_language_code, language_name, match_language


@dataclass(frozen=True, slots=True)
class Route:
    """The bundle that translates a request, and where it finds each of its sources.

    Attributes:
        languages: per source, its language as the bundle writes it.
        fields: per source, the request's field that holds it: ``q``, or ``others.`` and a code.
    """

    bundle: Bundle
    languages: tuple[str, ...]
    fields: tuple[str, ...]

    @property
    def lead(self) -> int:
        """The source that is ``q``."""
        return self.fields.index("q")


class Catalog:
    """Looks at the engine's bundles at every call, so that loading and unloading shows at once."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def translator(self, source: str, target: str, model: str | None, others: Sequence[str] = ()) -> Route:
        """The bundle that translates a pair, or several source languages together.

        A bundle with several sources answers only where all of its languages are given and no other one, in any order;
        a bundle with one source only where there are no others.

        Raises:
            InvalidFields: something that is no language code.
            LanguageNotServed, PairNotServed: no bundle does it; the message names what is served, and what is missing
                or too much.
            ModelNotFound: no bundle of that name.
        """
        for field, code in (("source", source), ("target", target), *((f"others.{code}", code) for code in others)):
            _require_code(field, code)
        _require_different(source, others)
        bundles = self._chosen(self._of_task("translate"), model)
        for bundle in _views(bundles):
            route = _route(bundle, source, others)
            if route and match_language(target, [bundle.manifest.target_language]):
                return route
        raise _not_served("translate", (source, *others), target, model, bundles)

    def posteditor(self, source: str | None, target: str | None, model: str | None) -> Bundle:
        """The bundle that corrects translations, of a pair where it is named: its sources are text and translation.

        Raises:
            InvalidFields, LanguageNotServed, PairNotServed, ModelNotFound: as for ``translator``.
        """
        bundles = self._chosen(self._of_task("postedit", sources=2), model)
        if not bundles:
            raise ModelNotFound("no loaded model post-edits; GET /models lists what is loaded")
        for field, code in (("source", source), ("target", target)):
            if code is not None:
                _require_code(field, code)
        for bundle in bundles.values():
            manifest = bundle.manifest
            if (source is None or match_language(source, manifest.source_languages[:1])) and (
                target is None or match_language(target, [manifest.target_language])
            ):
                return bundle
        first = next(iter(bundles.values())).manifest
        pair = (source or first.source_languages[0], target or first.target_language)
        raise _not_served("post-edit", pair[:1], pair[1], model, bundles)

    def summarizer(self, language: str | None, model: str | None) -> Bundle:
        """The bundle that summarizes a language; the first one where none is named.

        Raises:
            InvalidFields, LanguageNotServed, ModelNotFound: as for ``translator``.
        """
        bundles = self._chosen(self._of_task("summarize", sources=1), model)
        if not bundles:
            raise ModelNotFound("no loaded model summarizes; GET /models lists what is loaded")
        if language is None:
            return next(iter(bundles.values()))
        _require_code("language", language)
        for bundle in bundles.values():
            if match_language(language, bundle.manifest.source_languages):
                return bundle
        served = sorted({code for bundle in bundles.values() for code in bundle.manifest.source_languages})
        raise LanguageNotServed(f"no model summarizes {language!r}; served are {', '.join(served)}", {"served": served})

    def source_languages(self, target: str | None = None, model: str | None = None) -> list[str]:
        """Codes that are translated from, where named into that language and by that model; in the bundles' order.

        Raises:
            ModelNotFound: no bundle of that name.
        """
        found: dict[str, None] = {}
        for bundle in _views(self._chosen(self._of_task("translate", sources=1), model)):
            if target is None or match_language(target, [bundle.manifest.target_language]):
                found |= dict.fromkeys(bundle.manifest.source_languages)
        return list(found)

    def languages(self) -> list[Language]:
        """Languages with their targets, alone and together with others.

        Those that are only translated into have none: clients take the codes of this list as all that is known.
        """
        targets: dict[str, set[str]] = {}
        together: dict[str, set[tuple[tuple[str, ...], str]]] = {}
        for bundle in _views(self._chosen(self._of_task("translate"), None)):
            manifest = bundle.manifest
            targets.setdefault(manifest.target_language, set())
            for code in manifest.source_languages:
                alone = targets.setdefault(code, set())
                if _sources(bundle) == 1:
                    alone.add(manifest.target_language)
                else:
                    together.setdefault(code, set()).add((manifest.source_languages, manifest.target_language))
        return [
            Language(
                code=code,
                name=language_name(code),
                targets=sorted(alone),
                combinations=[Combination(sources=list(s), target=t) for s, t in sorted(together.get(code, ()))]
                or None,
            )
            for code, alone in sorted(targets.items())
        ]

    def models(self) -> list[ModelInfo]:
        """Every loaded bundle, and those that are being unloaded."""
        engine = self._engine
        return [self._describe(bundle) for bundle in (*engine.bundles.values(), *engine.leaving.values())]

    def _describe(self, bundle: Bundle) -> ModelInfo:
        manifest = bundle.manifest
        backend = self._engine.backends[manifest.name]
        draining = self._engine.draining or manifest.name in self._engine.leaving
        return ModelInfo(
            name=manifest.name,
            alias=alias_of(manifest.name),
            current=manifest.name in self._engine.aliases.values(),
            task=manifest.task,
            source_languages=list(manifest.source_languages),
            sources=_sources(bundle),
            target_language=manifest.target_language,
            pairs=[Direction(source=source, target=target) for source, target in manifest.pairs] or None,
            architecture=manifest.architecture,
            runtime=backend.runtime,
            precision=backend.precision,
            licence=manifest.licence,
            attribution=[corpus.attribution for corpus in manifest.training.corpora],
            scores=[{"metric": s.metric, "value": s.value, "test_set": s.test_set} for s in manifest.scores],
            state="draining" if draining else "ready",
        )

    def _of_task(self, task: str, sources: int | None = None) -> dict[str, Bundle]:
        """The bundles of a task, where asked those with so many sources."""
        return {
            name: bundle
            for name, bundle in self._engine.bundles.items()
            if bundle.manifest.task == task and sources in (None, _sources(bundle))
        }

    def _chosen(self, bundles: dict[str, Bundle], model: str | None) -> dict[str, Bundle]:
        """The one of that name or alias; where none is named, of each alias the version that it stands for."""
        aliases = self._engine.aliases
        if model is None:
            return {name: bundles[name] for name in aliases.values() if name in bundles}
        name = aliases.get(model, model)
        if name not in bundles:
            names = ", ".join(bundles) or "none"
            message = f"no model for this task is named {model[:80]!r}; there are: {names}"
            raise ModelNotFound(message, {"models": [*bundles]})
        return {name: bundles[name]}


def _require_code(field: str, code: str) -> None:
    """Raises InvalidFields for what is no language code."""
    if code.lower() == "auto":
        raise InvalidFields.of(field, "must be a language code: detection ('auto') is not available yet", code)
    if not is_language_code(code):
        raise InvalidFields.of(field, "must be a language code such as 'de'", code)


def _require_different(source: str, others: Sequence[str]) -> None:
    """Raises InvalidFields where a text's language, or another country's variety of it, was given already."""
    given = {base_code(source)}
    for code in others:
        if base_code(code) in given:
            raise InvalidFields.of(f"others.{code}", "must be another language than the other texts'", code)
        given.add(base_code(code))


def _views(bundles: Mapping[str, Bundle]) -> list[Bundle]:
    """Each bundle once for every language that it translates into."""
    return [view for bundle in bundles.values() for view in bundle.views]


def _sources(bundle: Bundle) -> int:
    """Texts that a bundle reads at once. With one source, it may know several languages; else it has one for each."""
    return len(bundle.sources)


def _route(bundle: Bundle, source: str, others: Sequence[str]) -> Route | None:
    """Where a bundle finds its sources among the given languages, if it needs exactly these."""
    known = bundle.manifest.source_languages
    given = {match_language(source, known): "q", **{match_language(code, known): f"others.{code}" for code in others}}
    if None in given or len(given) != 1 + len(others) or len(given) != _sources(bundle):
        return None
    languages = tuple(code for code in known if code in given)
    return Route(bundle, languages, tuple(given[code] for code in languages))


def _not_served(
    verb: str, sources: Sequence[str], target: str, model: str | None, bundles: Mapping[str, Bundle]
) -> LanguageNotServed | PairNotServed:
    pairs, together = _served(verb, bundles)
    names = ", ".join([*(f"{s}-{t}" for s, t in pairs), *(f"{'+'.join(s)}-{t}" for s, t in together)]) or "none"
    detail: dict[str, Any] = {"pairs": [{"source": s, "target": t} for s, t in pairs]}
    if together:
        detail["combinations"] = [{"sources": list(s), "target": t} for s, t in together]
    where = f"the model {model!r}" if model else "this server"
    known = {code for s, t in pairs for code in (s, t)} | {code for s, t in together for code in (*s, t)}
    for code in (*sources, target):
        if match_language(code, known) is None:
            return LanguageNotServed(f"{where} does not know the language {code!r}; pairs served: {names}", detail)
    missing, surplus = _difference(sources, target, pairs, together)
    faults = [f"without {', '.join(missing)}"] if missing else []
    faults += [f"with {', '.join(surplus)} as well"] if surplus else []
    detail |= {"missing": missing, "surplus": surplus} if faults else {}
    wanted = " ".join([f"{'+'.join(sources)}-{target}", *faults])
    return PairNotServed(f"{where} does not {verb} {wanted}; pairs served: {names}", detail)


Pairs = list[tuple[str, str]]
Combinations = list[tuple[tuple[str, ...], str]]


def _served(verb: str, bundles: Mapping[str, Bundle]) -> tuple[Pairs, Combinations]:
    """What the bundles translate: pairs of languages, and several source languages together."""
    pairs: set[tuple[str, str]] = set()
    together: set[tuple[tuple[str, ...], str]] = set()
    for bundle in _views(bundles):
        manifest = bundle.manifest
        if verb == "post-edit":
            pairs.add((manifest.source_languages[0], manifest.target_language))
        elif _sources(bundle) == 1:
            pairs |= {(code, manifest.target_language) for code in manifest.source_languages}
        else:
            together.add((manifest.source_languages, manifest.target_language))
    return sorted(pairs), sorted(together)


def _difference(
    sources: Sequence[str], target: str, pairs: Pairs, together: Combinations
) -> tuple[list[str], list[str]]:
    """What is missing and what is too much for the nearest that is served into that language; nothing where none is."""

    def of(needed: Collection[str]) -> tuple[list[str], list[str]]:
        matched = {code: match_language(code, needed) for code in sources}
        return [one for one in needed if one not in matched.values()], [one for one in sources if matched[one] is None]

    candidates = [of(needed) for needed, to in together if match_language(target, [to])]
    candidates += [of((source,)) for source, to in pairs if match_language(target, [to]) and len(sources) > 1]
    near = [one for one in candidates if len(one[1]) < len(sources)]
    return min(near, key=lambda one: len(one[0]) + len(one[1]), default=([], []))
