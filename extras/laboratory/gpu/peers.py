"""Others on the same device in the same run: models of one size with random weights, hypotheses of one length."""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch

from tandem.extras.gpu.capture import CapturedStep
from tandem.extras.laboratory.gpu.lines import Found, Missing
from tandem.extras.laboratory.gpu.search import search, sizes_for, synchronise
from tandem.extras.laboratory.gpu.subjects import random_sources, search_options
from tandem.extras.laboratory.transformers import marian, random_transformer
from tandem.extras.laboratory.workload import TransformerSize
from tandem.models.search import Array
from tandem.models.steps.torch_graphs import AnyModel
from tandem.models.vocabulary import PAD, UNK

_TYPES, _LENGTH, _PASSES = 10_000, 32, 3
_SIZE, _SMALL = TransformerSize(), TransformerSize(layers=2, width=32, hidden=64, heads=2, positions=128)


def huggingface(*, device: str, small: bool, dtype: str, sentences: int, beam_size: int) -> Found:
    """Beside `generate` of transformers, on MarianMT."""
    if find_spec("transformers") is None:
        raise Missing("transformers is not installed")
    types, length, size = (200, 8, _SMALL) if small else (_TYPES, _LENGTH, _SIZE)
    ours = _transformer(size, types)
    sources = random_sources(ours, sentences, (length, length))
    theirs = marian(size, (types, types)).to(device, getattr(torch, dtype)).eval()
    ids = torch.tensor([source[0].tolist() for source in sources], device=device)
    mask = torch.ones_like(ids)

    def generate() -> Any:
        with torch.inference_mode():
            return theirs.generate(
                input_ids=ids,
                attention_mask=mask,
                num_beams=beam_size,
                do_sample=False,
                min_new_tokens=length,
                max_new_tokens=length,
                bad_words_ids=[[UNK], [PAD]],
            )

    return _beside("transformers generate", generate, ours, sources, device, dtype, (length, beam_size))


def ctranslate2(*, device: str, small: bool, dtype: str, sentences: int, beam_size: int) -> Found:
    """Beside CTranslate2, where it is installed for this device."""
    if lacking := ctranslate2_lacks(device):
        raise Missing(lacking)
    import ctranslate2

    from tandem.extras.laboratory.decoding.conversion import random_tokens, write_random

    types, length, size = (200, 8, _SMALL) if small else (_TYPES, _LENGTH, _SIZE)
    ours, names = _transformer(size, types), random_tokens(types)
    sources = random_sources(ours, sentences, (length, length))
    texts = [[names[token] for token in source[0].tolist()] for source in sources]
    with tempfile.TemporaryDirectory(prefix="tandem-ctranslate2-") as folder:
        write_random(Path(folder), size, types, "float32")
        translator = ctranslate2.Translator(folder, device=device, compute_type=dtype)

        def translate() -> Any:
            return translator.translate_batch(
                texts,
                beam_size=beam_size,
                max_batch_size=0,
                min_decoding_length=length,
                max_decoding_length=length,
            )

        return _beside("ctranslate2", translate, ours, sources, device, dtype, (length, beam_size))


def ctranslate2_lacks(device: str) -> str:
    """Why CTranslate2 cannot be run on a device; empty where it can."""
    if find_spec("ctranslate2") is None:
        return "ctranslate2 is not installed"
    import ctranslate2

    return "" if device == "cpu" or ctranslate2.get_cuda_device_count() else "ctranslate2 sees no CUDA device here"


def _transformer(size: TransformerSize, types: int) -> AnyModel:
    """Our own Transformer of that size, in which nothing is the same as in the peers' but the sizes."""
    model = random_transformer(size, types, tied="decoder")
    model.prepare_for_inference()
    return model


def _beside(
    name: str,
    theirs: Callable[[], Any],
    ours: AnyModel,
    sources: list[tuple[Array, ...]],
    device: str,
    dtype: str,
    search_of: tuple[int, int],
) -> Found:
    """Both by turns: target symbols a second, and how many times as fast ours is."""
    length, beam_size = search_of
    model = ours.to(device, getattr(torch, dtype))
    options = search_options(beam_size, length, length)
    sizes = sizes_for((len(sources),), length, options)
    step = CapturedStep(model, beam_size=beam_size, sizes=sizes)

    def own() -> Any:
        return search(model, sources, options, sizes, step=step)

    rates: dict[str, list[float]] = {"tandem": [], name: []}
    for run in (own, theirs):
        run()
    for _ in range(_PASSES):
        for who, run in (("tandem", own), (name, theirs)):
            synchronise(device)
            started = time.perf_counter()
            run()
            synchronise(device)
            rates[who].append(len(sources) * length / (time.perf_counter() - started))
    medians = {who: statistics.median(values) for who, values in rates.items()}
    times = statistics.median(mine / their for mine, their in zip(rates["tandem"], rates[name], strict=True))
    figures = {"tokens_per_s": medians, "tandem_is_times_as_fast": times, "dtype": dtype}
    return Found(f"tandem {medians['tandem']:,.0f} tokens/s, {name} {medians[name]:,.0f}: {times:.2f} times", figures)
