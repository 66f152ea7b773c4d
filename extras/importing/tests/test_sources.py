"""`tandem pull firefox:PAIR` and `hf:REPOSITORY`, and `tandem models`: against a registry of the same form."""

from __future__ import annotations

import gzip
import hashlib
import json
import shutil
import sys
import urllib.request
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from tandem.extras.fetching.sources import FetchOptions, fetch_bundle
from tandem.extras.importing.publishing import page
from tandem.extras.importing.sources import registry
from tandem.extras.importing.tests.published import Served, change_index
from tandem.models.bundle import Bundle
from tandem.models.errors import ConfigError
from tandem.models.folders import hold
from tandem.models.search import translate_batch
from tandem.models.translation.translator import encode_lines
from tandem.service.runtimes.onnx import OnnxGraphs
from tests.command import ends
from tests.shipped import SHIPPED

Run = Callable[..., tuple[int, str, str]]
LARGER = "models/en-de/base-memory"  # where the released model that is taken lies


@pytest.fixture
def bundles(tmp_path: Path) -> Path:
    return tmp_path / "bundles"


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, bundles: Path) -> Run:
    """A command's status, output and errors."""
    for name in ("http_proxy", "HTTP_PROXY", "no_proxy", "NO_PROXY", "TANDEM_MODELS_REGISTRY"):
        monkeypatch.delenv(name, raising=False)

    return lambda *arguments: ends(*arguments, "--bundles", bundles)


def visible(folder: Path) -> list[str]:
    return sorted(one.name for one in folder.glob("[!.]*"))


def test_one_command_makes_a_bundle_that_translates(served: Served, run: Run, bundles: Path) -> None:
    status, output, error = run("pull", "firefox:en-de", "--registry", served.address)
    assert status == 0, error
    bundle = Bundle.load(bundles / "en-de", weights=True)
    manifest = bundle.manifest
    assert (manifest.name, manifest.source_languages, manifest.target_language) == ("en-de", ("en",), "de")
    assert manifest.licence == "MPL-2.0" and manifest.origin is not None and bundle.shortlist is not None
    weights = f"{LARGER}/model.ende.intgemm.alphas.bin.gz"  # the largest that is released
    assert manifest.origin.url == f"{served.address}/{weights}"
    hashes = {
        file.name.removesuffix(".gz"): hashlib.sha256(gzip.decompress(file.read_bytes())).hexdigest()
        for file in (served.root / LARGER).iterdir()
    }
    assert hashes.items() <= dict(manifest.origin.files).items()
    card = (bundle.path / "MODEL_CARD.md").read_text(encoding="utf-8")
    assert all(digest in card for digest in hashes.values()) and "MPL-2.0" in card and served.address in card
    assert all(f"pinned as {digest}" in error for name, digest in hashes.items() if not name.startswith("model."))
    assert str(bundles / "en-de") in output
    left = [one.name for one in bundles.iterdir()]
    assert sorted(left) == [".pull-en-de.lock", "en-de"]
    sources = [(ids,) for ids in encode_lines(bundle.source_vocabularies[0], ["the house is old"], 40)]
    (found,) = translate_batch(OnnxGraphs(bundle, "int8", 1), sources, manifest.decoding)
    assert found


def test_models_are_listed_with_what_is_here(served: Served, run: Run) -> None:
    assert run("pull", "firefox:en-de", "--registry", served.address)[0] == 0
    status, output, _ = run("models", "--registry", served.address, "--json")
    listed = json.loads(output)
    assert status == 0 and not listed["faults"]
    assert [one["name"] for one in listed["installed"]] == ["en-de"]
    assert listed["installed"][0]["licence"] == "MPL-2.0"
    names = [one["name"] for one in listed["offered"]]
    assert names == ["firefox:en-de/tiny", "firefox:en-de", "firefox:en-de/base", "firefox:en-pt/tiny"]
    assert listed["offered"][1]["scores"] == {"bleu": 31.5, "chrf": 60.25, "comet22": 0.875}
    _, output, _ = run("models", "en-pt", "--registry", served.address)
    assert "firefox:en-pt/tiny" in output and "en-de" not in output
    status, output, error = run("models", "--registry", "http://127.0.0.1:9")
    assert status == 0 and "en-de" in output and "refused" in error


