"""`tandem evaluate`: bundles, runs and other systems' output on one test set."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import typer

from tandem.extras.evaluation.coverage import coverage
from tandem.extras.evaluation.decoding import Decoding
from tandem.extras.evaluation.lengths import length_classes, source_lengths
from tandem.extras.evaluation.results import Evaluation
from tandem.extras.evaluation.scoring import all_metrics, first_sentence, first_words
from tandem.extras.evaluation.significance import SEED, Bootstrap, ComparedScore, Counts
from tandem.extras.evaluation.systems import UNEDITED, SourceFiles, System, decode_system, load_systems, read_tests
from tandem.extras.shared.outputs import check_file, check_folder
from tandem.extras.shared.shortlists import encode
from tandem.models.bundle import MANIFEST, Bundle, Score, extend_bundle
from tandem.models.command import AsJson, command_line
from tandem.models.errors import ConfigError, CorpusError
from tandem.models.folders import write_text
from tandem.models.search.shortlist import WITH_SHORTLIST
from tandem.models.translation.translator import Column, encode_columns
from tandem.training.data.corpus import read_lines
from tandem.training.quality.metrics import OWN, MeasuredScore

RERANKED = ", reranked"
"""How test sets and systems are named whose scores were measured with a channel model."""


@dataclass(frozen=True, slots=True)
class EvaluationOptions:
    """What an evaluation gives beside the scores of its bundles, and where it writes them."""

    against: Annotated[
        list[Path] | None,
        typer.Option(help="Another system beside them: a bundle, a run, or a file of hypotheses; also several times."),
    ] = None
    baseline: Annotated[
        str | None, typer.Option(help="Name of the system that the others are tested against. [the first]")
    ] = None
    tokenised: Annotated[bool, typer.Option("--tokenised", help="The text is tokens already.")] = False
    seed: Annotated[int | None, typer.Option(min=0, help="Of the bootstrap. [sacreBLEU's]")] = None
    hypotheses: Annotated[
        Path | None, typer.Option(help="Folder for each system's output, and segments.csv with all and their scores.")
    ] = None
    csv: Annotated[Path | None, typer.Option(help="Write a row for each score as CSV; - is standard output.")] = None
    markdown: Annotated[
        Path | None, typer.Option(help="Write a row for each system as Markdown; - is standard output.")
    ] = None
    record: Annotated[
        str, typer.Option(help="Store the first bundle's scores in its manifest under this test set's name.")
    ] = ""
    shortlist: Annotated[bool, typer.Option("--shortlist", help="The first also with its shortlist.")] = False
    checkpoint: Annotated[
        Path | None,
        typer.Option(help="Of the first, a run, this one instead of those that `tandem export` would take."),
    ] = None
    rerank: Annotated[
        Path | None,
        typer.Option(
            metavar="BUNDLE", help="The first also with this bundle, which translates back, choosing the hypotheses."
        ),
    ] = None
    as_json: AsJson = False


def evaluate(
    paths: Annotated[list[Path], typer.Argument(metavar="BUNDLE|RUN...", help="Bundles, or the folders of runs.")],
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

    Every score has a bootstrap interval, and the task's own ones are given by source length too. Several systems stand
    beside each other, with differences and p-values of the paired bootstrap against the first: bundles, runs, with
    `--against` files of hypotheses too. Every bundle takes the sources of its languages out of those given, so that one
    that reads German can stand beside one that reads German, French and Czech. Files without a language go to the
    bundles' sources in order; the sources of post-editing may also be called src and mt. Summaries stand beside the
    beginning of their text, post-edited translations beside the translation as it is (the last source). Of several
    references (NIST's and DUC's test sets have four) all count. A run needs no export: PyTorch decodes with the weights
    that its bundle would have.

    Example: tandem evaluate bundles/new bundles/old --source test.de --references test.en --hypotheses written
    """
    check_folder(wanted.hypotheses, "--hypotheses")
    check_file(wanted.csv, "--csv")
    check_file(wanted.markdown, "--markdown")
    with TemporaryDirectory() as folder:
        bundles, decoding, wanted = _with_bundles(paths, decoding, wanted, Path(folder))
        done = _evaluate(bundles, SourceFiles.parse(sources), references, decoding, wanted)
        if wanted.hypotheses is not None:
            done.write_texts(wanted.hypotheses)
        if wanted.record:
            _record(done, wanted.record)
        _write(done, wanted)


