"""The Ray application on a cluster of this machine, as ``serve deploy`` uses it."""

from __future__ import annotations

import copy
import logging
import shutil
import threading
import time
import urllib.request
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from tandem.extras.loadtest.server import free_port
from tests.shipped import ROOT, SHIPPED

pytestmark = [
    pytest.mark.slow,
    # Ray leaves pipes and processes to its own exit handler, where they are closed.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning:ray.data.context"),  # it sets its own deprecated options
]
PATIENCE = 60.0  # seconds after which a test that waits for something has failed
SENTENCES = (
    "Das Haus ist alt.",
    "Wir gehen heute nach Hause.",
    "Der Bahnhof ist nicht weit von hier.",
    "Kannst du mir bitte helfen?",
    "Es regnet schon den ganzen Tag.",
)


@dataclass
class Cluster:
    """A Ray cluster, and what is served on it."""

    url: str
    metrics_url: str
    config: dict[str, Any]
    failures: list[str] = field(default_factory=list)

    def deploy(self, user_config: dict[str, Any] | None = None, **arguments: Any) -> None:
        """What ``serve deploy`` does with the shipped file, these arguments in it; ends when all is running."""
        from ray.serve.context import _get_global_client
        from ray.serve.schema import ServeDeploySchema

        config = copy.deepcopy(self.config)
        config["applications"][0]["args"] |= arguments
        config["applications"][0]["deployments"][0]["user_config"] |= user_config or {}
        # The command hands the file to Ray's dashboard, which hands it to this; there is no dashboard here.
        client = _get_global_client()
        assert client is not None
        client.deploy_apps(ServeDeploySchema.model_validate(config), _blocking=True)

    def replicas(self) -> set[str]:
        """The names of the replicas' actors."""
        import ray

        named = ray.util.list_named_actors(all_namespaces=True)
        return {one["name"] for one in named if one["name"].startswith("SERVE_REPLICA")}

    def running(self) -> int:
        """Replicas that Serve sends requests to."""
        from ray import serve

        deployment = serve.status().applications["tandem"].deployments["tandem"]
        return sum(count for state, count in deployment.replica_states.items() if state == "RUNNING")

    def translate(self, text: str) -> str:
        """A client that asks again where nothing was lost but time: a translation changes nothing."""
        until = time.monotonic() + PATIENCE
        while True:
            try:
                reply = httpx.post(
                    f"{self.url}/translate", json={"q": text, "source": "de", "target": "en"}, timeout=30
                )
            except httpx.TransportError as error:
                self.failures.append(repr(error))
            else:
                if reply.status_code < 500:
                    assert reply.status_code == 200, reply.text
                    return str(reply.json()["translatedText"])
                self.failures.append(f"{reply.status_code} {reply.text[:80]}")
            assert time.monotonic() < until, self.failures[-5:]
            time.sleep(0.1)


def wait_for(condition: Callable[[], bool], what: str) -> None:
    until = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < until, f"in vain: {what}"
        time.sleep(0.2)


@pytest.fixture(scope="module")
def ray_metrics_url() -> Iterator[str]:
    """A Ray cluster of this machine, and where its metrics are."""
    metrics_port = free_port()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        patch.setenv("RAY_AUTH_MODE", "disabled")  # else it writes a token into the home folder
        with warnings.catch_warnings():
            for kind in (DeprecationWarning, FutureWarning):  # Ray's own, about itself and what it uses
                warnings.simplefilter("ignore", kind)
            import ray

            ray.init(
                address="local", num_cpus=4, include_dashboard=False, object_store_memory=100 << 20,
                log_to_driver=False, logging_level=logging.ERROR, _metrics_export_port=metrics_port,
            )  # fmt: skip
        try:
            yield f"http://127.0.0.1:{metrics_port}/metrics"
        finally:
            ray.shutdown()