@pytest.mark.parametrize(
    ("name", "status", "says"),
    [
        ("firefox:en-dee", 2, "did you mean en-de"),
        ("firefox:de-en", 2, "did you mean en-de"),
        ("firefox:en-pt", 2, "firefox:en-pt/tiny (Nightly)"),
        ("firefox:en-de/huge", 2, "of the architecture 'huge'"),
        ("firefox:../../outside", 2, "no model of '..'"),
        ("hf:no-repository", 2, "hf:Helsinki-NLP/opus-mt-de-en"),
    ],
)
def test_what_there_is_not_is_said(served: Served, run: Run, bundles: Path, name: str, status: int, says: str) -> None:
    found, _, error = run("pull", name, "--registry", served.address, "--name", "any")
    assert (found, says in error) == (status, True), error
    assert not visible(bundles)


def test_one_that_is_not_released_is_had_by_its_architecture(served: Served, run: Run, bundles: Path) -> None:
    assert run("pull", "firefox:en-pt/tiny", "--registry", served.address, "--name", "en-pt@2")[0] == 0
    assert Bundle.load(bundles / "en-pt@2").manifest.name == "en-pt@2"


def test_a_download_that_breaks_off_goes_on(served: Served, run: Run, bundles: Path) -> None:
    weights = f"{LARGER}/model.ende.intgemm.alphas.bin.gz"
    served.stops = {"alphas.bin.gz": 1000}
    status, _, error = run("pull", "firefox:en-de", "--registry", served.address)
    assert status == 1 and "broke off" in error and "1000 bytes that are here" in error
    assert not visible(bundles)
    served.stops = {}
    assert run("pull", "firefox:en-de", "--registry", served.address)[0] == 0
    asked = [one for path, one in zip(served.asked, served.ranges, strict=True) if path.endswith(weights)]
    assert asked == [None, "bytes=1000-"]


def packed(root: Path, content: bytes, kind: str = "vocab.ende.spm") -> None:
    (root / LARGER / f"{kind}.gz").write_bytes(content)


def _wrong_hash(root: Path) -> None:
    change_index(root, model={"uncompressedHash": "0" * 64})


def _wrong_size(root: Path) -> None:
    change_index(root, model={"uncompressedSize": 10})


def _too_short(root: Path) -> None:
    change_index(root, model={"uncompressedSize": 10_000_000})


def _outside(root: Path) -> None:
    change_index(root, vocab={"path": "models/../../../../outside.spm.gz"})


def _elsewhere(root: Path) -> None:
    change_index(root, vocab={"path": "https://elsewhere.example.org/vocab.spm"})


def _bomb(root: Path) -> None:
    packed(root, gzip.compress(bytes(300 << 20), 1))


def _cut(root: Path) -> None:
    content = (root / LARGER / "vocab.ende.spm.gz").read_bytes()
    packed(root, content[: len(content) // 2])


def _gone(root: Path) -> None:
    (root / LARGER / "vocab.ende.spm.gz").unlink()


def _no_json(root: Path) -> None:
    (root / "db" / "models.json").write_text("<html>", encoding="utf-8")


@pytest.mark.parametrize("offline", [False, True], ids=["server", "folder"])
@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (_wrong_hash, "0000, but|registry says 0000"),
        (_wrong_size, "may have 10"),
        (_too_short, "registry says 10000000"),
        (_outside, "leads out of the registry"),
        (_elsewhere, "leads out of the registry"),
        (_bomb, "may have 268435456"),
        (_cut, "cannot be unpacked"),
        (_gone, "answers 404|no such file"),
        (_no_json, "no registry of models"),
    ],
)
def test_what_is_not_as_the_registry_says_is_refused(
    served: Served, run: Run, bundles: Path, damage: Callable[[Path], None], says: str, offline: bool
) -> None:
    damage(served.root)
    status, _, error = run("pull", "firefox:en-de", "--registry", served.root if offline else served.address)
    assert status == 1 and any(part in error for part in says.split("|")), error
    assert not visible(bundles) and not list(bundles.rglob("*.part")), "nothing of it is kept"
    assert not list(bundles.rglob("*.spm")) and not list(bundles.rglob("*.bin"))


def test_a_hash_that_the_registry_lacks_is_held_against_the_first(served: Served, run: Run, bundles: Path) -> None:
    command = ("pull", "firefox:en-de", "--registry", served.address)
    assert run(*command)[0] == 0
    before = Bundle.load(bundles / "en-de").manifest
    status, _, error = run(*command)
    assert status == 2 and "--replace" in error and "en-de@2" in error
    assert run(*command, "--replace")[0] == 0
    lexical = "lex.50.50.ende.s2t.bin"
    content = bytearray(gzip.decompress((served.root / LARGER / f"{lexical}.gz").read_bytes()))
    content[-4] ^= 1
    packed(served.root, gzip.compress(bytes(content)), lexical)
    status, _, error = run(*command, "--replace")
    assert status == 1 and "when this model was first fetched" in error and before.origin is not None
    assert before.origin.files[lexical] in error
    assert Bundle.load(bundles / "en-de").manifest.origin == before.origin