def _write(done: Evaluation, wanted: EvaluationOptions) -> None:
    """The scores to where they are wanted, and as tables where nothing else is on standard output."""
    outputs = [(path, text) for path, text in ((wanted.csv, done.csv), (wanted.markdown, done.markdown)) if path]
    outputs += [(Path("-"), done.json)] if wanted.as_json else []
    for path, text in outputs:
        print(text(), end="") if str(path) == "-" else write_text(path, text())
    if not any(str(path) == "-" for path, _ in outputs):
        done.show()


def _with_bundles(
    paths: Sequence[Path], decoding: Decoding, wanted: EvaluationOptions, folder: Path
) -> tuple[list[Path], Decoding, EvaluationOptions]:
    """The same with bundles in the place of runs; these have no graphs, so that PyTorch decodes.

    Raises:
        ConfigError: an option does not go with what is evaluated.
    """
    first, given = paths[0], [*paths, *(wanted.against or ())]
    if wanted.record and _is_run(first):
        raise ConfigError(f"--record: {first} is a run, which has no manifest: tandem export makes a bundle of it")
    if wanted.checkpoint is not None and not _is_run(first):
        raise ConfigError(f"--checkpoint is for a run, but {first} is none")
    if not any(map(_is_run, given)):
        return list(paths), decoding, wanted
    from tandem.training.export.exporting import bundle_without_graphs  # here: bundles need no torch

    made = [
        bundle_without_graphs(path, folder / str(number), None if number else wanted.checkpoint).path
        if _is_run(path)
        else path
        for number, path in enumerate(given)
    ]
    own, against = made[: len(paths)], made[len(paths) :]
    return own, replace(decoding, runtime="torch"), replace(wanted, against=against)


def _is_run(path: Path) -> bool:
    """Whether it is one, or will be: prepared data without a checkpoint is told to train first."""
    return any((path / made).is_dir() for made in ("checkpoints", "data")) and not (path / MANIFEST).exists()


def _evaluate(
    paths: Sequence[Path],
    files: SourceFiles,
    references: Sequence[Path],
    decoding: Decoding,
    wanted: EvaluationOptions,
) -> Evaluation:
    """Everything is read before anything is decoded."""
    against = list(dict.fromkeys(wanted.against or ()))
    bundles = load_systems([*paths, *filter(Path.is_dir, against)], decoding.target, files.languages)
    name, bundle = next(iter(bundles.items()))
    tests, (gold, *further_gold) = read_tests(bundles, files, references, decoding.limit)
    columns = tests[name]
    further = {system.name: system for system in _baselines(bundle, columns)}
    taken = {*bundles, *further}
    outputs = [_hypotheses(path, taken, references[0], len(gold)) for path in against if not path.is_dir()]
    further = {system.name: system for system in outputs} | further
    with_list, ranked = f"{name}{WITH_SHORTLIST}", f"{name}{RERANKED}"
    ways = [name, *([with_list] if wanted.shortlist else []), *([ranked] if wanted.rerank is not None else [])]
    names = [*ways, *list(bundles)[1:], *further]
    baseline = name if wanted.baseline is None else wanted.baseline
    if baseline not in names:
        raise ConfigError(f"--baseline must be one of {', '.join(names)}, but is {baseline!r}")
    channel = None if wanted.rerank is None else _channel(wanted.rerank, bundle, decoding)
    decode = partial(decode_system, languages=files.languages)
    # The shortlist first: where it is missing nothing else has been decoded.
    listed = [decode(with_list, bundle, columns, decoding, with_shortlist=True)] if wanted.shortlist else []
    reranked = [] if channel is None else [decode(ranked, bundle, columns, decoding, channel=channel)]
    decoded = [decode(each, one, tests[each], decoding) for each, one in bundles.items()]
    found = {system.name: system for system in (*listed, *reranked, *decoded)} | further
    systems = {each: found[each] for each in names}
    task, sampling = bundle.manifest.task, Bootstrap(seed=SEED if wanted.seed is None else wanted.seed)
    metrics = all_metrics(task, bundle.manifest.target_language, tokenised=wanted.tokenised)
    counts = Counts(metrics, {each: system.texts for each, system in systems.items()}, gold, further_gold)
    classes = [
        (one, counts.compare(baseline, rows=one.rows, metrics=OWN[task], sampling=sampling))
        for one in length_classes(source_lengths(bundle.sources, columns))
    ]
    return Evaluation(
        bundle=bundle,
        columns=columns,
        references=gold,
        systems=systems,
        baseline=baseline,
        counts=counts,
        scores=counts.compare(baseline, sampling=sampling),
        classes=classes,
        decoding=decoding,
        cut=_cut(bundle, columns),
        listed=_coverage(bundle, columns, gold) if wanted.shortlist else None,
    )


