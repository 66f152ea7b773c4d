"""Which loaded bundle answers which request."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, NamedTuple

from tandem.models.bundle import Bundle
from tandem.service.bundles.aligning import word_aligner
from tandem.service.bundles.served import ServedModel
from tandem.service.engine import Engine
from tandem.service.errors import InvalidOption, LanguageNotServed, ModelNotFound, PairNotServed
from tandem.service.text.languages import base_code, is_language_code, language_name, match_language

Models = Mapping[str, tuple[ServedModel, ...]]
"""By name, a bundle once for every language that it translates into."""


@dataclass(frozen=True, slots=True)
class Route:
    """The model that answers a request, and where it finds each of its sources.

    Attributes:
        languages: per source, its language as the bundle writes it.
        fields: per source, the request's field that holds it: ``q``, ``translation``, or ``others.`` and a code.
        lead: the source whose layout the answer keeps, and whose text comes back where there is nothing to do.
        complete: whether a text that has words in one source must have some in all.
        onward: for a pair that no model translates by itself, where what this one writes goes next; None = nowhere.
    """

    model: ServedModel
    languages: tuple[str, ...]
    fields: tuple[str, ...] = ("q",)
    lead: int = 0
    complete: bool = True
    onward: Route | None = None

    @property
    def models(self) -> tuple[ServedModel, ...]:
        """What a text goes through."""
        return (self.model,) if self.onward is None else (self.model, self.onward.model)

    @property
    def via(self) -> str | None:
        """The language between source and target; None where there is none."""
        return self.model.target if self.onward else None


class JointSources(NamedTuple):
    """Languages of one text, all of which a model reads at once, and the one that it writes."""

    sources: tuple[str, ...]
    target: str


@dataclass(frozen=True, slots=True)
class ServedLanguage:
    """A language and what it is translated into.

    Attributes:
        targets: alone, those that one model reaches first.
        combinations: together with others; None = nothing.
        via: of targets that no model reaches by itself, the language between; None = there are none.
    """

    code: str
    name: str
    targets: tuple[str, ...]
    combinations: tuple[JointSources, ...] | None = None
    via: Mapping[str, str] | None = None


class Catalog:
    """Looks at the engine's bundles at every call, so that loading and unloading shows at once. Thread-safe."""

    def __init__(self, engine: Engine, pivots: Sequence[str] | None = ()) -> None:
        """
        Args:
            engine: has the bundles.
            pivots: languages that a pair which no bundle translates may go through, the preferred first; empty = any,
                English before the others; None = no pair does.
        """
        self._engine = engine
        self._pivots = pivots
        self._kept: tuple[Mapping[str, Bundle], Models] = {}, {}

    def translator(
        self, source: str, target: str, model: str | None, others: Sequence[str] = (), *, pivot: bool = True
    ) -> Route:
        """The bundle that translates a pair, or several source languages together.

        A bundle with several sources answers only where all of its languages are given and no other one, in any order;
        a bundle with one source only where there are no others. Where none translates a pair, two may do it by way of
        a third language, unless ``pivot`` is false.

        Raises:
            InvalidOption: something that is no language code.
            LanguageNotServed, PairNotServed: no bundle does it; the message names what is served, and what is missing
                or too much.
            ModelNotFound: no bundle of that name.
        """
        for field, code in (("source", source), ("target", target), *((f"others.{code}", code) for code in others)):
            require_code(field, code)
        _require_different(source, others)
        models = self._chosen("translate", model)
        if (route := _direct(_all(models), source, others, target)) is not None:
            return route
        pivoted = self._pivoted(source, target, models) if pivot and not others else None
        if pivoted is not None:
            return pivoted
        through = self._through(_served("translate", models)[0]) if pivot else {}
        raise _not_served("translate", (source, *others), target, model, models, through)

    def channel(self, route: Route) -> ServedModel | None:
        """What translates back what a route's first model writes; its own bundle, where that does it.

        None also where several languages are read at once, or edits are written: neither can be translated back.
        """
        if len(route.languages) > 1 or route.model.bundle.manifest.target_form != "text":
            return None
        own_first = sorted(_all(self._chosen("translate", None)), key=lambda one: one.name != route.model.name)
        back = _direct(own_first, route.model.target, (), route.languages[0])
        return None if back is None else back.model

    def posteditor(self, source: str | None, target: str | None, model: str | None) -> Route:
        """The bundle that corrects translations, of a pair where it is named: its sources are text and translation.

        Raises:
            InvalidOption, LanguageNotServed, PairNotServed, ModelNotFound: as for ``translator``.
        """
        models = self._chosen("postedit", model, sources=2)
        if not models:
            raise ModelNotFound("no loaded model post-edits; GET /models lists what is loaded")
        for field, code in (("source", source), ("target", target)):
            if code is not None:
                require_code(field, code)
        for served, *_ in models.values():
            manifest = served.bundle.manifest
            if (source is None or match_language(source, manifest.source_languages[:1])) and (
                target is None or match_language(target, [manifest.target_language])
            ):
                languages = (manifest.source_languages[0], manifest.target_language)
                return Route(served, languages, ("q", "translation"), lead=1, complete=False)
        first = next(iter(models.values()))[0]
        pair = (source or first.bundle.manifest.source_languages[0], target or first.target)
        raise _not_served("post-edit", pair[:1], pair[1], model, models)

    def summarizer(self, language: str | None, model: str | None) -> Route:
        """The bundle that summarizes a language; the first one where none is named.

        Raises:
            InvalidOption, LanguageNotServed, ModelNotFound: as for ``translator``.
        """
        models = self._chosen("summarize", model, sources=1)
        if not models:
            raise ModelNotFound("no loaded model summarizes; GET /models lists what is loaded")
        if language is not None:
            require_code("language", language)
        for served, *_ in models.values():
            languages = served.bundle.manifest.source_languages
            read = languages[0] if language is None else match_language(language, languages)
            if read is not None:
                return Route(served, (read,))
        known = sorted(self.summarized_languages(model))
        raise LanguageNotServed(f"no model summarizes {language!r}; served are {', '.join(known)}", {"served": known})

    def summarized_languages(self, model: str | None = None) -> list[str]:
        """Codes that are summarized, where named by that model; in the bundles' order.

        Raises:
            ModelNotFound: no bundle of that name.
        """
        models = self._chosen("summarize", model, sources=1).values()
        return list(dict.fromkeys(code for served, *_ in models for code in served.bundle.manifest.source_languages))

    def source_languages(
        self, target: str | None = None, model: str | None = None, *, pivot: bool = False
    ) -> list[str]:
        """Codes that are translated from, where named into that language and by that model; in the bundles' order.

        With ``pivot``, those that need a third language on the way come after the others.

        Raises:
            ModelNotFound: no bundle of that name.
        """
        models = self._chosen("translate", model, sources=1)
        found: dict[str, None] = {}
        for served in _all(models):
            if target is None or match_language(target, [served.target]):
                found |= dict.fromkeys(served.bundle.manifest.source_languages)
        if target is not None and pivot:
            through = self._through(_served("translate", models)[0])
            found |= dict.fromkeys(one for one, to in through if match_language(target, [to]))
        return list(found)

    def languages(self) -> list[ServedLanguage]:
        """Languages with their targets, alone and together with others.

        Those that are only translated into have none: clients take the codes of this list as all that is known.
        """
        pairs, together = _served("translate", self._chosen("translate", None))
        through = self._through(pairs)
        found = []
        for code in _codes(pairs, together):
            via = {target: between for (source, target), between in through.items() if source == code}
            targets = (*(target for source, target in pairs if source == code), *via)
            combinations = tuple(joint for joint in together if code in joint.sources)
            found.append(ServedLanguage(code, language_name(code), targets, combinations or None, via or None))
        return found

    def _pivoted(self, source: str, target: str, models: Models) -> Route | None:
        """The way from one language to another by way of a third one, the best that there is."""
        last = [served for served in _all(models) if match_language(target, [served.target])]
        ways: list[tuple[tuple[int, str], Route]] = []
        for served in _all(models) if last else ():
            rank, first = self._rank(source, served.target, target), _route(served, source, ())
            if rank is not None and first is not None:
                seconds = (_route(one, served.target, ()) for one in last)
                ways += [(rank, replace(first, onward=second)) for second in seconds if second is not None]
        return min(ways, key=lambda way: way[0])[1] if ways else None

    def _through(self, pairs: Pairs) -> dict[tuple[str, str], str]:
        """Pairs that two of the given ones make, in order, and the language between."""
        into: dict[str, list[str]] = {}
        for source, target in pairs:
            into.setdefault(source, []).append(target)
        read = {between: match_language(between, into) for between in {target for _, target in pairs}}
        direct, found = set(pairs), dict[tuple[str, str], tuple[int, str]]()
        for source, between in pairs:
            for target in into.get(read[between] or "", ()):
                rank = self._rank(source, between, target)
                if rank is not None and (source, target) not in direct:
                    found[source, target] = min(rank, found.get((source, target), rank))
        return {pair: found[pair][1] for pair in sorted(found)}

    def _rank(self, source: str, between: str, target: str) -> tuple[int, str] | None:
        """How good a language is to go through, lower is better; None where it is not allowed, or not a third one."""
        if self._pivots is None or len({*map(base_code, (source, between, target))}) < 3:
            return None
        if not self._pivots:
            return int(base_code(between) != "en"), between
        allowed = (place for place, code in enumerate(self._pivots) if match_language(code, [between]))
        return next(((place, between) for place in allowed), None)

    def _models(self) -> Models:
        """What is loaded, worked out anew whenever that has changed: the engine replaces its bundles as a whole."""
        bundles, models = self._kept
        if bundles is not self._engine.bundles:
            bundles = self._engine.bundles
            aligns = self._engine.aligns if word_aligner() else lambda name: False
            models = {
                name: tuple(ServedModel.of(view, aligns=aligns(name)) for view in bundle.views)
                for name, bundle in bundles.items()
            }
            self._kept = bundles, models
        return models

    def _models_and_aliases(self) -> tuple[Models, Mapping[str, str]]:
        """Both as they were at one moment: after a switch in between, an alias would stand for no model."""
        while True:
            aliases = self._engine.aliases
            models = self._models()
            if aliases is self._engine.aliases:
                return models, aliases

    def _chosen(self, task: str, model: str | None, sources: int | None = None) -> Models:
        """The models of a task, where asked those with so many sources, that a request may mean.

        Where it names one by name or alias, that one; else of each alias the version that it stands for.

        Raises:
            ModelNotFound: no bundle of that name.
        """
        models, aliases = self._models_and_aliases()

        def fits(name: str) -> bool:
            views = models.get(name)
            return views is not None and views[0].bundle.manifest.task == task and sources in (None, _sources(views[0]))

        if model is None:
            return {name: models[name] for name in aliases.values() if fits(name)}
        name = aliases.get(model, model)
        if not fits(name):
            known = [name for name in models if fits(name)]
            message = f"no model for this task is named {model[:80]!r}; there are: {', '.join(known) or 'none'}"
            raise ModelNotFound(message, {"models": known})
        return {name: models[name]}


