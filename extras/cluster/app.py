"""The service as a Ray Serve application: ``serve run tandem.extras.cluster.app:app``, or ``serve deploy`` with a file.

Ray Serve, and not a queue with workers of our own: it places replicas on machines by cores and shares of GPUs, scales
them, replaces what has died, and rolls out changes. Where Kubernetes does all that already, plain replicas of the
container do as well (docs/kubernetes.md); engine and HTTP interface are the same. docs/ray.md says how to run it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ray import serve
from ray.serve import Application
from ray.serve.config import AutoscalingConfig, AutoscalingPolicy, RequestRouterConfig
from ray.serve.schema import LoggingConfig

from tandem.extras.cluster import scaling
from tandem.extras.cluster.arguments import Arguments, read_arguments
from tandem.extras.cluster.replica import Replica
from tandem.service.settings import Settings

NAME = "tandem"
"""Of the deployment, by which a configuration file sets Ray's own options for it."""
_STICKY = "ray.serve.experimental.consistent_hash_router.ConsistentHashRouter"
_HEALTH_PERIOD, _HEALTH_TIMEOUT = 10.0, 60.0  # seconds; a check probes each model, one after the other
_SPARE = 15.0  # seconds for what a shutdown does after work has ended


def app(given: Mapping[str, Any]) -> Application:
    """What ``serve run`` and ``serve deploy`` build the application with.

    Args:
        given: of :class:`extras.cluster.arguments.Arguments` those that are to differ from their defaults, by name.

    Raises:
        ConfigError: one is unknown or out of bounds; every fault is named.
    """
    arguments = read_arguments(given)
    settings = arguments.service_settings()
    options: dict[str, Any] = {}
    if arguments.sticky:
        options["request_router_config"] = RequestRouterConfig.model_validate({"request_router_class": _STICKY})
    deployment = serve.deployment(
        name=NAME,
        ray_actor_options=_resources(arguments, settings),
        autoscaling_config=_autoscaling(arguments),
        # The engine bounds its queue by tokens and refuses what is too much; these bounds only back it up.
        max_ongoing_requests=settings.max_connections,
        max_queued_requests=settings.max_connections,
        health_check_period_s=_HEALTH_PERIOD,
        health_check_timeout_s=_HEALTH_TIMEOUT,
        # First requests end, for as long as one may take, then file jobs and the engine.
        graceful_shutdown_timeout_s=settings.request_timeout + settings.shutdown_timeout + _SPARE,
        logging_config=LoggingConfig(enable_access_log=False),  # the app logs each request itself, without its path
        **options,
    )
    return deployment(serve.ingress()(Replica)).bind(arguments)


def _resources(arguments: Arguments, settings: Settings) -> dict[str, Any]:
    # Ray would set the number of a replica's cores, and each decode worker would start as many threads.
    threads = {"OMP_NUM_THREADS": str(settings.threads)}
    return {
        "num_cpus": arguments.num_cpus,
        "num_gpus": arguments.num_gpus,
        "runtime_env": {"env_vars": threads},
    }


def _autoscaling(arguments: Arguments) -> AutoscalingConfig:
    policy = {
        "policy_function": f"{scaling.__name__}:{scaling.QueueShare.__name__}",
        "policy_kwargs": {"target": arguments.target_queue},
    }
    return AutoscalingConfig(
        min_replicas=arguments.min_replicas,
        max_replicas=arguments.max_replicas,
        upscale_delay_s=arguments.upscale_delay,
        downscale_delay_s=arguments.downscale_delay,
        look_back_period_s=arguments.look_back,
        policy=AutoscalingPolicy.model_validate(policy),
    )
