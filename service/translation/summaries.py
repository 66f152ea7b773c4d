"""What is done with texts to summarize: each is cut to what the model reads, decoded as a whole, and written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from models.text import normalise
from service.bundles.served import Tokeniser
from service.engine import Decoded, Job
from service.telemetry import tracing
from service.text.layout import is_translatable
from service.text.masking import Masked
from service.text.spans import Span
from service.text.splitting import cut_to_limit
from service.translation.candidates import candidates_of_whole
from service.translation.plans import Plan
from service.translation.results import WrittenText
from service.translation.writing import SentenceWriter


@dataclass(frozen=True, slots=True)
class CutText:
    """A text to summarize as far as the model reads it; empty, and without a job, where there is nothing to say."""

    text: str
    truncated: bool
    job: Job | None


def cut_texts(plan: Plan) -> list[CutText]:
    """Each text of a request, cut."""
    tokens, cut = Tokeniser(plan.model), []
    for text in map(normalise, plan.request.texts):
        if is_translatable(text):
            read, truncated = cut_to_limit(text, plan.model.limit, tokens.measure)
            cut.append(CutText(read, truncated, plan.job((tokens.ids(read),), first=True) if read else None))
        else:
            cut.append(CutText("", False, None))
    return cut


@tracing.traced("detokenise")
def write_summaries(plan: Plan, texts: Sequence[CutText], decoded: Sequence[Decoded]) -> list[WrittenText]:
    """The summary of each text; ``decoded``: the results of the jobs."""
    request, writer, remaining = plan.request, SentenceWriter(plan.request), iter(decoded)
    written = []
    for text in texts:
        if text.job is None:
            written.append(replace(WrittenText.unchanged("", request.alternatives), truncated=text.truncated))
            continue
        longest = text.job.options.bounds(text.job.length - 1)[1]
        found = candidates_of_whole(plan.model, Masked(text.text), (), (text.text,), longest, next(remaining))
        best, *others = (found[min(rank, len(found) - 1)] for rank in range(request.alternatives + 1))
        places = Span(0, len(text.text)), Span(0, len(best.text))
        sentences = []
        if request.wants_details:
            sentences = writer.describe(plan.route, best, (text.text,), places, best.text)
        written.append(WrittenText(best.text, [one.text for one in others], sentences, truncated=text.truncated))
    return written
