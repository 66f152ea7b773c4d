"""`tandem native`: our operators for ONNX Runtime, compiled for this kind of processor."""

from __future__ import annotations

import ctypes
import os
import platform
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import typer

from tandem.extras.native.library import LIBRARY
from tandem.models.command import report
from tandem.models.errors import ConfigError

SOURCES = Path(__file__).with_name("src")
HEADER = "onnxruntime_cxx_api.h"
_INCLUDES = tuple(Path(prefix, "include") for prefix in ("/usr/local", "/usr", "/opt/onnxruntime"))
_FLAGS = (
    *("-std=c++17", "-O3", "-fPIC", "-fvisibility=hidden", "-Wall", "-Wextra"),
    # Vectors are wider than some targets' registers, and nobody passes them from one file to another.
    *("-Wno-psabi", "-Wno-unused-parameter", "-fno-math-errno", "-fno-trapping-math", "-ffp-contract=fast"),
)
_AVX512 = ("-march=x86-64-v4", "-mprefer-vector-width=512", "-DLANES=16")
_X86 = {  # name: source, and what it may use
    "kernels_avx512": ("kernels.cpp", _AVX512),
    "kernels_avx2": ("kernels.cpp", ("-march=x86-64-v3", "-DLANES=8")),
    "products_vnni": ("products.cpp", (*_AVX512, "-mavx512vnni")),
    "products_amx": ("products.cpp", (*_AVX512, "-mavx512vnni", "-mamx-tile", "-mamx-int8", "-DTILES")),
}
_ANY: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "kernels_plain": ("kernels.cpp", ("-DLANES=4",)),
    "targets": ("targets.cpp", ()),
    "weights": ("weights.cpp", ()),
    "search": ("search.cpp", ()),
}
_MACHINES: Mapping[str, Mapping[str, tuple[str, tuple[str, ...]]]] = {"x86_64": _X86, "aarch64": {}}


def native(
    include: Annotated[
        Path | None, typer.Option(help=f"Folder of ONNX Runtime's {HEADER}. [found below /usr/local, /usr or /opt]")
    ] = None,
    compiler: Annotated[str, typer.Option(envvar="CXX", help="A C++17 compiler: g++ 12 or newer.")] = "g++",
) -> None:
    """Build the operators that decode faster on the CPU: for ONNX Runtime, in C++ (docs/performance.md).

    They are used from then on by whatever runs ONNX graphs of this installation, unless TANDEM_NATIVE=false.

    Example: tandem native    |    tandem native --include onnxruntime-linux-x64-1.21.0/include
    """
    report(f"{compiler}, for {platform.machine()}")
    built = build(LIBRARY, include or find_include(), compiler)
    print(f"{built}: {kernels_of(built)}")


def kernels_of(library: Path) -> str:
    """Which of its kernels this processor runs, such as ``avx512``. Raises ConfigError where it cannot be loaded."""
    try:
        name = ctypes.CDLL(str(library)).TandemKernels
    except (OSError, AttributeError) as error:
        raise ConfigError(f"{library} cannot be loaded: {error}") from error
    name.restype = ctypes.c_char_p
    return str(name().decode().removeprefix("kernels_"))


def find_include() -> Path:
    """The folder of ONNX Runtime's C++ header. Raises ConfigError where it is in none of the usual places."""
    for folder in _INCLUDES:
        for place in (folder, *sorted(folder.glob("onnxruntime*")), *sorted(folder.glob("onnxruntime*/core/session"))):
            if (place / HEADER).is_file():
                return place
    raise ConfigError(
        f"there is no {HEADER} below {', '.join(map(str, _INCLUDES))}: install it (Debian 13: libonnxruntime-dev), or"
        " unpack a release of ONNX Runtime and name its folder with --include"
    )


def build(out: Path, include: Path, compiler: str = "g++", flags: Sequence[str] = ()) -> Path:
    """Compile the operators.

    Args:
        out: the library's file.
        include: folder of ONNX Runtime's header; any version from 1.21 on serves, and any runtime as new or newer.
        compiler: its name or path.
        flags: further ones.

    Raises:
        ConfigError: another processor than x86-64 or arm64, no compiler, no header, or code that does not compile.
    """
    if not (include / HEADER).is_file():
        raise ConfigError(f"{include} has no {HEADER}: name the folder that has it with --include")
    with TemporaryDirectory(prefix="tandem-native-") as name:
        folder = Path(name)
        _check(compiler)
        given = [*_FLAGS, *flags, "-c", str(SOURCES / "operators.cpp"), "-isystem", str(include.resolve())]
        run([compiler, *given, "-o", "operators.o"], folder)
        objects = compile_kernels(folder, compiler, flags)
        # Its own standard library inside: it shall load on older systems than the one that built it.
        linked = ["-shared", "-static-libstdc++", "-static-libgcc", *flags, *objects, "operators.o"]
        run([compiler, *linked, "-o", "built.so"], folder)
        unfinished = out.with_name(f"{out.name}.{os.getpid()}")  # beside it, so that it takes its place at once
        shutil.copyfile(folder / "built.so", unfinished)
        unfinished.replace(out)
    return out


def compile_kernels(folder: Path, compiler: str, flags: Sequence[str] = ()) -> list[str]:
    """Compile what computes, for each instruction set that this machine's processors may have, into object files.

    Args:
        folder: that takes them.
        compiler: its name or path.
        flags: further ones.

    Returns:
        Their names.

    Raises:
        ConfigError: another processor than x86-64 or arm64, no compiler, or code that does not compile.
    """
    _check(compiler)
    common = (compiler, *_FLAGS, *flags, "-c")
    targets = {**_MACHINES[platform.machine()], **_ANY}
    for name, (source, own) in targets.items():
        run([*common, *own, f"-DTARGET={name}", SOURCES / source, "-o", f"{name}.o"], folder)
    return [f"{name}.o" for name in targets]


def _check(compiler: str) -> None:
    """Raises ConfigError where the operators cannot be compiled."""
    if platform.machine() not in _MACHINES:
        raise ConfigError(f"the operators are for {' and '.join(_MACHINES)}, but this is {platform.machine()}")
    if shutil.which(compiler) is None:
        raise ConfigError(f"there is no compiler {compiler!r}: install g++, or name one with --compiler")


def run(call: Sequence[str | Path], folder: Path) -> None:
    """Run a compiler in a folder. Raises ConfigError with what it said, where it failed."""
    words = [str(word) for word in call]
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True)
    if done.returncode:
        raise ConfigError(f"{' '.join(words)} failed:\n{done.stderr.strip()}")
