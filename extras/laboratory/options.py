"""What every measurement is asked: its options, each declared once. A record's docstring is its command's help."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from typer import Option

from tandem.extras.shared.report import Measurement
from tandem.models.command import LARGEST_BEAM, Precision

LARGEST_BATCH = 4096  # sentences
PEERS, SERVICE_PEERS = ("ctranslate2",), ("naive",)

BundleOption = Annotated[Path, Option(help="Bundle folder, such as bundles/de-fr-en.")]
Beam = Annotated[int, Option("--beam", min=1, max=LARGEST_BEAM, help="Beam size.")]
Workers = Annotated[int, Option(min=0, help="Decode workers of a service; 0 = as it chooses.")]
CoreWorkers = Annotated[int, Option(min=0, help="Threads that decode batches; 0 = one per core.")]
Passes = Annotated[int, Option(min=1, help="Passes over the work, of which medians are taken.")]
Clients = Annotated[int, Option(min=1, max=1024, help="Requests in flight in closed loops.")]
PeerVocabulary = Annotated[int, Option(min=8, help="Types of the peers' random models.")]
Threads = Annotated[int, Option(min=0, help="Threads of PyTorch; 0 = one per core.")]


@dataclass(frozen=True, kw_only=True)
class DecodeOptions(Measurement):
    """Measure decoding: sentences a second of batches, latency of one sentence, memory.

    The work is made of sentences with a fixed distribution of lengths, each batch decoded to its mean source length,
    so that the speed does not depend on the weights; and, where it is given, of real text that stops by itself.

    Example: tandem bench decode --bundle bundles/de-fr-en --batch-sizes 1,32,64 --peers ctranslate2 --json
    |    tandem bench decode --random opus-mt --vocabulary 24000 --batch-sizes 1,8,32
    """

    bundle: Annotated[Path | None, Option(help="Bundle folder, such as bundles/de-fr-en.")] = None
    random: Annotated[
        str, Option(metavar="SHAPE", help="A Transformer with random weights, for all systems: small or opus-mt.")
    ] = ""
    vocabulary: Annotated[int, Option(min=100, max=400_000, help="Types of --random, on either side.")] = 10_000
    batch_sizes: Annotated[str, Option(help="Sentences of a batch; 1 = one sentence alone, one thread.")] = "1,32,64"
    workers: CoreWorkers = 0
    beam_size: Beam = 5
    passes: Passes = 5
    sentences: Annotated[int, Option(min=1, help="Sentences of the forced-length work.")] = 2048
    single: Annotated[int, Option(min=1, help="Sentences decoded alone, at batch size 1.")] = 256
    precision: Precision = "int8"
    shortlist: Annotated[
        bool | None, Option(help="Also with the bundle's lexical shortlist, or a random one. [where it has one]")
    ] = None
    peers: Annotated[str, Option(help="ctranslate2, or nothing.")] = "ctranslate2"
    peer_precisions: Annotated[str, Option(help="Of CTranslate2: int8, float32 or both.")] = "int8"
    peer_vocabulary: PeerVocabulary = 10_000
    source: Annotated[Path | None, Option(help="Real text, one sentence a line (.xz, .gz, plain).")] = None
    references: Annotated[Path | None, Option(help="Its reference translations.")] = None
    limit: Annotated[int | None, Option(min=1, help="Only the first so many lines of real text.")] = None
    ct2_from: Annotated[
        Path | None, Option(metavar="BUNDLE", help="Transformer bundle that CTranslate2 runs on real text.")
    ] = None


@dataclass(frozen=True, kw_only=True)
class ServeOptions(Measurement):
    """Measure the service under load: rates, latencies, rejections, memory, its capacity.

    It runs in a process of its own with the result cache off. Clients send their next request when the last one was
    answered (closed loop), or requests arrive at random moments whatever the service does (open loop), and latency
    counts from the moment at which a request was due. Target lengths are those of the texts.

    Example: tandem bench serve --bundle bundles/de-fr-en --peers naive --json
    """

    bundle: BundleOption
    clients: Clients = 64
    duration: Annotated[float, Option(min=0.1, max=3600, help="Seconds of each run.")] = 20.0
    rates: Annotated[
        list[float] | None, Option("--rate", help="Also load it with so many requests a second; may be repeated.")
    ] = None
    beam_size: Beam = 5
    workers: Annotated[int, Option(min=0, help="Decode workers of each service; 0 = one per core.")] = 0
    passes: Passes = 3
    peers: Annotated[str, Option(help="naive: a service around CTranslate2, one call per request.")] = ""
    peer_vocabulary: PeerVocabulary = 10_000


@dataclass(frozen=True, kw_only=True)
class ReliabilityOptions(Measurement):
    """Put the service through overload, abuse and sudden death; exit status 1 where something is lost.

    docs/reliability.md explains the trials and holds what they found.

    Example: tandem bench reliability --bundle bundles/de-fr-en --only overload,kill
    """

    bundle: BundleOption
    only: Annotated[str, Option(help="Trials to run, such as overload,kill. [all]")] = ""
    duration: Annotated[float, Option(min=1, max=600, help="Seconds of each load.")] = 20.0
    clients: Clients = 64
    workers: Workers = 0
    fuzzing: Annotated[int, Option(min=1, max=3600, help="Seconds of generated requests.")] = 300
    requests: Annotated[int, Option(min=8, help="Requests of the trial of memory, after a quarter as many.")] = 12_000


@dataclass(frozen=True, kw_only=True)
class TrainingOptions(Measurement):
    """Measure training beside the trainer of transformers.

    Both train on a run's prepared pairs, of one text source each, a Transformer of the same layers, width,
    hidden units, heads and vocabularies, the decoder's embeddings tied to its output, dropout and label smoothing 0.1,
    Adam, bfloat16 by autocast where that is faster than float32, about the same padded symbols a batch. They take
    turns, each with other batches every time, and every turn begins with updates that are not timed. Use 50 updates or
    a multiple: grouped by length, transformers gives 50 batches from the longest pairs to the shortest.

    Example: tandem bench training --run runs/de-en --threads 2
    """

    run: Annotated[Path, Option(help="A run's folder with the data that `tandem prepare` has made.")]
    recipe: Annotated[
        Path | None, Option(help="Train what this recipe says on that data, alone; sizes and batches are its own.")
    ] = None
    layers: Annotated[int, Option(min=1, help="Of the Transformer's encoder, and of its decoder.")] = 4
    width: Annotated[int, Option(min=1, help="Of the Transformer.")] = 256
    hidden: Annotated[int, Option(min=1, help="Units of its feed-forward blocks.")] = 1024
    heads: Annotated[int, Option(min=1, help="Of its attentions.")] = 4
    attention_dropout: Annotated[float, Option(min=0, max=1, help="On attention weights, for everyone.")] = 0.0
    batch_tokens: Annotated[int, Option(min=1, help="Half the padded symbols of a batch.")] = 3500
    updates: Annotated[int, Option(min=1, help="That are timed, of each turn.")] = 50
    warmup: Annotated[int, Option(min=1, help="Updates before them.")] = 3
    repeats: Annotated[int, Option(min=1, help="Turns.")] = 3
    threads: Threads = 0


@dataclass(frozen=True, kw_only=True)
class GpuOptions(Measurement):
    """Prove a GPU, line by line: it finds and learns what the CPU does, and how fast, beside others in the same run.

    Exit status 1 where a line fails, 3 where there is no device. A line that cannot be run says why. In a checkout it
    needs no option: a shipped bundle is there, and sentences to try it on; the service is measured where its packages
    are installed.

    Example: tandem bench gpu --out gpu.json --table gpu.md
    """

    device: Annotated[Literal["cuda", "cpu"], Option(help="cpu: a rehearsal in small sizes.")] = "cuda"
    minutes: Annotated[float, Option(min=0.1, max=600, help="For all lines; from 15 on the long form, for 30.")] = 9.5
    only: Annotated[str, Option(help="Lines that begin so, such as equal,step. [all]")] = ""
    bundle: Annotated[Path, Option(help="Bundle for the 16-bit lines and for the service.")] = Path("bundles/de-fr-en")
    source: Annotated[
        Path | None, Option(help="Text for the 16-bit lines, one sentence a line (.xz, plain). [built-in sentences]")
    ] = None
    references: Annotated[Path | None, Option(help="Its reference translations. [what float32 writes on the CPU]")] = (
        None
    )
    limit: Annotated[int, Option(min=1, help="Lines of that text.")] = 1000
    corpora: Annotated[
        Path | None, Option(help="Folder with Multi30k (docs/corpora.md), to train on. [synthetic pairs, as many]")
    ] = None
    table: Annotated[Path | None, Option(help="Also write the table in Markdown to this file.")] = None


@dataclass(frozen=True, kw_only=True)
class TraceOptions(Measurement):
    """Trace one request: how many of our functions in how many files it passes, and how often it changes threads.

    One POST /translate of one sentence goes through the application, in this process, after one that is not counted.

    Example: tandem bench trace --bundle bundles/de-fr-en
    """

    bundle: BundleOption
    text: Annotated[str, Option(help="The sentence.")] = "Wo ist der Bahnhof?"