def require_code(field: str, code: str) -> None:
    """Raises InvalidOption for what is no language code."""
    if code.lower() == "auto":
        bound = "must be a language code: detection ('auto') is for the source of a translation alone"
        raise InvalidOption(field, bound, code, "name the language")
    if not is_language_code(code):
        raise InvalidOption(field, "must be a language code such as 'de'", code)


def _require_different(source: str, others: Sequence[str]) -> None:
    """Raises InvalidOption where a text's language, or another country's variety of it, was given already."""
    given = {base_code(source)}
    for code in others:
        if base_code(code) in given:
            raise InvalidOption(f"others.{code}", "must be another language than the other texts'", code)
        given.add(base_code(code))


def _all(models: Models) -> list[ServedModel]:
    return [served for views in models.values() for served in views]


def _sources(served: ServedModel) -> int:
    """Texts that a model reads at once. With one source, it may know several languages; else it has one for each."""
    return len(served.bundle.feature_widths)


def _route(served: ServedModel, source: str, others: Sequence[str]) -> Route | None:
    """Where a model finds its sources among the given languages, if it needs exactly these."""
    known = served.bundle.manifest.source_languages
    given = {match_language(source, known): "q", **{match_language(code, known): f"others.{code}" for code in others}}
    if None in given or len(given) != 1 + len(others) or len(given) != _sources(served):
        return None
    languages = tuple(code for code in known if code in given)
    fields = tuple(given[code] for code in languages)
    return Route(served, languages, fields, lead=fields.index("q"))


