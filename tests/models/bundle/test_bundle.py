"""Bundles: what is written comes back, and everything that is wrong with one is refused, all of it at once."""

from __future__ import annotations

import io
import json
import os
import pickle
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save

from tandem.models.bundle import (
    Bundle,
    Corpus,
    Limits,
    Manifest,
    Score,
    StageReader,
    Training,
    Vocabularies,
    VocabularyFile,
    add_built,
    extend_bundle,
    render_card,
    sha256,
    write_bundle,
)  # fmt: skip
from tandem.models.bundle.weights import read_weights
from tandem.models.errors import BundleError, ConfigError, VocabularyError
from tandem.models.search import Array, SearchOptions, specs_to_json
from tandem.models.vocabulary import Vocabulary, WordVocabulary, train_sentencepiece
from tests.models.search.tables import table_specs

PIECES = train_sentencepiece(["a small text about cats", "ein kleiner Text"] * 30, size=310, languages=("de",), seed=1)
WEIGHTS: dict[str, Array] = {
    "b.weight": np.linspace(-2, 2, 12, dtype=np.float32).reshape(3, 4),
    "a.bias": np.zeros(0, np.float32),
    "steps": np.array([7], np.int64),
}
MANIFEST = Manifest(
    name="de-en.small",
    task="translate",
    source_languages=("de",),
    target_language="en",
    architecture="dpn",
    config={"width": 256, "layers": [1, 2]},
    decoding=SearchOptions(beam_size=4, suppressed=(0, 1, 2), max_length_ratio=2.0),
    limits=Limits(128, 256),
    vocabularies=Vocabularies((VocabularyFile("source.model"),), VocabularyFile("target.txt", "words")),
    training=Training((Corpus("talks", "CC BY 4.0", "A | B", "https://example.org", 1000),), {"lr": 0.1}, 10, 20_000),
    licence="MIT",
    scores=(Score("BLEU", 33.5, "test", "nrefs:1", "tandem evaluate x"),),
    proof={"identical": 0.99},
)
GRAPHS = {"onnx/graphs.json": specs_to_json(table_specs(9, "pool", 1)).encode(), "onnx/int8/encode.onnx": b"graph"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    words = WordVocabulary(["a", "cat"])
    write_bundle(tmp_path / "bundle", MANIFEST, WEIGHTS, {"source.model": PIECES, "target.txt": words}, GRAPHS)
    return tmp_path / "bundle"


def faults(folder: Path, **options: Any) -> str:
    with pytest.raises(BundleError) as caught:
        Bundle.load(folder, **options)
    return "\n".join(caught.value.faults)


def edit(folder: Path, change: Callable[[dict[str, Any]], Any]) -> None:
    content = json.loads((folder / "manifest.json").read_text())
    change(content)
    (folder / "manifest.json").write_text(json.dumps(content))


def rehash(folder: Path, name: str, content: bytes) -> None:
    """Replace a file and its hash: what a careless or hostile author would do."""
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(content)
    edit(folder, lambda m: m["files"].__setitem__(name, sha256(folder / name)))


def test_round_trip(folder: Path) -> None:
    bundle = Bundle.load(folder, weights=True)
    assert replace(bundle.manifest, files={}) == MANIFEST
    assert set(bundle.manifest.files) == {
        *("MODEL_CARD.md", "source.model", "target.txt", "weights.safetensors"),
        *GRAPHS,
    }
    read = bundle.weights()
    assert set(read) == set(WEIGHTS)
    assert read["b.weight"].dtype == np.float32
    np.testing.assert_array_equal(read["b.weight"], WEIGHTS["b.weight"].astype(np.float16))
    assert read["steps"].tolist() == [7]
    assert bundle.source_vocabularies[0].encode("cats") == PIECES.encode("cats")
    assert bundle.target_vocabulary.encode("cat") == [5]
    assert bundle.graph_specs("int8") == table_specs(9, "pool", 1)
    assert bundle.graph_path("int8", "encode").read_bytes() == b"graph"
    assert bundle.precisions == ("int8",)
    assert not [p for p in folder.parent.iterdir() if p.name != "bundle"]


def staged(folder: Path, *stages: str) -> Path:
    """A bundle that ships a file for stages, and asks for these."""
    manifest = replace(Bundle.load(folder).manifest, lexicon="words.tsv", stages=stages)
    return extend_bundle(folder, {"words.tsv": b"a\tb\n"}, manifest).path


def test_stages_that_a_bundle_asks_for_read_its_file(folder: Path) -> None:
    readers: dict[str, StageReader] = {"one": bytes.decode, "two": len, "three": len}
    assert Bundle.load(folder, readers=readers).stage_data == {}, "it has no such file"
    path = staged(folder, "one", "two", "four")
    assert Bundle.load(path, readers=readers).stage_data == {"one": "a\tb\n", "two": 4}
    assert Bundle.load(path).stage_data == {}


def test_what_a_stage_cannot_read_is_a_fault_among_the_others(folder: Path) -> None:
    def refuse(content: bytes) -> object:
        raise VocabularyError(f"line 1 is {content!r}")

    path = staged(folder, "one")
    (path / "extra").write_text("x")
    found = faults(path, readers={"one": refuse})
    assert r"words.tsv: line 1 is b'a\tb\n'" in found and "extra is not part" in found
    remove("words.tsv")(path)
    assert "words.tsv is missing" in faults(path, readers={"one": refuse})


def test_the_file_for_stages_must_be_among_the_files(folder: Path) -> None:
    edit(staged(folder, "one"), lambda manifest: manifest["files"].pop("words.tsv"))
    assert "words.tsv is not among the files of the manifest" in faults(folder)


def test_the_same_bundle_has_the_same_bytes(folder: Path, tmp_path: Path) -> None:
    again = write_bundle(
        tmp_path / "again", MANIFEST, dict(reversed(list(WEIGHTS.items()))),
        {"source.model": PIECES, "target.txt": WordVocabulary(["a", "cat"])}, GRAPHS,
    )  # fmt: skip
    assert (again.path / "manifest.json").read_bytes() == (folder / "manifest.json").read_bytes()


def test_card_says_what_must_be_said(folder: Path) -> None:
    card = (folder / "MODEL_CARD.md").read_text()
    assert card == render_card(MANIFEST)
    for wanted in ("# de-en.small", "CC BY 4.0", "A \\| B", "https://example.org", "33.5", "tandem evaluate x", "MIT"):
        assert wanted in card


def remove(name: str) -> Callable[[Path], None]:
    return lambda folder: (folder / name).unlink()


def alter(folder: Path) -> None:
    content = bytearray((folder / "weights.safetensors").read_bytes())
    content[-1] ^= 1
    (folder / "weights.safetensors").write_bytes(content)


def truncate(folder: Path) -> None:
    (folder / "source.model").write_bytes((folder / "source.model").read_bytes()[:50])


def link_file(folder: Path) -> None:
    (folder.parent / "outside").write_bytes((folder / "source.model").read_bytes())
    (folder / "source.model").unlink()
    (folder / "source.model").symlink_to(folder.parent / "outside")


def link_folder(folder: Path) -> None:
    (folder / "onnx").rename(folder.parent / "onnx")
    (folder / "onnx").symlink_to(folder.parent / "onnx")


def listed(name: str) -> Callable[[Path], None]:
    return lambda folder: edit(folder, lambda m: m["files"].__setitem__(name, "0" * 64))


def pickled(folder: Path) -> None:
    rehash(folder, "weights.pt", pickle.dumps({"a": 1}))


def fifo(folder: Path) -> None:
    os.mkfifo(folder / "pipe")


@pytest.mark.parametrize(
    ("damage", "fault"),
    [
        (remove("manifest.json"), "manifest.json is missing"),
        (remove("weights.safetensors"), "weights.safetensors is missing"),
        (remove("MODEL_CARD.md"), "MODEL_CARD.md is missing"),
        (remove("onnx/int8/encode.onnx"), "encode.onnx is missing"),
        (alter, "weights.safetensors was altered"),
        (truncate, "source.model was altered"),
        (lambda f: (f / "extra.py").write_text("x"), "extra.py is not part"),
        (lambda f: (f / "onnx" / ".hidden").write_text("x"), "onnx/.hidden is not part"),
        (link_file, "source.model is a link"),
        (link_folder, "onnx is a link"),
        (lambda f: (f / "more").symlink_to("/etc/hostname"), "more is a link"),
        (fifo, "pipe is a link or not a plain file"),
        (listed("/etc/passwd"), "leads outside"),
        (listed("../outside"), "leads outside"),
        (listed("onnx/../../outside"), "leads outside"),
        (listed("a\\b"), "not a plain relative path"),
        (listed("C:/x"), "not a plain relative path"),
        (listed("./x"), "not a plain relative path"),
        (listed(""), "not a plain relative path"),
        (pickled, "weights.pt is of a kind that can hold code"),
        (lambda f: edit(f, lambda m: m["files"].pop("weights.safetensors")), "not among the files"),
        (lambda f: edit(f, lambda m: m["files"].pop("target.txt")), "target.txt is not part of the bundle"),
        (lambda f: edit(f, lambda m: m.update(format=2, whatever=1)), "format 2 is newer than 1"),
        (lambda f: edit(f, lambda m: m.update(format=0)), "format must be"),
        (lambda f: edit(f, lambda m: m.pop("format")), "format must be"),
        (lambda f: edit(f, lambda m: m.update(colour="red")), "no key 'colour'"),
        (lambda f: edit(f, lambda m: m.update(task="paint")), "task must be one of"),
        (lambda f: edit(f, lambda m: m.update(name="../x")), "name must be"),
        (lambda f: edit(f, lambda m: m["decoding"].update(beam_size=0)), "beam_size"),
        (lambda f: edit(f, lambda m: m["decoding"].update(suppressed=[99])), "tokens [99]"),
        (lambda f: edit(f, lambda m: m.update(limits=3)), "limits must be a table"),
        (lambda f: (f / "manifest.json").write_text("{"), "not JSON"),
        (lambda f: (f / "manifest.json").write_bytes(b"\xff"), "not JSON"),
        (lambda f: (f / "manifest.json").write_text("[" * 100_000), "not JSON"),
        (lambda f: (f / "manifest.json").write_text("[]"), "format must be"),
        (lambda f: (f / "manifest.json").write_text(" " * 17 * 2**20), "at most"),
        (lambda f: rehash(f, "source.model", b"no model"), "source.model: not a readable"),
        (lambda f: rehash(f, "target.txt", b"a\na\n"), "target.txt: words must differ"),
        (lambda f: rehash(f, "weights.safetensors", b"no weights"), "not a safetensors file"),
        (lambda f: rehash(f, "onnx/graphs.json", b"{}"), "onnx/graphs.json: not a description"),
        (lambda f: rehash(f, "onnx/graphs.json", b"\xff"), "onnx/graphs.json"),
        (shutil.rmtree, "no such folder"),
    ],
)  # fmt: skip
def test_every_refusal(folder: Path, damage: Callable[[Path], Any], fault: str) -> None:
    damage(folder)
    assert fault in faults(folder)


def test_all_faults_are_listed_at_once(folder: Path) -> None:
    alter(folder)
    remove("source.model")(folder)
    (folder / "extra").write_text("x")
    rehash(folder, "onnx/graphs.json", b"{}")
    found = faults(folder)
    for wanted in ("weights.safetensors was altered", "source.model is missing", "extra is not part", "graphs.json"):
        assert wanted in found


def test_a_pickle_named_safetensors_is_not_opened(folder: Path) -> None:
    class Trap:
        def __reduce__(self) -> Any:
            return (pytest.fail, ("a pickle was opened",))

    content = io.BytesIO()
    np.save(content, np.array([Trap()], object), allow_pickle=True)
    for trap in (pickle.dumps(Trap()), content.getvalue()):
        rehash(folder, "weights.safetensors", trap)
        assert "not a safetensors file" in faults(folder, weights=True)


def test_weights_that_are_not_finite_are_refused_when_asked(folder: Path) -> None:
    rehash(folder, "weights.safetensors", save({"w": np.array([1, np.nan], np.float16)}))
    Bundle.load(folder)
    assert "weight 'w' is not finite" in faults(folder, weights=True)
    rehash(folder, "weights.safetensors", save({"w": np.array([1], np.uint8)}))
    assert "dtype must be" in faults(folder, weights=True)


def test_bf16_is_read(tmp_path: Path) -> None:
    header = json.dumps({"w": {"dtype": "BF16", "shape": [3], "data_offsets": [0, 6]}}).encode()
    upper = (np.array([1.5, -2.0, 0.0], np.float32).view(np.uint32) >> 16).astype("<u2").tobytes()
    (tmp_path / "w").write_bytes(len(header).to_bytes(8, "little") + header + upper)
    assert read_weights(tmp_path / "w")["w"].tolist() == [1.5, -2.0, 0.0]


def test_writing_refuses_what_could_not_be_read(tmp_path: Path) -> None:
    both: dict[str, Vocabulary] = {"source.model": PIECES, "target.txt": WordVocabulary(["a"])}
    target = tmp_path / "bundle"
    bad: list[tuple[Any, ...]] = [
        ({"w": np.array([1e5], np.float32)}, both, {}, "at most 65504"),
        ({"w": np.array([np.nan], np.float32)}, both, {}, "finite"),
        (WEIGHTS, {"source.model": PIECES}, {}, "target.txt is not among the files"),
        (WEIGHTS, both, {"../x": b""}, "leads outside"),
        (WEIGHTS, both, {"manifest.json": b""}, "written by the bundle itself"),
        (WEIGHTS, both, {"x.pt": b""}, "can hold code"),
    ]
    for weights, vocabularies, files, fault in bad:
        with pytest.raises(BundleError, match=fault):
            write_bundle(target, MANIFEST, weights, vocabularies, files)
        assert list(tmp_path.iterdir()) == []
    with pytest.raises(ConfigError, match="name"):
        replace(MANIFEST, name="a/b")


def test_an_existing_bundle_is_replaced_only_when_asked(folder: Path) -> None:
    both: dict[str, Vocabulary] = {"source.model": PIECES, "target.txt": WordVocabulary(["a"])}
    with pytest.raises(BundleError, match="already"):
        write_bundle(folder, MANIFEST, WEIGHTS, both)
    bad = {"w": np.array([np.inf], np.float32)}
    with pytest.raises(BundleError, match="finite"):
        write_bundle(folder, MANIFEST, bad, both, overwrite=True)
    assert set(Bundle.load(folder).weights()) == set(WEIGHTS)
    bundle = write_bundle(folder, replace(MANIFEST, licence="BSD"), {"w": np.ones(2, np.float32)}, both, overwrite=True)
    assert bundle.manifest.licence == "BSD" and set(bundle.weights()) == {"w"}
    assert [p.name for p in folder.parent.iterdir()] == ["bundle"]


def test_extending_keeps_the_rest(folder: Path) -> None:
    before = Bundle.load(folder).manifest.files
    proved = replace(MANIFEST, proof={"identical": 1.0})
    after = extend_bundle(folder, {"onnx/int8/step.onnx": b"step"}, proved).manifest
    assert after.proof == {"identical": 1.0}
    changed = {name for name in after.files if after.files[name] != before.get(name)}
    assert changed == {"onnx/int8/step.onnx", "MODEL_CARD.md"}


def test_built_folders(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "made").write_bytes(b"float32 graph")
    specs = specs_to_json(table_specs(9, "rows", 1)).encode()
    add_built(folder, "onnx/float32", {"encode.onnx": tmp_path / "made", "graphs.json": specs})
    add_built(folder, "torchscript/float32", {"step.pt": b"script"})
    bundle = Bundle.load(folder)
    assert bundle.precisions == ("float32", "int8")
    assert bundle.graph_path("float32", "encode").read_bytes() == b"float32 graph"
    assert bundle.graph_specs("float32") == table_specs(9, "rows", 1)
    assert bundle.file("torchscript/float32/step.pt").read_bytes() == b"script"
    for absent in ("onnx/float32/step.onnx", "../outside", "onnx/graphs.txt"):
        with pytest.raises(BundleError, match="tandem export"):
            bundle.file(absent)
    add_built(folder, "onnx/float32", {"encode.onnx": b"new"})
    assert Bundle.load(folder).graph_path("float32", "encode").read_bytes() == b"new"
    with pytest.raises(BundleError, match="shipped"):
        add_built(folder, "onnx/int8", {"x": b""})
    with pytest.raises(BundleError, match="one folder"):
        add_built(folder, "onnx/float32", {"a/x": b""})
    assert {p.name for p in tmp_path.iterdir()} == {"bundle", "made"}


def test_built_folders_are_checked(folder: Path) -> None:
    add_built(folder, "onnx/float32", {"encode.onnx": b"graph", "step.onnx": b"graph"})
    (folder / "onnx/float32/encode.onnx").write_bytes(b"other")
    (folder / "onnx/float32/step.onnx").unlink()
    (folder / "onnx/float32/foreign").write_bytes(b"")
    found = faults(folder)
    for wanted in ("encode.onnx was altered", "step.onnx is missing", "onnx/float32/foreign is not part"):
        assert wanted in found
    (folder / "onnx/float32/built.json").write_text("[]")
    assert "built.json is malformed" in faults(folder)


def test_folders_built_from_other_weights_are_not_used(folder: Path) -> None:
    add_built(folder, "onnx/float32", {"encode.onnx": b"graph"})
    rehash(folder, "weights.safetensors", save({"w": np.ones(1, np.float16)}))
    bundle = Bundle.load(folder)
    assert bundle.precisions == ("int8",)
    with pytest.raises(BundleError, match="other weights"):
        bundle.graph_path("float32", "encode")


def test_what_vanishes_after_loading_is_still_a_clear_error(folder: Path, tmp_path: Path) -> None:
    bundle = Bundle.load(folder)
    remove("weights.safetensors")(folder)
    with pytest.raises(BundleError, match="weights"):
        bundle.weights()
    bare = write_bundle(
        tmp_path / "bare", MANIFEST, WEIGHTS, {"source.model": PIECES, "target.txt": WordVocabulary(["a"])}
    )
    with pytest.raises(BundleError, match=r"no onnx/graphs\.json"):
        bare.graph_specs("int8")
