"""Reranking: the model of the other direction ranks a sentence's hypotheses too, before anything is made of them.

A sentence is ranked as soon as it is decoded, while others still are: what is streamed comes as early as it can.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from tandem.extras.reranking.channel import ChannelModel
from tandem.service.engine import Decoded, DecodingFailed, Engine, Job, UnknownModel
from tandem.service.engine.engine import Watch, tell
from tandem.service.telemetry import tracing
from tandem.service.translation.plans import Plan
from tandem.service.translation.turns import TurnThreads


async def decode_ranked(
    engine: Engine,
    threads: TurnThreads,
    work: Sequence[tuple[Plan, Job]],
    watch: Watch | None,
    begun: bool,
) -> list[Decoded]:
    """Decode a request's sentences, and rank the hypotheses of those that have a channel model.

    Args:
        engine: decodes the sentences, and what their channel models are asked.
        threads: where texts are tokenised.
        work: the sentences, each with how it is decoded.
        watch: told of each sentence as soon as it is ranked: its number, and the result.
        begun: as for ``Engine.decode``.

    Raises:
        UnknownModel, Draining, Overloaded, DeadlinePassed, DecodingFailed: see ``Engine.decode``. A channel
            model that fails, or is gone, leaves a sentence as it was decoded.
    """
    jobs = [job for _, job in work]
    ranking: dict[int, asyncio.Task[Decoded]] = {}  # by its result, which the engine holds: one for equal sentences
    numbered: dict[int, asyncio.Task[Decoded]] = {}

    def finished(number: int, decoded: Decoded) -> None:
        if id(decoded) not in ranking:
            ranking[id(decoded)] = asyncio.ensure_future(_ranked(engine, threads, *work[number], decoded))
        numbered[number] = ranking[id(decoded)]
        if watch is not None:
            numbered[number].add_done_callback(partial(tell, watch, (number,)))

    try:
        unranked = await tracing.decode(engine, jobs, finished, begun=begun)
        with tracing.span("rerank"):
            return await asyncio.gather(*(numbered[number] for number in range(len(unranked))))
    finally:
        for task in ranking.values():
            task.cancel()
        await asyncio.gather(*ranking.values(), return_exceptions=True)


async def _ranked(engine: Engine, threads: TurnThreads, plan: Plan, job: Job, decoded: Decoded) -> Decoded:
    """A sentence with the hypotheses that are wanted of it; its time of decoding has that of being ranked."""
    hypotheses = decoded.hypotheses
    if plan.channel is not None and len(hypotheses) > 1:
        channel = ChannelModel.of(plan.channel.bundle)
        asked = await threads.run(plan.context.caller, _questions, plan, channel, job, decoded)
        try:
            answers = await engine.decode(asked, begun=True)
        except (DecodingFailed, UnknownModel):
            answers = []
        if answers:
            hypotheses = channel.ranked(hypotheses, [one.hypotheses[0] for one in answers])
            seconds = max(one.queue + one.encode + one.decode for one in answers)
            decoded = replace(decoded, decode=decoded.decode + seconds)
    return replace(decoded, hypotheses=hypotheses[: plan.wanted])


def _questions(plan: Plan, channel: ChannelModel, job: Job, decoded: Decoded) -> list[Job]:
    """What the channel model decodes; nothing where it cannot judge this sentence."""
    model, served = plan.model, plan.channel
    assert served is not None
    reserved = {model.bundle.target_vocabulary.piece_of(token) for token in job.options.required}
    if not reserved <= served.placeholders.keys():
        return []
    source = model.bundle.source_vocabularies[0].decode(job.sources[0])
    texts = [model.decode(hypothesis, (source,)) for hypothesis in decoded.hypotheses]
    return [
        replace(job, bundle=served.name, sources=(question.ids,), options=question.options)
        for question in channel.questions(source, texts, reserved)
    ]
