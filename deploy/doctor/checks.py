"""From facts to verdicts: each check is a function of what was found, and says what to do where something is wrong."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from deploy.doctor.bundles import Examined
from deploy.doctor.port import PortFacts
from deploy.machine import ClockFacts, Gpu, MemoryFacts, Processor

Verdict = Literal["ok", "warning", "fault"]
PROCESS_BYTES = 110 << 20  # a server on ONNX Runtime without a bundle
TORCH_BYTES = 150 << 20  # more, once PyTorch is loaded
GRAPH_FACTOR = 1.5  # graphs in memory: their file, and what is repacked for the matrix kernels
TORCH_FACTOR = 3.0  # weights in memory: their file's 16 bits as 32, and what building the model leaves behind
COMFORT = 2.0  # batches and queues need room beside what is loaded
FAST_CLOCKS = (
    "tsc",
    "kvm-clock",
    "arch_sys_counter",
    "hyperv_clocksource_tsc_page",
    "riscv_clocksource",
)


@dataclass(frozen=True, slots=True)
class Check:
    """One finding: ``fault`` keeps the service from serving, ``warning`` does not; ``remedy`` is what to do."""

    name: str
    verdict: Verdict
    message: str
    remedy: str = ""


@dataclass(frozen=True, slots=True)
class SettingsFacts:
    """The settings in effect that decide what runs how; ``workers`` is the number chosen where the setting is 0."""

    runtime: str
    precision: str
    threads: int
    workers: int
    bundles: tuple[str, ...]
    host: str
    port: int


@dataclass(frozen=True, slots=True)
class Facts:
    """Everything that was found.

    Attributes:
        onnx_runtimes: installed distributions that bring the package ``onnxruntime``.
        telemetry_off: whether ONNX Runtime was told not to report usage; Tandem itself never reports any.
        path_faults: configured paths without a bundle.
    """

    processor: Processor
    memory: MemoryFacts
    gpu: Gpu
    clock: ClockFacts
    versions: Mapping[str, str]
    onnx_runtimes: tuple[str, ...]
    telemetry_off: bool
    settings: SettingsFacts
    port: PortFacts
    bundles: tuple[Examined, ...]
    path_faults: tuple[str, ...] = ()


def all_checks(facts: Facts) -> list[Check]:
    """Every check, in the order in which people should read them."""
    return [
        *_bundle_checks(facts),
        *(check(facts) for check in _CHECKS),
    ]


def can_serve(checks: list[Check]) -> bool:
    """Whether nothing is a fault."""
    return all(check.verdict != "fault" for check in checks)


def _bundle_checks(facts: Facts) -> list[Check]:
    set_bundles = "set TANDEM_BUNDLES, or --bundle, to a bundle or a folder of bundles"
    checks = [Check("bundles", "fault", fault.partition("; set ")[0], set_bundles) for fault in facts.path_faults]
    for one in facts.bundles:
        name = f"bundle {one.name or one.path}"
        if one.faults:
            remedy = "fetch or export the bundle again, or leave its folder out of TANDEM_BUNDLES"
            checks.append(Check(name, "fault", "; ".join(one.faults), remedy))
        elif one.served and one.served.runtime == "onnx" and one.served.precision not in ("float32", *one.proven):
            message = f"it is served in {one.served.precision}, whose accuracy the bundle does not prove"
            checks.append(Check(name, "warning", message, f"prove it: tandem verify {one.path} --record"))
        else:
            checks.append(Check(name, "ok", f"sound; served on {one.served or 'the fastest'} ({one.why})"))
        failed = [m for m in one.measurements if m.error and m.error not in one.faults]
        for m in failed:
            message = f"{m.runtime} {m.precision} cannot be used: {m.error}"
            checks.append(Check(name, "warning", message, "build its graphs again with tandem export, or leave it"))
    return checks


def _onnx_runtime(facts: Facts) -> Check:
    found = facts.onnx_runtimes
    if len(found) > 1:
        message = f"{' and '.join(found)} are installed together: they are one import package and overwrite each other"
        return Check("onnxruntime", "warning", message, f"pip uninstall {' '.join(found)}, then install one of them")
    if found:
        return Check("onnxruntime", "ok", f"{found[0]} is installed, alone")
    needed = facts.settings.runtime in ("onnx", "auto")
    message = "ONNX Runtime is not installed"
    remedy = "install tandem with its extra [serve] (make serve does)"
    return Check("onnxruntime", "fault" if needed else "ok", message, remedy if needed else "")


def _int8(facts: Facts) -> Check:
    served = [one.name for one in facts.bundles if one.served and one.served.precision == "int8"]
    if not served:
        return Check("int8", "ok", "no bundle is served in int8")
    if not facts.processor.is_x86:
        return Check("int8", "ok", "this processor sums 8-bit products without saturation")
    has = facts.processor.has_vnni
    if has is None:
        return Check("int8", "ok", "the system does not tell whether the processor has VNNI instructions")
    if has:
        return Check("int8", "ok", "the processor has VNNI instructions: 8-bit products are summed exactly")
    message = "the processor lacks VNNI instructions: pairs of 8-bit products may saturate, which loses accuracy"
    remedy = "compare with tandem evaluate --precision float32; build float32 graphs with tandem export --add float32"
    return Check("int8", "warning", f"{message} ({', '.join(served)})", remedy)


def _workers(facts: Facts) -> Check:
    settings, cores = facts.settings, facts.processor.usable_cores
    busy = settings.workers * settings.threads
    count = f"{counted(settings.workers, 'decode worker')} of {counted(settings.threads, 'thread')}"
    if busy > cores:
        remedy = "lower TANDEM_WORKERS (0 = chosen from the cores) or TANDEM_THREADS"
        message = f"{count} each share {counted(cores, 'usable core')} and slow each other down"
        return Check("workers", "warning", message, remedy)
    return Check("workers", "ok", f"{count} each on {counted(cores, 'usable core')}")


def _threads(facts: Facts) -> Check:
    if facts.settings.threads > 1:
        message = f"{facts.settings.threads} threads a model call: an answer may depend on what it is decoded with"
        remedy = "set TANDEM_THREADS=1 for byte-identical answers; more workers use the cores better, too"
        return Check("threads", "warning", message, remedy)
    return Check("threads", "ok", "one thread a model call: answers do not depend on what they are decoded with")


def _memory(facts: Facts) -> Check:
    need, bound = memory_need(facts), facts.memory.bound
    if bound is None:
        return Check("memory", "ok", f"about {_mebibytes(need)} needed; the system does not say what there is")
    what = "the memory limit" if bound == facts.memory.limit else "the machine's memory"
    if bound < need:
        message = f"{what} is {_mebibytes(bound)}, but the bundles need about {_mebibytes(need)}"
        return Check("memory", "fault", message, "raise the limit, or serve fewer bundles")
    if bound < COMFORT * need:
        message = f"{what} is {_mebibytes(bound)}: loaded bundles need about {_mebibytes(need)}, batches come on top"
        remedy = "raise the limit, or lower TANDEM_MAX_BATCH_TOKENS and TANDEM_MAX_QUEUE_TOKENS"
        return Check("memory", "warning", message, remedy)
    if facts.memory.available is not None and facts.memory.available < need:
        message = f"only {_mebibytes(facts.memory.available)} are available now, and about {_mebibytes(need)} needed"
        return Check("memory", "warning", message, "end what else runs on this machine")
    return Check("memory", "ok", f"about {_mebibytes(need)} needed of {_mebibytes(bound)}")


def memory_need(facts: Facts) -> int:
    """Bytes that a server with these bundles has resident before its first request, about and at least."""
    need, torch = float(PROCESS_BYTES), False
    for one in facts.bundles:
        sizes = one.graph_bytes or {}
        served = one.served
        if served is None or served.runtime == "onnx":
            size = sizes.get(served.precision, 0) if served else max(sizes.values(), default=0)
            need += GRAPH_FACTOR * size
        else:
            torch = True
            need += TORCH_FACTOR * (one.bytes - sum(sizes.values()))
    return int(need + (TORCH_BYTES if torch else 0))


def _port(facts: Facts) -> Check:
    port = facts.port
    where = f"{port.host}:{port.port}"
    if port.state == "service":
        remedy = "nothing, if it is this service that runs; a second one needs another TANDEM_PORT"
        return Check("port", "warning", f"a Tandem service answers at {where} already", remedy)
    if port.state == "taken":
        remedy = "stop the other program, or set TANDEM_PORT (0 = any free one)"
        return Check("port", "fault", f"another program listens at {where}", remedy)
    if port.state == "unusable":
        message = f"cannot listen at {where}: {port.error}"
        return Check("port", "fault", message, "set TANDEM_HOST and TANDEM_PORT to an address of this machine")
    return Check("port", "ok", f"{where} is free" if port.port else f"any free port at {port.host}")


def _clock(facts: Facts) -> Check:
    source = facts.clock.source
    if not source:
        return Check("clock", "ok", "the system does not name its clock source")
    if source in FAST_CLOCKS:
        return Check("clock", "ok", f"the clock source is {source}")
    message = f"the clock source is {source}, whose every reading goes through the kernel: steps take longer"
    return Check("clock", "warning", message, "find out why the kernel does not use the processor's own clock")


def _telemetry(facts: Facts) -> Check:
    if facts.telemetry_off:
        return Check("telemetry", "ok", "off: ONNX Runtime was told so before it was loaded; Tandem has none")
    message = "ONNX Runtime may report usage: ORT_DISABLE_TELEMETRY was changed after Tandem had set it"
    return Check("telemetry", "warning", message, "set ORT_DISABLE_TELEMETRY=1 in the service's environment")


def _accelerators(facts: Facts) -> Check:
    gpus = facts.gpu.nvidia_smi or facts.gpu.torch_devices or ()
    bf16 = [name for name in ("amx_bf16", "avx512_bf16", "bf16") if facts.processor.features.get(name)]
    told = [f"a GPU is there ({gpus[0]}) and not used: the runtimes run on the processor"] if gpus else []
    told += [f"the processor has {' and '.join(bf16)}, which nothing uses: bundles hold no bf16 graphs"] if bf16 else []
    return Check("accelerators", "ok", "; ".join(told) or "no GPU, and no bf16 instructions")


_CHECKS: tuple[Callable[[Facts], Check], ...] = (
    *(_onnx_runtime, _int8, _workers, _threads, _memory, _port, _clock, _telemetry, _accelerators),
)


def counted(number: int, noun: str) -> str:
    """``1 core``, ``2 cores``."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _mebibytes(size: float) -> str:
    return f"{size / (1 << 20):,.0f} MiB"
