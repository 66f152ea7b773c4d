"""`tandem evaluate`: one bundle on a test set, beside another system where there is one."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import typer
from rich.table import Table

from deploy.evaluation.decoding import Decoding
from deploy.evaluation.reports import Evaluation, Measured, write_report
from deploy.evaluation.systems import (
    UNEDITED,
    SourceFiles,
    System,
    decode_system,
    load_systems,
    read_tests,
)
from deploy.outputs import check_file
from models.bundle import MANIFEST, Bundle, Score, extend_bundle
from models.command import AsJson, command_line, console, say
from models.errors import ConfigError, CorpusError
from models.folders import write_text
from models.search.shortlist import WITH_SHORTLIST
from models.translation.reranking import RERANKED
from models.translation.translator import Column, encode_columns
from training.data.corpus import read_lines
from training.data.shortlists import coverage, encode
from training.quality.lengths import length_classes, source_lengths
from training.quality.metrics import OWN, MeasuredScore, all_metrics, first_sentence, first_words, is_error
from training.quality.significance import SEED, Bootstrap, ComparedScore, Counts


@dataclass(frozen=True, slots=True)
class EvaluationOptions:
    """What an evaluation gives beside the scores of a bundle."""

    against: Annotated[
        Path | None, typer.Option(help="Another bundle, or a file of hypotheses: is the difference significant?")
    ] = None
    tokenised: Annotated[bool, typer.Option("--tokenised", help="The text is tokens already.")] = False
    seed: Annotated[int | None, typer.Option(min=0, help="Of the bootstrap. [sacreBLEU's]")] = None
    out: Annotated[Path | None, typer.Option(help="Write the hypotheses to this file.")] = None
    report: Annotated[Path | None, typer.Option(metavar="FILE.html", help="Write a report with examples.")] = None
    examples: Annotated[int, typer.Option(min=0, help="Segments of each kind in the report.")] = 20
    heat_maps: Annotated[int, typer.Option(min=0, help="Segments there whose attention is drawn.")] = 3
    record: Annotated[str, typer.Option(help="Store the scores in the manifest under this test set's name.")] = ""
    shortlist: Annotated[bool, typer.Option("--shortlist", help="Also with the bundle's shortlist.")] = False
    checkpoint: Annotated[
        Path | None, typer.Option(help="Of a run, this one instead of those that `tandem export` would take.")
    ] = None
    rerank: Annotated[
        Path | None,
        typer.Option(metavar="BUNDLE", help="Also with this bundle, which translates back, choosing the hypotheses."),
    ] = None
    as_json: AsJson = False


def evaluate(
    bundle: Annotated[Path, typer.Argument(metavar="BUNDLE|RUN", help="A bundle, or the folder of a run.")],
    sources: Annotated[
        list[str],
        typer.Option(
            "--source", metavar="[LANGUAGE=]FILE", help="Source text, one segment a line (.xz, .gz, plain), in order."
        ),
    ],
    references: Annotated[
        list[Path],
        typer.Option("--references", help="Reference text, parallel to the source; several times for several."),
    ],
    decoding: Decoding,
    wanted: EvaluationOptions = EvaluationOptions(),
) -> None:
    """Decode a test set and score it: BLEU, chrF, TER and the papers' BLEU of translations, ROUGE of summaries.

    Every score has a bootstrap interval, and the task's own ones are given by source length too. Summaries stand beside
    the beginning of their text, post-edited translations beside the translation as it is (the last source), and all
    beside another system with `--against`: with differences and p-values of the paired bootstrap. Of several references
    (NIST's and DUC's test sets have four) all count, and the first is shown. The report shows examples, sorted by gain
    and loss where there is another system, with heat maps of attention. A run needs no export: PyTorch decodes with the
    weights that its bundle would have. `--against` may be a run too.

    Example: tandem evaluate bundles/de-en --source test.de --references test.en --against bundles/old --report new.html
    """
    check_file(wanted.out, "--out")
    check_file(wanted.report, "--report")
    with TemporaryDirectory() as folder:
        bundle, decoding, wanted = _with_bundles(bundle, decoding, wanted, Path(folder))
        _evaluate_and_show(bundle, SourceFiles.parse(sources), references, decoding, wanted)


def _with_bundles(
    path: Path, decoding: Decoding, wanted: EvaluationOptions, folder: Path
) -> tuple[Path, Decoding, EvaluationOptions]:
    """The same with bundles in the place of runs; these have no graphs, so that PyTorch decodes.

    Raises:
        ConfigError: an option does not go with what is evaluated.
    """
    own, against = _is_run(path), wanted.against if wanted.against and _is_run(wanted.against) else None
    if own and wanted.record:
        raise ConfigError(f"--record: {path} is a run, which has no manifest: tandem export makes a bundle of it")
    if wanted.checkpoint is not None and not own:
        raise ConfigError(f"--checkpoint is for a run, but {path} is none")
    if not own and against is None:
        return path, decoding, wanted
    from training.export.commands import bundle_without_graphs  # here: bundles need no torch

    if own:
        path = bundle_without_graphs(path, folder / "own", wanted.checkpoint).path
    if against is not None:
        wanted = replace(wanted, against=bundle_without_graphs(against, folder / "against").path)
    return path, replace(decoding, runtime="torch"), wanted


def _is_run(path: Path) -> bool:
    return (path / "checkpoints").is_dir() and not (path / MANIFEST).exists()


def _evaluate_and_show(
    path: Path, files: SourceFiles, references: Sequence[Path], decoding: Decoding, wanted: EvaluationOptions
) -> None:
    done = _evaluate(path, files, references, decoding, wanted)
    own = done.systems[done.name]
    if wanted.out is not None:
        write_text(wanted.out, "".join(f"{text}\n" for text in own.texts))
    listed = _coverage(done) if wanted.shortlist else []
    if wanted.record:
        _record(done, wanted.record, listed)
    if wanted.report is not None:
        write_report(done, wanted.report, examples=wanted.examples, heat_maps=wanted.heat_maps)
    if wanted.as_json:
        print(json.dumps(_mapping(done, listed if wanted.shortlist else None), ensure_ascii=False))
    else:
        _print(done, listed)


def _evaluate(
    path: Path, files: SourceFiles, references: Sequence[Path], decoding: Decoding, wanted: EvaluationOptions
) -> Evaluation:
    """Everything is read before anything is decoded."""
    against = wanted.against
    other = [against] if against is not None and against.is_dir() else []
    bundles = load_systems([path, *other], decoding.target, files.languages)
    name, bundle = next(iter(bundles.items()))
    tests, (gold, *further_gold) = read_tests(bundles, files, references, decoding.limit)
    columns = tests[name]
    further = _baselines(bundle, columns)
    if against is not None and not other:
        further.insert(0, _hypotheses(against, {name, *(one.name for one in further)}, references[0], len(gold)))
    with_list = f"{name}{WITH_SHORTLIST}"
    listed = [decode_system(with_list, bundle, columns, decoding, with_shortlist=True)] if wanted.shortlist else []
    channel = None if wanted.rerank is None else _channel(wanted.rerank, bundle)
    ranked = [] if channel is None else [decode_system(f"{name}{RERANKED}", bundle, columns, decoding, channel=channel)]
    own, *others = (decode_system(each, one, tests[each], decoding) for each, one in bundles.items())
    rivals = others or (further if against is not None or bundle.manifest.task == "postedit" else [])
    systems = [own, *listed, *ranked, *others, *further]
    return Evaluation(
        name=name,
        bundle=bundle,
        rival=rivals[0].name if rivals else "",
        columns=columns,
        references=gold,
        systems={system.name: system for system in systems},
        measured=_measure(bundle, systems, columns, [gold, *further_gold], wanted),
        decoding=decoding,
        cut=_cut(bundle, columns),
        files={"sources": ", ".join(map(str, files.paths)), "references": ", ".join(map(str, references))},
    )


def _cut(bundle: Bundle, columns: Sequence[Column]) -> int:
    """How many segments have a text that is longer than the bundle reads."""
    longest = bundle.manifest.limits.max_source_tokens
    texts = [(one, column) for one, column in zip(bundle.sources, columns, strict=True) if one is not None]
    if not texts:
        return 0
    vocabularies, lines = zip(*texts, strict=True)
    return sum(length > longest for length in source_lengths(vocabularies, lines))


def _channel(path: Path, bundle: Bundle) -> Bundle:
    """The bundle that translates back. Raises ConfigError where it does not, or there is no translating back."""
    manifest = bundle.manifest
    if manifest.task != "translate" or len(bundle.feature_widths) > 1 or len(manifest.source_languages) > 1:
        raise ConfigError(f"--rerank: {manifest.name} does not translate one language, so that nothing translates back")
    return Bundle.load(path).direction(manifest.target_language, manifest.source_languages[0])


def _measure(
    bundle: Bundle,
    systems: Sequence[System],
    columns: Sequence[Column],
    references: Sequence[Sequence[str]],
    wanted: EvaluationOptions,
) -> Measured:
    """The first system beside the others: by all metrics, and by length by the task's own."""
    task, language = bundle.manifest.task, bundle.manifest.target_language
    metrics = all_metrics(task, language, tokenised=wanted.tokenised)
    gold, *further = references
    counts = Counts(metrics, {system.name: system.texts for system in systems}, gold, further)
    name, sampling = systems[0].name, Bootstrap(seed=SEED if wanted.seed is None else wanted.seed)
    classes = [
        (one, counts.compare(name, rows=one.rows, metrics=OWN[task], sampling=sampling))
        for one in length_classes(source_lengths(bundle.sources, columns))
    ]
    return Measured(counts, counts.compare(name, sampling=sampling), classes, sampling)


