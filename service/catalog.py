"""Which loaded bundle answers which request."""

from __future__ import annotations

from collections.abc import Mapping

from models.bundle import Bundle
from service.engine import Engine
from service.errors import InvalidFields, LanguageNotServed, ModelNotFound, PairNotServed
from service.languages import is_language_code, language_name, match_language
from service.schemas import Language, ModelInfo


class Catalog:
    """Looks at the engine's bundles at every call, so that loading and unloading shows at once."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def translator(self, source: str, target: str, model: str | None) -> tuple[Bundle, str]:
        """The bundle that translates a pair, and the source's code as the bundle writes it.

        Raises:
            InvalidFields: something that is no language code.
            LanguageNotServed, PairNotServed: no bundle does it; the message names the pairs that are served.
            ModelNotFound: no bundle of that name.
        """
        for field, code in (("source", source), ("target", target)):
            if code.lower() == "auto":
                raise InvalidFields.of(field, "must be a language code: detection ('auto') is not available yet", code)
            if not is_language_code(code):
                raise InvalidFields.of(field, "must be a language code such as 'de'", code)
        bundles = self._of_task("translate")
        if model is not None:
            bundles = {model: self._named(model, bundles)}
        for bundle in bundles.values():
            known = match_language(source, bundle.manifest.source_languages)
            if known and match_language(target, [bundle.manifest.target_language]):
                return bundle, known
        raise self._not_served(source, target, model, bundles)

    def summarizer(self, language: str | None, model: str | None) -> tuple[Bundle, str]:
        """The bundle that summarizes a language (the first one where none is named), and the language's code.

        Raises:
            InvalidFields, LanguageNotServed, ModelNotFound: as for ``translator``.
        """
        bundles = self._of_task("summarize")
        if model is not None:
            bundles = {model: self._named(model, bundles)}
        if not bundles:
            raise ModelNotFound("no loaded model summarizes; GET /models lists what is loaded")
        if language is None:
            bundle = next(iter(bundles.values()))
            return bundle, bundle.manifest.source_languages[0]
        if not is_language_code(language):
            raise InvalidFields.of("language", "must be a language code such as 'en'", language)
        for bundle in bundles.values():
            known = match_language(language, bundle.manifest.source_languages)
            if known:
                return bundle, known
        served = sorted({code for bundle in bundles.values() for code in bundle.manifest.source_languages})
        raise LanguageNotServed(f"no model summarizes {language!r}; served are {', '.join(served)}", {"served": served})

    def languages(self) -> list[Language]:
        """Source languages with their targets."""
        targets: dict[str, set[str]] = {}
        for bundle in self._of_task("translate").values():
            for code in bundle.manifest.source_languages:
                targets.setdefault(code, set()).add(bundle.manifest.target_language)
        return [Language(code=c, name=language_name(c), targets=sorted(t)) for c, t in sorted(targets.items())]

    def models(self) -> list[ModelInfo]:
        """Every loaded bundle."""
        return [self._describe(bundle) for bundle in self._engine.bundles.values()]

    def _describe(self, bundle: Bundle) -> ModelInfo:
        manifest, options = bundle.manifest, self._engine.options
        return ModelInfo(
            name=manifest.name,
            task=manifest.task,
            source_languages=list(manifest.source_languages),
            target_language=manifest.target_language,
            architecture=manifest.architecture,
            runtime=options.runtime,
            precision=options.precision,
            licence=manifest.licence,
            attribution=[corpus.attribution for corpus in manifest.training.corpora],
            scores=[{"metric": s.metric, "value": s.value, "test_set": s.test_set} for s in manifest.scores],
            state="draining" if self._engine.draining else "ready",
        )

    def _of_task(self, task: str) -> dict[str, Bundle]:
        return {name: bundle for name, bundle in self._engine.bundles.items() if bundle.manifest.task == task}

    def _named(self, model: str, bundles: Mapping[str, Bundle]) -> Bundle:
        if model not in bundles:
            names = ", ".join(bundles) or "none"
            message = f"no model for this task is named {model[:80]!r}; there are: {names}"
            raise ModelNotFound(message, {"models": [*bundles]})
        return bundles[model]

    def _not_served(
        self, source: str, target: str, model: str | None, bundles: Mapping[str, Bundle]
    ) -> LanguageNotServed | PairNotServed:
        pairs = sorted({(s, b.manifest.target_language) for b in bundles.values() for s in b.manifest.source_languages})
        names = ", ".join(f"{s}-{t}" for s, t in pairs) or "none"
        detail = {"pairs": [{"source": s, "target": t} for s, t in pairs]}
        where = f"the model {model!r}" if model else "this server"
        known = {code for pair in pairs for code in pair}
        for code in (source, target):
            if match_language(code, known) is None:
                return LanguageNotServed(f"{where} does not know the language {code!r}; pairs served: {names}", detail)
        return PairNotServed(f"{where} does not translate {source}-{target}; pairs served: {names}", detail)
