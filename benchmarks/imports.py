"""`tandem bench imports`: whether imported models are what was published, and what importing one takes.

Models of the published ones' real shapes, with random weights, are made by transformers in a temporary folder, read as
`tandem import` reads them, and compared: logits, the best of four hypotheses beside ``generate``, and text cut into
pieces. Weights are made so that hypotheses differ and end by themselves. Nothing is downloaded.
"""

from __future__ import annotations

import io
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import sentencepiece
import torch

from benchmarks.options import ImportsOptions
from deploy.report import console, environment, names, say, show_environment, table
from models.graphs import TorchGraphs
from models.protocol import Padded
from models.search import translate_batch
from models.transformer import Transformer
from models.vocabulary import BOS, EOS, TaggedVocabulary
from training.export.sentences import proof_sentences
from training.importing.bundle import load_model, read_model
from training.importing.model import Asked, ForeignModel

BEAM = 4
_LONGEST = 24  # tokens of a hypothesis
_END = 6.0  # by how much the end's logit is raised
_SPECIAL = ("<s>", "<pad>", "</s>", "<unk>")
_COLUMNS = {
    "name": "model",
    "weights": "weights",
    "read_s": "read, s",
    "logits": "largest difference of logits",
    "identical": "hypotheses as generate's",
    "texts": "texts cut alike",
    "bundle_mb": "bundle, MB",
    "import_s": "import, s",
    "import_gb": "import, GB at most",
}


@dataclass(frozen=True, slots=True)
class PublicShape:
    """A published model's shape.

    Attributes:
        kind: names the library's classes: ``Marian`` for ``MarianConfig`` and so on.
        model: the class with an output layer.
        types: of the vocabulary.
        config: of the library.
        write: the vocabulary's files: into a folder, of so many types; returns special ids by name.
        tokenizer: the library's class; empty where it makes its own tokenizer of the files.
        asked: languages.
    """

    kind: str
    model: str
    types: int
    config: Mapping[str, Any]
    write: Callable[[Path, int], dict[str, int]]
    tokenizer: str = ""
    asked: Asked = field(default_factory=lambda: Asked(("en",), ("de",)))


def _trained(**special: Any) -> bytes:
    """A small sentencepiece model of our own sentences, whose ids may be named."""
    model = io.BytesIO()
    lines = [line for language in ("en", "de") for line in proof_sentences(language)]
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines),
        model_writer=model,
        vocab_size=600,
        hard_vocab_limit=False,
        minloglevel=2,
        **special,
    )
    return model.getvalue()


def _pieces(model: bytes) -> list[str]:
    processor = sentencepiece.SentencePieceProcessor()
    processor.LoadFromSerializedProto(model)
    return [processor.id_to_piece(token) for token in range(processor.get_piece_size())]


def _write_json(path: Path, content: Mapping[str, Any]) -> None:
    path.write_text(json.dumps(content, ensure_ascii=False), encoding="utf-8")


def _write_marian(folder: Path, types: int) -> dict[str, int]:
    model = _trained()
    for side in ("source", "target"):
        (folder / f"{side}.spm").write_bytes(model)
    known = [*_pieces(model)[3:], "</s>", "<unk>"]
    np.random.default_rng(1).shuffle(known)
    filler = [f"t{number}" for number in range(types - 1 - len(known))]
    _write_json(folder / "vocab.json", {piece: token for token, piece in enumerate([*known, *filler, "<pad>"])})
    _write_json(folder / "tokenizer_config.json", {"source_lang": "en", "target_lang": "de"})
    end = known.index("</s>")
    return {"pad": types - 1, "eos": end, "decoder_start": types - 1}


def _write_m2m(folder: Path, types: int) -> dict[str, int]:
    model = _trained()
    (folder / "sentencepiece.bpe.model").write_bytes(model)
    tags = ["__en__", "__de__"]
    known = [*_SPECIAL, *_pieces(model)[3:]]
    filler = [f"t{number}" for number in range(types - 8 - len(tags) - len(known))]
    _write_json(folder / "vocab.json", {piece: token for token, piece in enumerate([*known, *filler])})
    _write_json(folder / "special_tokens_map.json", {"additional_special_tokens": tags})
    return {"bos": 0, "pad": 1, "eos": 2, "decoder_start": 2}


