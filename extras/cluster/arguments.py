"""What the Ray Serve application can be told: in ``args`` of its configuration file, or as ``name=value``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from tandem.models.errors import ConfigError
from tandem.service.api.wording import bound_of
from tandem.service.configuration import is_secret, read_configuration, variable_of
from tandem.service.settings import Settings

_ELSEWHERE = {
    "data": "set TANDEM_DATA on the nodes: each replica takes a folder of its own below it",
    "host": "Serve's http_options say where its proxies listen",
    "port": "Serve's http_options say where its proxies listen",
    "versions": "name them in user_config of the deployment, so that running replicas can switch",
}


class Arguments(BaseModel):
    """How replicas are made, and how many of them.

    What is not here can be set for the deployment ``tandem`` in the configuration file: Ray's own options.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    num_cpus: float = Field(
        default=1.0, gt=0, le=4096, description="Cores of a replica; on the CPU also its decode workers x threads."
    )
    num_gpus: float = Field(
        default=0.0,
        ge=0,
        le=1,
        description="Share of a GPU that a replica takes; four with 0.25 each are placed on one. Ray counts shares and"
        " does not enforce them: what they need of the GPU's memory must fit in together.",
    )
    min_replicas: int = Field(default=1, ge=1, le=10_000, description="Replicas that run without any load.")
    max_replicas: int = Field(default=4, ge=1, le=10_000, description="Replicas at most.")
    target_queue: float = Field(
        default=0.25, gt=0, le=1, description="Share of its bound to which each replica's queue should be filled."
    )
    upscale_delay: float = Field(
        default=10.0, ge=0, le=3600, description="Seconds for which more must be wanted before replicas are added."
    )
    downscale_delay: float = Field(
        default=300.0, ge=0, le=86_400, description="Seconds for which fewer must be wanted before some are stopped."
    )
    look_back: float = Field(
        default=15.0, gt=10, le=3600, description="Seconds of which the mean fill of the queues is taken."
    )
    sticky: bool = Field(
        default=False,
        description="Send requests of one session to one replica, so that file jobs and stored glossaries are found"
        " again; the header that names the session is RAY_SERVE_SESSION_ID_HEADER_KEY of the nodes.",
    )
    settings: dict[str, Any] = Field(
        default_factory=dict, description="Settings of the service by name; the others come from the nodes' TANDEM_*."
    )

    @model_validator(mode="after")
    def _check(self) -> Arguments:
        if self.max_replicas < self.min_replicas:
            raise ValueError(f"max_replicas must be at least min_replicas = {self.min_replicas}")
        faults = [f"settings must not name {name}: {_ELSEWHERE[name]}" for name in self.settings if name in _ELSEWHERE]
        faults += [
            f"settings must not name {name}, for Ray shows them: set {variable_of(name)} on the nodes"
            for name in self.settings
            if name in Settings.model_fields and is_secret(name)
        ]
        if faults:
            raise ValueError("; ".join(faults))
        return self

    def service_settings(self) -> Settings:
        """The settings of a replica on this machine.

        Workers follow from the replica's cores and not from the machine's, which other replicas use as well. On a GPU
        there is one worker, for one is what keeps it busy.

        Raises:
            ConfigError: one is unknown or out of bounds; every fault is named.
        """
        settings = read_configuration(self.settings).settings
        if settings.workers:
            return settings
        workers = 1 if self.num_gpus else max(1, int(self.num_cpus) // settings.threads)
        return settings.model_copy(update={"workers": workers})


def read_arguments(given: Mapping[str, Any]) -> Arguments:
    """Arguments by name, as Ray hands them over: of a file with their types, of a command line as strings.

    Raises:
        ConfigError: one is unknown or out of bounds, or a setting is; every fault is named.
    """
    try:
        arguments = Arguments.model_validate(dict(given))
    except ValidationError as error:
        raise ConfigError("; ".join(map(_describe, error.errors(include_url=False)))) from error
    arguments.service_settings()
    return arguments


def _describe(item: Any) -> str:
    name = ".".join(map(str, item["loc"]))
    if item["type"] == "extra_forbidden":
        return f"there is no argument {name}; there are {', '.join(Arguments.model_fields)}"
    if not name:
        return str(item["msg"]).removeprefix("Value error, ")
    return f"{name}: {bound_of(item)}, but is {item['input']!r}"