@pytest.fixture(scope="module")
def cluster(ray_metrics_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Two replicas of two versions of a model."""
    folder = tmp_path_factory.mktemp("ray")
    for version in ("de-fr-en@1", "de-fr-en@2"):
        shutil.copytree(SHIPPED, folder / "bundles" / version)
    config = yaml.safe_load((ROOT / "extras" / "cluster" / "serve.yaml").read_text())
    variables = {"TANDEM_BUNDLES": str(folder / "bundles"), "TANDEM_DATA": str(folder / "data")}
    config["applications"][0]["runtime_env"]["env_vars"] = variables
    # Without a cache: the load of a few texts is to be a load.
    given = {"num_cpus": 0.5, "min_replicas": 2, "max_replicas": 2, "settings": {"cache_sentences": 0}}
    config["applications"][0]["args"] |= given
    port = free_port()
    with warnings.catch_warnings():
        for kind in (DeprecationWarning, FutureWarning):
            warnings.simplefilter("ignore", kind)
        from ray import serve
    try:
        serve.start(http_options={"host": "127.0.0.1", "port": port})
        served = Cluster(f"http://127.0.0.1:{port}", ray_metrics_url, config)
        served.deploy({"versions": ["de-fr-en@1"]})
        yield served
    finally:
        serve.shutdown()  # type: ignore[no-untyped-call]


def text_of(number: int) -> str:
    """A text of some sentences, not the same for any two numbers."""
    return f"Nummer {number}. " + " ".join(SENTENCES[(number + step) % len(SENTENCES)] for step in range(20))


def test_no_request_is_lost_when_a_replica_dies(cluster: Cluster) -> None:
    import ray

    expected = [cluster.translate(text_of(number)) for number in range(4)]
    before = cluster.replicas()
    assert len(before) == 2
    victim = sorted(before)[0]
    ended = threading.Event()
    answers: list[tuple[int, str]] = []

    def send(number: int) -> None:
        while not ended.is_set():
            answers.append((number, cluster.translate(text_of(number))))

    with ThreadPoolExecutor(4) as threads:
        sending = [threads.submit(send, number) for number in range(4)]
        try:
            wait_for(lambda: len(answers) >= 8, "answers before")
            ray.kill(ray.get_actor(victim, namespace="serve"))
            wait_for(lambda: victim not in cluster.replicas(), "the end of the replica")
            alone = len(answers)
            wait_for(lambda: len(answers) > alone + 4, "answers of the other replica")
            wait_for(lambda: len(cluster.replicas() - before) == 1 and cluster.running() == 2, "a new replica")
            again = len(answers)
            wait_for(lambda: len(answers) > again + 4, "answers of both")
        finally:
            ended.set()
        for one in sending:
            one.result()
    assert all(answer == expected[number] for number, answer in answers)
    assert cluster.replicas() > before - {victim}


def test_models_switch_without_a_restart_and_a_mistake_changes_nothing(cluster: Cluster) -> None:
    cluster.deploy({"versions": ["de-fr-en@1"]})
    before = cluster.replicas()
    assert current_of(cluster) == {"de-fr-en@1"}
    cluster.deploy({"versions": ["de-fr-en@2"]})
    assert current_of(cluster) == {"de-fr-en@2"}
    cluster.deploy({"versions": ["de-fr-en@7"]})
    assert current_of(cluster) == {"de-fr-en@2"}
    assert cluster.replicas() == before
    cluster.deploy({"versions": ["de-fr-en@2"]})


def current_of(cluster: Cluster) -> set[str]:
    """The versions that the alias stands for, in as many replicas as several questions meet."""
    found = set()
    for _ in range(10):
        models = httpx.get(f"{cluster.url}/models").json()
        found |= {one["name"] for one in models if one.get("current")}
    return found


def test_a_reply_has_the_id_of_its_request(cluster: Cluster) -> None:
    reply = httpx.get(f"{cluster.url}/nothing", headers={"X-Request-ID": "asked-by-me"})
    assert reply.headers.get_list("x-request-id") == ["asked-by-me"]
    assert reply.json()["request_id"] == "asked-by-me"


def test_each_replica_has_a_data_folder(cluster: Cluster) -> None:
    data = Path(cluster.config["applications"][0]["runtime_env"]["env_vars"]["TANDEM_DATA"])
    assert {"replica-0", "replica-1"} <= {one.name for one in data.iterdir() if (one / "keys.db").exists()}


def test_ray_exports_the_metrics_of_each_replica(cluster: Cluster) -> None:
    wanted = "ray_tandem_queue_limit_tokens{"

    def replicas() -> set[str]:
        with urllib.request.urlopen(cluster.metrics_url) as reply:
            lines = [line for line in reply.read().decode().splitlines() if line.startswith(wanted)]
        return {line.partition('replica="')[2].partition('"')[0] for line in lines}

    ours = {name.rpartition("#")[2] for name in cluster.replicas()}
    wait_for(lambda: ours <= replicas(), "metrics of both replicas")


def test_replicas_follow_the_load(cluster: Cluster) -> None:
    eager = {"target_queue": 0.01, "upscale_delay": 0, "downscale_delay": 0, "look_back": 10.1}
    cluster.deploy({"versions": ["de-fr-en@1"]}, min_replicas=1, **eager)
    wait_for(lambda: cluster.running() == 1, "one replica without load")
    ended = threading.Event()

    def send(number: int) -> None:
        while not ended.is_set():
            cluster.translate(text_of(number))

    with ThreadPoolExecutor(4) as threads:
        sending = [threads.submit(send, number) for number in range(4)]
        try:
            wait_for(lambda: cluster.running() == 2, "a second replica under load")
        finally:
            ended.set()
        for one in sending:
            one.result()
    wait_for(lambda: cluster.running() == 1, "one replica after the load")


def test_a_replica_takes_what_the_arguments_say() -> None:
    with warnings.catch_warnings():
        for kind in (DeprecationWarning, FutureWarning):
            warnings.simplefilter("ignore", kind)
        from tandem.extras.cluster.app import app

    built: Any = app({"num_cpus": "4", "num_gpus": "0.25", "min_replicas": "2", "max_replicas": "8", "sticky": "true"})
    deployment = built._bound_deployment
    options = deployment.ray_actor_options
    assert (options["num_cpus"], options["num_gpus"]) == (4, 0.25)
    assert options["runtime_env"]["env_vars"] == {"OMP_NUM_THREADS": "1"}
    scaling = deployment._deployment_config.autoscaling_config
    assert (scaling.min_replicas, scaling.max_replicas) == (2, 8)
    assert scaling.policy.policy_kwargs == {"target": 0.25}
    router = deployment._deployment_config.request_router_config
    assert router.request_router_class.endswith("ConsistentHashRouter")
