"""Continuous batching: scheduler, workers, result cache. Imports neither fastapi nor pydantic nor any runtime."""

from __future__ import annotations

from tandem.service.engine.counters import EngineCounters, Histogram
from tandem.service.engine.engine import Backend, Engine, EngineOptions, alias_of
from tandem.service.engine.failures import DeadlinePassed, DecodingFailed, Draining, Overloaded, UnknownModel
from tandem.service.engine.jobs import BatchKey, Decoded, Job, Load, Priority, Ticket
from tandem.service.engine.scheduler import Scheduler, SchedulerLimits

__all__ = [
    "Backend",
    "BatchKey",
    "DeadlinePassed",
    "Decoded",
    "DecodingFailed",
    "Draining",
    "Engine",
    "EngineCounters",
    "EngineOptions",
    "Histogram",
    "Job",
    "Load",
    "Overloaded",
    "Priority",
    "Scheduler",
    "SchedulerLimits",
    "Ticket",
    "UnknownModel",
    "alias_of",
]