def _write_fairseq(tags: Sequence[str], tokenizer: str) -> Callable[[Path, int], dict[str, int]]:
    def write(folder: Path, types: int) -> dict[str, int]:
        (folder / "sentencepiece.bpe.model").write_bytes(_trained())
        added = {str(types - len(tags) + place): {"content": tag} for place, tag in enumerate(tags)}
        _write_json(folder / "tokenizer_config.json", {"added_tokens_decoder": added, "tokenizer_class": tokenizer})
        return {"bos": 0, "pad": 1, "eos": 2, "decoder_start": 2}

    return write


def _write_bart(folder: Path, types: int) -> dict[str, int]:
    words = dict.fromkeys(word for line in proof_sentences("en") for word in line.split() if word.isascii())
    spaced = [f"Ġ{word}" for word in words]
    merges = dict.fromkeys(f"{word[:end]} {word[end]}" for word in spaced for end in range(1, len(word)))
    single = [*map(chr, range(0x21, 0x7F)), *map(chr, range(0xA1, 0xAD)), *map(chr, range(0xAE, 0x144))]
    known = [*_SPECIAL, *single, *dict.fromkeys(merge.replace(" ", "") for merge in merges)]
    filler = [f"t{number}" for number in range(types - 1 - len(known))]
    _write_json(folder / "vocab.json", {piece: token for token, piece in enumerate([*known, *filler, "<mask>"])})
    (folder / "merges.txt").write_text("#version: 0.2\n" + "\n".join(merges), encoding="utf-8")
    return {"bos": 0, "pad": 1, "eos": 2, "decoder_start": 2}


def _write_pegasus(folder: Path, types: int) -> dict[str, int]:
    (folder / "spiece.model").write_bytes(_trained(pad_id=0, eos_id=1, unk_id=2, bos_id=-1))
    return {"pad": 0, "eos": 1, "decoder_start": 0}


def _sizes(layers: int, width: int, hidden: int, heads: int, positions: int = 512, **further: Any) -> dict[str, Any]:
    return {
        **{f"{side}_layers": layers for side in ("encoder", "decoder")},
        **{f"{side}_ffn_dim": hidden for side in ("encoder", "decoder")},
        **{f"{side}_attention_heads": heads for side in ("encoder", "decoder")},
        **{"d_model": width, "max_position_embeddings": positions, "scale_embedding": True},
        **further,
    }


SHAPES: dict[str, PublicShape] = {
    "opus-mt": PublicShape(
        "Marian",
        "MarianMTModel",
        58_101,
        _sizes(6, 512, 2048, 8, activation_function="swish"),
        _write_marian,
        "MarianTokenizer",
    ),
    "opus-mt-tc-big": PublicShape(
        "Marian",
        "MarianMTModel",
        57_829,
        _sizes(6, 1024, 4096, 16, 1024, activation_function="relu"),
        _write_marian,
        "MarianTokenizer",
    ),
    "m2m100-2-layers": PublicShape(
        "M2M100",
        "M2M100ForConditionalGeneration",
        128_112,
        _sizes(2, 1024, 4096, 16, 1024, activation_function="relu"),
        _write_m2m,
        "M2M100Tokenizer",
    ),
    "nllb-600m-2-layers": PublicShape(
        "M2M100",
        "M2M100ForConditionalGeneration",
        256_206,
        _sizes(2, 1024, 4096, 16, 1024, activation_function="relu"),
        _write_fairseq(("eng_Latn", "deu_Latn"), "NllbTokenizer"),
    ),
    "bart-base": PublicShape(
        "Bart",
        "BartForConditionalGeneration",
        50_265,
        _sizes(6, 768, 3072, 12, 1024, activation_function="gelu") | {"scale_embedding": False},
        _write_bart,
        "BartTokenizer",
        Asked(),
    ),
    "mbart-50-2-layers": PublicShape(
        "MBart",
        "MBartForConditionalGeneration",
        250_054,
        _sizes(2, 1024, 4096, 16, 1024, activation_function="gelu"),
        _write_fairseq(("en_XX", "de_DE"), "MBart50Tokenizer"),
    ),
    "pegasus-4-layers": PublicShape(
        "Pegasus",
        "PegasusForConditionalGeneration",
        96_103,
        _sizes(4, 1024, 4096, 16, 1024, activation_function="relu"),
        _write_pegasus,
        asked=Asked(),
    ),
}