def _baselines(bundle: Bundle, columns: Sequence[Column]) -> list[System]:
    """What costs nothing: the beginning of a text as its summary, a translation left as it is."""
    if bundle.manifest.task == "summarize":
        lines = next(column for column, width in zip(columns, bundle.feature_widths, strict=True) if not width)
        first = System("first sentence", [first_sentence(line) for line in lines])
        return [first, System("first 10 words", [first_words(line) for line in lines])]
    return [System(UNEDITED, list(columns[-1]))] if bundle.manifest.task == "postedit" else []


def _hypotheses(path: Path, taken: set[str], references: Path, segments: int) -> System:
    """Another system's output. With fewer segments than the references have, it must hold these, or all of them.

    Raises:
        ConfigError: there is no such file.
        CorpusError: it cannot be read, or has another number of lines.
    """
    if not path.exists():
        raise ConfigError(f"--against must be a bundle or a file of hypotheses, but there is no {path}")
    lines = read_lines(path)
    if len(lines) != segments and len(lines) != len(read_lines(references)):
        raise CorpusError(f"{path}: has {len(lines)} hypotheses, but {references} has {segments} references")
    return System(str(path) if path.name in taken else path.name, lines[:segments])


def _coverage(done: Evaluation) -> list[MeasuredScore]:
    """How much of the references the bundle's lists hold, and how long they are."""
    bundle, shortlist = done.bundle, done.bundle.shortlist
    if shortlist is None:  # then decoding with it was refused
        return []
    sources = encode_columns(bundle.sources, done.columns, bundle.manifest.limits.max_source_tokens + 1)
    found = coverage(shortlist, list(zip(*sources, strict=True)), encode(bundle.target_vocabulary, done.references))
    return [
        MeasuredScore("% of reference tokens listed", round(100 * found.tokens, 2), ""),
        MeasuredScore("% of references listed whole", round(100 * found.sentences, 2), ""),
        MeasuredScore("tokens of a list", round(found.listed, 1), ""),
    ]


