"""A small MarianMT that transformers trains on real text: whether its BLEU is the same through all engines."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from importlib import import_module
from itertools import islice
from pathlib import Path
from typing import Any

import sentencepiece
import torch

from benchmarks.imports.forms import Ct2Model, ct2_names, write_ct2
from benchmarks.imports.shapes import BEAM, sentencepiece_model, sizes, write_marian
from benchmarks.training.huggingface import training_arguments
from models.graphs import TorchGraphs
from models.search import Graphs
from models.search.offline import OfflineDecoder
from models.translator import translate_lines
from service.runtimes import open_graphs
from training.data.corpus import read_lines
from training.importing.bundle import Labels, import_bundle, load_model, read_model
from training.importing.model import Asked, ForeignModel
from training.metrics import corpus_metrics

_TYPES = 4000
_SIZES = sizes(2, 128, 512, 4, 128, activation_function="swish", dropout=0.1)
_ASKED = Asked(("de",), ("en",))
_LONGEST = 99  # tokens of a line, without the end
_SAMPLE = 20_000  # lines of either side that pieces are learnt of
_CALIBRATION = 500  # lines that the 8-bit graphs are fitted to


def measure_trained(folder: Path, text: Path, updates: int, limit: int) -> dict[str, Any]:
    """BLEU of test lines through transformers, CTranslate2 and Tandem, with the share of equal lines.

    Args:
        folder: of the model; trained where there is none yet.
        text: folder of ``{train,test}.{de,en}.xz``.
        updates: of the training, 64 pairs each.
        limit: test lines.
    """
    transformers = import_module("transformers")
    train = [read_lines(text / f"train.{language}.xz") for language in ("de", "en")]
    if not (folder / "config.json").is_file():
        _train(transformers, folder, train, updates)
    lines, references = (read_lines(text / f"test.{language}.xz")[:limit] for language in ("de", "en"))
    published = transformers.MarianMTModel.from_pretrained(folder).eval()
    tokenizer = transformers.MarianTokenizer.from_pretrained(folder)
    read = read_model(folder, _ASKED)
    found = {"transformers float32": _batches(lines, lambda some: _generated(published, tokenizer, some))}
    with tempfile.TemporaryDirectory(prefix="tandem-imports-") as name:
        ct2, out = Path(name) / "ct2", Path(name) / "de-en"
        write_ct2(ct2, published, ct2_names(read, published), ends=False)
        for precision in ("float32", "int8"):
            peer = Ct2Model(ct2, precision)
            found[f"CTranslate2 {precision}"] = _batches(lines, partial(_ct2, peer, tokenizer))
        found["Tandem float32"] = _tandem(read, TorchGraphs(load_model(folder, read)), lines)
        bundle = import_bundle(folder, out, _ASKED, Labels(calibration=train[0][:_CALIBRATION]))
        found["Tandem int8"] = _tandem(read, open_graphs(bundle, "onnx", "int8", 1), lines)
    bleu, expected = corpus_metrics("translate")["BLEU"], found["transformers float32"]
    scores = {
        engine: {
            "bleu": round(bleu.corpus_score(texts, [references]).score, 2),
            "equal": sum(map(str.__eq__, texts, expected)),
        }
        for engine, texts in found.items()
    }
    exact = [score["bleu"] for engine, score in scores.items() if engine.endswith("float32")]
    return {"lines": len(lines), "updates": updates, "scores": scores, "met": max(exact) - min(exact) <= 0.1}


def _train(transformers: Any, folder: Path, text: Sequence[Sequence[str]], updates: int) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    model = sentencepiece_model([line for side in text for line in side[:_SAMPLE]], _TYPES)
    ids = write_marian(folder, _TYPES, model=model, languages=("de", "en"))
    tokenizer = transformers.MarianTokenizer.from_pretrained(folder)  # of the collator, for its padding
    table, processor = tokenizer.encoder, sentencepiece.SentencePieceProcessor(model_proto=model)
    config = transformers.MarianConfig(vocab_size=_TYPES, **_SIZES, **ids, forced_eos_token_id=None)
    torch.manual_seed(0)
    made = transformers.MarianMTModel(config)
    cut = (
        [[table[p] for p in line if p in table][:_LONGEST] for line in processor.encode([*side], out_type=str)]
        for side in text
    )
    end = ids["eos_token_id"]
    pairs = [{"input_ids": [*source, end], "labels": [*target, end]} for source, target in zip(*cut, strict=True)]
    with tempfile.TemporaryDirectory(prefix="tandem-imports-") as out:
        arguments = training_arguments(
            out, updates=updates, rows=64, seed=1, bf16=False, learning_rate=2e-3, logging_strategy="steps"
        )
        collator = transformers.DataCollatorForSeq2Seq(tokenizer, model=made)
        transformers.Seq2SeqTrainer(model=made, args=arguments, train_dataset=pairs, data_collator=collator).train()
    made.generation_config.update(num_beams=BEAM, max_length=120, bad_words_ids=[[ids["pad_token_id"]]])
    made.save_pretrained(folder)


def _batches(lines: Sequence[str], translate: Callable[[list[str]], Iterator[str]], size: int = 32) -> list[str]:
    """Translations of lines, which go in batches of about the same length."""
    order = iter(sorted(range(len(lines)), key=lambda index: len(lines[index])))
    found: dict[int, str] = {}
    while batch := list(islice(order, size)):
        found |= zip(batch, translate([lines[index] for index in batch]), strict=True)
    return [found[index] for index in range(len(lines))]


def _generated(published: Any, tokenizer: Any, lines: list[str]) -> Iterator[str]:
    made = published.generate(**tokenizer(lines, padding=True, return_tensors="pt"), early_stopping=True)
    return (tokenizer.decode(tokens, skip_special_tokens=True) for tokens in made)


def _ct2(peer: Ct2Model, tokenizer: Any, lines: list[str]) -> Iterator[str]:
    found = peer.translate(tokenizer(lines).input_ids, length_penalty=1.0)
    return (tokenizer.decode(one.tokens, skip_special_tokens=True) for one in found)


def _tandem(read: ForeignModel, graphs: Graphs, lines: Sequence[str]) -> list[str]:
    vocabularies = ((read.source,), read.target)
    return translate_lines(OfflineDecoder(graphs, read.decoding), vocabularies, [lines], max_source_tokens=_LONGEST + 1)
