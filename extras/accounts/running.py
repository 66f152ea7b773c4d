"""What the running service has of accounts, and what they bring to the HTTP side."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager

from prometheus_client.core import CounterMetricFamily, Metric
from prometheus_client.registry import Collector

from tandem.extras.accounts.access import KeyedAccess
from tandem.extras.accounts.errors import (
    GlossaryLimit,
    LimitsUnavailable,
    MemoryEntryNotFound,
    MemoryLimit,
    QuotaExceeded,
    RateLimited,
)
from tandem.extras.accounts.glossaries import Glossaries
from tandem.extras.accounts.memory import TranslationMemory
from tandem.extras.accounts.routes import body_bounds, router, suggestions
from tandem.extras.accounts.schemas import SuggestRequest
from tandem.service.callers import Accounts
from tandem.service.http.parts import HttpPart, ReplyRule
from tandem.service.settings import Settings
from tandem.service.telemetry.metrics import Metrics

HTTP = HttpPart(
    routes=[*router.routes, *suggestions.routes],
    errors={
        GlossaryLimit: ReplyRule(400, "glossary_limit"),
        MemoryEntryNotFound: ReplyRule(404, "memory_entry_not_found"),
        MemoryLimit: ReplyRule(400, "memory_limit"),
        RateLimited: ReplyRule(429, "rate_limited"),
        QuotaExceeded: ReplyRule(429, "quota_exceeded"),
        LimitsUnavailable: ReplyRule(503, "limits_unavailable"),
    },
    bodies=body_bounds,
    tags=({"name": "memory", "description": "Corrections that a key's callers have stored; these routes need a key."},),
    needs_key=("memory",),
    models=(SuggestRequest,),
)


@asynccontextmanager
async def opened(settings: Settings, metrics: Metrics) -> AsyncIterator[Accounts]:
    """The stores in the data folder, or in memory where there is none. Raises ConfigError."""
    async with AsyncExitStack() as stack:
        glossaries = await asyncio.to_thread(Glossaries, settings)
        stack.callback(glossaries.close)
        memory = await asyncio.to_thread(TranslationMemory, settings)
        stack.callback(memory.close)
        access = await asyncio.to_thread(KeyedAccess, settings)
        stack.push_async_callback(access.close)
        metrics.register(AccountsCollector(access, memory))
        access.start()
        yield Accounts(access, glossaries, memory)


class AccountsCollector(Collector):
    """How often the stores of keys, limits and memories have failed."""

    def __init__(self, access: KeyedAccess, memory: TranslationMemory) -> None:
        self._access, self._memory = access, memory

    def collect(self) -> Iterator[Metric]:
        text = "Times that texts were translated without the memory of their key, as it could not be read."
        yield CounterMetricFamily("tandem_memory_failures", text, value=self._memory.failures)
        text = "Times that keys could not be read, or requests and characters not be counted."
        failures = CounterMetricFamily("tandem_access_failures", text, labels=("store",))
        for store, count in self._access.store_failures.items():
            failures.add_metric((store,), count)
        yield failures
