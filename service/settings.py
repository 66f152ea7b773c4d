"""Every setting of the service, typed, bounded and described.

Given by the caller (the flags of ``tandem serve``), else from ``TANDEM_*`` variables, else from the TOML file that
``config`` names, else the default. Extras bring settings of their own (``service.ports``): ``Settings`` has all that
are here, and an extra reads its own through ``Settings.part``.
"""

from __future__ import annotations

import os
import tomllib
from dataclasses import astuple, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias, TypeVar

from pydantic import BaseModel, Field, SecretStr, field_validator
from pydantic_settings import (
    BaseSettings,
    InitSettingsSource,
    NoDecode,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
)

from tandem.models.bundle.manifest import NAME
from tandem.models.errors import ConfigError
from tandem.service.engine import EngineOptions, SchedulerLimits
from tandem.service.ports import extras, load
from tandem.service.telemetry.cgroups import usable_cores
from tandem.service.text.languages import is_language_code

PREFIX = "TANDEM_"
Part = TypeVar("Part", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class _Bounds:
    """What the engine may hold where the settings leave it to the device."""

    batch_tokens: int
    batch_sentences: int
    join_tokens: int
    queue_tokens: int


# The queue's for each decode worker: some four seconds of a model of 12M parameters on an ordinary core.
_ON_CPU = _Bounds(8_192, 64, 512, 8_192)
# Of a large GPU. The queue's is seconds of its work, and as much as one process can take in and give out.
_ON_GPU = _Bounds(262_144, 256, 16_384, 262_144)
_LARGE, _PARTS = 72e9, 16  # bytes that a process may take of a large one, nine tenths of 80 GB; of less in sixteenths
_STALL = 120.0  # seconds of one call of a model on a GPU: first steps load kernels and are captured

RETIRED = frozenset({"gpu_compile", "gpu_triton"})
"""Settings of earlier versions that have no effect any more, and are told where they are left."""


class CoreSettings(BaseSettings):
    """How to serve. ``TANDEM_BUNDLES=/srv/bundles TANDEM_PORT=8080 tandem serve`` sets two of them."""

    # A variable that is there and empty is one that nobody has set: Compose and others pass on names without values.
    model_config = SettingsConfigDict(env_prefix=PREFIX, env_ignore_empty=True, extra="forbid", frozen=True)

    config: Path | None = Field(
        default=None,
        description="TOML file of settings by name; flags and variables go before it.",
    )
    bundles: Annotated[tuple[Path, ...], NoDecode] = Field(
        default=(Path("bundles"),),
        description="Bundle folders, or folders of bundles; in the environment separated by the path separator (':').",
        min_length=1,
    )
    versions: Annotated[tuple[str, ...], NoDecode] = Field(
        default=(),
        description="Of models with several versions those to serve at first, such as de-en@1, separated by commas;"
        " others start with their newest.",
    )
    runtime: Literal["onnx", "torchscript", "torch"] = Field(default="onnx", description="What runs the models.")
    device: str = Field(
        default="cpu",
        pattern=r"^(cpu|auto|cuda(:\d+)?)$",
        description="Where the models run: cpu, cuda, cuda:N, or auto, with torch the first GPU where there is one.",
    )
    precision: Literal["int8", "float32", "float16", "bf16", "auto"] = Field(
        default="auto",
        description="Which of a bundle's ONNX graphs to run; auto = int8 where it has them and their proof passed, else"
        " float32. On a GPU float32, float16 or bf16; auto = float16.",
    )
    native: bool = Field(
        default=True,
        description="Use the operators that `tandem native` has built, where it has: ONNX Runtime on the CPU is faster"
        " with them.",
    )
    gpu_memory: float = Field(
        default=0.9, gt=0, le=1, description="Share of a GPU's memory that this process may take."
    )
    models_memory: int = Field(
        default=0,
        ge=0,
        description="Megabytes that models may take together, by the size of their graphs' files; above that those that"
        " were not used for longest are let go of, and opened again when they are asked for. 0 = any. With ONNX"
        " Runtime.",
    )
    pivot: bool = Field(
        default=True, description="Translate pairs that no model does through a third language, with two models."
    )
    pivot_languages: Annotated[tuple[str, ...], NoDecode] = Field(
        default=(),
        description="Languages that such pairs may go through, the preferred first, separated by commas; none = any,"
        " English before the others.",
    )
    rerank: Literal["never", "bulk", "always"] = Field(
        default="never",
        description="Let the model of the other direction, where it is loaded, choose among the hypotheses of a"
        " translation, unless a request says otherwise: better, and more than twice the work; bulk = of files and large"
        " requests.",
    )
    stages: Literal["bundle", "off"] = Field(
        default="bundle",
        description="Text stages around a model: those that its bundle asks for, such as `rewriting` for weak models,"
        " or none (off).",
    )
    fidelity: bool = Field(
        default=True,
        description="Hold every translation against its source: what is lost is tried again, and ends and capitals are"
        " the source's.",
    )
    threads: int = Field(
        default=1, ge=1, le=256, description="Threads of one model call; more than 1 gives up byte-identical answers."
    )
    workers: int = Field(
        default=0,
        ge=0,
        le=256,
        description="Decode workers; 0 = one per core that may be used; on a GPU one.",
    )

    data: Path | None = Field(
        default=None,
        description="Folder of what outlives a restart (keys, quotas, glossaries, memories, file jobs); none = nothing"
        " does.",
    )

    admin_key: SecretStr | None = Field(
        default=None,
        min_length=20,
        description="A key for the admin routes, besides those of `tandem keys add --admin`; at least 20 characters.",
    )
    cors_origins: Annotated[tuple[str, ...], NoDecode] = Field(
        default=(),
        description="Origins whose web pages may use the API, such as https://example.org, separated by commas; * = all"
        " of them; none = no CORS.",
    )

    allowed_hosts: Annotated[tuple[str, ...], NoDecode] = Field(
        default=(),
        description="Public names that the server answers for besides its host name, such as translate.example.org,"
        " separated by commas; * = all of them; none = all of them where it asks for keys, and none where it does not."
        " It always answers for addresses, names without a dot and those under .localhost, .local, .internal and other"
        " domains that public DNS does not have.",
    )

    host: str = Field(default="127.0.0.1", min_length=1, description="Address to listen on.")
    port: int = Field(default=8000, ge=0, le=65535, description="Port to listen on; 0 = any free one.")
    tls_certificate: Path | None = Field(
        default=None,
        description="PEM file of a certificate and those of its issuers, to answer HTTPS instead of HTTP; needs"
        " `tls_key`. Read again on SIGHUP.",
    )
    tls_key: Path | None = Field(default=None, description="PEM file of the certificate's key, without a password.")
    shutdown_timeout: float = Field(
        default=30.0, ge=0, le=3600, description="Seconds that running work may take after SIGTERM."
    )

    max_characters: int = Field(
        default=20_000, ge=1, le=10_000_000, description="Characters of a request's texts; summaries have their own."
    )
    max_summary_characters: int = Field(
        default=100_000,
        ge=1,
        le=10_000_000,
        description="Characters of texts to summarize; 10,000 words are some 70,000. `request_timeout` holds too.",
    )
    max_markup_depth: int = Field(default=200, ge=1, le=200, description="HTML or XML elements within one another.")
    max_markup_elements: int = Field(default=20_000, ge=1, le=1_000_000, description="HTML or XML elements of a text.")
    max_texts: int = Field(default=100, ge=1, le=100_000, description="Texts of a request.")
    max_body_bytes: int = Field(default=1_048_576, ge=1024, le=1 << 30, description="Bytes of a request's body.")
    max_json_depth: int = Field(
        default=16, ge=2, le=200, description="Levels to which the arrays and objects of a JSON body may nest."
    )
    max_number_length: int = Field(
        default=40, ge=20, le=4000, description="Characters of a number in a JSON body, checked before it is read."
    )
    max_decoding_cost: int = Field(
        default=50_000_000,
        ge=1,
        description="Beam size x (alternatives + 1) x target tokens at most, summed over a request's sentences.",
    )
    max_connections: int = Field(
        default=1_000, ge=1, le=1_000_000, description="Open connections; requests of further ones get 503."
    )
    max_header_bytes: int = Field(
        default=32_768, ge=1024, le=1 << 20, description="Bytes of a request's line and headers."
    )
    header_timeout: float = Field(
        default=10.0, gt=0, le=3600, description="Seconds in which a connection must send a request's headers."
    )
    keep_alive_timeout: float = Field(
        default=30.0, gt=0, le=3600, description="Seconds that a connection may idle between two requests."
    )
    reply_timeout: float = Field(
        default=30.0, gt=0, le=3600, description="Seconds that a client may take to read the next part of a reply."
    )
    max_beam_size: int = Field(default=10, ge=1, le=100, description="Beam size that a request may ask for.")
    request_timeout: float = Field(default=60.0, gt=0, le=3600, description="Seconds that a request may take.")
    summary_depth: int = Field(
        default=3,
        ge=0,
        le=10,
        description="Times that the summaries of a long text's parts are put together and summarized again, until one"
        " is left; 0 = a text is cut to what the model reads, and the reply says `truncated`.",
    )
    bulk_characters: int = Field(
        default=2_000,
        ge=1,
        description="Requests with more characters count as bulk, unless they say otherwise.",
    )

    shortlist: bool = Field(
        default=True,
        description="Let a sentence use only the target tokens that its bundle's shortlist selects; torch uses none.",
    )
    max_batch_tokens: int = Field(
        default=0,
        ge=0,
        le=1 << 22,
        description="Rows (sentences x beam) times the longest source of one batch; 0 = 8,192, on a GPU"
        " 262,144, less where it has less than 80 GB.",
    )
    max_join_tokens: int = Field(
        default=0,
        ge=0,
        le=1 << 20,
        description="Source tokens encoded between two steps of a running batch; 0 = 512, on a GPU 16,384, less"
        " where it has less than 80 GB.",
    )
    max_batch_sentences: int = Field(
        default=0,
        ge=0,
        le=4096,
        description="Sentences of one batch; 0 = 64, on a GPU 256, less where it has less than 80 GB.",
    )
    max_queue_tokens: int = Field(
        default=0,
        ge=0,
        le=1 << 30,
        description="Predicted tokens, waiting and running, before 503 is answered; 0 = 8,192 for each decode worker,"
        " a few seconds of work; on a GPU 262,144, less where it has less than 80 GB.",
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

    def __init__(self, **given: Any) -> None:
        """``given`` are settings by name, those of extras among them; see the module. Raises ValidationError."""
        super().__init__(**given)

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Flags before environment before file. Raises ConfigError where the file cannot be read."""
        given = init_settings.init_kwargs if isinstance(init_settings, InitSettingsSource) else {}
        path = given.get("config") or os.environ.get(f"{PREFIX}CONFIG")
        if not path:
            return init_settings, env_settings
        content = {name: value for name, value in file_content(path).items() if name not in RETIRED}
        return init_settings, env_settings, InitSettingsSource(settings_cls, content)

    @field_validator("bundles", mode="before")
    @classmethod
    def _split_paths(cls, value: object) -> object:
        if isinstance(value, str):
            return tuple(part for part in value.split(os.pathsep) if part)
        return (value,) if isinstance(value, Path) else value

    @field_validator("versions", mode="after")
    @classmethod
    def _check_versions(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        faults = [name for name in value if not NAME.fullmatch(name) or "@" not in name]
        if faults:
            raise ValueError(f"each must be a name with a version, such as de-en@1, but {faults[0]!r} is not")
        if len({name.partition("@")[0] for name in value}) < len(value):
            raise ValueError("each model may be named once")
        return value

    @field_validator("pivot_languages", mode="after")
    @classmethod
    def _check_languages(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        faults = [code for code in value if not is_language_code(code)]
        if faults:
            raise ValueError(f"each must be a language code such as en, but {faults[0]!r} is not")
        return value

    @field_validator("allowed_hosts", "cors_origins", "versions", "pivot_languages", mode="before")
    @classmethod
    def _split_list(cls, value: object) -> object:
        return tuple(part.strip() for part in value.split(",") if part.strip()) if isinstance(value, str) else value

    def part(self, kind: type[Part]) -> Part:
        """These settings as the extra knows them whose record ``kind`` is. Raises TypeError where it is not here."""
        if not isinstance(self, kind):
            raise TypeError(f"there are no settings {kind.__name__}: the extra that brings them is not here")
        return self

    @property
    def asks_for_keys(self) -> bool:
        """Whether callers without a key are refused; an extra that knows keys says otherwise in its record."""
        return False

    @property
    def awaits_bundles(self) -> bool:
        """Whether bundles may come after the start; an extra that fetches some says so in its record."""
        return False

    @property
    def decode_workers(self) -> int:
        """Number of decode workers, chosen where the setting is 0."""
        return self.workers or usable_cores()

    def engine_options(self, device: str = "cpu", memory: int | None = None) -> EngineOptions:
        """The part that the engine needs.

        Args:
            device: that ``self.device`` stands for on this machine.
            memory: bytes that a GPU has; None = as many as a large one.
        """
        gpu = device != "cpu"
        workers = (self.workers or 1) if gpu else self.decode_workers
        if gpu:
            bounds = _gpu_bounds(_LARGE if memory is None else self.gpu_memory * memory)
        else:
            bounds = replace(_ON_CPU, queue_tokens=_ON_CPU.queue_tokens * workers)
        limits = SchedulerLimits(
            max_queue_tokens=self.max_queue_tokens or bounds.queue_tokens,
            max_batch_tokens=self.max_batch_tokens or bounds.batch_tokens,
            max_batch_sentences=self.max_batch_sentences or bounds.batch_sentences,
            max_join_tokens=self.max_join_tokens or bounds.join_tokens,
            bulk_handicap=self.bulk_handicap,
        )
        stall = max(_STALL, 2 * self.probe_timeout) if gpu else None
        bound = self.models_memory * 1_000_000 or None
        return EngineOptions(workers, self.cache_sentences, limits, stall, bound)


def _with_extras(core: type[CoreSettings]) -> type[CoreSettings]:
    """All settings: the core's, then those of extras."""
    brought = [load(extra.settings) for extra in extras() if extra.settings is not None]
    # Fields stand in the order of bases from the last on, and what a record of an extra says goes before the core's.
    made = type("Settings", (*reversed(brought), core), {"__doc__": core.__doc__, "__module__": __name__})
    assert issubclass(made, core)
    return made


if TYPE_CHECKING:
    Settings: TypeAlias = CoreSettings
else:
    Settings = _with_extras(CoreSettings)


def _gpu_bounds(room: float) -> _Bounds:
    """Those of a large GPU, and of one with less room, in bytes, as much less; never less than on a CPU."""
    parts = min(_PARTS, int(_PARTS * room / _LARGE))
    pairs = zip(astuple(_ON_CPU), astuple(_ON_GPU), strict=True)
    return _Bounds(*(max(least, most * parts // _PARTS) for least, most in pairs))


def file_content(path: str | Path) -> dict[str, Any]:
    """The settings of a TOML file, by name, as they stand there. Raises ConfigError where it cannot be read."""
    try:
        return tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"{path}: cannot read the file of settings: {error.strerror}") from error
    except ValueError as error:
        raise ConfigError(f"{path}: the file of settings is not TOML: {error}") from error