def test_no_network_says_what_to_do(run: Run, bundles: Path) -> None:
    status, _, error = run("pull", "firefox:en-de", "--registry", "http://127.0.0.1:9")
    assert status == 1 and "refused" in error
    assert "https_proxy" in error and "--registry takes a mirror, or a folder" in error
    assert not visible(bundles)


def test_behind_a_proxy(served: Served, run: Run, bundles: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(urllib.request, "_opener", None)  # it has the proxies of its first call
    monkeypatch.setenv("http_proxy", served.address)
    assert run("pull", "firefox:en-de", "--registry", "http://models.example.org")[0] == 0
    assert len(served.asked) == 4 and all(one.startswith("http://models.example.org/") for one in served.asked)


def test_the_mirror_is_a_setting_and_its_own_files_are_taken(
    served: Served, run: Run, bundles: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TANDEM_MODELS_REGISTRY", served.address)
    assert run("pull", "firefox:en-de")[0] == 0  # the index still says where the original is
    assert len(served.asked) == 4


def test_the_publishers_address_says_where_the_files_are(
    served: Served, bundles: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry, "ADDRESS", served.address)
    assert registry.read_registry("").place == "https://models.example.org"
    index = served.root / "db" / "models.json"
    index.write_text(index.read_text(encoding="utf-8").replace("https://", "http://"), encoding="utf-8")
    with pytest.raises(Exception, match="baseUrl must begin with https"):
        registry.read_registry("")


def test_two_at_once_are_one(served: Served, run: Run, bundles: Path) -> None:
    bundles.mkdir()
    with hold(bundles / ".pull-en-de.lock"):
        status, _, error = run("pull", "firefox:en-de", "--registry", served.address)
        assert status == 1 and "another process" in error and not served.asked
    assert run("pull", "firefox:en-de", "--registry", served.address)[0] == 0


def test_a_scheme_that_nobody_knows(bundles: Path) -> None:
    with pytest.raises(ConfigError, match="firefox:, hf:, but is 'chrome:en-de'"):
        fetch_bundle("chrome:en-de", bundles, FetchOptions())


# --- Hugging Face ---------------------------------------------------------------------------------------------------


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch, written: Path) -> dict[str, Any]:
    """A client of Hugging Face's as far as it is used, with a student in its repository; what it was asked is kept."""
    asked: dict[str, Any] = {}
    student = written.parent / "student"

    def model_info(self: object, name: str) -> SimpleNamespace:
        if name.startswith("nobody/"):
            raise RuntimeError("404 Client Error.\nRepository Not Found")
        names = [one.name for one in asked.get("folder", student).iterdir()]
        siblings = [SimpleNamespace(rfilename=one) for one in names]
        return SimpleNamespace(sha="c0ffee", siblings=siblings, card_data=SimpleNamespace(license="cc-by-4.0"))

    def snapshot_download(name: str, *, revision: str, allow_patterns: list[str] | None, local_dir: Path) -> str:
        asked.update(name=name, revision=revision, patterns=allow_patterns)
        shutil.copytree(asked.get("folder", student), local_dir)
        return str(local_dir)

    made = ModuleType("huggingface_hub")
    made.HfApi = type("HfApi", (), {"model_info": model_info})  # type: ignore[attr-defined]
    made.snapshot_download = snapshot_download  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "huggingface_hub", made)
    return asked


def test_a_repository_becomes_a_bundle(hub: dict[str, Any], run: Run, bundles: Path) -> None:
    status, _, error = run("pull", "hf:Helsinki-NLP/opus-mt-en-de")
    assert status == 0, error
    manifest = Bundle.load(bundles / "en-de", weights=True).manifest
    assert (manifest.source_languages, manifest.target_language, manifest.licence) == (("en",), "de", "cc-by-4.0")
    assert manifest.origin is not None
    assert manifest.origin.url == "https://huggingface.co/Helsinki-NLP/opus-mt-en-de/tree/c0ffee"
    assert hub["revision"] == "c0ffee" and not any(one == "*.bin" for one in hub["patterns"])


