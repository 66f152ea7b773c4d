"""A small MarianMT that transformers trains on real text: whether its BLEU is the same through all engines."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import torch

from tandem.extras.importing.bundle import import_bundle, load_model, read_model
from tandem.extras.importing.model import Asked, ForeignModel, Labels
from tandem.extras.proofs.forms import Ct2Model, write_ct2
from tandem.extras.proofs.shapes import BEAM, sentencepiece_model, sizes, write_marian
from tandem.models.search import Graphs
from tandem.models.search.offline import OfflineDecoder
from tandem.models.steps.torch_graphs import TorchGraphs
from tandem.models.translation.translator import translate_lines
from tandem.service.runtimes import open_graphs
from tandem.training.data.corpus import read_lines
from tandem.training.quality.metrics import corpus_metrics

_TYPES = 2000
_SIZES = sizes(2, 128, 4, 128, dropout=0.1)
_ASKED = Asked(("de",), ("en",))
_LONGEST = 100  # tokens of a line, with the end
_SAMPLE = 20_000  # lines of either side that pieces are learnt of
_CALIBRATION = 500  # lines that the 8-bit graphs are fitted to
_LIMIT = 120  # tokens of a hypothesis, and what decoding begins with
_BATCH = 32  # lines that transformers and CTranslate2 get at once


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
    texts = {"transformers float32": _generated(published, tokenizer, lines)}
    texts["Tandem float32"] = _tandem(read, TorchGraphs(load_model(folder, read)), lines)
    with tempfile.TemporaryDirectory(prefix="tandem-imports-") as name:
        ct2, out = Path(name) / "ct2", Path(name) / "de-en"
        write_ct2(ct2, read, published)
        for precision in ("float32", "int8"):
            limits: dict[str, Any] = {"max_decoding_length": _LIMIT - 1, "max_batch_size": _BATCH}
            made = Ct2Model(ct2, precision).translate(tokenizer(lines).input_ids, length_penalty=1.0, **limits)
            texts[f"CTranslate2 {precision}"] = tokenizer.batch_decode(made, skip_special_tokens=True)
        bundle = import_bundle(folder, out, _ASKED, Labels(calibration=train[0][:_CALIBRATION]))
        texts["Tandem int8"] = _tandem(read, open_graphs(bundle, "onnx", "int8", 1), lines)
    bleu, expected = corpus_metrics("translate", "en")["BLEU"], texts["transformers float32"]
    scores = {
        engine: {
            "bleu": round(bleu.corpus_score(own, [references]).score, 2),
            "equal": sum(map(str.__eq__, own, expected)),
        }
        for engine, own in texts.items()
    }
    exact = [score["bleu"] for engine, score in scores.items() if engine.endswith("float32")]
    return {"lines": len(lines), "updates": updates, "scores": scores, "met": max(exact) - min(exact) <= 0.1}


def _train(transformers: Any, folder: Path, text: Sequence[Sequence[str]], updates: int) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    model = sentencepiece_model([line for side in text for line in side[:_SAMPLE]], _TYPES)
    ids = write_marian(folder, _TYPES, model=model, languages=("de", "en"))
    tokenizer = transformers.MarianTokenizer.from_pretrained(folder)
    torch.manual_seed(0)
    made = transformers.MarianMTModel(
        transformers.MarianConfig(vocab_size=_TYPES, **_SIZES, **ids, forced_eos_token_id=None)
    )
    # Marian begins with a vector of zeros, and so does CTranslate2: the row of padding stays what it is at first.
    pad = torch.tensor(ids["pad_token_id"])
    made.get_input_embeddings().weight.register_hook(lambda gradient: gradient.index_fill(0, pad, 0.0))
    cut = tokenizer(text[0], text_target=text[1], truncation=True, max_length=_LONGEST)
    pairs = [{"input_ids": source, "labels": target} for source, target in zip(cut.input_ids, cut.labels, strict=True)]
    with tempfile.TemporaryDirectory(prefix="tandem-imports-") as out:
        arguments = transformers.Seq2SeqTrainingArguments(
            output_dir=out,
            max_steps=updates,
            per_device_train_batch_size=64,
            train_sampling_strategy="group_by_length",
            learning_rate=2e-3,
            lr_scheduler_type="inverse_sqrt",
            warmup_steps=updates // 6,
            adam_beta2=0.98,
            adam_epsilon=1e-9,
            use_cpu=True,
            seed=1,
            report_to="none",
            logging_strategy="no",
            save_strategy="no",
            disable_tqdm=True,
        )
        collator = transformers.DataCollatorForSeq2Seq(tokenizer, model=made)
        trainer = transformers.Seq2SeqTrainer(model=made, args=arguments, train_dataset=pairs, data_collator=collator)
        trainer.remove_callback(transformers.trainer_callback.PrinterCallback)
        trainer.train()
    made.generation_config.update(num_beams=BEAM, max_length=_LIMIT, bad_words_ids=[[ids["pad_token_id"]]])
    made.save_pretrained(folder)


def _generated(published: Any, tokenizer: Any, lines: Sequence[str]) -> list[str]:
    """By ``generate``, in batches of about the same length."""
    order = sorted(range(len(lines)), key=lambda index: len(lines[index]))
    texts: dict[int, str] = {}
    for start in range(0, len(order), _BATCH):
        batch = order[start : start + _BATCH]
        given = tokenizer([lines[index] for index in batch], padding=True, return_tensors="pt")
        made = published.generate(**given, early_stopping=True)
        texts |= zip(batch, tokenizer.batch_decode(made, skip_special_tokens=True), strict=True)
    return [texts[index] for index in range(len(lines))]


def _tandem(read: ForeignModel, graphs: Graphs, lines: Sequence[str]) -> list[str]:
    vocabularies = ((read.source,), read.target)
    return translate_lines(OfflineDecoder(graphs, read.decoding), vocabularies, [lines], max_source_tokens=_LONGEST)
