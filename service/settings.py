"""Every setting of the service, typed, bounded and described; from ``TANDEM_*`` variables or given by the caller."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, field_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from service.cgroups import usable_cores
from service.engine import EngineOptions, SchedulerLimits


class Settings(BaseSettings):
    """How to serve. ``TANDEM_BUNDLES=/srv/bundles TANDEM_PORT=8080 tandem serve`` sets two of them."""

    model_config = SettingsConfigDict(env_prefix="TANDEM_", extra="forbid", frozen=True)

    bundles: Annotated[tuple[Path, ...], NoDecode] = Field(
        default=(Path("bundles"),),
        description="Bundle folders, or folders of bundles; in the environment separated by the path separator (':').",
        min_length=1,
    )
    runtime: Literal["onnx", "torchscript", "torch", "auto"] = Field(
        default="onnx",
        description="What runs the models; auto = measured at start, where a bundle has TorchScript graphs too.",
    )
    precision: Literal["int8", "float32", "auto"] = Field(
        default="auto",
        description="Which of a bundle's graphs to run; auto = the faster ones, measured at start where it has several"
        " (int8 only if the bundle's proof passed).",
    )
    threads: int = Field(
        default=1, ge=1, le=256, description="Threads of one model call; more than 1 gives up byte-identical answers."
    )
    workers: int = Field(
        default=0,
        ge=0,
        le=256,
        description="Decode workers; 0 = one per core that may be used but one, which is left to the HTTP side.",
    )

    host: str = Field(default="127.0.0.1", min_length=1, description="Address to listen on.")
    port: int = Field(default=8000, ge=0, le=65535, description="Port to listen on; 0 = any free one.")
    shutdown_timeout: float = Field(
        default=30.0, ge=0, le=3600, description="Seconds that running work may take after SIGTERM."
    )

    max_characters: int = Field(default=20_000, ge=1, le=10_000_000, description="Characters of a request's texts.")
    max_texts: int = Field(default=100, ge=1, le=100_000, description="Texts of a request.")
    max_body_bytes: int = Field(default=1_048_576, ge=1024, le=1 << 30, description="Bytes of a request's body.")
    max_beam_size: int = Field(default=10, ge=1, le=100, description="Beam size that a request may ask for.")
    request_timeout: float = Field(default=60.0, gt=0, le=3600, description="Seconds that a request may take.")
    bulk_characters: int = Field(
        default=2_000,
        ge=1,
        description="Requests with more characters count as bulk, unless they say otherwise.",
    )

    shortlist: bool = Field(
        default=True, description="Let a sentence use only the target tokens that its bundle's shortlist selects."
    )
    max_batch_tokens: int = Field(
        default=8_192, ge=16, le=1 << 22, description="Rows (sentences x beam) times the longest source of one batch."
    )
    max_join_tokens: int = Field(
        default=512, ge=16, le=1 << 20, description="Source tokens encoded between two steps of a running batch."
    )
    max_batch_sentences: int = Field(default=64, ge=1, le=4096, description="Sentences of one batch.")
    max_queue_tokens: int = Field(
        default=65_536, ge=16, le=1 << 30, description="Predicted tokens, waiting and running, before 503 is answered."
    )
    bulk_handicap: float = Field(
        default=5.0, ge=0, le=3600, description="Seconds by which bulk sentences count as younger than they are."
    )
    cache_sentences: int = Field(default=2_000, ge=0, le=10_000_000, description="Results kept; 0 = no cache.")
    text_threads: int = Field(default=2, ge=1, le=64, description="Threads that split and tokenise texts.")

    probe_timeout: float = Field(default=10.0, gt=0, le=300, description="Seconds that the probe sentence may take.")
    probe_interval: float = Field(
        default=10.0, ge=0, le=3600, description="Seconds for which a decoded sentence proves a model ready."
    )
    log_format: Literal["json", "text"] = Field(default="json", description="Log lines as JSON, or for people.")
    log_level: Literal["debug", "info", "warning", "error"] = Field(default="info", description="Least level logged.")

    @field_validator("bundles", mode="before")
    @classmethod
    def _split_paths(cls, value: object) -> object:
        if isinstance(value, str):
            return tuple(part for part in value.split(os.pathsep) if part)
        return (value,) if isinstance(value, Path) else value

    @property
    def decode_workers(self) -> int:
        """Number of decode workers, chosen where the setting is 0."""
        return self.workers or max(1, usable_cores() - 1)

    def engine_options(self) -> EngineOptions:
        """The part that the engine needs."""
        limits = SchedulerLimits(
            max_queue_tokens=self.max_queue_tokens,
            max_batch_tokens=self.max_batch_tokens,
            max_batch_sentences=self.max_batch_sentences,
            max_join_tokens=self.max_join_tokens,
            bulk_handicap=self.bulk_handicap,
        )
        precision = "float32" if self.runtime in ("torch", "torchscript") else self.precision
        return EngineOptions(self.decode_workers, self.cache_sentences, limits, self.runtime, precision)