def _record(done: Evaluation, name: str, listed: Sequence[MeasuredScore]) -> None:
    """Store the task's own scores in the manifest with this very command, in place of older ones on the same sets."""
    own = OWN[done.bundle.manifest.task]
    scores = done.measured.scores
    measured: dict[str, list[MeasuredScore | ComparedScore]] = {
        f"{name}{ending}": [score for score in scores[f"{done.name}{ending}"] if score.metric in own]
        for ending in ("", WITH_SHORTLIST, RERANKED)
        if f"{done.name}{ending}" in scores
    }
    if listed:
        measured[f"{name}{WITH_SHORTLIST}"] += listed
    command = command_line()
    new = [Score(s.metric, s.value, test, s.signature, command) for test, found in measured.items() for s in found]
    store_scores(done.bundle.path, new)


def store_scores(path: Path, scores: Sequence[Score]) -> None:
    """Scores into a bundle's manifest, in place of older ones on the same test sets."""
    manifest = Bundle.load(path).manifest  # as it is there: of several directions one alone was evaluated
    kept = [score for score in manifest.scores if score.test_set not in {one.test_set for one in scores}]
    extend_bundle(path, {}, replace(manifest, scores=(*kept, *scores)))


# --- output ----------------------------------------------------------------------------------------------------------