def _direct(models: Sequence[ServedModel], source: str, others: Sequence[str], target: str) -> Route | None:
    """The first of these models that needs exactly the given languages and writes that one."""
    routes = (_route(served, source, others) for served in models if match_language(target, [served.target]))
    return next(filter(None, routes), None)


def _not_served(
    verb: str,
    sources: Sequence[str],
    target: str,
    model: str | None,
    models: Models,
    through: Mapping[tuple[str, str], str] = MappingProxyType({}),
) -> LanguageNotServed | PairNotServed:
    pairs, together = _served(verb, models)
    listed = [*(f"{s}-{t}" for s, t in pairs), *(f"{'+'.join(s)}-{t}" for s, t in together)]
    names = ", ".join([*listed, *(f"{s}-{t} through {via}" for (s, t), via in through.items())]) or "none"
    detail: dict[str, Any] = {"pairs": [{"source": s, "target": t} for s, t in pairs]}
    detail["pairs"] += [{"source": s, "target": t, "via": via} for (s, t), via in through.items()]
    if together:
        detail["combinations"] = [{"sources": list(s), "target": t} for s, t in together]
    where = f"the model {model!r}" if model else "this server"
    known = _codes(pairs, together)
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


def _served(verb: str, models: Models) -> tuple[Pairs, list[JointSources]]:
    """What the models translate: pairs of languages, and several source languages together."""
    pairs: set[tuple[str, str]] = set()
    together: set[JointSources] = set()
    for served in _all(models):
        languages = served.bundle.manifest.source_languages
        if verb == "post-edit":
            pairs.add((languages[0], served.target))
        elif _sources(served) == 1:
            pairs |= {(code, served.target) for code in languages}
        else:
            together.add(JointSources(languages, served.target))
    return sorted(pairs), sorted(together)


def _codes(pairs: Pairs, together: Sequence[JointSources]) -> list[str]:
    """Every language in them."""
    return sorted({code for pair in pairs for code in pair} | {code for s, t in together for code in (*s, t)})


def _difference(
    sources: Sequence[str], target: str, pairs: Pairs, together: Sequence[JointSources]
) -> tuple[list[str], list[str]]:
    """What is missing and what is too much for the nearest that is served into that language; nothing where none is."""

    def of(needed: Collection[str]) -> tuple[list[str], list[str]]:
        matched = {code: match_language(code, needed) for code in sources}
        return [one for one in needed if one not in matched.values()], [one for one in sources if matched[one] is None]

    candidates = [of(needed) for needed, to in together if match_language(target, [to])]
    candidates += [of((source,)) for source, to in pairs if match_language(target, [to]) and len(sources) > 1]
    near = [one for one in candidates if len(one[1]) < len(sources)]
    return min(near, key=lambda one: len(one[0]) + len(one[1]), default=([], []))