def measure(options: ImportsOptions) -> dict[str, Any]:
    """Every chosen shape, one after another.

    Raises:
        ConfigError: an unknown shape.
        ModuleNotFoundError: transformers is not installed.
    """
    chosen = names(options.shapes, "--shapes", tuple(SHAPES)) or tuple(SHAPES)
    torch.set_num_threads(options.threads or torch.get_num_threads())
    rows = []
    for name in chosen:
        say(f"{name} ...", error=True)
        with tempfile.TemporaryDirectory(prefix="tandem-imports-") as folder:
            rows.append({"name": name, **_compared(SHAPES[name], Path(folder) / "model", options)})
    met = all(row["logits"] <= 1e-4 and row["identical"] == row["inputs"] for row in rows)
    return {"environment": environment(torch.get_num_threads()), "beam_size": BEAM, "rows": rows, "met": met}


def show(result: Mapping[str, Any]) -> None:
    """A line a shape."""
    say(show_environment(result["environment"]))
    rows = [
        row | {"identical": f"{row['identical']} of {row['inputs']}", "texts": _share(row), "weights": row["weights"]}
        for row in result["rows"]
    ]
    console().print(table("imported models", _COLUMNS, rows))


def _share(row: Mapping[str, Any]) -> str:
    return f"{row['texts']} of {row['lines']}" if row["lines"] else "not compared"


def _compared(shape: PublicShape, folder: Path, options: ImportsOptions) -> dict[str, Any]:
    published = _publish(shape, folder)
    started = time.perf_counter()
    read = read_model(folder, shape.asked)
    ours = load_model(folder, read)
    seconds = time.perf_counter() - started
    sources = _sources(read, options.inputs)
    found: dict[str, Any] = {
        "weights": f"{read.tensors.numbers / 1e6:.1f} M",
        "read_s": round(seconds, 1),
        "logits": _largest_difference(read, ours, published, sources),
        "identical": _identical(read, ours, published, sources),
        "inputs": len(sources),
        "texts": 0,
        "lines": 0,
    }
    if shape.tokenizer:
        lines = proof_sentences("en") + proof_sentences("de")
        found |= {"texts": _cut_alike(shape, read, folder, lines), "lines": len(lines)}
    del published, ours
    return found | (_imported(shape, folder) if options.whole else {})


def _publish(shape: PublicShape, folder: Path) -> Any:
    """A folder of the shape with random weights, and the library's model of it."""
    transformers = import_module("transformers")
    folder.mkdir(parents=True)
    ids = {f"{name}_token_id": token for name, token in shape.write(folder, shape.types).items()}
    config = getattr(transformers, f"{shape.kind}Config")(vocab_size=shape.types, **shape.config, **ids)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = getattr(transformers, shape.model)(config).eval()
        with torch.no_grad():
            _liven(model, ids["eos_token_id"])
    model.generation_config.update(num_beams=BEAM, max_length=200, bad_words_ids=[[ids["pad_token_id"]]])
    model.save_pretrained(folder)
    return model


def _liven(model: Any, end: int) -> None:
    """Initial weights give all tokens about the same chance: larger ones, and an end that is likelier than others."""
    for name, parameter in model.named_parameters():
        if parameter.dim() > 1 and "embed_positions" not in name:  # sines and cosines stay what they are
            parameter.mul_(2.0)
        elif name.endswith("norm.bias"):
            parameter.normal_(0.0, 0.2)
    decoder = model.model.decoder
    last = getattr(decoder, "layer_norm", None) or decoder.layers[-1].final_layer_norm
    model.model.shared.weight[end] += _END * last.bias / last.bias.norm() ** 2