def _speeds(done: Evaluation) -> dict[str, float]:
    """Segments a second of the bundle, and of the bundle with its shortlist or a channel model."""
    ways = {"": "", "_with_shortlist": WITH_SHORTLIST, "_reranked": RERANKED}
    names = {f"segments_per_s{key}": f"{done.name}{ending}" for key, ending in ways.items()}
    found = {key: done.systems[name].decoding_speed for key, name in names.items() if name in done.systems}
    return {key: speed for key, speed in found.items() if speed is not None}


def _plain(scores: Mapping[str, Sequence[ComparedScore]]) -> dict[str, object]:
    return {system: [asdict(score) for score in found] for system, found in scores.items()}


def _mapping(done: Evaluation, listed: Sequence[MeasuredScore] | None) -> dict[str, object]:
    classes = [
        {"shortest": one.shortest, "longest": one.longest, "sentences": len(one.rows), "scores": _plain(scores)}
        for one, scores in done.measured.classes
    ]
    ran = done.decoding.placed()
    decoding = {"runtime": ran.runtime, "precision": ran.precision, "device": ran.device, "beam_size": done.beam_size}
    found = {"scores": _plain(done.measured.scores), "against": done.rival or None, "by_length": classes}
    further = {} if listed is None else {"shortlist": [asdict(score) for score in listed]}
    return {**found, **decoding, "segments": len(done.references), "cut": done.cut, **_speeds(done), **further}


def _print(done: Evaluation, listed: Sequence[MeasuredScore]) -> None:
    own, *others = done.measured.scores
    wide = len(others) == 1  # of more systems the differences, with their intervals, do not fit into a terminal
    table = Table(title=done.setting)
    for title in ("", own, *(title for name in others for title in (name, *(["difference"] if wide else []), "p"))):
        table.add_column(title, justify="right" if title else "left")
    for index, score in enumerate(done.measured.scores[own]):
        beside = [done.measured.scores[name][index] for name in others]
        rows = [[one.shown, *([one.difference_shown] if wide else []), one.p_shown] for one in beside]
        name = f"{score.metric}{' (less is better)' if is_error(score.metric) else ''}"
        table.add_row(name, score.shown, *(cell for row in rows for cell in row))
    console().print(table)
    shown = [own, *([done.rival] if done.rival else [])]
    metrics = [score.metric for score in done.measured.classes[0][1][own]]
    table = Table("source tokens", "sentences", title="by source length")
    for title in (f"{metric}, {name}" if done.rival else metric for metric in metrics for name in shown):
        table.add_column(title, justify="right")
    for one, scores in done.measured.classes:
        cells = [scores[name][index].shown for index in range(len(metrics)) for name in shown]
        table.add_row(one.shown, f"{len(one.rows):,}", *cells)
    console().print(table)
    if done.cut:
        longest = done.bundle.manifest.limits.max_source_tokens
        say(
            f"{done.cut:,} of {len(done.references):,} segments were cut: {done.name} reads the first {longest} tokens"
            " of one (`tandem translate --sentences` splits lines as the service does)"
        )
    say(*(f"{score.metric}: {score.signature}" for score in done.measured.scores[own]))
    say(*(f"{measured.metric}: {measured.value:g}" for measured in listed))
    say(*(f"{speed:.1f} {key.replace('_per_', '/').replace('_', ' ')}" for key, speed in _speeds(done).items()))