def test_a_repository_that_is_not_there(hub: dict[str, Any], run: Run, bundles: Path) -> None:
    status, _, error = run("pull", "hf:nobody/opus-mt-en-de")
    assert status == 1 and "404 Client Error. Repository Not Found" in error and "HF_ENDPOINT" in error
    assert not visible(bundles)


def test_a_copy_of_a_repository(run: Run, written: Path, bundles: Path, tmp_path: Path) -> None:
    shutil.copytree(written.parent / "student", tmp_path / "copies" / "Helsinki-NLP" / "opus-mt-en-de")
    assert run("pull", "hf:Helsinki-NLP/opus-mt-en-de", "--registry", tmp_path / "copies")[0] == 0
    assert visible(bundles) == ["en-de"]


def test_without_the_client_the_package_is_named(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    status, _, error = run("pull", "hf:Helsinki-NLP/opus-mt-en-de")
    assert status == 1 and "'huggingface_hub'" in error and "[hf]" in error


@pytest.fixture
def published(hub: dict[str, Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A repository that what is committed goes into, as a client of Hugging Face's would have it."""
    folder = tmp_path / "repository"

    def create_repo(self: object, name: str, *, private: bool, exist_ok: bool) -> None:
        if name.startswith("nobody/"):
            raise RuntimeError("401 Client Error.\nUnauthorized")
        hub.update(folder=folder, private=private)
        assert exist_ok

    def create_commit(self: object, name: str, operations: list[Any], *, commit_message: str) -> SimpleNamespace:
        for one in operations:
            place = folder / one.path_in_repo
            place.parent.mkdir(parents=True, exist_ok=True)
            content = one.path_or_fileobj
            place.write_bytes(content if isinstance(content, bytes) else content.read_bytes())
        (folder / ".gitattributes").write_text("*.bin filter=lfs\n")
        return SimpleNamespace(commit_url=f"https://huggingface.co/{name}/commit/1: {commit_message}")

    made: Any = sys.modules["huggingface_hub"]
    made.HfApi.create_repo, made.HfApi.create_commit = create_repo, create_commit
    made.CommitOperationAdd = SimpleNamespace
    return folder


def test_what_is_published_is_pulled(published: Path, hub: dict[str, Any], run: Run, bundles: Path) -> None:
    status, said, error = ends("publish", SHIPPED, "hf:example/de-fr-en", "--private")
    assert status == 0, error
    assert said.strip() == "https://huggingface.co/example/de-fr-en/commit/1: de-fr-en" and hub["private"] is True
    _, front, card = (published / "README.md").read_text(encoding="utf-8").split("---\n", 2)
    facts = {key: json.loads(value) for key, value in (line.split(": ", 1) for line in front.splitlines())}
    assert facts["language"] == ["de", "en", "fr"] and facts["license"] == "cc-by-4.0"
    assert (facts["pipeline_tag"], facts["tags"]) == ("translation", ["tandem", "convs2s"])
    assert card.strip() == (SHIPPED / "MODEL_CARD.md").read_text(encoding="utf-8").strip()
    status, _, error = run("pull", "hf:example/de-fr-en", "--name", "mine")
    assert status == 0, error
    assert hub["patterns"] is None
    assert Bundle.load(bundles / "mine", weights=True).manifest == Bundle.load(SHIPPED).manifest
    assert not (bundles / "mine" / "README.md").exists()


def test_a_damaged_repository_is_no_bundle(published: Path, run: Run, bundles: Path) -> None:
    assert ends("publish", SHIPPED, "hf:example/de-fr-en")[0] == 0
    with (published / "source.model").open("ab") as file:
        file.write(b"x")
    status, _, error = run("pull", "hf:example/de-fr-en")
    assert status == 1 and "source.model" in error
    assert not visible(bundles)


@pytest.mark.parametrize(
    ("repository", "status", "said"),
    [
        ("example/de-fr-en", 2, "must be such as hf:example/de-fr-en"),
        ("hf:de-fr-en", 2, "hf: takes a repository"),
        ("hf:nobody/de-fr-en", 1, "401 Client Error. Unauthorized; log in with `hf auth login`, or set HF_TOKEN"),
    ],
)
def test_what_cannot_be_published(published: Path, repository: str, status: int, said: str) -> None:
    found, _, error = ends("publish", SHIPPED, repository)
    assert found == status and said in error


def test_a_licence_that_is_no_identifier_is_another() -> None:
    manifest = replace(Bundle.load(SHIPPED).manifest, licence="CC BY 4.0 AND MIT")
    assert 'license: "other"\nlicense_name: "CC BY 4.0 AND MIT"\n' in page(manifest)
