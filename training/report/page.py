"""The page of a report: one file that asks for nothing else, in the reader's light or dark colours, and runs no script.

compare-mt draws reports of the same kind, but of texts alone, into a folder of files, and without attention.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping
from difflib import SequenceMatcher
from pathlib import Path

from training.metrics import is_error
from training.report.content import Example, Picture, Report
from training.report.elements import Content, Element, document, element, table
from training.significance import ComparedScore, Sampling

# Should a text ever get past the escaping, the browser still runs and fetches nothing.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
_STYLE = Path(__file__).with_name("style.css")


def render(report: Report) -> str:
    """The report as HTML. The same report gives the same bytes."""
    title = f"{report.system} against {report.rival}" if report.rival else report.system
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=_POLICY),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("title", f"Evaluation: {title}"),
        element("style", _STYLE.read_text(encoding="utf-8")),
    )
    main = element(
        "main",
        element("h1", f"Evaluation: {title}"),
        _facts(report.facts),
        element("h2", "Scores"),
        *_scores(report),
        element("h2", "Scores by source length"),
        *_classes(report),
        element("h2", "Examples"),
        *_examples(report),
    )
    return document(element("html", head, element("body", main), lang="en"))


def _facts(facts: Mapping[str, str]) -> Element:
    pairs = [pair for name, value in facts.items() for pair in (element("dt", name), element("dd", value))]
    return element("dl", *pairs, class_="facts")


# --- scores ----------------------------------------------------------------------------------------------------------


def _metric(name: str) -> str:
    return f"{name} (less is better)" if is_error(name) else name


def _scores(report: Report) -> list[Element]:
    """All metrics of all systems, a row for each metric."""
    own, *others = report.scores
    first = element("tr", element("th", "metric", scope="col", rowspan="2"))
    first.append(element("th", own, scope="col", rowspan="2"))
    first.extend(element("th", name, scope="colgroup", colspan="3") for name in others)
    second = element("tr", *(element("th", part, scope="col") for _ in others for part in _against(own)))
    rows: list[list[Content]] = []
    for index, score in enumerate(report.scores[own]):
        row: list[Content] = [_metric(score.metric), score.shown]
        for name in others:
            found = report.scores[name][index]
            row += [found.shown, found.difference_shown, found.p_shown]
        rows.append(row)
    head = [first, second] if others else [first]
    signatures = element("dl", *(_pair(score) for score in report.scores[own]), class_="facts")
    return [
        table("Scores of the whole test set", head, rows),
        element("p", _legend(report.sampling, bool(others)), class_="note"),
        element("details", element("summary", "How each score was counted"), signatures),
    ]


def _against(own: str) -> tuple[str, str, str]:
    return "score", f"difference to {own}", "p"


def _pair(score: ComparedScore) -> Element:
    return element("div", element("dt", score.metric), element("dd", element("code", score.signature)))


def _legend(sampling: Sampling, paired: bool) -> str:
    draws = f"{sampling.draws:,} draws of the bootstrap, seed {sampling.seed}"
    ranges = f"± is half of the 95% interval by {draws}."
    if not paired:
        return ranges
    return (
        f"{ranges} The interval of a difference is of the same draws of both systems; where it holds 0, the difference"
        " may be chance. p is that of sacreBLEU's paired bootstrap, the milder of the two."
    )


def _classes(report: Report) -> list[Element]:
    """The task's own metrics in every class of source length."""
    systems = [report.system, *([report.rival] if report.rival else [])]
    metrics = [score.metric for score in report.classes[0][1][report.system]]
    width = 4 if report.rival else 1
    first = element("tr")
    first.extend(element("th", name, scope="col", rowspan="2") for name in ("source tokens", "sentences"))
    first.extend(element("th", _metric(name), scope="colgroup", colspan=str(width)) for name in metrics)
    names = [report.system, *((report.rival, *_against(report.system)[1:]) if report.rival else ())]
    second = element("tr", *(element("th", name, scope="col") for _ in metrics for name in names))
    rows: list[list[Content]] = []
    for one, scores in report.classes:
        row: list[Content] = [one.shown, f"{len(one.rows):,}"]
        for index in range(len(metrics)):
            found = [scores[system][index] for system in systems]
            row += [score.shown for score in found]
            row += [text for score in found[1:] for text in (score.difference_shown, score.p_shown)]
        rows.append(row)
    note = f"Tokens are those of {report.system}; of several sources the longest text counts."
    return [table("Scores by source length", [first, second], rows), element("p", note, class_="note")]


# --- examples --------------------------------------------------------------------------------------------------------


def _examples(report: Report) -> list[Element]:
    note = (
        f"Sentences are sorted by {report.metric} of each sentence alone. Words that the reference does not have in"
        " this order are marked."
    )
    made = [element("p", note, class_="note")]
    for title, examples in report.sections:
        made.append(element("h3", title))
        made += [_example(report, one) for one in examples] or [element("p", "There is none.", class_="note")]
    return made


def _example(report: Report, example: Example) -> Element:
    scores = " against ".join(f"{output.score:.1f}" for output in example.outputs)
    gain = f" ({example.outputs[0].score - example.outputs[1].score:+.1f})" if len(example.outputs) > 1 else ""
    *languages, target = report.languages
    texts = [
        *(("source", text, text, language) for text, language in zip(example.sources, languages, strict=True)),
        ("reference", example.reference, example.reference, target),
        *((output.system, output.text, example.reference, target) for output in example.outputs),
    ]
    lines = [
        element("div", element("dt", name), element("dd", *_marked(text, wanted), lang=language, dir="auto"))
        for name, text, wanted, language in texts
    ]
    heading = element("h4", f"Line {example.line:,}: {report.metric} {scores}{gain}")
    pictures = [_picture(one) for one in example.pictures]
    attention = element("details", element("summary", "What was attended to"), *pictures) if pictures else None
    return element("article", heading, element("dl", *lines), attention)


def _marked(text: str, reference: str) -> list[Content]:
    """The text, with those words marked that the reference has not, or not in this order."""
    words, wanted = text.split(), reference.split()
    if not words:
        return [element("em", "nothing")]
    found: list[Content] = []
    for kind, start, end, _, _ in SequenceMatcher(None, words, wanted, autojunk=False).get_opcodes():
        if start < end:
            part = " ".join(words[start:end])
            found += [*([" "] if found else []), part if kind == "equal" else element("mark", part)]
    return found


def _picture(picture: Picture) -> Element:
    data = f"data:image/png;base64,{b64encode(picture.png).decode()}"
    alternative = f"Heat map of attention, {picture.title}: a row for each target token, darker where weight lies"
    return element(
        "figure",
        element("figcaption", picture.title),
        element("img", src=data, alt=alternative),
        element("details", element("summary", "In words"), element("p", picture.strongest, class_="note")),
    )