def _sources(read: ForeignModel, count: int) -> list[list[int]]:
    rng = np.random.default_rng(1)
    return [[*rng.integers(4, 500, size=int(rng.integers(3, 20))).tolist(), EOS] for _ in range(count)]


def _rows(read: ForeignModel) -> list[int]:
    """Their id of each of ours; -1 = none."""
    made = read.plan["target_embedding"].rows
    assert made is not None
    return list(made)


@torch.inference_mode()
def _largest_difference(read: ForeignModel, ours: Transformer, published: Any, sources: Sequence[list[int]]) -> float:
    known = torch.tensor(_rows(read))
    kept = torch.tensor([token for token, row in enumerate(known.tolist()) if row >= 0 and token != BOS])
    worst = 0.0
    for source in sources:
        target = [BOS, *source[:-1]]
        memory = ours.encode((Padded(torch.tensor([source]), torch.tensor([len(source)])),))
        found = ours.score(torch.tensor([target]), memory)[0][:, kept]
        given = {"input_ids": known[torch.tensor([source])], "decoder_input_ids": known[torch.tensor([target])]}
        worst = max(worst, float((found - published(**given).logits[0][:, known[kept]]).abs().max()))
    return worst


def _identical(read: ForeignModel, ours: Transformer, published: Any, sources: Sequence[list[int]]) -> int:
    """How many best hypotheses are those of ``generate``, up to the longest length."""
    known, settings = _rows(read), dict[str, Any]()
    options = replace(read.decoding, beam_size=BEAM, length_penalty=0.0, max_length=_LONGEST, no_repeat_ngram_size=2)
    if read.tags == "both":
        tag = read.target.language_tag(read.targets[0])
        options, settings = replace(options, prefix=(tag,)), {"forced_bos_token_id": known[tag]}
    found = translate_batch(TorchGraphs(ours), [(np.array(source),) for source in sources], options)
    same = 0
    for source, (best,) in zip(sources, found, strict=True):
        ids = torch.tensor([[known[token] for token in source]])
        same += [known[token] for token in best.tokens] == _generated(published, ids, known[EOS], settings)
    return same


def _generated(published: Any, ids: Any, end: int, settings: Mapping[str, Any]) -> list[int]:
    further = {"no_repeat_ngram_size": 2, "length_penalty": 0.0, "early_stopping": True, "num_beams": BEAM}
    made = published.generate(ids, max_length=_LONGEST + 2, forced_eos_token_id=end, **further, **settings)
    tokens: list[int] = made[0, 1:].tolist()
    return tokens[: tokens.index(end)] if end in tokens else tokens


def _cut_alike(shape: PublicShape, read: ForeignModel, folder: Path, lines: Sequence[str]) -> int:
    """How many texts become the same ids, without tags, as by the library's tokenizer."""
    tokenizer = getattr(import_module("transformers"), shape.tokenizer).from_pretrained(folder)
    known, skipped = _rows(read), 1 if read.tags == "both" else 0
    source = TaggedVocabulary(read.source, read.sources[0]) if skipped else read.source
    return sum(
        [known[token] for token in (*source.encode(line), EOS)][skipped:] == tokenizer(line).input_ids[skipped:]
        for line in lines
    )


def _imported(shape: PublicShape, folder: Path) -> dict[str, Any]:
    """The whole command in a process of its own: seconds, the most memory it had, and the bundle's size."""
    out = folder.parent / "bundle"
    languages = [part for code in shape.asked.sources for part in ("--source", code)]
    languages += [part for code in shape.asked.targets for part in ("--target", code)]
    command = [sys.executable, "-c", _CHILD, "import", str(folder), "--out", str(out), *languages]
    started = time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"tandem import failed: {done.stderr}")
    peak = int(done.stdout.splitlines()[-1])
    size = sum(path.stat().st_size for path in _files(out))
    return {
        "import_s": round(time.perf_counter() - started),
        "import_gb": round(peak / 1e9, 1),
        "bundle_mb": round(size / 1e6),
    }


_CHILD = """
import resource, sys
from deploy.cli import app
app(standalone_mode=False)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)
"""


def _files(folder: Path) -> Iterator[Path]:
    return (path for path in folder.rglob("*") if path.is_file())