def _cut(bundle: Bundle, columns: Sequence[Column]) -> int:
    """How many segments have a text that is longer than the bundle reads."""
    longest = bundle.manifest.limits.max_source_tokens
    texts = [(one, column) for one, column in zip(bundle.sources, columns, strict=True) if one is not None]
    if not texts:
        return 0
    vocabularies, lines = zip(*texts, strict=True)
    return sum(length > longest for length in source_lengths(vocabularies, lines))


def _channel(path: Path, bundle: Bundle, decoding: Decoding) -> Bundle:
    """The bundle that translates back. Raises ConfigError where it does not, or there is no translating back."""
    manifest = bundle.manifest
    if manifest.task != "translate" or len(bundle.feature_widths) > 1 or len(manifest.source_languages) > 1:
        raise ConfigError(f"--rerank: {manifest.name} does not translate one language, so that nothing translates back")
    if decoding.segments:
        raise ConfigError("--rerank is of texts as the service answers them: leave --segments out")
    return Bundle.load(path).direction(manifest.target_language, manifest.source_languages[0])


def _baselines(bundle: Bundle, columns: Sequence[Column]) -> list[System]:
    """What costs nothing: the beginning of a text as its summary, a translation left as it is."""
    if bundle.manifest.task == "summarize":
        lines = next(column for column, width in zip(columns, bundle.feature_widths, strict=True) if not width)
        first = System("first sentence", [first_sentence(line) for line in lines])
        return [first, System("first 10 words", [first_words(line) for line in lines])]
    return [System(UNEDITED, list(columns[-1]))] if bundle.manifest.task == "postedit" else []


def _hypotheses(path: Path, taken: set[str], references: Path, segments: int) -> System:
    """Another system's output, by its file's name, or where that is taken by its path; the name is taken then.

    With fewer segments than the references have, it must hold these, or all of them.

    Raises:
        ConfigError: there is no such file.
        CorpusError: it cannot be read, or has another number of lines.
    """
    if not path.exists():
        raise ConfigError(f"--against must be a bundle or a file of hypotheses, but there is no {path}")
    lines = read_lines(path)
    if len(lines) != segments and len(lines) != len(read_lines(references)):
        raise CorpusError(f"{path}: has {len(lines)} hypotheses, but {references} has {segments} references")
    name = str(path) if path.name in taken else path.name
    taken.add(name)
    return System(name, lines[:segments])


def _coverage(bundle: Bundle, columns: Sequence[Column], references: Sequence[str]) -> list[MeasuredScore]:
    """How much of the references the bundle's lists hold, and how long they are."""
    shortlist = bundle.shortlist
    if shortlist is None:  # then decoding with it was refused
        return []
    sources = encode_columns(bundle.sources, columns, bundle.manifest.limits.max_source_tokens + 1)
    found = coverage(shortlist, list(zip(*sources, strict=True)), encode(bundle.target_vocabulary, references))
    return [
        MeasuredScore("% of reference tokens listed", round(100 * found.tokens, 2), ""),
        MeasuredScore("% of references listed whole", round(100 * found.sentences, 2), ""),
        MeasuredScore("tokens of a list", round(found.listed, 1), ""),
    ]


def _record(done: Evaluation, name: str) -> None:
    """Store the task's own scores in the manifest with this very command, in place of older ones on the same sets."""
    own = OWN[done.bundle.manifest.task]
    measured: dict[str, list[MeasuredScore | ComparedScore]] = {
        f"{name}{ending}": [score for score in done.scores[f"{done.name}{ending}"] if score.metric in own]
        for ending in ("", WITH_SHORTLIST, RERANKED)
        if f"{done.name}{ending}" in done.scores
    }
    if done.listed:
        measured[f"{name}{WITH_SHORTLIST}"] += done.listed
    command = command_line()
    new = [Score(s.metric, s.value, test, s.signature, command) for test, found in measured.items() for s in found]
    store_scores(done.bundle.path, new)


def store_scores(path: Path, scores: Sequence[Score]) -> None:
    """Scores into a bundle's manifest, in place of older ones on the same test sets."""
    manifest = Bundle.load(path).manifest  # as it is there: of several directions one alone was evaluated
    kept = [score for score in manifest.scores if score.test_set not in {one.test_set for one in scores}]
    extend_bundle(path, {}, replace(manifest, scores=(*kept, *scores)))
