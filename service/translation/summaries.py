"""What ``/summarize`` does with texts: each is cut to what the model takes, decoded as a whole, and written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from models.text import normalise
from service.api.schemas import SummarizeRequest, TextDetail
from service.engine import Decoded, Job
from service.telemetry.tracing import traced
from service.text import cut_to_limit, is_translatable
from service.text.spans import Span
from service.translation.decoding import Plan
from service.translation.details import Details, Place
from service.translation.sentences import Sentence, Whole
from service.translation.writing import Written


@dataclass(frozen=True, slots=True)
class Source:
    """A text to summarize as the model gets it; empty where there is nothing to summarize."""

    text: str
    truncated: bool


@traced("split")
def cut_texts(request: SummarizeRequest, plan: Plan) -> tuple[list[Source], list[Job]]:
    """Each text as far as the model takes it, and the jobs of those that hold words."""
    codec, sources = plan.codec, []
    for text in request.texts:
        normal = normalise(text)
        cut = cut_to_limit(normal, codec.limit, codec.measure) if is_translatable(normal) else ("", False)
        sources.append(Source(*cut))
    return sources, [plan.job((source.text,), first=True) for source in sources if source.text]


@traced("detokenise")
def write_summaries(
    request: SummarizeRequest, details: Details, sources: Sequence[Source], decoded: Sequence[Decoded]
) -> list[Written]:
    """The summary of each text; ``decoded``: the results of the jobs."""
    remaining = iter(decoded)
    written = []
    for source in sources:
        if not source.text:
            written.append(Written("", [""] * request.alternatives, TextDetail(sentences=[])))
            continue
        lines = Whole(Sentence.plain(source.text), (), (source.text,)).lines(details.codec, [next(remaining)])
        best, *others = (lines[min(rank, len(lines) - 1)] for rank in range(request.alternatives + 1))
        found = []
        if request.wants_details and best.hypothesis is not None:
            place = Place((source.text,), Span(0, len(source.text)), Span(0, len(best.text)), best.text)
            found.append(details.sentence(best.hypothesis, place))
            found[-1].repetition = best.repetition or None
        written.append(Written(best.text, [one.text for one in others], TextDetail(sentences=found)))
    return written
